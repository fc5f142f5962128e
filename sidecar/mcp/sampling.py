"""`sampling/createMessage`: a server's request for a model's answer as a value, and the answer to it. Pure.

Source: MCP 2025-11-25, client/sampling. Tools in sampling are not declared, so whatever needs them is refused.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from sidecar.mcp.connection import ReplyRefusal
from sidecar.mcp.envelope import INVALID_PARAMS
from sidecar.protocol.codec import DecodeError, decode, encode
from sidecar.protocol.values import AudioBlock, ContentBlock, ImageBlock, JsonObject, Message, TextBlock

MAX_MESSAGES = 200
"""Of one request. Own choice: a person is shown all of them."""

StopReason = Literal["endTurn", "stopSequence", "maxTokens"]


class SamplingRequest(NamedTuple):
    """What a server wants to be asked of a model."""

    messages: tuple[Message, ...]
    max_tokens: int
    system: str | None = None
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()


class SamplingAnswer(NamedTuple):
    """What the model `model` said."""

    text: str
    model: str
    stop_reason: StopReason


def read_sampling(params: JsonObject) -> SamplingRequest:
    """Raises ReplyRefusal naming the field that cannot be."""
    if "tools" in params or "toolChoice" in params:
        raise _refusal("tools: tools in sampling were not declared by this client")
    max_tokens = params.get("maxTokens")
    if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
        raise _refusal("maxTokens: must be an integer of at least 1")
    messages = params.get("messages")
    if not isinstance(messages, list) or not 0 < len(messages) <= MAX_MESSAGES:
        raise _refusal(f"messages: must be a list of 1 to {MAX_MESSAGES} messages")
    return SamplingRequest(
        messages=tuple(_message(message, f"messages[{index}]") for index, message in enumerate(messages)),
        max_tokens=max_tokens,
        system=_text(params.get("systemPrompt")),
        temperature=_number(params.get("temperature")),
        stop_sequences=tuple(filter(None, map(_text, _list(params.get("stopSequences"))))),
    )


def sampling_result(answer: SamplingAnswer) -> JsonObject:
    """The answer as a `CreateMessageResult`."""
    return {
        "role": "assistant",
        "content": {"type": "text", "text": answer.text},
        "model": answer.model,
        "stopReason": answer.stop_reason,
    }


def shown_sampling(request: SamplingRequest) -> JsonObject:
    """The request as a person is shown it, and may hand it back changed: everything that a model will see."""
    shown: JsonObject = {} if request.system is None else {"systemPrompt": request.system}
    shown["messages"] = [{"role": m.role, "content": encode(m.content)} for m in request.messages]
    shown["maxTokens"] = request.max_tokens
    return shown


def _message(raw: Any, path: str) -> Message:
    role = raw.get("role") if isinstance(raw, dict) else None
    if role not in ("user", "assistant"):
        raise _refusal(f"{path}.role: must be 'user' or 'assistant'")
    content = raw.get("content")
    blocks = tuple(_blocks(content if isinstance(content, list) else [content], f"{path}.content"))
    return Message(role=role, content=blocks)


def _blocks(raw: list[Any], path: str) -> Iterator[ContentBlock]:
    if not raw:
        raise _refusal(f"{path}: must not be empty")
    for block in raw:
        if isinstance(block, str):  # What a person who edits it would write.
            yield TextBlock(text=block)
            continue
        try:
            read: ContentBlock = decode(block, ContentBlock, path=path)  # type: ignore[arg-type]  # a union
        except DecodeError as error:
            raise _refusal(str(error)) from None
        if not isinstance(read, TextBlock | ImageBlock | AudioBlock):
            raise _refusal(f"{path}: must be text, image or audio; tools in sampling were not declared")
        yield read


def _refusal(reason: str) -> ReplyRefusal:
    return ReplyRefusal(INVALID_PARAMS, reason)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
