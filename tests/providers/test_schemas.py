"""Schemas of tools are mended into what every provider takes: an object at the root, no references, no nonsense.

Source: protocol.md, "Tool names and schemas"; JSON Schema 2020-12, core and validation; refusals of OpenAI and
Anthropic that users of MCP servers report (objects without properties, arrays without items, booleans as
schemas, unions at the root, keywords that are not valid in 2020-12).
"""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from sidecar.providers.references import UnmendableSchemaError
from sidecar.providers.schemas import MAX_SCHEMA_DEPTH, mended_schema
from tests.harness.model_strictness import complaints

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
GOOD: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Good",
    "type": "object",
    "properties": {
        "a": {"type": ["string", "null"], "enum": ["x", None], "default": {"$ref": "is data here"}},
        "b": {"type": "array", "items": {}, "minItems": 1, "uniqueItems": True},
        "c": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"const": {"$ref": "data, too"}}]},
    },
    "required": ["a"],
    "additionalProperties": False,
    "if": {"required": ["a"]},
    "then": {"required": ["b"]},
}


def refusals(parameters: Any) -> list[str]:
    """What strict providers would say to a tool with this schema."""
    function = {"type": "function", "function": {"name": "look", "parameters": parameters}}
    hello = [{"role": "user", "content": "hello"}]
    against = Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(parameters)
    reasons = complaints({"model": "m", "messages": hello, "tools": [function]})
    return [*reasons, *(error.message for error in against)]


def of(**properties: Any) -> dict[str, Any]:
    """An object schema with these properties."""
    return {"type": "object", "properties": properties}


def test_a_good_schema_stays_as_it_is() -> None:
    assert mended_schema(GOOD) == (GOOD, [])
    assert refusals(GOOD) == []


