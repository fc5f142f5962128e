"""The model: every method, event, error and shape of the wire, read from the tables and the classes they name.

It has the form of LSP's own meta model (LSP 3.17, metaModel.json) as far as that goes; `events`, `errors`,
`handshake`, and `isOpen` and `otherTypesThan` of a structure are ours. A type is `{"kind": …}` as there: `base`,
`reference`, `array`, `map`, `or`, `literal`.
"""

import inspect
import types
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, Union, get_args, get_origin

import attrs

from sidecar.protocol import events, messages, values
from sidecar.protocol.codec import wire_name, wire_tag
from sidecar.protocol.errors import ERROR_CODES
from sidecar.protocol.events import EVENTS, AgentEvent
from sidecar.protocol.handshake import HostAbilities, SidecarDescription
from sidecar.protocol.methods import METHODS, PROTOCOL_VERSION
from sidecar.protocol.values import ContentBlock, JsonObject, UnknownBlock

_BASE = {str: "string", bool: "boolean", int: "integer", float: "decimal", type(None): "null"}
_DIRECTIONS = {"host": "clientToServer", "sidecar": "serverToClient"}

HANDSHAKE: Mapping[str, type] = MappingProxyType(
    {
        "params.capabilities.experimental.agentSidecar": HostAbilities,
        "result.capabilities.experimental.agentSidecar": SidecarDescription,
    }
)
"""Where LSP's `initialize` holds something of ours, and what."""


def meta_model(
    *,
    handshake: Mapping[str, type] = HANDSHAKE,
    names: Mapping[type, str] = MappingProxyType({}),
    insides: Mapping[tuple[type, str], Any] = MappingProxyType({}),
) -> JsonObject:
    """Everything that travels. What `handshake` holds beside HANDSHAKE comes from elsewhere.

    `names` are of classes that are called otherwise on the wire, `insides` the types of fields that are declared
    as any JSON and read later.
    """
    reader = _Reader(names, insides)
    rows = [_row(reader, name) for name in METHODS]
    told = [
        {"type": name, "params": reader.type_of(shape), "documentation": _documentation(shape)}
        for name, shape in EVENTS.items()
    ]
    reader.type_of(AgentEvent)
    places = {place: reader.type_of(shape) for place, shape in handshake.items()}
    return {
        "metaData": {"version": PROTOCOL_VERSION},
        "requests": [row for row in rows if "result" in row],
        "notifications": [row for row in rows if "result" not in row],
        "handshake": places,
        "events": told,
        "errors": [{"kind": kind, "code": code} for kind, code in ERROR_CODES.items()],
        "structures": list(reader.structures.values()),
        "enumerations": list(reader.enumerations.values()),
        "typeAliases": list(reader.aliases.values()),
    }


def _row(reader: "_Reader", name: str) -> JsonObject:
    method = METHODS[name]
    row: JsonObject = {
        "method": name,
        "messageDirection": _DIRECTIONS[method.sender],
        "params": reader.type_of(method.params),
    }
    return row if method.result is None else {**row, "result": reader.type_of(method.result)}


class _Reader:
    """Turns Python's types into those of the model, and keeps each that has a name once."""

    def __init__(self, names: Mapping[type, str], insides: Mapping[tuple[type, str], Any]) -> None:
        self.structures: dict[str, JsonObject] = {}
        self.enumerations: dict[str, JsonObject] = {}
        self.aliases: dict[str, JsonObject] = {}
        self._names = {**dict(_named_types()), **names}
        self._insides = insides

    def type_of(self, shape: Any) -> JsonObject:
        """A type of the model."""
        if shape in _BASE:
            return {"kind": "base", "name": _BASE[shape]}
        if shape is Any or shape is object:
            return {"kind": "base", "name": "any"}
        if attrs.has(shape):
            return self._structure(shape)
        name = self._names.get(shape)
        return self._composed(shape) if name is None else self._named(name, shape)

    def _composed(self, shape: Any) -> JsonObject:
        members = get_args(shape)
        match get_origin(shape):
            case origin if origin is Literal:
                items = [{"kind": "literal", "value": value} for value in members]
                return items[0] if len(items) == 1 else {"kind": "or", "items": items}
            case origin if origin in (Union, types.UnionType):
                return {"kind": "or", "items": [self.type_of(member) for member in members]}
            case origin if origin in (tuple, list, frozenset):
                return {"kind": "array", "element": self.type_of(members[0])}
            case origin if origin is dict:
                return {"kind": "map", "key": self.type_of(str), "value": self.type_of(members[1])}
        raise TypeError(f"no type of the wire: {shape!r}")

    def _named(self, name: str, shape: Any) -> JsonObject:
        if get_origin(shape) is Literal:
            kind, members = {"kind": "base", "name": "string"}, get_args(shape)
            choices = [{"name": str(value), "value": value} for value in members]
            self.enumerations.setdefault(name, {"name": name, "type": kind, "values": choices})
        elif name not in self.aliases:
            self.aliases[name] = {}  # Taken, should it hold itself.
            self.aliases[name] = {"name": name, "type": self._composed(shape)}
        return {"kind": "reference", "name": name}

    def _structure(self, shape: Any) -> JsonObject:
        name = self._names.get(shape, shape.__name__)
        if name not in self.structures:
            self.structures[name] = {}
            self.structures[name] = self._described(name, shape)
        return {"kind": "reference", "name": name}

    def _described(self, name: str, shape: Any) -> JsonObject:
        described: JsonObject = {"name": name, "documentation": _documentation(shape)}
        if shape is UnknownBlock:  # Whatever has a type that we do not know; kept as it is.
            of_any_type = {"name": "type", "type": {"kind": "base", "name": "string"}}
            known = [wire_tag(block) for block in get_args(ContentBlock) if block is not UnknownBlock]
            return {**described, "properties": [of_any_type], "isOpen": True, "otherTypesThan": known}
        fields = attrs.fields(attrs.resolve_types(shape))
        tag = wire_tag(shape)
        tagged = [] if tag is None else [{"name": "type", "type": {"kind": "literal", "value": tag}}]
        return {**described, "properties": [*tagged, *(self._property(shape, field) for field in fields)]}

    def _property(self, owner: type, field: "attrs.Attribute[Any]") -> JsonObject:
        kind = without_none(field.type)
        inside = self._insides.get((owner, field.name), kind)
        described: JsonObject = {"name": wire_name(field), "type": self.type_of(inside)}
        if field.default is not attrs.NOTHING:
            described["optional"] = True
        if kind != field.type:
            described["nullable"] = True
        return described


def without_none(shape: Any) -> Any:
    """The type of a field that may be absent, when it is there."""
    if get_origin(shape) not in (Union, types.UnionType) or type(None) not in get_args(shape):
        return shape
    members = tuple(member for member in get_args(shape) if member is not type(None))
    return Union[members]  # noqa: UP007  the members are known only now


def _named_types() -> Iterator[tuple[Any, str]]:
    """Unions and literals that have a name in the modules of the wire; JSON objects have none there."""
    for module in (values, events, messages):
        for name, value in vars(module).items():
            if get_origin(value) in (Literal, Union, types.UnionType) and not name.startswith("_"):
                yield value, name


def _documentation(shape: type) -> str:
    return inspect.getdoc(shape) or ""
