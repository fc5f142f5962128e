"""Tools as a provider can take them: names it accepts, schemas it accepts, everything else left out. Pure.

The registry's definitions are never changed; what goes out is a copy. Each mending is a WarningPiece, and a
tool that cannot be mended is left out alone, so that it does not take the others along.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from attrs import frozen

from sidecar.protocol.values import JsonObject, ToolDefinition
from sidecar.providers.base import WarningPiece

MAX_NAME_CHARACTERS = 64
"""OpenAI's limit, which most servers took over, together with the characters below."""

MAX_SCHEMA_DEPTH = 64
"""Deeper than any schema that a person wrote, and far from Python's own limit (own choice)."""

MAX_NOTES = 5
"""How many mendings of one schema a warning lists."""


@frozen(kw_only=True)
class LoweredTools:
    """What a provider is told of the tools. `registry_names` leads from its names back to ours."""

    tools: tuple[ToolDefinition, ...]
    registry_names: Mapping[str, str]
    warnings: tuple[WarningPiece, ...]

    def wire_name(self, name: str) -> str:
        """The provider's name for a tool, also for one that history mentions and that is gone by now."""
        wire = wire_name(name)
        if self.registry_names.get(wire) in (None, name):
            return wire
        return next((wire for wire, ours in self.registry_names.items() if ours == name), wire)


def lower_tools(definitions: Sequence[ToolDefinition]) -> LoweredTools:
    """The definitions under names and with schemas that providers take, in the same order."""
    tools: list[ToolDefinition] = []
    registry_names: dict[str, str] = {}
    warnings: list[WarningPiece] = []
    taken = {definition.name for definition in definitions}
    for definition in definitions:
        try:
            parameters, notes = mended_schema(definition.parameters)
        except UnmendableSchemaError as error:
            warnings.append(_warning("toolLeftOut", f"tool {definition.name!r} is left out: {error}"))
            continue
        wire = wire_name(definition.name, taken=taken)
        taken.add(wire)
        registry_names[wire] = definition.name
        if wire != definition.name:
            warnings.append(
                _warning("toolRenamed", f"tool {definition.name!r} is called {wire!r} towards the model")
            )
        if notes:
            warnings.append(
                _warning("schemaRepaired", f"the schema of tool {definition.name!r}: {_listed(notes)}")
            )
        tools.append(ToolDefinition(name=wire, description=definition.description, parameters=parameters))
    return LoweredTools(tools=tuple(tools), registry_names=registry_names, warnings=tuple(warnings))


def wire_name(name: str, *, taken: Set[str] = frozenset()) -> str:
    """The name itself where providers take it, else a readable beginning and a digest of the whole.

    Depends on the name alone, so that it is the same in every turn and whatever other tools there are; only
    where another tool bears the very name that comes out (`taken`) is the digest made anew.
    """
    if _TAKEABLE.fullmatch(name):
        return name
    for attempt in range(len(taken) + 1):
        salted = name if attempt == 0 else f"{name}\0{attempt}"
        digest = hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[: MAX_NAME_CHARACTERS - 1 - len(digest)]
        if (wire := f"{readable}_{digest}") not in taken:
            return wire
    raise AssertionError("more names are taken than there are")


class UnmendableSchemaError(ValueError):
    """A schema that no provider would take; the message says why."""


def mended_schema(schema: Any) -> tuple[JsonObject, list[str]]:
    """A copy that every provider takes as a tool's `parameters`, and what had to be changed.

    Raises UnmendableSchemaError when it describes something other than an object, or is no JSON.
    """
    notes: list[str] = []
    mended = _mended_root(_Mending(notes).schema(schema, "", depth=0), notes)
    try:
        json.dumps(mended, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UnmendableSchemaError(f"its schema is not JSON: {error}") from None
    return mended, notes


_TAKEABLE = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARACTERS}}}")

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMAS = frozenset({"items", "contains", "not", "if", "then", "else", "propertyNames", "additionalProperties"})
"""Keywords that hold schemas (JSON Schema 2020-12, core 10; `definitions` and lists in `items` are older)."""


def _mended_root(schema: JsonObject, notes: list[str]) -> JsonObject:
    """The root as OpenAI wants it: an object with properties. `$ref` and unions at the root belong here, too."""
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise UnmendableSchemaError(f"its schema describes {json.dumps(kind)}, not an object")
    if schema.get("type") != "object":
        notes.append("it got the type 'object'")
    if "properties" not in schema:
        notes.append("it got the properties {}")
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


class _Mending:
    """Copies a schema from the top down, mending what providers refuse, and notes what and where."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def schema(self, schema: Any, path: str, *, depth: int) -> JsonObject:
        if depth > MAX_SCHEMA_DEPTH:
            raise UnmendableSchemaError(f"its schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")
        if not isinstance(schema, dict):
            return self._no_object(schema, path)
        mended: JsonObject = {}
        for keyword, value in schema.items():
            self._keyword(mended, keyword, value, f"{path}/{keyword}", depth + 1)
        self._items(mended, path)
        return mended

    def _no_object(self, schema: Any, path: str) -> JsonObject:
        """`true` takes anything and `false` nothing; as objects that is `{}` and `{"not": {}}`."""
        self._note(path, f"{_shown(schema)} was written as an object")
        return {"not": {}} if schema is False else {}

    def _keyword(self, mended: JsonObject, keyword: str, value: Any, path: str, depth: int) -> None:
        if keyword in _SCHEMA_MAPS:
            mended[keyword] = self._map(value, path, depth)
        elif keyword in _SCHEMA_LISTS and isinstance(value, list):
            mended[keyword] = self._list(value, path, depth)
        elif keyword == "items" and isinstance(value, list):
            self._note(path, "its list of schemas became prefixItems")
            mended["prefixItems"] = self._list(value, path, depth)
        elif keyword == "additionalProperties" and isinstance(value, bool):
            mended[keyword] = value  # The one place where providers know booleans.
        elif keyword in _SCHEMAS:
            mended[keyword] = self.schema(value, path, depth=depth)
        elif self._is_sound(keyword, value):
            mended[keyword] = value
        else:
            self._note(path, f"{_shown(value)} was left out")

    def _is_sound(self, keyword: str, value: Any) -> bool:
        match keyword:
            case "type":
                kinds = value if isinstance(value, list) else [value]
                return bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)
            case "required":
                return isinstance(value, list) and all(isinstance(name, str) for name in value)
            case "enum":
                return isinstance(value, list) and bool(value)
            case _:
                return True

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

    def _note(self, path: str, what: str) -> None:
        self._notes.append(f"{path or 'the root'}: {what}")


def _shown(value: Any) -> str:
    return repr(value)[:80]


def _warning(code: str, message: str) -> WarningPiece:
    return WarningPiece(code=code, message=message)


def _listed(notes: list[str]) -> str:
    more = f"; and {len(notes) - MAX_NOTES} more" if len(notes) > MAX_NOTES else ""
    return "; ".join(notes[:MAX_NOTES]) + more