MENDED: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing": ({}, OBJECT),
    "null": (None, OBJECT),
    "true": (True, OBJECT),
    "no type": ({"properties": {"a": {}}}, of(a={})),
    "no properties": ({"type": "object"}, OBJECT),
    "properties null": ({"type": "object", "properties": None}, OBJECT),
    "properties as PHP writes them": ({"type": "object", "properties": []}, OBJECT),
    "object or null": ({"type": ["object", "null"], "properties": {}}, OBJECT),
    "type null": ({"type": None, "properties": {}}, OBJECT),
    "required null": ({**OBJECT, "required": None}, OBJECT),
    "required twice": ({**OBJECT, "required": ["a", "a"]}, OBJECT),
    "property true": (of(a=True), of(a={})),
    "property false": (of(a=False), of(a={"not": {}})),
    "array without items": (of(a={"type": "array"}), of(a={"type": "array", "items": {}})),
    "array of anything": (of(a={"type": "array", "items": True}), of(a={"type": "array", "items": {}})),
    "tuple of draft 7": (
        of(a={"type": "array", "items": [{"type": "string"}, True]}),
        of(a={"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}}),
    ),
    "required of draft 3": (of(a={"type": "string", "required": True}), of(a={"type": "string"})),
    "limits of draft 4": (of(a={"minimum": 0, "exclusiveMinimum": True}), of(a={"minimum": 0})),
    "limits as text": (of(a={"maxLength": "10", "minItems": -1, "pattern": None}), of(a={})),
    "made-up type": (of(a={"type": "any", "enum": []}), of(a={})),
    "empty union": (of(a={"anyOf": []}), of(a={})),
    "deep down": (
        of(a={"anyOf": [{"type": "array"}, True]}),
        of(a={"anyOf": [{"type": "array", "items": {}}, {}]}),
    ),
    "definitions that nothing uses": ({**OBJECT, "$defs": {"a": True}, "definitions": {}}, OBJECT),
    "a schema's own name": ({**OBJECT, "$id": "https://example.com/look", "$anchor": "x"}, OBJECT),
    "an enumeration at the root": ({**OBJECT, "enum": [{}], "not": {"required": ["a"]}}, OBJECT),
}


@pytest.mark.parametrize(("schema", "mended"), MENDED.values(), ids=list(MENDED))
def test_a_schema_that_providers_refuse_is_mended_and_noted(schema: Any, mended: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    parameters, notes = mended_schema(schema)
    assert parameters == mended
    assert notes
    assert schema == before
    assert refusals(parameters) == []


# References ---------------------------------------------------------------------------------------------

POINT = {"type": "object", "properties": {"x": {"type": "number"}}}
REFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "to a definition": ({**of(a={"$ref": "#/$defs/Point"}), "$defs": {"Point": POINT}}, of(a=POINT)),
    "to older definitions": ({**of(a={"$ref": "#/definitions/P"}), "definitions": {"P": POINT}}, of(a=POINT)),
    "through another": (
        {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": POINT}},
        of(a=POINT),
    ),
    "used twice": (
        {
            **of(a={"$ref": "#/$defs/P"}, b={"type": "array", "items": {"$ref": "#/$defs/P"}}),
            "$defs": {"P": POINT},
        },
        of(a=POINT, b={"type": "array", "items": POINT}),
    ),
    "to a place anywhere": (
        of(a=POINT, b={"$ref": "#/properties/a/properties/x"}),
        of(a=POINT, b={"type": "number"}),
    ),
    "into a list": (
        of(a={"anyOf": [POINT]}, b={"$ref": "#/properties/a/anyOf/0"}),
        of(a={"anyOf": [POINT]}, b=POINT),
    ),
    "with odd characters": (
        {**of(a={"$ref": "#/$defs/a~1b~0c%20d"}), "$defs": {"a/b~c d": POINT}},
        of(a=POINT),
    ),
    "to an anchor": ({**of(a={"$ref": "#point"}), "$defs": {"P": {**POINT, "$anchor": "point"}}}, of(a=POINT)),
    "by the schema's own name": (
        {**of(a={"$ref": "https://h/s#/$defs/P"}), "$id": "https://h/s", "$defs": {"P": POINT}},
        of(a=POINT),
    ),
    "by the name of a part": (
        {**of(a={"$ref": "point"}), "$id": "https://h/s", "$defs": {"P": {**POINT, "$id": "https://h/point"}}},
        of(a=POINT),
    ),
    "with words beside it": (
        {
            **of(a={"$ref": "#/$defs/P", "description": "where"}),
            "$defs": {"P": {**POINT, "description": "a point"}},
        },
        of(a={**POINT, "description": "where"}),
    ),
    "with a schema beside it": (
        {**of(a={"$ref": "#/$defs/P", "properties": {"y": {}}}), "$defs": {"P": POINT}},
        of(a={"properties": {"y": {}}, "allOf": [POINT]}),
    ),
    "at the root": ({"$ref": "#/$defs/P", "$defs": {"P": POINT}}, POINT),
    "to a boolean": ({**of(a={"$ref": "#/$defs/Any"}), "$defs": {"Any": True}}, of(a={})),
    "as data": (of(a={"enum": [{"$ref": "#/nowhere"}]}, b=True), of(a={"enum": [{"$ref": "#/nowhere"}]}, b={})),
    "that is no text": (of(a={"$ref": 3}), of(a={})),
}


@pytest.mark.parametrize(("schema", "mended"), REFERENCES.values(), ids=list(REFERENCES))
def test_a_reference_is_written_out(schema: dict[str, Any], mended: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    parameters, notes = mended_schema(schema)
    assert (parameters, schema) == (mended, before)
    assert notes
    assert refusals({**parameters, "type": "object"}) == []


def test_a_note_shows_what_was_mended_as_it_was_written() -> None:
    _, notes = mended_schema({**of(a=True), "required": None, "title": {"sub": [False]}})
    assert notes == [
        "/properties/a: true was written as an object",
        "/required: null was left out",
        '/title: {"sub":[false]} was left out',
    ]


def test_a_recursion_is_written_out_once_and_then_ends() -> None:
    node = of(value={"type": "string"}, children={"type": "array", "items": {"$ref": "#/$defs/Node"}})
    parameters, notes = mended_schema({**of(tree={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}})
    inner = {"type": "array", "items": {"type": "object"}}
    assert parameters == of(tree=of(value={"type": "string"}, children=inner))
    assert any("recursion" in note for note in notes)


@pytest.mark.parametrize("reference", ["#", "#/properties/a", "#/$defs/A"])
def test_a_recursion_of_any_kind_ends(reference: str) -> None:
    schema = {**of(a={"$ref": reference}), "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}
    parameters, _ = mended_schema(schema)
    assert refusals(parameters) == []


def doubling(times: int) -> dict[str, Any]:
    """A schema of a few lines that doubles with each definition."""
    both = {n: of(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"}) for n in range(times)}
    return {**of(a={"$ref": "#/$defs/d0"}), "$defs": {**{f"d{n}": s for n, s in both.items()}, f"d{times}": {}}}


# Unions at the root -------------------------------------------------------------------------------------

UNIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one of several objects": (
        {"oneOf": [{**of(a={"type": "string"}), "required": ["a"]}, {**of(b={}), "required": ["b"]}]},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}},
    ),
    "required in all": (
        {
            "anyOf": [
                {**of(k={"const": 1}, a={}), "required": ["k", "a"]},
                {**of(k={"const": 2}), "required": ["k"]},
            ]
        },
        {**of(k={"anyOf": [{"const": 1}, {"const": 2}]}, a={}), "required": ["k"]},
    ),
    "this or that argument": (
        {**of(a={}, b={}), "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "required": ["b"]},
        {**of(a={}, b={}), "required": ["b"]},
    ),
    "all of several": (
        {**of(a={}), "allOf": [{**of(b={}), "required": ["b"]}, {"properties": {"a": {"type": "string"}}}]},
        {**of(a={"allOf": [{}, {"type": "string"}]}, b={}), "required": ["b"]},
    ),
    "nested": ({"allOf": [{"anyOf": [of(a={}), of(b={})]}, of(c={})]}, of(a={}, b={}, c={})),
    "nothing at all is possible, too": ({"anyOf": [of(a={}), {"type": "null"}]}, of(a={})),
    "behind a reference": ({"anyOf": [{"$ref": "#/$defs/A"}, of(b={})], "$defs": {"A": of(a={})}}, of(a={}, b={})),
}


@pytest.mark.parametrize(("schema", "mended"), UNIONS.values(), ids=list(UNIONS))
def test_a_union_at_the_root_becomes_one_object(schema: dict[str, Any], mended: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    parameters, notes = mended_schema(schema)
    assert (parameters, schema) == (mended, before)
    assert any("arguments are still checked in full" in note for note in notes)
    assert refusals(parameters) == []


# What cannot be mended ----------------------------------------------------------------------------------


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = of(a=schema)
    return schema


def cyclic() -> dict[str, Any]:
    schema = of()
    schema["properties"]["self"] = schema
    return schema


UNMENDABLE: dict[str, tuple[Any, str]] = {
    "a string": ({"type": "string"}, "describes string, not an object"),
    "a list": ({"type": ["array", "null"]}, "describes array or null, not an object"),
    "a union without objects": ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "not an object"),
    "an impossible union": ({"allOf": [{"type": "string"}, of()]}, "not an object"),
    "no JSON": ({**OBJECT, "default": object()}, "is not JSON"),
    "no number": ({**OBJECT, "default": float("nan")}, "is not JSON"),
    "too deep": (nested(MAX_SCHEMA_DEPTH + 1), "nested more than"),
    "endless": (cyclic(), "nested more than"),
    "endless, with a reference": ({**cyclic(), "$defs": cyclic(), "$ref": "#nowhere"}, "nested more than"),
    "a reference to nowhere": (of(a={"$ref": "#/$defs/gone"}), "'#/$defs/gone' leads nowhere"),
    "a reference past the end": (of(a={"anyOf": [{}]}, b={"$ref": "#/properties/a/anyOf/1"}), "leads nowhere"),
    "an unknown anchor": (of(a={"$ref": "#gone"}), "'#gone' leads nowhere"),
    "a reference outside": (
        of(a={"$ref": "https://h/point.json"}),
        "leads out of the schema, and none is fetched",
    ),
    "a file outside": (of(a={"$ref": "common.json#/$defs/P"}), "leads out of the schema"),
    "references that double": (doubling(20), "more than 5000 parts"),
}


@pytest.mark.parametrize(("schema", "reason"), UNMENDABLE.values(), ids=list(UNMENDABLE))
def test_a_schema_that_cannot_be_mended_says_why(schema: Any, reason: str) -> None:
    with pytest.raises(UnmendableSchemaError) as raised:
        mended_schema(schema)
    assert reason in str(raised.value)


# Anything -----------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
WORDS = [
    "type",
    "properties",
    "items",
    "required",
    "enum",
    "anyOf",
    "allOf",
    "$defs",
    "not",
    "a",
    "minimum",
    "$ref",
]
SCHEMA = st.recursive(
    JSON | st.sampled_from(["object", "array", "string", "#", "#/$defs/a", "#/properties/a"]),
    lambda inner: st.dictionaries(st.sampled_from(WORDS), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@given(SCHEMA)
def test_whatever_comes_in_is_takeable_or_refused_with_a_reason(schema: Any) -> None:
    before = copy.deepcopy(schema)
    try:
        mended, notes = mended_schema(schema)
    except UnmendableSchemaError as error:
        assert str(error)
        return
    finally:
        assert schema == before
    assert refusals(mended) == []
    assert mended_schema(json.loads(json.dumps(mended))) == (mended, [])
    assert bool(notes) == (mended != schema)
