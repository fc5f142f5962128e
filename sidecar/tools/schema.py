"""JSON Schema from Python types: what a model may send for a parameter of that type. Pure.

The counterpart of `structure.py`, which makes the Python value from what was sent.
"""

import datetime
import enum
import inspect
import types
import typing
import uuid
from collections.abc import Callable, Mapping
from collections.abc import Iterable as AbstractIterable
from collections.abc import Sequence as AbstractSequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, is_dataclass
from dataclasses import Field as DataclassField
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import attrs
from attrs import frozen

from sidecar.protocol.values import JsonObject

NO_DEFAULT: Any = inspect.Parameter.empty

SCALARS: Mapping[Any, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    Path: {"type": "string"},
}
_JSON_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


@frozen(kw_only=True)
class Member:
    """A parameter of a function or a field of a class. `default` is NO_DEFAULT where it has to be given.

    A default that JSON cannot show (a factory's) is `...`: it need not be given, and is not told.
    """

    name: str
    hint: Any
    default: Any = NO_DEFAULT
    description: str | None = None


def object_schema(members: AbstractIterable[Member], to_json: Callable[[Any], Any]) -> JsonObject:
    """The schema of a closed object with these members; `to_json` turns defaults into JSON.

    Classes that contain themselves are under `$defs`, all others are written where they stand. Raises TypeError
    naming the member whose type JSON cannot carry.
    """
    schemas = _Schemas(to_json)
    schema = schemas.of_members(members)
    return {**schema, "$defs": schemas.definitions} if schemas.definitions else schema


