"""What a workspace brings along is read without being believed, and trust is about exactly that content.

Source: protocol.md, "Workspaces and trust".
"""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sidecar.config_files.shown import shown_files
from sidecar.config_files.trust import TrustBook
from sidecar.config_files.workspace import MAX_FILE_BYTES, read_workspace

GIT = {"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = (tmp_path / "repo").resolve()
    made.mkdir()
    return made


def write(folder: Path, name: str, held: Any) -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(held if isinstance(held, str) else json.dumps(held))
    return file


# Reading ------------------------------------------------------------------------------------------------


def test_every_file_is_read_and_one_that_is_broken_takes_no_other_along(folder: Path) -> None:
    write(folder, ".mcp.json", "{\n nope")
    write(folder, ".vscode/mcp.json", {"servers": {"a": {"command": "a"}}, "inputs": [{"id": "t"}]})
    write(folder, ".cursor/mcp.json", {"mcpServers": {"b": {"command": "b", "autoApprove": ["x"]}}})
    write(
        folder,
        ".agent-sidecar.toml",
        'model = "a/b"\ntools = ["x.py"]\n[providers.x]\n[mcpServers.c]\ncommand = "c"',
    )
    read = read_workspace(folder)
    assert read.says_something and read.refused == ()
    own, claude, vscode, cursor = read.files
    assert (own.settings, own.servers) == ({"model": "a/b"}, {"c": {"command": "c"}})
    assert [warning.partition(" does not count")[0] for warning in own.warnings] == [
        ".agent-sidecar.toml: tools",
        ".agent-sidecar.toml: providers",
    ]
    assert claude.warnings == (".mcp.json:2: Expecting property name enclosed in double quotes; it is not used",)
    assert vscode.servers == {"a": {"command": "a"}} and vscode.inputs[0].id == "t"
    assert cursor.servers == {"b": {"command": "b"}} and "b.autoApprove is ignored" in cursor.warnings[0]
    assert set(read.digests) == {".agent-sidecar.toml", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"}


@pytest.mark.parametrize("held", ["", "{}", {"mcpServers": {}}, {"other": 1}])
def test_files_without_servers_and_settings_say_nothing(folder: Path, held: Any) -> None:
    write(folder, ".mcp.json", held)
    assert not read_workspace(folder).says_something


def test_a_folder_that_is_not_there_says_nothing(folder: Path) -> None:
    assert not read_workspace(folder / "gone").says_something
    assert not read_workspace(write(folder, "file", "x")).says_something
    assert not read_workspace(folder / "\0").says_something


def test_what_leads_elsewhere_or_cannot_be_read_whole_is_refused(folder: Path, tmp_path: Path) -> None:
    outside = write(tmp_path, "outside.json", GIT)
    (folder / ".mcp.json").symlink_to(outside)
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "elsewhere", "mcp.json", GIT)
    (folder / ".cursor").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / ".agent-sidecar.toml")  # Reading it would wait for ever.
    write(folder, ".vscode/mcp.json", " " * (MAX_FILE_BYTES + 1))
    read = read_workspace(folder)
    assert read.files == ()
    assert read.refused == (
        ".agent-sidecar.toml: is no regular file; it is not used",
        ".mcp.json: is a link that leads out of the workspace; it is not used",
        ".vscode/mcp.json: is larger than 65536 bytes; it is not used",
        ".cursor/mcp.json: is a link that leads out of the workspace; it is not used",
    )


def test_a_link_within_the_workspace_and_one_to_the_workspace_are_followed(folder: Path, tmp_path: Path) -> None:
    (folder / ".mcp.json").symlink_to(write(folder, "shared.json", GIT))
    (tmp_path / "link").symlink_to(folder)
    read = read_workspace(tmp_path / "link")
    assert read.folder == folder and read.says_something


