"""The scripted Messages API refuses what the real one refuses, so that broken history cannot pass unseen.

Source: Anthropic's API reference, version 2023-06-01; `tests/harness/anthropic_strictness.py`.
"""

from typing import Any

import pytest

from sidecar.protocol.errors import ModelError
from tests.harness.anthropic_dialect import redacted, text, thinking, tool_use
from tests.harness.anthropic_strictness import complaints
from tests.harness.asking import anthropic_at, asks, called, pieces_of
from tests.harness.model_server import ScriptedModel, says

HEADERS = {"anthropic-version": "2023-06-01"}
BASE: dict[str, Any] = {"model": "m", "max_tokens": 100}
USER = {"role": "user", "content": "hi"}
MARK = {"cache_control": {"type": "ephemeral"}}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def asked(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def outcome(call_id: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "done", **fields}


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk=", **source}}


CALL = tool_use("c1", "look", {})
SOUND = [USER, said(thinking("hm"), text("ok"), CALL), asked(outcome(), text("and?"), image())]

BAD_HISTORY: dict[str, tuple[list[Any], str]] = {
    "nothing": ([], "at least one message"),
    "the assistant first": ([said(text("hi")), USER], "first message must use"),
    "the assistant last": ([USER, said(text("hi"))], "must end with a user message"),
    "one role twice": ([USER, USER], "must alternate"),
    "a system message": ([{"role": "system", "content": "x"}, USER], "'user' or 'assistant'"),
    "no content": ([asked()], "must not be empty"),
    "empty text": ([{"role": "user", "content": ""}], "non-whitespace"),
    "a call without result": ([USER, said(CALL), asked(text("and?"))], "without tool_result"),
    "a call at the end": ([USER, said(CALL)], "must end with"),
    "one of two calls answered": (
        [USER, said(CALL, tool_use("c2", "look", {})), asked(outcome())],
        "without tool_result blocks immediately after: ['c2']",
    ),
    "a result without call": ([asked(outcome())], "unexpected tool_use_id 'c1'"),
    "a result of an older call": (
        [USER, said(CALL), asked(outcome()), said(text("ok")), asked(outcome())],
        "unexpected tool_use_id",
    ),
    "a result twice": ([USER, said(CALL), asked(outcome(), outcome())], "single result"),
    "text before a result": ([USER, said(CALL), asked(text("see"), outcome())], "must come first"),
    "an id twice": ([USER, said(CALL), asked(outcome()), said(CALL), asked(outcome())], "must be unique"),
    "a bad id": ([USER, said(tool_use("a.b:0", "look", {})), asked(outcome("a.b:0"))], "tool_use.id"),
    "a bad name": ([USER, said(tool_use("c1", "a.b", {})), asked(outcome())], "tool_use.name"),
    "input as text": ([USER, said(tool_use("c1", "look", "{}")), asked(outcome())], "no content block"),
    "a failure without words": ([USER, said(CALL), asked(outcome(content="", is_error=True))], "cannot be empty"),
    "a failure with an image": (
        [USER, said(CALL), asked(outcome(content=[text("no"), image()], is_error=True))],
        "must be type 'text'",
    ),
    "a call by the user": ([asked(CALL)], "by the user"),
    "a thought by the user": ([asked(thinking("hm"))], "by the user"),
    "a thought that was changed": (
        [USER, said({**thinking("hm"), "thinking": "hmm"}, CALL), asked(outcome())],
        "Invalid",
    ),
    "a thought without signature": (
        [USER, said({"type": "thinking", "thinking": "x"}, CALL), asked(outcome())],
        "Inv",
    ),
    "a thought at the end": ([USER, said(CALL, redacted()), asked(outcome())], "final block"),
    "an image of another type": ([asked(image(media_type="image/tiff"))], "media type"),
    "an image that is none": ([asked(image(data="%"))], "invalid base64"),
    "an unknown block": ([asked({"type": "hologram"})], "no content block"),
}


@pytest.mark.parametrize(("messages", "reason"), BAD_HISTORY.values(), ids=list(BAD_HISTORY))
def test_broken_history_is_refused_with_the_reason(messages: list[Any], reason: str) -> None:
    assert any(reason in complaint for complaint in complaints({**BASE, "messages": messages}, HEADERS))


def tool(name: str = "look", **schema: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", "properties": {}, **schema}}


BAD_FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "no model": ({"model": ""}, "model"),
    "no limit": ({"max_tokens": None}, "max_tokens"),
    "less room than thought": (
        {"thinking": {"type": "enabled", "budget_tokens": 100}},
        "greater than thinking.budget_tokens",
    ),
    "thought and temperature": ({"thinking": {"type": "adaptive"}, "temperature": 0.5}, "set to 1"),
    "too hot": ({"temperature": 1.5}, "from 0 to 1"),
    "an unknown parameter": ({"sessionId": 1}, "Extra inputs"),
    "system text of nothing": ({"system": [text("")]}, "system: text content"),
    "a tool twice": ({"tools": [tool(), tool()]}, "must be unique"),
    "a tool's name": ({"tools": [tool("a.b")]}, "name"),
    "a tool's type": ({"tools": [tool(type="string")]}, "should be 'object'"),
    "a tool with more": ({"tools": [{**tool(), "strictly": True}]}, "strictly: Extra"),
    "no tool": ({"tools": [{"type": "function"}]}, "must have a name"),
    "a union at the root": ({"tools": [tool(anyOf=[{}])]}, "at the top level"),
    "an argument's name": ({"tools": [tool(properties={"a[b]": {}})]}, "Property keys"),
    "no schema of 2020-12": ({"tools": [tool(properties={"a": {"minimum": "0"}})]}, "JSON schema is invalid"),
    "too many marks": ({"tools": [{**tool(f"t{n}"), **MARK} for n in range(5)]}, "Found 5"),
    "a mark on a thought": (
        {"messages": [USER, said({**thinking("hm"), **MARK}, CALL), asked(outcome())]},
        "cannot stand on",
    ),
    "calls without thought": (
        {"thinking": {"type": "adaptive"}, "messages": [USER, said(CALL), asked(outcome())]},
        "must start with a thinking block",
    ),
}


@pytest.mark.parametrize(("fields", "reason"), BAD_FIELDS.values(), ids=list(BAD_FIELDS))
def test_a_bad_request_is_refused_with_the_reason(fields: dict[str, Any], reason: str) -> None:
    body = {**BASE, "messages": [USER], **fields}
    assert any(reason in complaint for complaint in complaints(body, HEADERS))


def test_a_request_without_a_version_is_refused() -> None:
    assert complaints({**BASE, "messages": [USER]}, {}) == ["anthropic-version: header is required"]


def test_a_sound_request_is_taken() -> None:
    body = {**BASE, "messages": SOUND, "tools": [tool(), tool("rest", required=[])], "system": "x", "stream": True}
    assert complaints(body, HEADERS) == []
    assert complaints({**body, "thinking": {"type": "adaptive"}, "temperature": 1}, HEADERS) == []


async def test_a_refused_request_gets_a_400_and_fails_the_test_that_made_it() -> None:
    broken = asks("look", called("look"), "and?")
    with pytest.raises(AssertionError, match="without tool_result"):
        async with ScriptedModel(says("hi"), dialect="anthropic") as model, anthropic_at(model) as provider:
            with pytest.raises(ModelError, match="without tool_result") as raised:
                await pieces_of(provider, broken)
            assert raised.value.status == 400
