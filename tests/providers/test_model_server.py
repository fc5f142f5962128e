"""The scripted model refuses what the strictest providers refuse, so that broken history cannot pass unseen.

Source: OpenAI's API reference; `tests/harness/model_strictness.py`.
"""

from typing import Any

import pytest

from sidecar.protocol.errors import ModelError
from tests.harness.asking import asks, called, pieces_of, provider_at, result, text_of
from tests.harness.model_server import ScriptedModel, says
from tests.harness.model_strictness import complaints

USER = {"role": "user", "content": "hi"}


def call(call_id: str = "c1", name: str = "f", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*calls: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def answer(call_id: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


def function(name: str = "f", **parameters: Any) -> dict[str, Any]:
    shape = {"type": "object", "properties": {}, **parameters}
    return {"type": "function", "function": {"name": name, "parameters": shape}}


BAD_HISTORY: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "not empty"),
    "a call without result": ([USER, assistant(call())], "must be followed"),
    "a call answered late": ([USER, assistant(call()), USER, answer()], "before the results"),
    "one of two calls answered": ([USER, assistant(call("a"), call("b")), answer("a")], "missing are ['b']"),
    "a result without call": ([USER, answer()], "answers no open call"),
    "a result twice": ([USER, assistant(call()), answer(), answer()], "answers no open call"),
    "an id twice": ([USER, assistant(call()), answer(), assistant(call()), answer()], "was used before"),
    "arguments no JSON": ([USER, assistant(call(arguments='{"a": ')), answer()], "no JSON object"),
    "arguments no object": ([USER, assistant(call(arguments="[]")), answer()], "no JSON object"),
    "arguments not text": ([USER, assistant(call(arguments={})), answer()], "no tool call"),
    "arguments not a number": ([USER, assistant(call(arguments='{"a": NaN}')), answer()], "no JSON object"),
    "a bad name": ([USER, assistant(call(name="a.b")), answer()], "does not match"),
    "a long id": ([USER, assistant(call("x" * 41)), answer("x" * 41)], "1 to 40"),
    "an empty answer": ([USER, {"role": "assistant", "content": ""}, USER], "needs content or tool_calls"),
    "no calls in a list": ([USER, assistant(content="hi"), USER], "must not be empty where it is there"),
    "an unknown field": ([USER, assistant(call(), is_error=True), answer()], "unknown field 'is_error'"),
    "a late system message": ([USER, {"role": "system", "content": "x"}, USER], "must be the first"),
    "the answer last": ([USER, {"role": "assistant", "content": "hi"}], "the last message"),
    "an empty question": ([{"role": "user", "content": ""}], "must not be empty"),
    "no content": ([{"role": "user", "content": None}], "content must be"),
    "a bad image": (
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,%"}}]}],
        "data URL",
    ),
    "an unknown part": ([{"role": "user", "content": [{"type": "hologram"}]}], "no content part"),
    "an unknown role": ([{"role": "developer", "content": "x"}, USER], "no message of a known role"),
    "a result that is no text": ([USER, assistant(call()), {**answer(), "content": []}], "no message of a known"),
}


@pytest.mark.parametrize(("messages", "reason"), BAD_HISTORY.values(), ids=list(BAD_HISTORY))
def test_broken_history_is_refused_with_the_reason(messages: list[Any], reason: str) -> None:
    assert any(reason in complaint for complaint in complaints({"model": "m", "messages": messages}))


BAD_BODIES: dict[str, tuple[Any, str]] = {
    "no object": ([], "must be a JSON object"),
    "an unknown parameter": ({"sessionId": 1}, "unrecognized parameter 'sessionId'"),
    "no model": ({"model": ""}, "model must be"),
    "stream options alone": ({"stream_options": {}}, "only allowed when stream"),
    "two limits": ({"max_tokens": 1, "max_completion_tokens": 1}, "cannot both"),
    "no tools": ({"tools": []}, "not empty"),
    "a tool twice": ({"tools": [function(), function()]}, "is there twice"),
    "a tool's name": ({"tools": [function("a.b")]}, "does not match"),
    "a tool's type": ({"tools": [function(type="string")]}, "must have type 'object'"),
    "a tool without properties": ({"tools": [function(properties=None)]}, "must have type 'object'"),
    "a boolean schema": ({"tools": [function(properties={"a": True})]}, "no schema object"),
    "an array of what": ({"tools": [function(properties={"a": {"type": "array"}})]}, "must have items"),
    "no function": ({"tools": [{"name": "f"}]}, "is no function"),
    "too many tools": ({"tools": [function(f"f{n}") for n in range(129)]}, "too long"),
    "a union at the root": ({"tools": [function(anyOf=[{}])]}, "['anyOf'] at the top level"),
    "a reference": ({"tools": [function(properties={"a": {"$ref": "#/$defs/a"}})]}, "a reference"),
}


@pytest.mark.parametrize(("fields", "reason"), BAD_BODIES.values(), ids=list(BAD_BODIES))
def test_a_bad_request_is_refused_with_the_reason(fields: Any, reason: str) -> None:
    body = {"model": "m", "messages": [USER], **fields} if isinstance(fields, dict) else fields
    assert any(reason in complaint for complaint in complaints(body))


def test_a_sound_request_is_taken() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    messages = [
        {"role": "system", "content": "x"},
        USER,
        assistant(call("a"), call("b")),
        answer("b"),
        answer("a"),
        {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
    ]
    tools = [function(properties={"a": {"type": "array", "items": {"type": "string"}}})]
    assert complaints({"model": "m", "messages": messages, "tools": tools, "stream": True}) == []


async def test_a_refused_request_gets_a_400_and_fails_the_test_that_made_it() -> None:
    broken = asks("look", called("look"), "and?")
    with pytest.raises(AssertionError, match="comes before the results"):
        async with ScriptedModel(says("hi")) as model, provider_at(model) as provider:
            with pytest.raises(ModelError, match="comes before the results") as raised:
                await pieces_of(provider, broken)
            assert raised.value.status == 400


async def test_a_failing_test_keeps_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError):
        async with ScriptedModel(says("hi")) as model:
            model.faults.append("something")
            raise ZeroDivisionError


async def test_a_function_can_answer_by_what_it_is_asked() -> None:
    scripted = ScriptedModel(answer=lambda seen: says(f"{len(seen.messages)} messages"))
    async with scripted as model, provider_at(model) as provider:
        assert text_of(await pieces_of(provider)) == "1 messages"
        assert text_of(await pieces_of(provider, asks("a", called("look"), result("b")))) == "3 messages"


async def test_a_test_can_wait_for_a_request() -> None:
    async with ScriptedModel(says("a"), says("b")) as model, provider_at(model) as provider:
        await pieces_of(provider)
        await pieces_of(provider)
        assert (await model.received(2)) is model.requests[1]
