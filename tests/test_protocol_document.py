"""`protocol.md` and the code say the same: methods, events, errors, fields, examples.

Source: `protocol.md` itself; that it is held to the code by a test is our own choice.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from sidecar.protocol.codec import decode, encode
from sidecar.protocol.errors import DEFAULT_ERROR_POLICY, ERROR_CODES
from sidecar.protocol.events import EVENTS, AgentEvent, EventError
from sidecar.protocol.methods import METHODS, PROTOCOL_VERSION, Method
from sidecar.protocol.values import UnknownBlock
from sidecar.providers.script import read_script
from tests.harness.protocol_document import (
    ENUMERATIONS,
    Frame,
    Row,
    Section,
    error_fields,
    reachable,
    read_document,
    rows_of,
    warning_codes,
)
from tests.harness.tidy import ROOT

DOCUMENT = read_document()
CHAPTERS = {
    ("host", False): "Requests from the host",
    ("host", True): "Notifications from the host",
    ("sidecar", False): "Requests to the host",
    ("sidecar", True): "Notifications to the host",
}
METHOD_SECTIONS = DOCUMENT.sections(*CHAPTERS.values())
EVENT_SECTIONS = DOCUMENT.sections("Events")
ERROR_SECTIONS = DOCUMENT.sections("Errors")
VALUE_SECTIONS = DOCUMENT.sections("Shared values")
FRAMES = [
    frame
    for sections in (METHOD_SECTIONS, EVENT_SECTIONS, ERROR_SECTIONS, VALUE_SECTIONS)
    for section in sections.values()
    for frame in section.frames
]


def test_the_replay_script_is_one_that_replay_plays(tmp_path: Path) -> None:
    page = (ROOT / "protocol.md").read_text(encoding="utf-8").split("## Replay scripts\n")[1]
    file = tmp_path / "script.json"
    file.write_text(page.split("```")[1], encoding="utf-8")
    script, _ = read_script(file)
    assert len(script.turns) == 3


# Sections -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "chapter"), CHAPTERS.items(), ids=CHAPTERS.values())
def test_a_chapter_has_a_section_for_each_of_its_methods_in_their_order(
    kind: tuple[str, bool], chapter: str
) -> None:
    of_the_code = [name for name, row in METHODS.items() if (row.sender, row.is_notification) == kind]
    assert list(DOCUMENT.sections(chapter)) == of_the_code


def test_each_event_has_its_section_in_order() -> None:
    assert list(EVENT_SECTIONS) == list(EVENTS)


def test_each_error_has_its_section_with_its_code() -> None:
    of_the_document = {
        name: int(found.group(1))
        for name, section in ERROR_SECTIONS.items()
        if (found := re.search(r"\((-\d+)\)$", section.title))
    }
    assert of_the_document == ERROR_CODES


def test_each_value_that_travels_has_its_section() -> None:
    travelling = reachable(
        *EVENTS.values(), *(t for row in METHODS.values() for t in (row.params, row.result) if t)
    )
    elsewhere = (
        {row.params for row in METHODS.values()} | {row.result for row in METHODS.values()} | {UnknownBlock}
    )
    nested = {value.__name__ for value in travelling - elsewhere - set(EVENTS.values())}
    named_by_methods = {name for name in VALUE_SECTIONS if f"`{name}`" in _text_of(METHOD_SECTIONS)}
    assert set(VALUE_SECTIONS) - {"ContentBlock"} == nested | (named_by_methods & _names_of_types())


def _text_of(sections: dict[str, Section]) -> str:
    return "\n".join(section.text for section in sections.values())


def _names_of_types() -> set[str]:
    return {shape.__name__ for row in METHODS.values() for shape in (row.params, row.result) if shape}


@pytest.mark.parametrize("chapter", ["Requests from the host", "Events"])
def test_the_list_at_the_head_of_a_chapter_names_each_of_its_sections_once(chapter: str) -> None:
    head = DOCUMENT.text.partition(f"\n## {chapter}\n")[2].partition("\n### ")[0]
    listed = re.findall(r"\[`([\w/]+)`\]\(#\w+\)", "".join(re.findall(r"^\|.*\n", head, re.MULTILINE)))
    assert sorted(listed) == sorted(DOCUMENT.sections(chapter))


# Fields -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_the_tables_of_a_method_are_its_fields(method: Method) -> None:
    section = METHOD_SECTIONS[method.name]
    expected = [
        rows_of(shape)
        for shape in (method.params, method.result)
        if shape is not None and shape.__name__ not in VALUE_SECTIONS and rows_of(shape)
    ]
    assert section.tables == expected
    for shape in (method.params, method.result):
        assert shape is None or shape.__name__ not in VALUE_SECTIONS or f"`{shape.__name__}`" in section.text


@pytest.mark.parametrize("event", EVENTS)
def test_the_table_of_an_event_is_its_fields(event: str) -> None:
    assert EVENT_SECTIONS[event].tables == [rows_of(EVENTS[event])]


TRAVELLING = sorted(
    reachable(*EVENTS.values(), *(t for row in METHODS.values() for t in (row.params, row.result) if t)),
    key=lambda value: value.__name__,
)


@pytest.mark.parametrize(
    "value", [v for v in TRAVELLING if v.__name__ in VALUE_SECTIONS], ids=lambda v: v.__name__
)
def test_the_table_of_a_shared_value_is_its_fields(value: type) -> None:
    section = VALUE_SECTIONS[value.__name__]
    assert section.tables == [rows_of(value)]
    tag = vars(value).get("type")
    assert not isinstance(tag, str) or f'`type` is `"{tag}"`' in section.text


def test_the_enumerations_are_those_of_the_code() -> None:
    chapter = DOCUMENT.text.partition("### Enumerations")[2].partition("\n### ")[0]
    of_the_document = {
        name: tuple(re.findall(r'`"(\w+)"`', choices))
        for name, choices in re.findall(r"^\| (\w+) \| (`.+) \|$", chapter, re.MULTILINE)
    }
    used = {row.type.strip("[]{} ").removeprefix("string: ") for rows in _all_tables() for row in rows}
    used.discard("ErrorKind")  # Its values are the headings under Errors.
    assert of_the_document == {name: get_args(shape) for shape, name in ENUMERATIONS.items() if name in used}


def _all_tables() -> list[frozenset[Row]]:
    sections = (*METHOD_SECTIONS.values(), *EVENT_SECTIONS.values(), *VALUE_SECTIONS.values())
    return [table for section in sections for table in section.tables]


# Examples -----------------------------------------------------------------------------------------------


def test_every_section_has_its_examples() -> None:
    expected = {(name, "params") for name in METHODS}
    expected |= {(name, "result") for name, row in METHODS.items() if row.result is not None}
    expected |= {("event", name) for name in EVENTS} | {("error", kind) for kind in ERROR_CODES}
    assert {(frame.name, frame.part) for frame in FRAMES} == expected


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: f"{frame.name}-{frame.part}")
def test_an_example_is_what_the_codec_reads_and_writes(frame: Frame) -> None:
    match frame.name:
        case "event":
            assert frame.body["type"] == frame.part
            assert encode(decode(frame.body, AgentEvent)) == frame.body  # type: ignore[arg-type]
        case "error":
            assert encode(decode(frame.body, EventError)) == frame.body
            assert (frame.body["code"], frame.body["data"]["kind"]) == (ERROR_CODES[frame.part], frame.part)  # type: ignore[index]
        case _:
            shape, value = _opened(frame)
            assert encode(decode(value, shape)) == value


def test_an_example_without_a_frame_comment_is_a_message_of_lsp() -> None:
    for body in DOCUMENT.other_examples:
        assert body["jsonrpc"] == "2.0"
        assert body.get("method") not in METHODS


def test_the_handshake_names_methods_and_events_that_there_are() -> None:
    (answer,) = (body["result"] for body in DOCUMENT.other_examples if "result" in body)
    ours = answer["capabilities"]["experimental"]["agentSidecar"]
    assert ours["protocolVersion"] == PROTOCOL_VERSION
    assert {METHODS[name].sender for name in ours["methods"]} == {"host"}
    assert set(ours["events"]) <= set(EVENTS)


def _opened(frame: Frame) -> tuple[type, Any]:
    """The type and the value in the envelope of a method's example."""
    row = METHODS[frame.name]
    envelope = dict(frame.body)
    assert envelope.pop("jsonrpc") == "2.0"
    assert row.is_notification or isinstance(envelope.pop("id"), str if row.sender == "sidecar" else int)
    if frame.part == "params":
        assert envelope.pop("method") == frame.name
    value = envelope.pop(frame.part)
    assert envelope == {}
    shape = row.params if frame.part == "params" else row.result
    assert shape is not None
    return shape, value


