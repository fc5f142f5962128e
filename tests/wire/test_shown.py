"""A person who has only the text of a question sees everything that matters, and nothing pretends to be it.

Source: own choice; protocol.md, Security, says why.
"""

import hashlib
from typing import Any

import pytest

from sidecar.protocol.printable import printable
from sidecar.server.shown import ARGUMENTS_SHOWN, BEGINNING_CHARACTERS, DIFF_LINES, WHOLE_BYTES, shown_question
from sidecar.tools.approval import ApprovalQuestion


def shown(diff: str | None = None, **arguments: Any) -> list[str]:
    """The lines about the arguments and the change."""
    question = ApprovalQuestion(
        request_id="q", session_id=None, run_id=None, call_id="c", tool_name="x", input=arguments,
        permissions=(), reason="", title="Run x?", options=(), diff=diff,
    )  # fmt: skip
    return shown_question(question).splitlines()[2:]


def test_arguments_are_shown_by_name_as_json() -> None:
    assert shown(path="src/a.py", count=5, deep={"a": [True, None]}, empty="") == [
        "Arguments:",
        '  path: "src/a.py"',
        "  count: 5",
        '  deep: {"a": [true, null]}',
        '  empty: ""',
    ]


def test_a_call_without_arguments_says_so() -> None:
    assert shown() == ["Arguments: none"]


def test_a_change_is_shown_by_its_lines_with_nothing_hidden() -> None:
    assert shown("@@ @@\n-a\n+b\u202e\x1b[8m\n") == [
        "Arguments: none",
        "Change:",
        "  @@ @@",
        "  -a",
        r"  +b\u202e\u001b[8m",
    ]


def test_a_long_change_is_shown_by_its_beginning_its_size_and_its_digest() -> None:
    diff = "+x\n" * (DIFF_LINES + 1)
    digest = hashlib.sha256(diff.encode()).hexdigest()
    assert shown(diff)[-1] == f"  … [{len(diff)} bytes in all, SHA-256 {digest}]"
    assert len(shown(diff)) == DIFF_LINES + 3


@pytest.mark.parametrize("length", [WHOLE_BYTES, 10])
def test_a_text_up_to_the_limit_is_shown_whole(length: int) -> None:
    assert shown(text="x" * length) == ["Arguments:", f'  text: "{"x" * length}"']


def test_a_longer_text_is_shown_by_its_beginning_its_size_and_its_digest() -> None:
    text = "rm -rf x; " * 1000
    digest = hashlib.sha256(text.encode()).hexdigest()
    beginning = text[:BEGINNING_CHARACTERS]
    assert shown(command=text) == ["Arguments:", f"  command: {beginning}… [10000 bytes in all, SHA-256 {digest}]"]
    assert shown(command=text + "!") != shown(command=text + "?")


def test_the_size_is_in_bytes_of_utf8() -> None:
    (line,) = shown(text="é" * 400)[1:]
    assert "[800 bytes in all" in line


def test_many_arguments_are_all_there() -> None:
    many = {f"a{number}": number for number in range(ARGUMENTS_SHOWN + 3)}
    *_, last = shown(**many)
    assert last.startswith("  and 3 more: a20, a21, a22 [")
    *_, other = shown(**{**many, "a22": "changed"})
    assert other != last


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a\nb", "a\\nb"),
        ("a\r\tb", "a\\r\\tb"),
        ("a\x1b[2Jb", "a\\u001b[2Jb"),
        ("a\x00b", "a\\u0000b"),
        ("a\u202eb", "a\\u202eb"),
        ("a\u200bb", "a\\u200bb"),
        ("a\u2028b", "a\\u2028b"),
        ("a\u00a0b", "a\\u00a0b"),
        ("a\ud800b", "a\\ud800b"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("é 漢 😀 ok", "é 漢 😀 ok"),
    ],
)
def test_characters_that_hide_or_move_text_are_escaped(text: str, escaped: str) -> None:
    assert printable(text) == escaped
    assert shown(**{text: text})[1] == f'  {escaped}: "{escaped}"'


def test_no_argument_can_add_a_line() -> None:
    assert len(shown(**{"a\nReason: harmless": "b\nPermissions: none"}, deep=["c\n\nd"])) == 3


def test_title_tool_reason_and_permissions_cannot_either() -> None:
    question = ApprovalQuestion(
        request_id="q", session_id=None, run_id=None, call_id="c", tool_name="x\ny", input={},
        permissions=("mcp:a\nb",), reason="r\ns", title="t\nu", options=(),
    )  # fmt: skip
    assert shown_question(question).splitlines() == [
        "t\\nu",
        "Tool: x\\ny",
        "Reason: r\\ns",
        "Permissions: mcp:a\\nb",
        "Arguments: none",
    ]
