"""The model as JSON Schema 2020-12: one definition for each shape, and one for each method's params and result.

Objects are open, as the protocol has it: what is not known is ignored. A field that may be absent may be null too.
"""

from collections.abc import Iterable
from typing import Any

from sidecar.protocol.values import JsonObject

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_BASE: dict[str, JsonObject] = {
    "string": {"type": "string"},
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer"},
    "decimal": {"type": "number"},
    "null": {"type": "null"},
    "any": {},
}


def json_schema(model: JsonObject) -> JsonObject:
    """The schema of the messages: `methods` names the definitions that params and results of each have to fit.

    `handshake` does so for the places in LSP's `initialize` that are ours.
    """
    definitions = {
        **{each["name"]: _structure(each) for each in model["structures"]},
        **{each["name"]: _enumeration(each) for each in model["enumerations"]},
        **{each["name"]: _schema(each["type"]) for each in model["typeAliases"]},
    }
    rows = [*model["requests"], *model["notifications"]]
    return {
        "$schema": DIALECT,
        "title": "Agent Sidecar protocol",
        "protocolVersion": model["metaData"]["version"],
        "methods": {row["method"]: _method(row) for row in rows},
        "handshake": {place: _schema(kind) for place, kind in model["handshake"].items()},
        "events": {each["type"]: _schema(each["params"]) for each in model["events"]},
        "errors": {each["kind"]: each["code"] for each in model["errors"]},
        "$defs": definitions,
    }


def _method(row: JsonObject) -> JsonObject:
    sender = "host" if row["messageDirection"] == "clientToServer" else "sidecar"
    method: JsonObject = {"sender": sender}
    method.update({part: _schema(row[part]) for part in ("params", "result") if part in row})
    return method


def _structure(structure: JsonObject) -> JsonObject:
    properties = {each["name"]: _property(each) for each in structure["properties"]}
    if "otherTypesThan" in structure:  # Else what is wrong with a known type would pass as an unknown one.
        properties["type"]["not"] = {"enum": structure["otherTypesThan"]}
    required = [each["name"] for each in structure["properties"] if not each.get("optional")]
    return {
        "description": structure["documentation"],
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
    }


def _property(described: JsonObject) -> JsonObject:
    schema = _schema(described["type"])
    return _any_of([schema, {"type": "null"}]) if described.get("nullable") else schema


def _enumeration(enumeration: JsonObject) -> JsonObject:
    return {"enum": [each["value"] for each in enumeration["values"]]}


def _schema(kind: JsonObject) -> JsonObject:
    match kind:
        case {"kind": "base", "name": str(name)}:
            return dict(_BASE[name])
        case {"kind": "reference", "name": str(name)}:
            return {"$ref": f"#/$defs/{name}"}
        case {"kind": "array", "element": dict(element)}:
            return {"type": "array", "items": _schema(element)}
        case {"kind": "map", "value": dict(value)}:
            inner = _schema(value)
            return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
        case {"kind": "literal", "value": value}:
            return {"const": value}
        case {"kind": "or", "items": list(items)}:
            return _or(items)
    raise TypeError(f"no type of the model: {kind!r}")


def _or(items: list[Any]) -> JsonObject:
    if all(item["kind"] == "literal" for item in items):
        return {"enum": [item["value"] for item in items]}
    return _any_of(map(_schema, items))


def _any_of(schemas: Iterable[JsonObject]) -> JsonObject:
    return {"anyOf": list(schemas)}