@pytest.mark.parametrize("kind", ERROR_CODES)
def test_a_data_field_of_an_error_is_named_in_its_section(kind: str) -> None:
    in_examples = {field for frame in ERROR_SECTIONS[kind].frames for field in frame.body["data"]}
    in_the_source = {field for of, field in fields_in_the_source() if of == kind}
    assert (in_examples | in_the_source) - {"kind"} <= data_fields(ERROR_SECTIONS[kind])


def data_fields(section: Section) -> set[str]:
    """The fields that the prose of an error's section names."""
    prose = " ".join(section.text.partition("<!--")[0].split())
    of_a_run = {"sessionId", "runId", "turns"} if "those of a run" in prose else set()
    return of_a_run | set(re.findall(r"`(\w+)`", prose.partition("Data:")[2]))


@cache
def fields_in_the_source() -> frozenset[tuple[str, str]]:
    return frozenset(field for source in sources() for field in error_fields(source))


@cache
def sources() -> tuple[str, ...]:
    return tuple(file.read_text("utf-8") for file in (ROOT / "sidecar").rglob("*.py"))


# Single facts -------------------------------------------------------------------------------------------


def test_the_title_names_the_version() -> None:
    assert DOCUMENT.text.startswith(f"# The Agent Sidecar protocol, version {PROTOCOL_VERSION}\n")


