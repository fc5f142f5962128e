"""What the Messages API refuses, as reasons. Pure.

Gathered from Anthropic's API reference and from the 400s of its server that users report. Stricter in one point:
consecutive messages of one role, which the server joins, are refused, because servers that imitate it do not.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tests.harness.anthropic_dialect import signature

Json = Any

_PARAMETERS = {
    "model",
    "messages",
    "max_tokens",
    "stream",
    "system",
    "tools",
    "tool_choice",
    "temperature",
    "thinking",
}
_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_MAX_BREAKPOINTS = 4


def complaints(body: Json, headers: Mapping[str, str]) -> list[str]:
    """Every reason to refuse the request; none when the API would take it."""
    if headers.get("anthropic-version") != "2023-06-01":
        return ["anthropic-version: header is required"]
    if not isinstance(body, dict):
        return ["the body must be a JSON object"]
    return [
        *_of_parameters(body),
        *_of_system(body.get("system")),
        *_of_messages(body.get("messages"), body),
        *_of_tools(body.get("tools")),
        *_of_breakpoints(body),
    ]


def _of_parameters(body: Json) -> Iterator[str]:
    for name in body.keys() - _PARAMETERS:
        yield f"{name}: Extra inputs are not permitted"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model: must be a string that is not empty"
    limit = body.get("max_tokens")
    if type(limit) is not int or limit < 1:
        yield "max_tokens: must be an integer of at least 1"
        return
    budget = _thinking(body).get("budget_tokens", 0)
    if budget >= limit:
        yield "max_tokens: must be greater than thinking.budget_tokens"
    if not 0 <= body.get("temperature", 0) <= 1:
        yield "temperature: must be from 0 to 1"
    if _thinks(body) and body.get("temperature", 1) != 1:
        yield "temperature: may only be set to 1 when thinking is enabled"


def _thinking(body: Json) -> Json:
    return body.get("thinking") or {}


def _thinks(body: Json) -> bool:
    return _thinking(body).get("type") in ("enabled", "adaptive")


def _of_system(system: Json) -> Iterator[str]:
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    for block in [] if blocks is None else blocks:
        yield from _of_text(block, "system")


# Messages -----------------------------------------------------------------------------------------------


def _of_messages(messages: Json, body: Json) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    before = None
    seen: set[str] = set()
    for index, message in enumerate(messages):
        place = f"messages.{index}"
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant") or set(message) != {"role", "content"}:
            yield f"{place}: must have a role of 'user' or 'assistant', content, and nothing else"
            return
        if index == 0 and role != "user":
            yield f"{place}: the first message must use the 'user' role"
        if before is not None and before["role"] == role:
            yield f"{place}: roles must alternate, but there are two of {role!r}"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list) or not blocks:
            yield f"{place}: content must not be empty"
            return
        for number, block in enumerate(blocks):
            yield from _of_block(block, role, f"{place}.content.{number}")
        if blocks[-1].get("type") in ("thinking", "redacted_thinking"):
            yield f"{place}: The final block in an assistant message cannot be `thinking`"
        yield from _of_results(blocks, before, place)
        yield from _of_ids(blocks, seen, place)
        before = {"role": role, "content": blocks}
    if before is None or before["role"] != "user":
        yield "the conversation must end with a user message"
    elif calls := _calls(before["content"]):
        yield f"tool_use ids were found without tool_result blocks immediately after: {calls}"
    elif _thinks(body):
        yield from _of_thoughtless_calls(messages)


def _of_results(blocks: list[Json], before: Json, place: str) -> Iterator[str]:
    """Results stand at the beginning of the very next message, one for each call, for no other."""
    calls = _calls(before["content"]) if before is not None else []
    given = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
    if missing := [call for call in calls if call not in given]:
        yield f"{place}: tool_use ids were found without tool_result blocks immediately after: {missing}"
    for call in given:
        if call not in calls:
            yield f"{place}: unexpected tool_use_id {call!r} in tool_result blocks"
    if len(set(given)) < len(given):
        yield f"{place}: each tool_use must have a single result"
    if any(block.get("type") != "tool_result" for block in blocks[: len(given)]):
        yield f"{place}: tool_result blocks must come first"


def _of_ids(blocks: list[Json], seen: set[str], place: str) -> Iterator[str]:
    for call in _calls(blocks):
        if call in seen:
            yield f"{place}: tool_use ids must be unique, {call!r} is not"
        seen.add(call)


def _of_thoughtless_calls(messages: list[Json]) -> Iterator[str]:
    """While a model that thinks waits for results, what it said must begin with its thoughts."""
    results = isinstance(messages[-1]["content"], list) and messages[-1]["content"][0]["type"] == "tool_result"
    if results and messages[-2]["content"][0]["type"] not in ("thinking", "redacted_thinking"):
        yield "a final assistant message must start with a thinking block when thinking is enabled"


def _calls(blocks: list[Json]) -> list[str]:
    return [block["id"] for block in blocks if block.get("type") == "tool_use"]


def _of_block(block: Json, role: str, place: str) -> Iterator[str]:
    match block:
        case {"type": "text"}:
            yield from _of_text(block, place)
        case {"type": "image", "source": source}:
            yield from _of_source(source, _IMAGES, place)
        case {"type": "document", "source": source} if role == "user":
            yield from _of_source(source, {"application/pdf"}, place)
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict()} if role == "assistant":
            if not _CALL_ID.fullmatch(call_id):
                yield f"{place}.tool_use.id: String should match pattern '{_CALL_ID.pattern}'"
            if not _NAME.fullmatch(name):
                yield f"{place}.tool_use.name: String should match pattern '{_NAME.pattern}'"
        case {"type": "tool_result", "tool_use_id": str()} if role == "user":
            yield from _of_result(block, place)
        case {"type": "thinking", "thinking": str(thought)} if role == "assistant":
            if block.get("signature") != signature(thought):
                yield f"{place}: Invalid `signature` in `thinking` block"
        case {"type": "redacted_thinking", "data": str(data)} if role == "assistant":
            if not data:
                yield f"{place}: Invalid `data` in `redacted_thinking` block"
        case _:
            yield f"{place}: {str(block)[:80]} is no content block of a message by the {role}"


def _of_text(block: Json, place: str) -> Iterator[str]:
    said = block.get("text") if isinstance(block, dict) else None
    if not isinstance(said, str) or not said.strip():
        yield f"{place}: text content blocks must contain non-whitespace text"


def _of_source(source: Json, allowed: set[str], place: str) -> Iterator[str]:
    match source:
        case {"type": "base64", "media_type": media_type, "data": str(data)} if media_type in allowed:
            try:
                is_empty = not base64.b64decode(data, validate=True)
            except binascii.Error:
                is_empty = True
            if is_empty:
                yield f"{place}.source: invalid base64 data"
        case _:
            yield f"{place}.source: must be base64 with a media type of {sorted(allowed)}"


def _of_result(block: Json, place: str) -> Iterator[str]:
    content, is_error = block.get("content"), block.get("is_error") is True
    if is_error and not content:
        yield f"{place}: content cannot be empty if `is_error` is true"
    if isinstance(content, str) or content is None:
        return
    for number, inner in enumerate(content):
        if inner.get("type") not in ("text", "image", "document"):
            yield f"{place}.content.{number}: is nothing that a result may hold"
        elif is_error and inner["type"] != "text":
            yield f"{place}: all content must be type 'text' if 'is_error' is true"
        else:
            yield from _of_block(inner, "user", f"{place}.content.{number}")


# Tools --------------------------------------------------------------------------------------------------


def _of_tools(tools: Json) -> Iterator[str]:
    names: set[str] = set()
    for index, tool in enumerate(tools or ()):
        place = f"tools.{index}.custom"
        match tool:
            case {"name": str(name), "input_schema": dict(schema)}:
                if not _NAME.fullmatch(name):
                    yield f"{place}.name: String should match pattern '{_NAME.pattern}'"
                if name in names:
                    yield f"{place}: tool names must be unique, {name!r} is not"
                names.add(name)
                yield from (f"{place}.input_schema{reason}" for reason in _of_schema(schema))
            case _:
                yield f"{place}: must have a name and an input_schema"
        for field in tool.keys() - {"name", "description", "input_schema", "cache_control"}:
            yield f"{place}.{field}: Extra inputs are not permitted"


def _of_schema(schema: Json) -> Iterator[str]:
    if schema.get("type") != "object":
        yield ".type: Input should be 'object'"
    if schema.keys() & {"anyOf", "oneOf", "allOf"}:
        yield ": does not support oneOf, allOf, or anyOf at the top level"
    for name in schema.get("properties") or {}:
        if not _PROPERTY.fullmatch(name):
            yield f".properties: Property keys should match pattern '{_PROPERTY.pattern}'"
    if not _is_valid(json.dumps(schema)):
        yield ": JSON schema is invalid. It must match JSON Schema draft 2020-12"


@cache
def _is_valid(schema_text: str) -> bool:
    """Looked at once: a conversation sends the same tools with every turn."""
    meta_schema = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    return next(meta_schema.iter_errors(json.loads(schema_text)), None) is None


def _of_breakpoints(body: Json) -> Iterator[str]:
    system = body.get("system")
    messages = body.get("messages")
    blocks = [*(system if isinstance(system, list) else ()), *(body.get("tools") or ())]
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content")
        blocks += content if isinstance(content, list) else ()
    marked = [block for block in blocks if isinstance(block, dict) and "cache_control" in block]
    if len(marked) > _MAX_BREAKPOINTS:
        yield f"A maximum of {_MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marked)}."
    for block in marked:
        if block["cache_control"] != {"type": "ephemeral"} or "thinking" in str(block.get("type")):
            yield f"{block['cache_control']} cannot stand on a block of type {block.get('type')!r}"
