"""Tools go out under names, in numbers and with words that a provider takes; the registry's own stay as they are.

Source: protocol.md, "Tool names and schemas"; OpenAI's API reference and its refusals as users report them (128
tools, descriptions of 1024 characters); Anthropic's refusal of arguments' names, likewise.
"""

import json
import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from sidecar.protocol.values import JsonObject, ToolDefinition
from sidecar.providers import open_provider
from sidecar.providers.base import WarningPiece
from sidecar.providers.lowering import LoweredTools, ProviderLimits, ToolLowering, wire_call_id, wire_name
from sidecar.providers.options import ProviderOptions
from tests.harness.asking import asks, pieces_of, provider_at, tool
from tests.harness.model_server import ScriptedModel, says
from tests.harness.model_strictness import complaints

LIMITS = ProviderLimits(call_ids=re.compile("[a-z]+"))


def function(definition: ToolDefinition) -> JsonObject:
    fields = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
    return {"type": "function", "function": fields}


def lower_tools(definitions: list[ToolDefinition], **limits: Any) -> LoweredTools:
    return ToolLowering(evolve(LIMITS, **limits), function).lower(definitions)


def refusals(definitions: list[ToolDefinition]) -> list[str]:
    """What a strict provider would say to these tools."""
    functions = [json.loads(text) for text in lower_tools(definitions).texts]
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
    (warning,) = lowered.warnings
    assert first in warning.message
    assert [json.loads(text)["function"]["name"] for text in lowered.texts] == [first, second]


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


def test_the_id_of_a_call_stays_where_the_provider_takes_it() -> None:
    assert wire_call_id("abc", LIMITS) == "abc"
    assert (
        wire_call_id("functions.look:0", LIMITS) == wire_call_id("functions.look:0", LIMITS) != "functions.look:0"
    )
    assert len({wire_call_id(text, LIMITS) for text in ("A", "B", "a b", "")}) == 4


# Numbers and words --------------------------------------------------------------------------------------


def test_tools_beyond_the_limit_are_left_out_with_one_warning_that_counts_them() -> None:
    lowered = lower_tools([tool(f"t{number:03}") for number in range(140)], max_tools=128)
    assert [definition.name for definition in lowered.tools] == [f"t{number:03}" for number in range(128)]
    (warning,) = lowered.warnings
    assert warning.code == "tooManyTools"
    assert "140 tools are on offer and the provider takes 128: 12 were left out" in warning.message
    assert (
        "t128; t129; t130; t131; t132; and 7 more" in warning.message
        and "`tools` of the submit" in warning.message
    )


def test_a_tool_that_is_left_out_for_another_reason_takes_nobodys_place() -> None:
    bad = ToolDefinition(name="bad", description="", parameters={"type": "string"})
    lowered = lower_tools([bad, tool("a"), tool("b"), tool("c")], max_tools=2)
    assert [definition.name for definition in lowered.tools] == ["a", "b"]
    assert [warning.code for warning in lowered.warnings] == ["toolLeftOut", "tooManyTools"]


async def test_chat_completions_are_offered_128_tools() -> None:
    async with ScriptedModel(says("hi")) as model, provider_at(model) as provider:
        tools = tuple(tool(f"t{number:03}") for number in range(129))
        pieces = await pieces_of(provider, asks(tools=tools))
    assert len(model.requests[0].tool_names) == 128
    assert [piece.code for piece in pieces if isinstance(piece, WarningPiece)] == ["tooManyTools"]


def test_a_long_description_is_cut_where_the_provider_refuses_it() -> None:
    wordy = ToolDefinition(
        name="wordy", description="word " * 500, parameters={"type": "object", "properties": {}}
    )
    lowered = lower_tools([wordy], max_description_characters=1024)
    description = lowered.tools[0].description
    assert len(description) == 1024 and description.endswith("word wo …")
    (warning,) = lowered.warnings
    assert warning.code == "descriptionShortened" and "'wordy' has 2500 characters" in warning.message
    exact = evolve(wordy, description="x" * 1024)
    assert lower_tools([exact], max_description_characters=1024).warnings == ()


@pytest.mark.parametrize(
    ("base_url", "limit"),
    [
        ("https://api.openai.com/v1", 1024),
        ("https://mine.openai.azure.com/openai/v1", 1024),
        ("http://127.0.0.1:1/v1", None),
    ],
)
def test_only_openai_itself_gets_short_descriptions(base_url: str, limit: int | None) -> None:
    provider: Any = open_provider("mine", ProviderOptions(base_url=base_url))
    assert provider.limits.max_description_characters == limit


def test_an_argument_whose_name_the_provider_refuses_leaves_its_tool_out() -> None:
    names = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
    lowered = lower_tools([tool("list", **{"filter[id]": {}}), tool("look", at={})], property_names=names)
    assert [definition.name for definition in lowered.tools] == ["look"]
    assert [warning.code for warning in lowered.warnings] == ["toolLeftOut"]
    assert "'filter[id]'" in lowered.warnings[0].message
    assert lower_tools([tool("list", **{"filter[id]": {}})]).warnings == ()


# Remembering --------------------------------------------------------------------------------------------


def test_a_tool_is_lowered_once_and_again_when_it_changes() -> None:
    lowering = ToolLowering(LIMITS, function)
    first = lowering.lower([tool("look", at=True)])
    anew = evolve(tool("look"), parameters=first.tools[0].parameters)
    same = ToolDefinition(name="look", description="does look", parameters=anew.parameters)
    assert lowering.lower([anew]).tools[0] is lowering.lower([same]).tools[0]
    assert lowering.lower([evolve(same, description="other")]).tools[0].description == "other"
    assert lowering.lower([tool("look", other={})]).tools[0].parameters["properties"] == {"other": {}}


def test_the_warnings_of_a_tool_come_again_each_time() -> None:
    lowering = ToolLowering(LIMITS, function)
    tools = [tool("a.b", x=True)]
    assert [w.code for w in lowering.lower(tools).warnings] == ["toolRenamed", "schemaRepaired"]
    assert lowering.lower(tools).warnings == lowering.lower(tools).warnings != ()


def test_a_tool_that_cannot_be_mended_is_left_out_alone() -> None:
    bad = ToolDefinition(name="bad", description="", parameters={"type": "string"})
    lowered = lower_tools([tool("first"), bad, tool("last")])
    assert [definition.name for definition in lowered.tools] == ["first", "last"]
    (warning,) = lowered.warnings
    assert warning.code == "toolLeftOut" and warning.message.startswith("tool 'bad' is left out: ")


def test_a_warning_lists_some_mendings_and_counts_the_rest() -> None:
    properties = {f"p{n}": True for n in range(8)}
    (warning,) = lower_tools([tool("look", **properties)]).warnings
    assert warning == WarningPiece(code="schemaRepaired", message=warning.message)
    assert "/properties/p4" in warning.message and "/properties/p5" not in warning.message
    assert warning.message.endswith("; and 3 more")
