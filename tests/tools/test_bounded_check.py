"""A check of arguments ends soon, whatever the schema and the arguments are; what fits still fits.

Source: own choice, since schemas and arguments come from strangers; JSON Schema 2020-12 for what is equal.
"""

import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest

from sidecar.tools.arguments import LIMIT_SECS, ArgumentCheck, Fault

TOO_LONG = Fault("", "takes too long to check; send less")


def of_a(schema: Any) -> Any:
    return {"type": "object", "properties": {"a": schema}}


def doubling(keyword: str, leaf: Any, levels: int = 40) -> Any:
    """References that are looked at twice on each level: two to the power of `levels` times."""
    definitions = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {**of_a({"$ref": "#/$defs/d0"}), "$defs": {**definitions, f"d{levels}": leaf}}


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.fixture
def nothing_else_to_collect() -> Iterator[None]:
    """What thousands of other tests have left in memory costs time at every collection: not the check's."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (of_a({"pattern": "(a|aa)+$"}), {"a": "a" * 80 + "!"}),
        (of_a({"pattern": "((a{1000}){1000}){1000}"}), {"a": "a"}),
        (of_a({"patternProperties": {"(a|aa)+$": True}}), {"a": {"a" * 80 + "!": 1}}),
        (
            of_a({"patternProperties": {"(a|aa)+$": True}, "additionalProperties": False}),
            {"a": {"a" * 80 + "!": 1}},
        ),
        (of_a({"propertyNames": {"pattern": "(a|aa)+$"}}), {"a": {"a" * 80 + "!": 1}}),
        (doubling("allOf", {"type": "object"}), {"a": {}}),
        (doubling("anyOf", {"type": "string"}), {"a": {}}),
        (doubling("oneOf", {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}), {"a": {}}),
        (of_a({"items": {"enum": list(range(20_000))}}), {"a": ["x"] * 20_000}),
    ],
    ids=[
        "pattern",
        "repetitions",
        "property names",
        "unknown names",
        "names",
        "allOf",
        "anyOf",
        "dialect",
        "enum",
    ],
)
@pytest.mark.usefixtures("nothing_else_to_collect")
async def test_a_check_that_would_take_for_ever_ends_and_denies(schema: Any, arguments: Any) -> None:
    began = time.process_time()
    assert await ArgumentCheck(schema).faults(arguments) == [TOO_LONG]
    assert time.process_time() - began < 3 * LIMIT_SECS


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (of_a({"pattern": "(a|aa)+$"}), {"a": "a" * 80 + "!"}),
        (doubling("allOf", {"type": "object"}), {"a": {}}),
    ],
    ids=["pattern", "allOf"],
)
async def test_nobody_else_waits_for_a_long_check(schema: Any, arguments: Any) -> None:
    """The event loop's own thread spends little time on it, however long it takes."""
    check = ArgumentCheck(schema)
    await check.faults({})  # Compiled by now.
    began = time.thread_time()
    assert await check.faults(arguments) == [TOO_LONG]
    assert time.thread_time() - began < LIMIT_SECS / 2


async def test_unevaluated_names_beside_patterns_do_not_hang() -> None:
    schema = {"patternProperties": {"(a|aa)+$": True}, "unevaluatedProperties": False}
    assert await ArgumentCheck(schema).faults({"a" * 80 + "!": 1}) == [TOO_LONG]


async def test_arguments_that_are_nested_too_deeply_are_at_fault_and_the_next_are_checked() -> None:
    check = ArgumentCheck({**of_a({"$ref": "#"}), "additionalProperties": False})
    assert await check.faults(nested(3)) == []
    assert await check.faults(nested(900)) == [Fault("", "is nested too deeply to be checked")]
    assert await check.faults({"b": 1}) == [Fault("b", "is not known; known are a")]


async def test_after_a_check_that_took_too_long_the_next_is_made() -> None:
    check = ArgumentCheck(of_a({"pattern": "^(a|aa)+$"}))
    assert await check.faults({"a": "a" * 80 + "!"}) == [TOO_LONG]
    assert await check.faults({"a": "aaa"}) == []
    assert await check.faults({"a": "b"}) == [Fault("a", "does not fit: 'b' does not match '^(a|aa)+$'")]


@pytest.mark.parametrize(
    ("items", "are_unique"),
    [
        ([1, True, "1", None, [1], {"a": 1}], True),
        ([{"x": n} for n in range(20_000)], True),
        ([1, 1.0], False),
        ([False, 0, False], False),
        ([[True], [1]], True),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
    ],
)
async def test_items_are_unique_as_json_sees_them(items: Any, are_unique: bool) -> None:
    assert (await ArgumentCheck(of_a({"uniqueItems": True})).faults({"a": items}) == []) == are_unique


async def test_names_that_a_pattern_declares_are_known() -> None:
    schema = {
        "properties": {"a": {}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": {"type": "integer"},
    }
    check = ArgumentCheck(schema)
    assert await check.faults({"a": None, "x-b": "text", "c": 1}) == []
    assert [fault.path for fault in await check.faults({"x-b": 1, "c": "text"})] == ["c", "x-b"]


async def test_common_patterns_are_matched_as_ever() -> None:
    slug = ArgumentCheck(of_a({"pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$"}))
    assert await slug.faults({"a": "a-much-longer-name-with-many-parts-0"}) == []
    assert len(await slug.faults({"a": "Not a slug"})) == 1
