"""JSON to values and back, strictly: nothing is coerced, and a fault is named by its path.

camelCase outside, snake_case inside. A field that is None is left out. Unknown fields are ignored. `[]` is
taken for an empty object, as Lua writes it. A class variable `type` is the tag of a union member.
"""

import math
import types
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.errors import AttributeValidationNote, ClassValidationError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from sidecar.protocol.events import EVENTS, AgentEvent
from sidecar.protocol.values import ContentBlock, JsonObject, UnknownBlock

T = TypeVar("T")


class DecodeError(ValueError):
    """A value does not have its declared shape. `path` is in JSON terms: `params.tools[0].name`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


def decode(value: Any, shape: type[T], *, path: str = "params") -> T:
    """The JSON value as `shape`; raises DecodeError naming the first fault below `path`."""
    try:
        return _converter.structure(value, shape)
    except Exception as error:  # noqa: BLE001  cattrs groups whatever the hooks raise
        raise _first_fault(error, path) from None


def encode(value: Any) -> Any:
    """The value as JSON-ready dicts, lists and scalars."""
    return _converter.unstructure(value)


def camel(name: str) -> str:
    """`call_id` as `callId`."""
    head, *tail = name.rstrip("_").split("_")
    return head + "".join(word.capitalize() for word in tail)


def wire_name(attribute: "attrs.Attribute[Any]") -> str:
    """What a field is called in JSON."""
    return str(attribute.metadata.get("wire") or camel(attribute.name))


def _origin(shape: Any) -> Any:
    return get_origin(shape)


# Faults -------------------------------------------------------------------------------------------------


def _first_fault(error: BaseException, path: str) -> DecodeError:
    match error:
        case DecodeError():
            return DecodeError(_join(path, error.path), error.reason)
        case KeyError():
            return DecodeError(_join(path, str(error.args[0])), "is required")
        case ClassValidationError() | IterableValidationError():
            inner = error.exceptions[0]
            return _first_fault(inner, _join(path, _place(inner, error)))
        case _:
            return DecodeError(path, str(error) or type(error).__name__)


def _place(inner: BaseException, group: BaseException) -> str:
    """Where in its parent a fault lies. A missing field names itself, by its KeyError."""
    if isinstance(inner, KeyError):
        return ""
    for note in getattr(inner, "__notes__", ()):
        if isinstance(note, AttributeValidationNote) and isinstance(group, ClassValidationError):
            return _wire_name_of(group.cl, note.name)
        if hasattr(note, "index"):
            return f"[{note.index}]" if isinstance(note.index, int) else str(note.index)
    return ""


def _wire_name_of(owner: type, name: str) -> str:
    return next((wire_name(a) for a in attrs.fields(owner) if a.name == name), name)


def _join(path: str, place: str) -> str:
    return path + place if not path or not place or place.startswith("[") else f"{path}.{place}"


def _name_of(value: Any) -> str:
    """A JSON value's type in JSON Schema's words."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _expected(what: str, value: Any) -> DecodeError:
    return DecodeError("", f"must be {what}, not {_name_of(value)}")


# Hooks --------------------------------------------------------------------------------------------------


def _string(value: Any, _: Any) -> str:
    if type(value) is not str:
        raise _expected("a string", value)
    return value


def _boolean(value: Any, _: Any) -> bool:
    if type(value) is not bool:
        raise _expected("a boolean", value)
    return value


def _integer(value: Any, _: Any) -> int:
    if type(value) is float and value.is_integer():  # 3.0 is an integer in JSON Schema, and in Lua's JSON
        return int(value)
    if type(value) is not int:
        raise _expected("an integer", value)
    return value


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _expected("a number", value)
    return float(value)


def _object(value: Any) -> dict[str, Any]:
    if value == [] and type(value) is list:
        return {}
    if type(value) is not dict:
        raise _expected("an object", value)
    return value


def _array(value: Any) -> list[Any]:
    if type(value) is not list and type(value) is not tuple:
        raise _expected("an array", value)
    return list(value)


def _literal_hook(shape: Any) -> Callable[[Any, Any], Any]:
    choices = get_args(shape)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is str and value in choices:
            return value
        raise DecodeError("", f"must be one of {', '.join(map(repr, choices))}, not {value!r}")

    return structure


def _enum_hook(shape: type[Enum]) -> Callable[[Any, Any], Any]:
    by_value = {member.value: member for member in shape}

    def structure(value: Any, _: Any) -> Any:
        try:
            return by_value[value]
        except (KeyError, TypeError):
            known = ", ".join(repr(known) for known in by_value)
            raise DecodeError("", f"must be one of {known}, not {value!r}") from None

    return structure


def _mapping_hook(shape: Any) -> Callable[[Any, Any], Any]:
    _, item = get_args(shape) or (str, Any)

    def structure(value: Any, _: Any) -> Any:
        return {key: _at(key, entry, item) for key, entry in _object(value).items()}

    return structure


def _sequence_hook(shape: Any) -> Callable[[Any, Any], Any]:
    build = tuple if _origin(shape) is tuple else list
    item = get_args(shape)[0]

    def structure(value: Any, _: Any) -> Any:
        return build(_at(f"[{index}]", entry, item) for index, entry in enumerate(_array(value)))

    return structure


def _at(place: str, value: Any, shape: Any) -> Any:
    try:
        return _converter.structure(value, shape)
    except Exception as error:  # noqa: BLE001  see decode
        raise _first_fault(error, place) from None


