"""Foreign text made safe and short enough, and what the streams are. Pure. Source: own choice; no-color.org."""

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.cli import wording
from sidecar.cli.schema import fields_of, value_of
from sidecar.cli.terminal import Terminal, clip, safe, terminal_of, width, wrap


class Stream(io.StringIO):
    """A stream that says of itself what it is told to."""

    def __init__(self, *, is_terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        return 0  # Whatever it is: where it is no terminal, its size is not known.


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_safe_text_is_printable_and_can_be_encoded(text: str) -> None:
    shown = safe(text)
    shown.encode("utf-8")
    assert not [character for character in shown if ord(character) < 0x20 and character not in "\n\t"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\r\nc", "a\tb\nc"),
        ("\x1b[31m\x9b", "\\x1b[31m\\x9b"),
        ("\u202e\ud800", "\\u202e\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("naïve 宽 👩‍👩‍👧 می‌خواهم", "naïve 宽 👩‍👩‍👧 می‌خواهم"),
    ],
)
def test_what_could_act_on_a_terminal_is_written_out_and_nothing_else(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text(alphabet=st.characters(codec="utf-8")), st.integers(1, 40))
def test_clipped_text_fits_and_is_a_beginning(text: str, columns: int) -> None:
    shown = clip(text, columns)
    assert width(shown) <= columns
    assert shown == text or text.startswith(shown.removesuffix("…"))


def test_wide_and_combining_characters_take_the_columns_they_take() -> None:
    assert (width("abc"), width("宽字"), width("e\u0301"), width("👍")) == (3, 4, 1, 2)


def test_words_are_kept_whole() -> None:
    assert wrap(["[y] once", "[s] session", "[n] no"], 22, indent="  ") == ["  [y] once [s] session", "  [n] no"]


@pytest.mark.parametrize(
    ("stdout", "stderr", "environ", "expected"),
    [
        (True, True, {"TERM": "xterm"}, (True, True, True)),
        (True, True, {"TERM": "xterm", "NO_COLOR": "1"}, (True, True, False)),
        (True, True, {"TERM": "xterm", "NO_COLOR": ""}, (True, True, True)),
        (True, True, {"TERM": "dumb"}, (True, False, False)),
        (False, True, {"TERM": "xterm"}, (False, True, True)),
        (True, False, {"TERM": "xterm"}, (True, False, False)),
    ],
)
def test_the_streams_are_taken_for_what_they_are(
    stdout: bool, stderr: bool, environ: dict[str, str], expected: tuple[bool, bool, bool]
) -> None:
    terminal = terminal_of(Stream(is_terminal=stdout), Stream(is_terminal=stderr), environ)
    assert (terminal.answers, terminal.notes, terminal.colour) == expected


def test_an_encoding_without_our_symbols_gets_plain_ones() -> None:
    terminal = terminal_of(Stream(is_terminal=True, encoding="ascii"), Stream(is_terminal=True), {"TERM": "xterm"})
    assert terminal.mark("✓", "ok") == "ok"
    assert Terminal(notes=True).mark("✓", "ok") == "✓"


# Words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 ms"), (0.0124, "12 ms"), (0.9994, "999 ms"), (1, "1.0 s"), (59.9, "59.9 s"), (72, "1 min 12 s")],
)
def test_durations(seconds: float, words: str) -> None:
    assert wording.duration(seconds) == words


def test_arguments_are_short_on_one_line_and_exact_in_full() -> None:
    given = {"path": "a.md", "note": "two\nlines", "n": 3, "text": "3", "empty": "", "list": ["a", {"b": None}]}
    assert wording.arguments(given) == (
        'path=a.md  note="two\\nlines"  n=3  text=3  empty=""  list=["a", {"b": null}]'
    )
    assert wording.full_arguments(given) == [
        'path: "a.md"',
        "note:",
        "  │ two",
        "  │ lines",
        "n: 3",
        'text: "3"',
        'empty: ""',
        'list: ["a", {"b": null}]',
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a\n  b", "a b"),
        ([{"type": "text", "text": "a"}, {"type": "image", "mimeType": "image/png", "data": ""}], "a [image/png]"),
        ([{"type": "resource_link", "uri": "file:///x"}, {"type": "new"}, 3], "file:///x [new]"),
        (None, ""),
    ],
)
def test_the_gist_of_an_output_is_one_line(content: Any, words: str) -> None:
    assert wording.output(content) == words


# Input --------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "required": ["name", "age", "colour", "ok"],
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer"},
        "colour": {"enum": ["red", "blue"]},
        "ok": {"type": "boolean", "description": "All right?"},
        "more": {"type": "object"},
    },
}


def test_a_schema_becomes_fields_with_their_kinds() -> None:
    fields, is_object = fields_of(SCHEMA)
    assert is_object
    assert [field.label for field in fields] == [
        "Your name",
        "age (integer)",
        "colour (red / blue)",
        "All right? (y/n)",
        "more (object) (may be left empty)",
    ]


@pytest.mark.parametrize("schema", [None, True, {}, {"type": "string"}])
def test_without_properties_there_is_one_text(schema: Any) -> None:
    (field,), is_object = fields_of(schema)
    assert (field.type, is_object) == ("string", False)


@pytest.mark.parametrize(
    ("place", "typed", "value"),
    [(0, "Ada", "Ada"), (1, "36", 36), (2, "blue", "blue"), (3, "Yes", True), (3, "n", False), (4, "{}", {})],
)
def test_what_is_typed_has_the_type_of_its_field(place: int, typed: str, value: Any) -> None:
    assert json.dumps(value_of(typed, fields_of(SCHEMA)[0][place])) == json.dumps(value)


@pytest.mark.parametrize(
    ("place", "typed", "wanted"),
    [(1, "3.5", "whole number"), (2, "green", "one of red, blue"), (3, "maybe", "y or n"), (4, "{", "JSON")],
)
def test_what_does_not_fit_says_what_would(place: int, typed: str, wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        value_of(typed, fields_of(SCHEMA)[0][place])