def test_the_frame_that_is_shown_whole_has_the_length_that_it_names() -> None:
    ((length, body),) = re.findall(r"^Content-Length: (\d+)\\r\\n\n\\r\\n\n(.+)$", DOCUMENT.text, re.MULTILINE)
    assert int(length) == len(body.encode())


def test_the_policy_table_is_the_default_policy() -> None:
    of_the_document = {
        kind: action
        for kinds, action in re.findall(
            r'^\| ((?:`\w+` ?)+) \| `"(tellModel|stop)"` \|$', DOCUMENT.text, re.MULTILINE
        )
        for kind in re.findall(r"\w+", kinds)
    }
    assert of_the_document == DEFAULT_ERROR_POLICY


def test_the_warning_codes_are_those_that_the_source_sends() -> None:
    of_the_document = set(re.findall(r"^\| `(\w+)` \| [^|]+ \|$", EVENT_SECTIONS["warning"].text, re.MULTILINE))
    of_the_source = {code for source in sources() for code in warning_codes(source)}
    assert of_the_document == of_the_source


def test_every_link_inside_the_document_leads_somewhere() -> None:
    titles = re.findall(r"^#+ (.+)$", DOCUMENT.text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]+)\)", DOCUMENT.text)) - anchors == set()


# The checks can fail ------------------------------------------------------------------------------------


def test_a_missing_a_wrong_and_an_invented_field_are_seen() -> None:
    text = "## C\n### `x/y`\n\n| field | type | required | meaning |\n|---|---|---|---|\n"
    text += "| `text` | string | yes | a |\n"
    (table,) = read_document(text).sections("C")["x/y"].tables
    assert table == {Row("text", "string", True)}
    assert table == rows_of(EVENTS["assistantTextDelta"])
    for wrong in ("| `text` | integer | yes |", "| `text` | string | no |", "| `texts` | string | yes |"):
        (table,) = read_document(text.replace("| `text` | string | yes |", wrong)).sections("C")["x/y"].tables
        assert table != rows_of(EVENTS["assistantTextDelta"])
