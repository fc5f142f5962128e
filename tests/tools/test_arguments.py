"""Faults of arguments in words that a model can act on.

Source: protocol.md, `invalidArguments`; JSON Schema 2020-12; the words are our own choice.
"""

import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from sidecar.protocol.values import JsonObject
from sidecar.tools.arguments import MAX_FAULTS, ArgumentCheck, BrokenSchemaError, Fault, invalid_arguments


def obj(required: str = "", closed: bool = False, **properties: Any) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties, "required": required.split()}
    return {**schema, "additionalProperties": False} if closed else schema


STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
BY_TAG = {
    "oneOf": [
        obj("kind", kind={"const": "point"}, x=INTEGER),
        obj("kind", kind={"const": "name"}, text=STRING),
    ]
}


@pytest.mark.parametrize(
    ("schema", "arguments", "faults"),
    [
        (obj("a b", a=STRING), {}, ["a is required", "b is required"]),
        (obj(a=INTEGER), {"a": "3"}, ['a must be an integer, not "3"']),
        (obj(a=INTEGER), {"a": True}, ["a must be an integer, not true"]),
        (obj(a=INTEGER), {"a": 3.5}, ["a must be an integer, not 3.5"]),
        (obj(a={"type": ["string", "null"]}), {"a": []}, ["a must be a string or null, not []"]),
        (obj(a={"enum": ["x", "y", 1]}), {"a": "z"}, ['a must be one of "x", "y", 1, not "z"']),
        (obj(a={"const": "x"}), {"a": "z"}, ['a must be "x", not "z"']),
        (
            obj(a=STRING, b=STRING, closed=True),
            {"c": 1, "d": 2},
            ["c is not known", "d is not known; known are a, b"],
        ),
        (obj(closed=True), {"c": 1}, ["c is not known; known are none"]),
        (
            obj(a={"type": "array", "items": obj("z", z=STRING)}),
            {"a": [{"z": "ok"}, {}, 3]},
            ["a[1].z is required", "a[2] must be an object, not 3"],
        ),
        (obj(a={"anyOf": [STRING, NULL]}), {"a": 2}, ["a must be a string or null, not 2"]),
        (obj(a=BY_TAG), {"a": {"kind": "name", "text": 1}}, ["a.text must be a string, not 1"]),
        (obj(a=BY_TAG), {"a": 3}, ["a must be an object, not 3"]),
        (obj(a=BY_TAG), {"a": {"kind": "?"}}, ['a fits none of the 2 allowed shapes: {"kind":"?"}']),
        (obj(a={"minLength": 3}), {"a": "ab"}, ["a does not fit: 'ab' is too short"]),
        ({"minProperties": 1}, {}, ["the argument object does not fit: {} should be non-empty"]),
    ],
)
async def test_a_fault_says_where_it_is_and_what_is_wanted(
    schema: JsonObject, arguments: JsonObject, faults: list[str]
) -> None:
    assert [str(fault) for fault in await ArgumentCheck(schema).faults(arguments)] == faults


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {"anything": 1}),
        (obj(a=INTEGER), {"a": 3.0}),
        (obj(a={"$ref": "#/$defs/x"}) | {"$defs": {"x": STRING}}, {"a": "text"}),
        (obj(a={"prefixItems": [STRING, INTEGER]}), {"a": ["x", 1]}),
        (obj(a={"format": "email"}), {"a": "not one"}),
        (obj(a={"$ref": "https://example.invalid/x.json"}), {}),
        ({"$schema": "urn:unknown", **obj(a=STRING)}, {"a": "x"}),
    ],
)
async def test_what_fits_has_no_faults(schema: JsonObject, arguments: JsonObject) -> None:
    assert await ArgumentCheck(schema).faults(arguments) == []


async def test_a_schema_that_cannot_be_used_is_told_with_its_reason() -> None:
    check = ArgumentCheck({"type": "objekt"})
    for _ in range(2):
        with pytest.raises(BrokenSchemaError, match="SchemaError: "):
            await check.faults({})


async def test_a_reference_to_elsewhere_is_never_fetched() -> None:
    asked: list[str] = []

    class Schemas(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "integer"}')

    with ThreadingHTTPServer(("127.0.0.1", 0), Schemas) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        check = ArgumentCheck(obj(a={"$ref": f"http://127.0.0.1:{server.server_port}/x.json"}))
        # The library warns before it fetches; a warning must not be what holds it back.
        with warnings.catch_warnings(action="ignore"), pytest.raises(BrokenSchemaError, match="Unresolvable"):
            await check.faults({"a": 1})
        server.shutdown()
    assert asked == []


async def test_a_long_value_is_shortened() -> None:
    (fault,) = await ArgumentCheck(obj(a=INTEGER)).faults({"a": "x" * 1000})
    assert fault.reason.endswith("xxx…")
    assert len(fault.reason) < 100


def test_the_error_tells_the_first_faults_and_counts_the_rest() -> None:
    faults = [Fault(f"a{n}", "is required") for n in range(MAX_FAULTS + 2)]
    error = invalid_arguments("tool", faults)
    assert error.message.startswith("invalid arguments for tool: a0 is required; a1 is required; ")
    assert error.message.endswith("; and 2 more")
    assert len(error.data["faults"]) == MAX_FAULTS
    assert error.data["faults"][0] == {"path": "a0", "reason": "is required"}
