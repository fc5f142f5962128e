"""Files of other programs are read as they are.

Source: protocol.md, "MCP servers"; the shapes are those that the programs' own documents show, November 2026.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.config_files.jsonc import JsoncError, read_jsonc
from sidecar.config_files.server_files import (
    InputDefinition,
    ServerFile,
    ServerFileError,
    read_inputs,
    read_server_file,
)

GIT = {"command": "uvx", "args": ["mcp-server-git"]}

CLAUDE_DESKTOP = """
{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}
}
"""
VSCODE = """
{
  // Asked once, by the editor.
  "inputs": [
    {"type": "promptString", "id": "token", "description": "GitHub token", "password": true},
    {
      "type": "pickString", "id": "region", "description": "Region",
      "options": ["eu", {"label": "US", "value": "us"}], "default": "eu"
    },
  ],
  "servers": {
    "git": {"command": "uvx", "args": ["mcp-server-git",], /* as is */ },
    "github": {
      "type": "http", "url": "https://api.example.com/mcp//x", "headers": {"Authorization": "${input:token}"},
    },
  },
}
"""
VSCODE_SETTINGS = """
{
  "editor.fontSize": 12,
  "mcp": {"inputs": [], "servers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}
}
"""
CURSOR = """{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}"""
ZED = """
{ // Zed settings
  "context_servers": {
    "git": {"source": "custom", "command": "uvx", "args": ["mcp-server-git"], "enabled": false},
    "old": {"command": {"path": "uvx", "args": ["mcp-server-git"], "env": {"A": "1"}}, "settings": {}}
  }
}
"""
CLINE = CURSOR.replace("]}", '], "disabled": true, "autoApprove": ["git_log"]}')
ROO = CURSOR.replace("]}", '], "alwaysAllow": ["git_log"]}')
GEMINI = CURSOR.replace("]}", '], "trust": true}')
WINDSURF = """{"mcpServers": {"remote": {"serverUrl": "https://example.com/sse", "headers": {"X": "y"}}}}"""
ENTRIES_ALONE = """{"git": {"command": "uvx", "args": ["mcp-server-git"]}}"""


def warned(name: str) -> tuple[str, ...]:
    return (f"git.{name} is ignored; what runs unasked is said in `permissions`",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CLAUDE_DESKTOP, ServerFile(format="mcpServers", servers={"git": GIT})),
        (VSCODE_SETTINGS, ServerFile(format="mcp.servers", servers={"git": GIT})),
        (CURSOR, ServerFile(format="mcpServers", servers={"git": GIT})),
        (
            ZED,
            ServerFile(
                format="context_servers",
                servers={
                    "git": {"source": "custom", **GIT, "disabled": True},
                    "old": {**GIT, "env": {"A": "1"}, "settings": {}},
                },
            ),
        ),
        (
            CLINE,
            ServerFile(
                format="mcpServers", servers={"git": {**GIT, "disabled": True}}, warnings=warned("autoApprove")
            ),
        ),
        (ROO, ServerFile(format="mcpServers", servers={"git": GIT}, warnings=warned("alwaysAllow"))),
        (GEMINI, ServerFile(format="mcpServers", servers={"git": GIT}, warnings=warned("trust"))),
        (
            WINDSURF,
            ServerFile(
                format="mcpServers",
                servers={"remote": {"serverUrl": "https://example.com/sse", "headers": {"X": "y"}}},
            ),
        ),
        (ENTRIES_ALONE, ServerFile(format="mcpServers", servers={"git": GIT})),
        ("\ufeff" + CURSOR, ServerFile(format="mcpServers", servers={"git": GIT})),
        (CURSOR.replace("\n", "\r\n"), ServerFile(format="mcpServers", servers={"git": GIT})),
        ('{"mcpServers": null}', ServerFile(format="mcpServers")),
        ('{"mcpServers": []}', ServerFile(format="mcpServers")),
        ("{}", ServerFile(format="empty")),
        ("", ServerFile(format="empty")),
        ("\ufeff\n", ServerFile(format="empty")),
        ('{"theme": "dark"}', ServerFile(format="empty")),
    ],
)
def test_a_file_is_read_in_the_shape_of_its_program(text: str, expected: ServerFile) -> None:
    assert read_server_file(text) == expected


def test_comments_and_trailing_commas_are_passed_over_and_inputs_are_kept() -> None:
    read = read_server_file(VSCODE)
    assert read.format == "servers"
    assert read.servers["git"] == GIT
    assert read.servers["github"]["url"] == "https://api.example.com/mcp//x"
    token, region = read.inputs
    assert (token.id, token.description, token.password) == ("token", "GitHub token", True)
    assert (region.choices, region.default) == (("eu", "us"), "eu")


def test_a_project_of_claude_code_outweighs_what_holds_everywhere() -> None:
    mine = {"command": "mine"}
    text = json.dumps({"mcpServers": {"git": GIT, "b": GIT}, "projects": {"/p": {"mcpServers": {"git": mine}}}})
    assert read_server_file(text).servers == {"git": GIT, "b": GIT}
    assert read_server_file(text, project="/q").servers == {"git": GIT, "b": GIT}
    assert read_server_file(text, project="/p").servers == {"git": mine, "b": GIT}


def test_a_broken_entry_takes_no_other_along() -> None:
    text = json.dumps({"mcpServers": {"a": 5, "b": {"command": ["x"]}, "c": None, "git": GIT}})
    assert read_server_file(text).servers == {"a": 5, "b": {"command": ["x"]}, "c": None, "git": GIT}


def test_a_name_that_is_there_twice_is_told() -> None:
    read = read_server_file('{"mcpServers": {"git": {"command": "a"}, "git": {"command": "b"}}}')
    assert read.servers == {"git": {"command": "b"}}
    assert read.warnings == ("'git' is there twice; the last one counts",)


@pytest.mark.parametrize(
    ("raw", "read", "said"),
    [
        (None, 0, []),
        ([], 0, []),
        ("token", 0, ["inputs: must be an array; it is passed over"]),
        ([{"id": "a"}, {"type": "promptString"}, 7], 1, ["inputs[1].id: is required", "inputs[2]: must be"]),
    ],
)
def test_an_input_that_cannot_be_used_takes_no_other_along(raw: Any, read: int, said: list[str]) -> None:
    warnings: list[str] = []
    assert len(read_inputs(raw, warnings)) == read
    assert len(warnings) == len(said)
    assert all(warning.startswith(start) for warning, start in zip(warnings, said, strict=True))


def test_the_default_of_an_input_is_not_shown() -> None:
    assert "hush" not in repr(InputDefinition(id="a", default="hush"))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"mcpServers":\n\n nope}', 3, "Expecting value"),
        ('{\n// a\n/* b\n*/\n"a": 1,,\n}', 6, "Expecting property name"),
        ("[1]", 1, "must hold a JSON object"),
        ('{"mcpServers": "git"}', 0, "mcpServers: must be an object of servers by name"),
        ('{"a": "not closed', 1, "Unterminated string"),
        ("/* not closed", 1, "Expecting value"),
        ('{"a": ' * 100_000, 0, "is nested too deep"),
        ('{"a": ' + "1" * 5000 + "}", 0, "Exceeds the limit"),
    ],
    ids=range(8),
)
def test_a_file_that_cannot_be_read_is_told_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(ServerFileError) as caught:
        read_server_file(text)
    assert (caught.value.line, str(caught.value)[: len(reason)]) == (line, reason)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(_JSON, st.sampled_from(["", " ", "\n", "// a, b ] }\n", '/* " , } */', "/**/\n//\n"]))
def test_json_with_comments_anywhere_is_the_json_without_them(value: Any, comment: str) -> None:
    """Whatever stands in its strings: each gap between tokens, and after the last element, takes a comment."""
    pieces = json.JSONEncoder(indent=1).iterencode(value)
    text = "".join(piece.replace("\n", f"{comment}\n") if not piece.startswith('"') else piece for piece in pieces)
    assert read_jsonc(text) == (value, ())


@given(st.text(alphabet='{}[]",:/*\\ \n1a', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_jsonc(text)
    except JsoncError as error:
        assert error.line >= 0
