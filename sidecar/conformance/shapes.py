"""Messages against the published schema: the words that `schema` writes, and no others.

Open as the protocol is: fields, methods and event types that are not known are passed over.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from sidecar.conformance.matching import same, shown
from sidecar.protocol.values import JsonObject
from sidecar.schema.json_schema import json_schema
from sidecar.schema.model import meta_model

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int, float),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}


@cache
def published() -> JsonObject:
    """The schema of the protocol."""
    return json_schema(meta_model())


def protocol_version() -> str:
    """The version that the schema is of."""
    return str(published()["protocolVersion"])


def params_fault(method: str, params: Any) -> str | None:
    """What is wrong with the params of a method of ours; None for other methods."""
    schema = published()["methods"].get(method)
    if schema is None or "params" not in schema:
        return None
    if method == "agent/event" and not _is_known_event(params):
        return None
    return next(_faults(schema["params"], {} if params is None else params, "params"), None)


def result_fault(method: str, result: Any) -> str | None:
    """What is wrong with the result of a method of ours; None for other methods."""
    schema = published()["methods"].get(method)
    if schema is None or "result" not in schema:
        return None
    return next(_faults(schema["result"], result, "result"), None)


def error_codes() -> dict[str, int]:
    """Code of each kind of error."""
    return dict(published()["errors"])


def _is_known_event(params: Any) -> bool:
    """Whether the schema can judge it: an event of another type may have come with a later version."""
    event = params.get("event") if isinstance(params, dict) else None
    kind = event.get("type") if isinstance(event, dict) else None
    return not isinstance(kind, str) or kind in published()["events"]


def _faults(schema: JsonObject, value: Any, path: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = published()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        yield from _of_none(schema["anyOf"], value, path)
    if "const" in schema and not same(schema["const"], value):
        yield f"{path}: must be {shown(schema['const'])}, not {shown(value)}"
    if "enum" in schema and not any(same(each, value) for each in schema["enum"]):
        yield f"{path}: must be one of {shown(schema['enum'])}, not {shown(value)}"
    if "not" in schema and next(_faults(schema["not"], value, path), None) is None:
        yield f"{path}: must not be one of {shown(schema['not']['enum'])}, but is {shown(value)}"
    if "type" in schema and not _is_of(schema["type"], value):
        yield f"{path}: must be of type {schema['type']}, not {shown(value)}"
    elif isinstance(value, dict):
        yield from _object_faults(schema, value, path)
    elif isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            yield from _faults(schema["items"], each, f"{path}[{number}]")


def _of_none(schemas: list[JsonObject], value: Any, path: str) -> Iterator[str]:
    """Complains where no branch fits; the branch of the value's own `type` says best what is wrong."""
    found = [next(_faults(each, value, path), None) for each in schemas]
    if None not in found:
        yield max(
            filter(None, found), key=lambda fault: (fault.count(".") + fault.count("["), ".type" not in fault)
        )


def _is_of(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _object_faults(schema: JsonObject, value: JsonObject, path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{path}.{name}: is missing" for name in schema.get("required", []) if name not in value)
    for name, each in value.items():
        inner = properties.get(name, schema.get("additionalProperties"))
        if isinstance(inner, dict):
            yield from _faults(inner, each, f"{path}.{name}")
