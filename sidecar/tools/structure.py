"""JSON to the Python values of a function's parameters and back: strictly, by cattrs.

Names are Python's own, unlike on the wire: a model sees a parameter as the function declares it.
"""

import datetime
import enum
import types
import uuid
from collections.abc import Callable, Iterable, Set
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import cattrs
from cattrs.errors import (
    AttributeValidationNote,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
)

from sidecar.tools.arguments import Fault


def structured(value: Any, hint: Any) -> Any:
    """The JSON value as `hint`. Raises whatever cattrs or the type raises; `faults_of` reads it."""
    return value if hint is Any else _converter.structure(value, hint)


def unstructured(value: Any) -> Any:
    """A Python value as JSON: classes as objects, enums as their values, sets as lists."""
    return _converter.unstructure(value)


def faults_of(error: Exception, path: str) -> list[Fault]:
    """What was wrong, each fault with its path below `path`."""
    match error:
        case ClassValidationError() | IterableValidationError():
            return [fault for inner in error.exceptions for fault in faults_of(inner, _below(path, _place(inner)))]
        case ForbiddenExtraKeysError():
            return [Fault(_below(path, f".{name}"), "is not known") for name in sorted(error.extra_fields)]
        case KeyError():
            return [Fault(_below(path, f".{error.args[0]}"), "is required")]
        case _:
            return [Fault(path, f"does not fit: {error}" if str(error) else f"is no {type(error).__name__}")]


def _place(inner: BaseException) -> str:
    if isinstance(inner, KeyError):
        return ""  # A missing field names itself.
    for note in getattr(inner, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            return f".{note.name}"
        if isinstance(note, IterableValidationNote):
            return f"[{note.index}]" if isinstance(note.index, int) else f".{note.index}"
    return ""


def _below(path: str, place: str) -> str:
    return (path + place).removeprefix(".")


def _exactly(*kinds: type, says: str) -> Callable[[Any, Any], Any]:
    """Takes values of these very types, so that True is no number."""

    def structure(value: Any, hint: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError(f"must be {says}, not {value!r}"[:200])
        return value

    return structure


def _unless_enum(hook: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """cattrs takes the hook for `str` for each enum of strings, too."""

    def structure(value: Any, hint: Any) -> Any:
        return hint(value) if issubclass(hint, enum.Enum) else hook(value, hint)

    return structure


def _integer(value: Any, _: Any) -> int:
    if type(value) is float and value.is_integer():  # As JSON Schema sees it, 3.0 is an integer.
        return int(value)
    if type(value) is not int:
        raise TypeError(f"must be an integer, not {value!r}"[:200])
    return value


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"must be a number, not {value!r}"[:200])
    return float(value)


def _from_text(parse: Callable[[str], Any]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, hint: Any) -> Any:
        if type(value) is not str:
            raise TypeError(f"must be a string, not {value!r}"[:200])
        return parse(value)

    return structure


def _union(hint: Any) -> Callable[[Any, Any], Any]:
    """The first member that takes the value as it is."""
    members = get_args(hint)

    def structure(value: Any, _: Any) -> Any:
        if value is None and type(None) in members:
            return None
        refusals: list[Exception] = []
        for member in members:
            try:
                return structured(value, member)
            except Exception as error:  # noqa: BLE001  it is the next member's turn
                refusals.append(error)
        # The last member to get furthest says best what was wrong.
        raise max(refusals, key=lambda error: len(faults_of(error, "")[0].path))

    return structure


def _iterable(hint: Any) -> Callable[[Any, Any], Any]:
    items: Any = list[get_args(hint)[0]]  # type: ignore[misc]  # A type made at run time.
    return lambda value, _: structured(value, items)


def _origin(hint: Any) -> Any:
    return get_origin(hint)


def _build() -> cattrs.Converter:
    converter = cattrs.Converter(
        detailed_validation=True,
        forbid_extra_keys=True,
        use_alias=True,
        unstruct_collection_overrides={Set: list, tuple: list},
    )
    scalars: dict[type, Callable[[Any, Any], Any]] = {
        str: _exactly(str, says="a string"),
        bool: _exactly(bool, says="a boolean"),
        int: _integer,
        float: _number,
        type(None): _exactly(type(None), says="null"),
    }
    for scalar, hook in scalars.items():
        converter.register_structure_hook(scalar, _unless_enum(hook))
    texts: dict[type, Callable[[str], Any]] = {
        datetime.datetime: datetime.datetime.fromisoformat,
        datetime.date: datetime.date.fromisoformat,
        datetime.time: datetime.time.fromisoformat,
        uuid.UUID: uuid.UUID,
        Path: Path,
    }
    for kind, parse in texts.items():
        converter.register_structure_hook(kind, _from_text(parse))
        converter.register_unstructure_hook(kind, str if kind in (uuid.UUID, Path) else kind.isoformat)  # type: ignore[attr-defined]
    converter.register_structure_hook_factory(lambda hint: _origin(hint) in (Union, types.UnionType), _union)
    converter.register_structure_hook_factory(lambda hint: _origin(hint) is Iterable, _iterable)
    return converter


_converter = _build()