def _class_hook(shape: type) -> Callable[[Any, Any], Any]:
    names: Any = {a.name: override(rename=wire_name(a)) for a in attrs.fields(attrs.resolve_types(shape))}
    inner: Callable[[Any, Any], Any] = make_dict_structure_fn(shape, _converter, **names)

    def structure(value: Any, _: Any) -> Any:
        return inner(_object(value), shape)

    return structure


def _class_unstructure(shape: type) -> Callable[[Any], Any]:
    fields = attrs.fields(attrs.resolve_types(shape))
    overrides: Any = {a.name: override(rename=wire_name(a), omit_if_default=a.default is None) for a in fields}
    inner: Callable[[Any], Any] = make_dict_unstructure_fn(shape, _converter, **overrides)
    tag = wire_tag(shape)
    if tag is None:
        return inner

    def unstructure(value: Any) -> Any:
        return {"type": tag, **inner(value)}

    return unstructure


def wire_tag(shape: type) -> str | None:
    """The value of a class variable `type`, which marks a member of a tagged union."""
    return (
        vars(shape).get("type")
        if "type" in getattr(shape, "__annotations__", {}) and _is_class_var(shape)
        else None
    )


def _is_class_var(shape: type) -> bool:
    annotation = shape.__annotations__["type"]
    return annotation is ClassVar or _origin(annotation) is ClassVar


def _tagged(
    members: Mapping[str, type], unknown: Callable[[dict[str, Any]], Any] | None
) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        entry = _object(value)
        kind = entry.get("type")
        if type(kind) is not str:
            raise DecodeError("type", "is required" if kind is None else "must be a string")
        if kind in members:
            return _converter.structure(entry, members[kind])
        if unknown is not None:
            return unknown(entry)
        raise DecodeError("type", f"must be one of {', '.join(map(repr, members))}, not {kind!r}")

    return structure


@cache
def _scalar_members(shape: Any) -> tuple[tuple[tuple[type, ...], Any], ...]:
    """For a union of JSON-distinguishable shapes: which Python types of JSON value choose which member."""
    return tuple((_json_types(member), member) for member in get_args(shape))


def _json_types(shape: Any) -> tuple[type, ...]:
    origin = _origin(shape)
    if shape is str or origin is Literal:
        return (str,)
    if shape is bool:
        return (bool,)
    if shape in (int, float):
        return (int, float)
    if shape is type(None):
        return (type(None),)
    if origin in (tuple, list):
        return (list, tuple)
    return (dict,)


def _union_hook(shape: Any) -> Callable[[Any, Any], Any]:
    """A union whose members differ in their JSON type: `str | tuple[Block, ...] | None`."""
    choices = _scalar_members(shape)

    def structure(value: Any, _: Any) -> Any:
        for kinds, member in choices:
            if type(value) in kinds:
                return value if value is None else _converter.structure(value, member)
        raise DecodeError(
            "", f"must be {' or '.join(_described(member) for _, member in choices)}, not {_name_of(value)}"
        )

    return structure


def _described(shape: Any) -> str:
    kinds = _json_types(shape)
    return {str: "a string", bool: "a boolean", int: "a number", list: "an array", dict: "an object"}.get(
        kinds[0], "null"
    )


def _is_union(shape: Any) -> bool:
    return _origin(shape) in (Union, types.UnionType)


def _optional_hook(shape: Any) -> Callable[[Any, Any], Any]:
    (inner,) = (member for member in get_args(shape) if member is not type(None))
    hook = _converter.get_structure_hook(inner)

    def structure(value: Any, _: Any) -> Any:
        return None if value is None else hook(value, inner)

    return structure


def _is_optional(shape: Any) -> bool:
    members = get_args(shape)
    return _is_union(shape) and len(members) == 2 and type(None) in members


def _build() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=True)
    for primitive, hook in ((str, _string), (bool, _boolean), (int, _integer), (float, _number)):
        converter.register_structure_hook(primitive, hook)
    is_mapping = lambda shape: _origin(shape) in (dict, Mapping) or shape is dict  # noqa: E731
    is_sequence = lambda shape: _origin(shape) in (tuple, list)  # noqa: E731
    factories: list[tuple[Callable[[Any], bool], Callable[[Any], Callable[[Any, Any], Any]]]] = [
        (attrs.has, _class_hook),
        (lambda shape: isinstance(shape, type) and issubclass(shape, Enum), _enum_hook),
        (lambda shape: _origin(shape) is Literal, _literal_hook),
        (is_sequence, _sequence_hook),
        (is_mapping, _mapping_hook),
        (_is_union, _union_hook),
        (_is_optional, _optional_hook),
        (lambda shape: shape == ContentBlock, lambda _: _tagged(_BLOCKS, lambda raw: UnknownBlock(raw=raw))),
        (lambda shape: shape == AgentEvent, lambda _: _tagged(EVENTS, None)),
    ]
    for matches, factory in factories:  # the last that matches wins
        converter.register_structure_hook_factory(matches, factory)
    converter.register_unstructure_hook_factory(attrs.has, _class_unstructure)
    converter.register_unstructure_hook(UnknownBlock, lambda block: block.raw)
    converter.register_unstructure_hook_func(lambda shape: _origin(shape) is tuple, _unstructure_sequence)
    # What is JSON already goes out as it is, however deep it is.
    converter.register_unstructure_hook_func(lambda shape: shape in (Any, JsonObject), lambda value: value)
    return converter


def _unstructure_sequence(values: Any) -> list[Any]:
    return [_converter.unstructure(value) for value in values]


_BLOCKS: dict[str, type] = {block.type: block for block in get_args(ContentBlock) if block is not UnknownBlock}
_converter = _build()
