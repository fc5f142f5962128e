"""`protocol.md` read as data: its sections, their field tables and example frames; and types spelled as it does.

A frame is a JSON code block with a comment before it that says what it is: `<!-- frame: agent/submit params -->`,
`<!-- frame: agent/submit result -->`, `<!-- frame: event warning -->` or `<!-- frame: error notFound -->`.
"""

import ast
import json
import re
import types
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

import attrs
from attrs import frozen

from sidecar.protocol import events, messages, values
from sidecar.protocol.codec import camel
from sidecar.protocol.errors import ERROR_CODES, ErrorAction
from sidecar.protocol.values import Content, ContentBlock, JsonObject
from tests.harness.tidy import ROOT

_FRAME = re.compile(r"<!-- frame: (\S+) (\S+) -->\n```json\n(.*?)\n```", re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (yes|no) \| .+ \|$", re.MULTILINE)
_OPTION = re.compile(r"^\| `([\w.]+)` \| (.+?) \| (.+?) \| .+ \|$", re.MULTILINE)


@frozen
class Row:
    """A line of a field table."""

    field: str
    type: str
    required: bool


@frozen
class Frame:
    """An example. `name` and `part` are the two words of its comment."""

    name: str
    part: str
    body: Any


@frozen
class Option:
    """A line of an option table. `default` is the cell as it stands."""

    type: str
    default: str


@frozen
class Section:
    """What stands under one heading."""

    title: str
    text: str

    @property
    def tables(self) -> list[frozenset[Row]]:
        """The field tables in their order; one for params, one for the result where there are both."""
        found = []
        for table in self.text.split("| field | type | required | meaning |")[1:]:
            rows = _ROW.findall(table.partition("\n\n")[0])
            found.append(frozenset(Row(field, spelling, required == "yes") for field, spelling, required in rows))
        return found

    @property
    def frames(self) -> list[Frame]:
        """The examples, parsed."""
        return [Frame(name, part, json.loads(body)) for name, part, body in _FRAME.findall(self.text)]


@frozen
class Document:
    """`protocol.md`: chapter title to its own text and to its sections by the name in their heading."""

    text: str
    chapters: dict[str, dict[str, Section]]

    def options(self, name: str) -> dict[str, Option]:
        """The table after `<!-- fields: name -->`, by the option's name."""
        table = self.text.partition(f"<!-- fields: {name} -->")[2].partition("\n\n")[0]
        return {option: Option(spelling, default) for option, spelling, default in _OPTION.findall(table)}

    @property
    def other_examples(self) -> list[Any]:
        """The bodies of messages that are LSP's own, and so have no comment before them."""
        blocks = re.findall(r"(?<!-->)\n```json\n(.*?)\n```", self.text, re.DOTALL)
        return [json.loads(block) for block in blocks]

    def sections(self, *chapters: str) -> dict[str, Section]:
        """The sections of these chapters."""
        return {name: section for chapter in chapters for name, section in self.chapters[chapter].items()}


def read_document(text: str | None = None) -> Document:
    """The project's document, or `text` as one."""
    whole = (ROOT / "protocol.md").read_text("utf-8") if text is None else text
    chapters = {}
    for chapter in re.split(r"^## ", whole, flags=re.MULTILINE)[1:]:
        title, _, body = chapter.partition("\n")
        chapters[title] = dict(_sections(body))
    return Document(whole, chapters)


def _sections(body: str) -> Iterator[tuple[str, Section]]:
    for part in re.split(r"^### ", body, flags=re.MULTILINE)[1:]:
        title, _, text = part.partition("\n")
        if named := re.match(r"`([\w/]+)`", title):
            yield named.group(1), Section(title, text)


# Types as the document spells them ----------------------------------------------------------------------


def rows_of(shape: type) -> frozenset[Row]:
    """The rows that the table of a class has. A field whose default is None may be absent."""
    fields = attrs.fields(attrs.resolve_types(shape))
    return frozenset(
        Row(field.metadata.get("wire") or camel(field.name), spelled(field.type), field.default is not None)
        for field in fields
    )


def spelled_fields(shape: type, *, prefix: str = "", except_for: tuple[str, ...] = ()) -> dict[str, str]:
    """Wire name of each field to its type as the document spells it."""
    fields = attrs.fields(attrs.resolve_types(shape))
    return {prefix + camel(field.name): spelled(field.type) for field in fields if field.name not in except_for}


def snake(name: str) -> str:
    """`maxTurns` as `max_turns`."""
    return re.sub(r"([A-Z])", lambda found: "_" + found.group().lower(), name)


def spelled(shape: Any) -> str:
    """`tuple[Message, ...] | None` as `[Message]`: absence is told by the column `required`."""
    origin = get_origin(shape)
    if shape is Any:
        return "any"
    if shape == JsonObject:
        return "object"
    if origin in (Union, types.UnionType):
        return _spelled_union(frozenset(get_args(shape)) - {type(None)})
    if origin is Literal:
        return ENUMERATIONS.get(shape) or " or ".join(f'`"{choice}"`' for choice in get_args(shape))
    if origin in (tuple, frozenset):
        return f"[{spelled(get_args(shape)[0])}]"
    if origin is dict:
        return f"{{string: {spelled(get_args(shape)[1])}}}"
    return {str: "string", int: "integer", float: "number", bool: "boolean"}.get(shape) or shape.__name__


def _spelled_union(members: frozenset[Any]) -> str:
    aliases = {"ContentBlock": ContentBlock, "AgentEvent": events.AgentEvent}
    for name, alias in aliases.items():
        if members == frozenset(get_args(alias)):
            return name
    if members == frozenset(get_args(Content)):
        return "string or [ContentBlock]"
    return " or ".join(sorted((spelled(member) for member in members), reverse=True))


def _enumerations() -> dict[Any, str]:
    found: dict[Any, str] = {ErrorAction: "ErrorAction"}
    for module in (events, messages, values):
        for name, member in vars(module).items():
            if get_origin(member) is Literal:
                found[member] = name
    return found


ENUMERATIONS = _enumerations()
"""Literal type to its name, for those that have one."""


def reachable(*shapes: type) -> set[type]:
    """Every attrs class that these hold, at any depth, themselves included."""
    found: set[type] = set()
    waiting: list[Any] = list(shapes)
    while waiting:
        shape = waiting.pop()
        if isinstance(shape, type) and attrs.has(shape):
            if shape not in found:
                found.add(shape)
                waiting += [field.type for field in attrs.fields(attrs.resolve_types(shape))]
        elif get_origin(shape) is not ClassVar:
            waiting += get_args(shape)
    return found


def warning_codes(source: str) -> Iterator[str]:
    """The codes of the warnings that a module makes: `Warned`, `WarningPiece` and `notices.add`."""
    for call in ast.walk(ast.parse(source)):
        if not isinstance(call, ast.Call):
            continue
        match ast.unparse(call.func).split("."):
            case [*_, "Warned" | "WarningPiece"]:
                yield from (ast.literal_eval(word.value) for word in call.keywords if _is_code(word))
            case [*_, "notices" | "_notices", "add"] | ["_warning"] if isinstance(call.args[0], ast.Constant):
                yield call.args[0].value


def _is_code(word: ast.keyword) -> bool:
    return word.arg == "code" and isinstance(word.value, ast.Constant)


_KIND_OF_CLASS = {"ModelError": "modelError", "ConfigurationError": "invalidConfiguration"}
_ERROR_CLASSES = {"ToolError", "SidecarError", "RequestError", *_KIND_OF_CLASS}
_NOT_DATA = {"kind", "action"}


def error_fields(source: str) -> Iterator[tuple[str, str]]:
    """Kind and name of every data field that a module gives to an error where it makes one."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and (owner := ast.unparse(call.func)) in _ERROR_CLASSES:
            kind = next((w.value for w in call.keywords if w.arg == "kind"), call.args[0])
            said = kind.value if isinstance(kind, ast.Constant) else None
            named = said if said in ERROR_CODES else _KIND_OF_CLASS.get(owner)
            if named is not None:
                yield from ((named, camel(w.arg)) for w in call.keywords if w.arg and w.arg not in _NOT_DATA)
