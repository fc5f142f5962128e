"""A schema with unions at its root, lowered to the plain object that providers want there. Pure.

OpenAI and Anthropic refuse `anyOf`, `oneOf` and `allOf` at the root of a tool's schema. What comes out takes at
least what the original takes; the call's arguments are checked against the original all the same.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from sidecar.protocol.values import JsonObject
from sidecar.providers.references import UnmendableSchemaError

_UNIONS = ("allOf", "anyOf", "oneOf")
_REFUSED_AT_ROOT = (*_UNIONS, "not", "enum", "const")
"""OpenAI names them in its refusal."""


def as_object(schema: JsonObject, notes: list[str]) -> JsonObject:
    """The root as providers want it: an object with properties, no unions. Raises UnmendableSchemaError."""
    shape = _shape(schema)
    if shape is None:
        raise UnmendableSchemaError(f"its schema describes {_words(schema.get('type'))}, not an object")
    refused = [keyword for keyword in _REFUSED_AT_ROOT if keyword in schema]
    if refused:
        notes.append(
            f"the root: {', '.join(refused)} was lowered to one object; arguments are still checked in full"
        )
    if schema.get("type") != "object":
        notes.append("it got the type 'object'")
    if "properties" not in schema and not refused:
        notes.append("it got the properties {}")
    kept = {keyword: value for keyword, value in schema.items() if keyword not in refused}
    lowered = {**kept, "type": "object", "properties": shape.properties}
    if shape.required or "required" in kept:
        lowered["required"] = list(shape.required)
    return lowered


@frozen
class _Shape:
    """What an object may and must hold."""

    properties: JsonObject
    required: tuple[str, ...]


def _shape(schema: JsonObject) -> _Shape | None:
    """What a schema says of objects; None when it takes none."""
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return None
    shapes = [_Shape(schema.get("properties", {}), tuple(schema.get("required", ())))]
    for keyword in _UNIONS:
        if keyword not in schema:
            continue
        branches = [_shape(branch) for branch in schema[keyword]]
        known = [branch for branch in branches if branch is not None]
        if not known or (keyword == "allOf" and len(known) < len(branches)):
            return None
        shapes += known if keyword == "allOf" else [_either(known)]
    return _all(shapes)


def _all(shapes: Sequence[_Shape]) -> _Shape:
    """What takes only objects that each of them takes."""
    required = dict.fromkeys(name for shape in shapes for name in shape.required)
    return _Shape(_merged(shapes, "allOf"), tuple(required))


def _either(shapes: Sequence[_Shape]) -> _Shape:
    """What takes objects that one of them takes: all properties, and required what all of them require."""
    required = [name for name in shapes[0].required if all(name in shape.required for shape in shapes)]
    return _Shape(_merged(shapes, "anyOf"), tuple(required))


def _merged(shapes: Iterable[_Shape], keyword: str) -> JsonObject:
    """All properties; one that several of them describe differently gets all descriptions under `keyword`."""
    merged: dict[str, list[JsonObject]] = {}
    for shape in shapes:
        for name, schema in shape.properties.items():
            schemas = merged.setdefault(name, [])
            if schema not in schemas:
                schemas.append(schema)
    return {name: schemas[0] if len(schemas) == 1 else {keyword: schemas} for name, schemas in merged.items()}


def _words(kind: Any) -> str:
    return " or ".join(kind) if isinstance(kind, list) else str(kind or "something else")