def test_a_link_that_leads_to_itself_is_refused(folder: Path) -> None:
    (folder / ".mcp.json").symlink_to(folder / ".mcp.json")
    (refused,) = read_workspace(folder).refused
    assert refused.startswith(".mcp.json: ")


# Showing ------------------------------------------------------------------------------------------------


def test_everything_that_a_file_says_is_shown(folder: Path) -> None:
    servers = {
        "git": {"command": "uvx", "args": ["a b", "$(x)"], "env": {"A": "${env:HOME}"}, "permissions": {"*": []}},
        "web": {"url": "https://example.com/mcp?k=${input:k}", "headers": {"X": "y"}},
        "both": {"command": "c", "url": "https://example.com"},
        "odd": {"command": ["x"], "args": "y"},
        "none": 5,
    }
    write(folder, ".mcp.json", {"mcpServers": servers})
    write(folder, ".agent-sidecar.toml", "[permissions]\ndenied = []")
    assert shown_files(read_workspace(folder)) == [
        ".agent-sidecar.toml:",
        '  sets permissions: {"denied": []}',
        ".mcp.json:",
        "  server git runs: uvx 'a b' '$(x)'",
        '    env: {"A": "${env:HOME}"}',
        '    permissions: {"*": []}',
        "  server web reaches: https://example.com/mcp?k=${input:k}",
        '    headers: {"X": "y"}',
        "  server both reaches: https://example.com",
        "  server both runs: c",
        "  server odd runs: nothing that can be started",
        '    command: ["x"]',
        '    args: "y"',
        "  server none: is no object, and cannot be started",
    ]


# Trusting -----------------------------------------------------------------------------------------------


def test_trust_is_about_exactly_the_files_there_were(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "data" / "trusted.json"
    write(folder, ".mcp.json", GIT)
    digests = read_workspace(folder).digests
    assert TrustBook(path).standing(folder, digests) == "unknown"
    TrustBook(path).record(folder, "trust", digests)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert TrustBook(path).standing(folder, digests) == "trusted"
    assert TrustBook(path).standing(folder / "sub", digests) == "unknown"
    more = write(folder, ".cursor/mcp.json", "{}")
    assert TrustBook(path).standing(folder, read_workspace(folder).digests) == "changed"
    more.unlink()
    write(folder, ".mcp.json", json.dumps(GIT) + " ")
    assert TrustBook(path).standing(folder, read_workspace(folder).digests) == "changed"
    TrustBook(path).record(folder, "notNow", digests)
    assert TrustBook(path).standing(folder, digests) == "unknown"
    TrustBook(path).record(folder, "never", digests)
    assert TrustBook(path).standing(folder, {}) == "never"
    assert TrustBook(path).forget(folder) and not TrustBook(path).forget(folder)
    assert TrustBook(path).standing(folder, digests) == "unknown"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"version": 1, "workspaces": {"/a": {"decision": "yes", "files": {}, "decidedMs": 1}}}', "is damaged"),
        ('{"version": 1, "workspaces": {"/a": {"decision": "trust", "files": [], "decidedMs": 1}}}', "is damaged"),
        ('{"version": 2, "workspaces": {}}', "has version 2, which this program does not know"),
    ],
)
def test_a_file_that_is_not_as_we_write_it_is_not_believed_and_is_kept(
    folder: Path, tmp_path: Path, text: str, fault: str
) -> None:
    path = write(tmp_path, "trusted.json", text)
    path.chmod(0o600)
    book = TrustBook(path)
    assert (book.fault, book.standing(folder, {})) == (fault, "unknown")
    book.record(folder, "trust", {})
    assert TrustBook(path).standing(folder, {}) == "trusted"
    assert path.with_suffix(".set-aside.json").read_text() == text


def test_a_file_that_others_can_write_is_not_believed(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "trusted.json"
    TrustBook(path).record(folder, "trust", {})
    path.chmod(0o666)
    assert TrustBook(path).standing(folder, {}) == "unknown"
    assert TrustBook(path).fault == "can be written by others; mend that with chmod 600"
