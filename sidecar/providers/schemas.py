"""Schemas of tools as model APIs take them: JSON Schema 2020-12, an object at the root, no references. Pure."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from sidecar.protocol.values import JsonObject
from sidecar.providers.json_text import as_json
from sidecar.providers.object_schema import as_object
from sidecar.providers.references import REFERENCE_KEYWORDS, References, UnmendableSchemaError

MAX_SCHEMA_DEPTH = 64
"""Deeper than any schema that a person wrote, and far from Python's own limit (own choice)."""

MAX_SCHEMA_PARTS = 5_000
"""How many subschemas one may hold once its references are written out, which can double it again and again."""

MAX_SHOWN_CHARACTERS = 80
"""How much of a value a note shows (own choice)."""


def mended_schema(schema: Any) -> tuple[JsonObject, list[str]]:
    """A copy that every provider takes as a tool's `parameters`, and what had to be changed.

    Raises UnmendableSchemaError when it describes something other than an object, refers to what is not in
    it, or is no JSON.
    """
    mending = _Mending(schema)
    mended = as_object(mending.schema(schema, "", depth=0), mending.notes)
    try:
        json.dumps(mended, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnmendableSchemaError(f"its schema is not JSON: {error}") from None
    return mended, mending.notes


# What a keyword may hold (JSON Schema 2020-12, core and validation) --------------------------------------

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "contains", "not", "if", "then", "else", "propertyNames", "contentSchema"})
_SCHEMAS_OR_BOOLEANS = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems"})
"""Keywords that hold schemas. In the last, booleans are what providers know; elsewhere they are refused."""

_DEFINITIONS = ("$defs", "definitions")
_LEFT_OUT = ("$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "dependencies")
"""What only references need, and would be there twice once they are written out; the last is older than 2019."""

_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_count(value: Any) -> bool:
    return _is_number(value) and 0 <= value < 2**53 and value == int(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_type(value: Any) -> bool:
    kinds = value if isinstance(value, list) else [value]
    return bool(kinds) and _is_list_of_names(kinds) and _TYPES.issuperset(kinds)


_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "required": _is_list_of_names,
    "enum": lambda value: _is_list(value) and bool(value),
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_list_of_names, value.values())),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(("title", "description", "pattern", "format", "$comment", "$schema"), _is_text),
    **dict.fromkeys(("contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_boolean),
    "examples": _is_list,
}
"""What servers that check schemas against the meta-schema refuse a whole request for, one bad tool in it."""


# Mending ------------------------------------------------------------------------------------------------


class _Mending:
    """Copies a schema from the top down, mending what providers refuse, and notes what and where."""

    def __init__(self, root: Any) -> None:
        self.notes: list[str] = []
        self._references = References(root)
        self._open: list[str] = []
        self._parts = 0

    def schema(self, schema: Any, path: str, *, depth: int) -> JsonObject:
        self._parts += 1
        if depth > MAX_SCHEMA_DEPTH:
            raise UnmendableSchemaError(f"its schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")
        if self._parts > MAX_SCHEMA_PARTS:
            raise UnmendableSchemaError(
                f"its schema has more than {MAX_SCHEMA_PARTS} parts, references written out"
            )
        if not isinstance(schema, dict):
            return self._no_object(schema, path)
        mended: JsonObject = {}
        for keyword, value in schema.items():
            self._keyword(mended, keyword, value, path, depth + 1)
        for keyword in REFERENCE_KEYWORDS:
            if isinstance(reference := schema.get(keyword), str):
                mended = self._written_out(reference, mended, path, depth + 1)
        self._items(mended, path)
        return mended

    def _no_object(self, schema: Any, path: str) -> JsonObject:
        """`true` takes anything and `false` nothing; as objects that is `{}` and `{"not": {}}`."""
        self._note(path, f"{_shown(schema)} was written as an object")
        return {"not": {}} if schema is False else {}

    def _keyword(self, mended: JsonObject, keyword: str, value: Any, path: str, depth: int) -> None:
        place = f"{path}/{keyword}"
        if keyword in _SCHEMA_MAPS:
            mended[keyword] = self._map(value, place, depth)
        elif keyword in _SCHEMA_LISTS and isinstance(value, list) and value:
            mended[keyword] = self._list(value, place, depth)
        elif keyword == "items" and isinstance(value, list) and value:
            self._note(place, "its list of schemas became prefixItems")
            mended["prefixItems"] = self._list(value, place, depth)
        elif keyword in _SCHEMAS_OR_BOOLEANS and isinstance(value, bool):
            mended[keyword] = value
        elif keyword in _SCHEMAS_OR_BOOLEANS or (keyword in _SCHEMAS and not isinstance(value, list)):
            mended[keyword] = self.schema(value, place, depth=depth)
        elif keyword in _DEFINITIONS:
            self._note(place, "what is used of it was written out in its place")
        elif keyword in REFERENCE_KEYWORDS and isinstance(value, str):
            pass  # It is followed once everything beside it is known.
        elif (
            keyword in _SCHEMA_LISTS
            or keyword in _SCHEMAS
            or keyword in _LEFT_OUT
            or not self._is_sound(keyword, value)
        ):
            self._note(place, f"{_shown(value)} was left out")
        else:
            mended[keyword] = value

    def _is_sound(self, keyword: str, value: Any) -> bool:
        if keyword in REFERENCE_KEYWORDS:
            return False
        return keyword not in _SOUND or _SOUND[keyword](value)

    def _map(self, value: Any, path: str, depth: int) -> JsonObject:
        if not isinstance(value, dict):  # PHP writes an empty object as `[]`.
            self._note(path, f"{_shown(value)} was written as {{}}")
            return {}
        return {name: self.schema(inner, f"{path}/{name}", depth=depth) for name, inner in value.items()}

    def _list(self, schemas: list[Any], path: str, depth: int) -> list[JsonObject]:
        return [self.schema(inner, f"{path}/{index}", depth=depth) for index, inner in enumerate(schemas)]

    def _items(self, mended: JsonObject, path: str) -> None:
        kind = mended.get("type")
        if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in mended:
            self._note(path, "the array got items {}")
            mended["items"] = {}

    # References -----------------------------------------------------------------------------------------

    def _written_out(self, reference: str, beside: JsonObject, path: str, depth: int) -> JsonObject:
        """What a reference means, together with what stands beside it."""
        target = self._references.resolve(reference)
        if reference in self._open:
            self._note(path, f"the recursion of {reference!r} ends here, where anything may stand")
            meant = _kind_of(target)
        else:
            self._note(path, f"{reference!r} was written out")
            self._open.append(reference)
            meant = self.schema(target, path, depth=depth)
            self._open.pop()
        if meant.keys().isdisjoint(beside.keys() - _ANNOTATIONS):
            return {**meant, **beside}
        return {**beside, "allOf": [*beside.get("allOf", ()), meant]}

    def _note(self, path: str, what: str) -> None:
        self.notes.append(f"{path or 'the root'}: {what}")


def _kind_of(schema: Any) -> JsonObject:
    """As much of a schema as says what kind of value it takes."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return {"type": kind} if _is_type(kind) else {}


def _shown(value: Any) -> str:
    """The beginning of a value, as whoever wrote the schema wrote it: in JSON, as far as it is JSON."""
    try:
        return as_json(value)[:MAX_SHOWN_CHARACTERS]
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:MAX_SHOWN_CHARACTERS]
