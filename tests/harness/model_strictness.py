"""What the strictest providers refuse in a Chat Completions request, as reasons. Pure.

Gathered from OpenAI's API reference and from what its server, Anthropic's and Mistral's compatible fronts and
the templates of local models answer 400 to.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any

Json = Any

_PARAMETERS = {
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
}
_ASSISTANT_FIELDS = {"role", "content", "tool_calls", "reasoning_content", "reasoning", "reasoning_details"}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def complaints(body: Json) -> list[str]:
    """Every reason to refuse the request; none when all of them would take it."""
    if not isinstance(body, dict):
        return ["the body must be a JSON object"]
    return [*_of_parameters(body), *_of_messages(body.get("messages")), *_of_tools(body.get("tools"))]


def _of_parameters(body: Json) -> Iterator[str]:
    for name in body.keys() - _PARAMETERS:
        yield f"unrecognized parameter {name!r}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "model must be a string that is not empty"
    if body.get("stream_options") is not None and not body.get("stream"):
        yield "stream_options is only allowed when stream is true"
    if {"max_tokens", "max_completion_tokens"} <= body.keys():
        yield "max_tokens and max_completion_tokens cannot both be set"


def _of_messages(messages: Json) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages must be a list that is not empty"
        return
    yield from _of_calls(messages)
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        match message:
            case {"role": "system", "content": str(text)}:
                if not text:
                    yield f"{place}: a system message must not be empty"
                if index > 0:
                    yield f"{place}: a system message must be the first"
            case {"role": "user", "content": content}:
                yield from _of_user_content(content, place)
            case {"role": "assistant"}:
                yield from _of_assistant(message, place)
            case {"role": "tool", "tool_call_id": str(), "content": str()}:
                pass
            case _:
                yield f"{place}: is no message of a known role with its fields"
    if messages[-1].get("role") not in ("user", "tool"):
        yield "the last message must be the user's or a tool's"


def _of_user_content(content: Json, place: str) -> Iterator[str]:
    if isinstance(content, str):
        if not content:
            yield f"{place}: content must not be empty"
        return
    if not isinstance(content, list) or not content:
        yield f"{place}: content must be text or a list that is not empty"
        return
    for part in content:
        match part:
            case {"type": "text", "text": str(text)} if text:
                pass
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                yield from _of_data_url(url, place)
            case {"type": "input_audio", "input_audio": {"data": str(), "format": "wav" | "mp3"}}:
                pass
            case _:
                yield f"{place}: {json.dumps(part)[:100]} is no content part"


def _of_data_url(url: str, place: str) -> Iterator[str]:
    kind, comma, data = url.partition(";base64,")
    try:
        base64.b64decode(data, validate=True)
    except binascii.Error:
        comma = ""
    if not comma or not data or not re.fullmatch(r"data:image/[a-z.+-]+", kind):
        yield f"{place}: the image must be a data URL with base64"


def _of_assistant(message: Json, place: str) -> Iterator[str]:
    content, calls = message.get("content"), message.get("tool_calls")
    for name in message.keys() - _ASSISTANT_FIELDS:
        yield f"{place}: unknown field {name!r}"
    if content is not None and not isinstance(content, str):
        yield f"{place}: content must be text or null"
    if "tool_calls" in message and not calls:
        yield f"{place}: tool_calls must not be empty where it is there"
    if not content and not calls:
        yield f"{place}: an assistant message needs content or tool_calls"
    for call in calls or ():
        match call:
            case {"id": str(call_id), "type": "function", "function": {"name": str(name), "arguments": str(text)}}:
                if not 0 < len(call_id) <= 40:
                    yield f"{place}: call id {call_id!r} must have 1 to 40 characters"
                if not _NAME.fullmatch(name):
                    yield f"{place}: function name {name!r} does not match {_NAME.pattern}"
                if not _is_object(text):
                    yield f"{place}: arguments of {name!r} are no JSON object: {text[:100]!r}"
            case _:
                yield f"{place}: {json.dumps(call)[:100]} is no tool call"


def _of_calls(messages: list[Json]) -> Iterator[str]:
    """Each call is answered at once, once, and by nothing else; ids are unique."""
    seen: set[str] = set()
    pending: list[str] = []
    for index, message in enumerate(messages):
        place = f"messages[{index}]"
        if not isinstance(message, dict):
            continue
        if message.get("role") == "tool":
            if message.get("tool_call_id") in pending:
                pending.remove(message["tool_call_id"])
            else:
                yield f"{place}: tool_call_id {message.get('tool_call_id')!r} answers no open call"
            continue
        if pending:
            yield f"{place}: comes before the results of {pending}"
            pending = []
        for call in message.get("tool_calls") or ():
            if call.get("id") in seen:
                yield f"{place}: call id {call.get('id')!r} was used before"
            seen.add(call.get("id"))
            pending.append(call.get("id"))
    if pending:
        yield f"an assistant message with tool_calls must be followed by their results; missing are {pending}"


def _of_tools(tools: Json) -> Iterator[str]:
    if tools is None:
        return
    if not isinstance(tools, list) or not tools:
        yield "tools must be a list that is not empty"
        return
    if len(tools) > 128:
        yield f"tools: array too long, expected a maximum length of 128, but got {len(tools)}"
    names: set[str] = set()
    for index, tool in enumerate(tools):
        match tool:
            case {"type": "function", "function": {"name": str(name), "parameters": dict(parameters)}}:
                if not _NAME.fullmatch(name):
                    yield f"tools[{index}]: function name {name!r} does not match {_NAME.pattern}"
                if name in names:
                    yield f"tools[{index}]: function name {name!r} is there twice"
                names.add(name)
                if parameters.get("type") != "object" or not isinstance(parameters.get("properties"), dict):
                    yield f"tools[{index}]: schema of {name!r} must have type 'object' and properties"
                if at_root := sorted(parameters.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}):
                    yield f"tools[{index}]: schema of {name!r} must not have {at_root} at the top level"
                yield from (f"tools[{index}]: {name}: {reason}" for reason in _of_schema(parameters))
            case _:
                yield f"tools[{index}]: is no function with a name and parameters"


def _of_schema(schema: Json) -> Iterator[str]:
    if not isinstance(schema, dict):
        yield f"{json.dumps(schema)[:60]} is no schema object"
        return
    if "$ref" in schema:
        yield f"a reference: {schema['$ref']!r}"
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield "an array schema must have items"
    for inner in (schema.get("properties") or {}).values():
        yield from _of_schema(inner)
    if isinstance(schema.get("items"), dict):
        yield from _of_schema(schema["items"])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=_no_constant), dict)
    except ValueError:
        return False


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