class _Schemas:
    def __init__(self, to_json: Callable[[Any], Any]) -> None:
        self.definitions: dict[str, JsonObject] = {}
        self._to_json = to_json
        self._open: list[type] = []
        self._recursive: set[type] = set()

    def of_members(self, members: AbstractIterable[Member]) -> JsonObject:
        properties: JsonObject = {}
        required = []
        for member in members:
            try:
                schema = self.of(member.hint)
            except TypeError as error:
                raise TypeError(f"{member.name}: {error}") from None
            if member.description:
                schema = {**schema, "description": member.description}
            if member.default is NO_DEFAULT:
                required.append(member.name)
            elif member.default is not ...:
                schema = {**schema, "default": self._to_json(member.default)}
            properties[member.name] = schema
        return {
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def of(self, hint: Any) -> JsonObject:
        if hint in (Any, object, NO_DEFAULT):
            return {}
        if isinstance(hint, typing.Hashable) and hint in SCALARS:
            return dict(SCALARS[hint])
        if isinstance(hint, NewType):
            return self.of(hint.__supertype__)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is not None:
            return self._of_generic(hint, origin, arguments)
        if isinstance(hint, type):
            return self._of_class(hint)
        raise TypeError(f"JSON Schema has no words for {hint!r}")

    def _of_generic(self, hint: Any, origin: Any, arguments: tuple[Any, ...]) -> JsonObject:
        if origin in (typing.Required, typing.NotRequired):
            return self.of(arguments[0])
        if origin is Annotated:
            told = next((note for note in arguments[1:] if isinstance(note, str)), None)
            schema = self.of(arguments[0])
            return {**schema, "description": told} if told else schema
        if origin is Literal:
            return _of_choices([choice.value if isinstance(choice, enum.Enum) else choice for choice in arguments])
        if origin in (Union, types.UnionType):
            return self._of_union(arguments)
        if origin is tuple:
            return self._of_tuple(arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._of_mapping(arguments)
        if isinstance(origin, type) and issubclass(origin, AbstractSet):
            return {"type": "array", "items": self.of(arguments[0]), "uniqueItems": True}
        if origin is list or origin in (AbstractSequence, AbstractIterable):
            return {"type": "array", "items": self.of(arguments[0])}
        raise TypeError(f"JSON Schema has no words for {hint!r}")

    def _of_union(self, members: tuple[Any, ...]) -> JsonObject:
        schemas: list[JsonObject] = []
        for schema in map(self.of, members):
            if schema not in schemas:
                schemas.append(schema)
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _of_tuple(self, items: tuple[Any, ...]) -> JsonObject:
        if len(items) == 2 and items[1] is ...:
            return {"type": "array", "items": self.of(items[0])}
        places = [self.of(item) for item in items if item != ()]
        return {
            "type": "array",
            **({"prefixItems": places} if places else {}),
            "items": False,
            "minItems": len(places),
        }

    def _of_mapping(self, arguments: tuple[Any, ...]) -> JsonObject:
        key, value = arguments
        if key is not str:
            raise TypeError(f"the keys of a JSON object are strings, not {key!r}")
        return {"type": "object", "additionalProperties": self.of(value) or True}

    def _of_class(self, owner: type) -> JsonObject:
        if issubclass(owner, enum.Enum):
            return _of_choices([member.value for member in owner])
        if owner in (list, tuple):
            return {"type": "array"}
        if owner in (set, frozenset):
            return {"type": "array", "uniqueItems": True}
        if owner is dict:
            return {"type": "object"}
        if not (attrs.has(owner) or is_dataclass(owner) or typing.is_typeddict(owner)):
            raise TypeError(f"JSON Schema has no words for {owner.__name__}")
        if owner in self._open:
            self._recursive.add(owner)
            return {"$ref": f"#/$defs/{owner.__name__}"}
        self._open.append(owner)
        try:
            schema = self.of_members(members_of(owner))
        finally:
            self._open.pop()
        told = documented(owner).description
        schema = {**schema, "description": told} if told else schema
        if owner not in self._recursive:
            return schema
        self.definitions[owner.__name__] = schema
        return {"$ref": f"#/$defs/{owner.__name__}"}


@frozen(kw_only=True)
class Documented:
    """What a docstring says: of the whole, and of each parameter or field by its name."""

    description: str
    members: Mapping[str, str]


def documented(subject: Any) -> Documented:
    """The docstring of a function or class, in Google, NumPy or Sphinx style."""
    text = (
        inspect.cleandoc(vars(subject).get("__doc__") or "")
        if isinstance(subject, type)
        else inspect.getdoc(subject)
    )
    if not text or (isinstance(subject, type) and text.startswith(f"{subject.__name__}(")):
        return Documented(description="", members={})  # A dataclass writes itself a docstring of that kind.
    # Takes 15 ms to import, and only who makes tools of functions needs it.
    from docstring_parser import ParseError, parse  # noqa: PLC0415

    try:
        parsed = parse(text)
    except ParseError:
        return Documented(description=text, members={})
    paragraphs = [part for part in (parsed.short_description, parsed.long_description) if part]
    members = {entry.arg_name: entry.description for entry in parsed.params if entry.description}
    return Documented(description="\n\n".join(paragraphs), members=members)


def members_of(owner: type) -> list[Member]:
    """The fields of a class that its constructor takes. Raises TypeError for a hint that cannot be resolved."""
    hints = resolved_hints(owner)
    told = documented(owner).members
    if typing.is_typeddict(owner):
        required: frozenset[str] = getattr(owner, "__required_keys__", frozenset())
        return [
            Member(
                name=name, hint=hint, default=NO_DEFAULT if name in required else ..., description=told.get(name)
            )
            for name, hint in hints.items()
        ]
    if attrs.has(owner):
        return [
            Member(
                name=field.alias or field.name,
                hint=hints.get(field.name, Any),
                default=_attrs_default(field),
                description=field.metadata.get("description") or told.get(field.name),
            )
            for field in attrs.fields(owner)
            if field.init
        ]
    return [
        Member(
            name=field.name,
            hint=hints[field.name],
            default=_dataclass_default(field),
            description=field.metadata.get("description") or told.get(field.name),
        )
        for field in dataclass_fields(owner)
        if field.init
    ]


def resolved_hints(subject: Any) -> dict[str, Any]:
    """The type hints of a function or class. Raises TypeError naming what cannot be resolved."""
    try:
        return typing.get_type_hints(subject, include_extras=True)
    except NameError as error:
        raise TypeError(f"the type hints of {subject.__name__} cannot be resolved: {error}") from None


def _attrs_default(field: "attrs.Attribute[Any]") -> Any:
    if field.default is attrs.NOTHING:
        return NO_DEFAULT
    return ... if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]


def _dataclass_default(field: "DataclassField[Any]") -> Any:
    if field.default is not MISSING:
        return field.default
    return NO_DEFAULT if field.default_factory is MISSING else ...


def _of_choices(values: list[Any]) -> JsonObject:
    kinds = {_JSON_TYPES.get(type(value)) for value in values}
    if None in kinds:
        raise TypeError(f"a choice has to be a string, a number, a boolean or None, unlike {values!r}")
    if len(kinds) == 1:
        return {"type": kinds.pop(), "enum": values}
    return {"enum": values}
