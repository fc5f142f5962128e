"""Tools go out under names and with schemas that every provider takes; the registry's own stay as they are.

Source: protocol.md, "Tool names"; OpenAI's API reference (names, `parameters`); refusals that users of MCP
servers report (objects without properties, arrays without items, booleans as schemas).
"""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.protocol.values import ToolDefinition
from sidecar.providers.base import WarningPiece
from sidecar.providers.lowering import (
    MAX_SCHEMA_DEPTH,
    UnmendableSchemaError,
    lower_tools,
    mended_schema,
    wire_name,
)
from tests.harness.asking import tool
from tests.harness.model_strictness import complaints

GOOD: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}, "b": {"type": "array", "items": {}}},
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"c": {"type": "object"}},
}


def refusals(definitions: list[ToolDefinition]) -> list[str]:
    """What a strict provider would say to these tools."""
    lowered = lower_tools(definitions).tools
    functions = [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
        }
        for t in lowered
    ]
    hello = [{"role": "user", "content": "hello"}]
    return complaints({"model": "m", "messages": hello, "tools": functions}) if functions else []


# Names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["read_file", "github__search-issues", "A" * 64, "0", "_"])
def test_a_name_that_providers_take_stays(name: str) -> None:
    lowered = lower_tools([tool(name)])
    assert (lowered.tools, lowered.warnings) == ((tool(name),), ())


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("files.read/all", "files_read_all_"),
        ("x" * 65, "x" * 55 + "_"),
        ("größe", "gr_e_"),
        ("", "_"),
        ("\ud800", "__"),
    ],
)
def test_another_name_keeps_what_it_can_and_leads_back(name: str, beginning: str) -> None:
    lowered = lower_tools([tool(name)])
    (wire,) = (definition.name for definition in lowered.tools)
    assert wire.startswith(beginning) and len(wire) <= 64
    assert lowered.registry_names == {wire: name}
    assert lowered.wire_name(name) == wire
    (warning,) = lowered.warnings
    assert warning.code == "toolRenamed" and repr(name) in warning.message and wire in warning.message


def test_a_name_is_the_same_whatever_other_tools_there_are() -> None:
    alone = lower_tools([tool("a.b")]).tools[0].name
    among = lower_tools([tool("a/b"), tool("a_b"), tool("a.b")]).tools[2].name
    assert alone == among == wire_name("a.b")


def test_a_name_that_another_tool_bears_already_is_not_given_twice() -> None:
    taken = wire_name("a.b")
    lowered = lower_tools([tool("a.b"), tool(taken)])
    first, second = (definition.name for definition in lowered.tools)
    assert second == taken != first
    assert lowered.registry_names == {first: "a.b", taken: taken}
    assert (lowered.wire_name("a.b"), lowered.wire_name(taken)) == (first, taken)


def test_two_names_with_the_same_digest_are_told_apart() -> None:
    names = ["\u4e14\u4ed6", "\u4e2e\u4ff2"]  # Found by trying: the digests of both begin with the same 8 digits.
    assert len({wire_name(name) for name in names}) == 1
    lowered = lower_tools([tool(name) for name in names])
    assert [lowered.registry_names[definition.name] for definition in lowered.tools] == names
    assert [lowered.wire_name(name) for name in names] == [definition.name for definition in lowered.tools]


def test_a_tool_that_only_history_knows_has_a_name_too() -> None:
    assert lower_tools([]).wire_name("gone.tool") == wire_name("gone.tool")


@given(st.lists(st.text(max_size=80), unique=True, max_size=12))
def test_all_names_can_be_taken_and_none_twice(names: list[str]) -> None:
    lowered = lower_tools([tool(name) for name in names])
    assert refusals([tool(name) for name in names]) == []
    assert [lowered.registry_names[t.name] for t in lowered.tools] == names
    assert [lowered.wire_name(name) for name in names] == [t.name for t in lowered.tools]


# Schemas ------------------------------------------------------------------------------------------------


def test_a_good_schema_stays_as_it_is() -> None:
    assert mended_schema(GOOD) == (GOOD, [])


OBJECT = {"type": "object", "properties": {}}
MENDED: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing": ({}, OBJECT),
    "null": (None, OBJECT),
    "true": (True, OBJECT),
    "no type": ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
    "no properties": ({"type": "object"}, OBJECT),
    "properties null": ({"type": "object", "properties": None}, OBJECT),
    "properties as PHP writes them": ({"type": "object", "properties": []}, OBJECT),
    "object or null": ({"type": ["object", "null"], "properties": {}}, OBJECT),
    "type null": ({"type": None, "properties": {}}, OBJECT),
    "required null": ({**OBJECT, "required": None}, OBJECT),
    "property true": ({"type": "object", "properties": {"a": True}}, {"type": "object", "properties": {"a": {}}}),
    "property false": (
        {"type": "object", "properties": {"a": False}},
        {"type": "object", "properties": {"a": {"not": {}}}},
    ),
    "array without items": (
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
    ),
    "array of anything": (
        {"type": "object", "properties": {"a": {"type": "array", "items": True}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
    ),
    "tuple of draft 7": (
        {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}, True]}}},
        {
            "type": "object",
            "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}, {}], "items": {}}},
        },
    ),
    "required of draft 3": (
        {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ),
    "made-up type": (
        {"type": "object", "properties": {"a": {"type": "any", "enum": []}}},
        {"type": "object", "properties": {"a": {}}},
    ),
    "deep down": (
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}, True]}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "array", "items": {}}, {}]}}},
    ),
    "in definitions": ({**OBJECT, "$defs": {"a": True}}, {**OBJECT, "$defs": {"a": {}}}),
}


@pytest.mark.parametrize(("schema", "mended"), MENDED.values(), ids=list(MENDED))
def test_a_schema_that_providers_refuse_is_mended_with_a_warning(schema: Any, mended: dict[str, Any]) -> None:
    definition = ToolDefinition(name="look", description="", parameters=schema)
    before = copy.deepcopy(schema)
    lowered = lower_tools([definition])
    assert lowered.tools[0].parameters == mended
    assert [warning.code for warning in lowered.warnings] == ["schemaRepaired"]
    assert "'look'" in lowered.warnings[0].message
    assert schema == before
    assert refusals([definition]) == []


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["self"] = schema
    return schema


UNMENDABLE: dict[str, tuple[Any, str]] = {
    "a string": ({"type": "string"}, 'describes "string", not an object'),
    "a list": ({"type": ["array", "null"]}, "not an object"),
    "no JSON": ({**OBJECT, "default": object()}, "is not JSON"),
    "no number": ({**OBJECT, "default": float("nan")}, "is not JSON"),
    "too deep": (nested(MAX_SCHEMA_DEPTH + 1), "nested more than"),
    "endless": (cyclic(), "nested more than"),
}


@pytest.mark.parametrize(("schema", "reason"), UNMENDABLE.values(), ids=list(UNMENDABLE))
def test_a_schema_that_cannot_be_mended_leaves_its_tool_out_and_no_other(schema: Any, reason: str) -> None:
    bad = ToolDefinition(name="bad", description="", parameters=schema)
    lowered = lower_tools([tool("first"), bad, tool("last")])
    assert [definition.name for definition in lowered.tools] == ["first", "last"]
    (warning,) = lowered.warnings
    assert warning.code == "toolLeftOut" and warning.message.startswith("tool 'bad' is left out: ")
    assert reason in warning.message


def test_a_warning_lists_some_mendings_and_counts_the_rest() -> None:
    properties = {f"p{n}": True for n in range(8)}
    (warning,) = lower_tools([tool("look", **properties)]).warnings
    assert warning == WarningPiece(code="schemaRepaired", message=warning.message)
    assert "/properties/p4" in warning.message and "/properties/p5" not in warning.message
    assert warning.message.endswith("; and 3 more")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYWORDS = st.sampled_from(["type", "properties", "items", "required", "enum", "anyOf", "$defs", "not", "a"])
SCHEMA = st.recursive(
    JSON | st.sampled_from(["object", "array", "string"]),
    lambda inner: st.dictionaries(KEYWORDS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@given(SCHEMA)
def test_whatever_comes_in_is_takeable_or_left_out(schema: Any) -> None:
    definition = ToolDefinition(name="look", description="", parameters=schema)
    before = copy.deepcopy(schema)
    assert refusals([definition]) == []
    assert schema == before
    try:
        mended, notes = mended_schema(schema)
    except UnmendableSchemaError:
        return
    assert mended_schema(json.loads(json.dumps(mended))) == (mended, [])
    assert bool(notes) == (mended != schema)
