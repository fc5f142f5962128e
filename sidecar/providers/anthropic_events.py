"""What the Messages API sends, read into pieces. Pure.

Each content block begins, grows by deltas and ends. Fields are looked at as if they might be missing, because
other servers speak this API, too. What cannot be read at all is a ModelError.

Thinking, and whatever else only this API knows, goes back to it with the next request: the extras of a message
hold its blocks in their order, `{"blocks": [...]}`. What the message holds itself is only pointed at:
`{"textCharacters": 12}` is the next 12 characters of its text, `{"call": 0}` the first of its calls.
"""

import json
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from sidecar.protocol.values import JsonObject, Usage
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from sidecar.providers.failures import Endpoint, failed_in_stream, unreadable

STOP_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "toolCalls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "contentFilter",
}
"""Our word for the API's. Words that are not here are passed on as they came."""


@define
class _Block:
    """A content block as far as it has come. `begun` is how it began, `grown` what was added, by field."""

    begun: JsonObject
    grown: dict[str, list[str]] = field(factory=dict)

    @property
    def kind(self) -> Any:
        return self.begun.get("type")

    def add(self, name: str, text: str) -> None:
        self.grown.setdefault(name, []).append(text)

    def text(self, name: str) -> str:
        """A field with everything that was added to it."""
        begun = self.begun.get(name)
        return (begun if isinstance(begun, str) else "") + "".join(self.grown.get(name, ()))

    def whole(self) -> JsonObject:
        """The block as it would be if it had come in one piece."""
        return {**self.begun, **{name: self.text(name) for name in self.grown}}


class EventReader:
    """Reads one answer, event by event. Call `ending` once the stream is over."""

    def __init__(self, endpoint: Endpoint, *, model: str, registry_names: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._model = model
        self._registry_names = registry_names
        self._blocks: dict[int, _Block] = {}
        self._usage: dict[str, int] = {}
        self._finish: str | None = None
        self.is_over = False

    @property
    def is_finished(self) -> bool:
        """Whether the model has said that it stops; only the closing event may still follow."""
        return self._finish is not None

    def read(self, data: str, *, event: str = "") -> list[ModelPiece]:
        """The pieces in one server-sent event. Raises ModelError for an error event and for what is no event."""
        value = self._object(data)
        match value.get("type") or event:
            case "message_start":
                return self._counted(_object(value.get("message")).get("usage"))
            case "content_block_start":
                return self._begin(_index(value), _object(value.get("content_block")))
            case "content_block_delta":
                return self._grow(_index(value), _object(value.get("delta")))
            case "content_block_stop":
                return self._end(_index(value))
            case "message_delta":
                self._note_finish(_object(value.get("delta")).get("stop_reason"))
                return self._counted(value.get("usage"))
            case "message_stop":
                self.is_over = True
            case "error":
                raise failed_in_stream(self._endpoint, value.get("error") or value, model=self._model)
            case _:
                pass  # Newer versions may send events of other kinds, and say so.
        return []

    def read_whole(self, body: str) -> list[ModelPiece]:
        """The pieces of an answer that came as one JSON body although a stream was asked for."""
        value = self._object(body)
        if value.get("type") == "error" or value.get("error"):
            raise failed_in_stream(self._endpoint, value.get("error") or value, model=self._model)
        blocks = value.get("content")
        if not isinstance(blocks, list):
            raise unreadable(self._endpoint, "JSON that is no message", body, retryable=False)
        pieces: list[ModelPiece] = []
        for index, block in enumerate(blocks):
            pieces += [*self._begin(index, _object(block)), *self._end(index)]
        self._note_finish(value.get("stop_reason"))
        self.is_over = True
        return [*pieces, *self._counted(value.get("usage"))]

    def ending(self) -> list[ModelPiece]:
        """What is known only at the end: extras for the next request, and why the model stopped.

        Without a stop reason the answer is complete only where the server said so by `message_stop`.
        """
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        if self._finish is None and self.is_over:
            self._finish = "toolCalls" if any(block.kind == "tool_use" for block in blocks) else "stop"
        pieces: list[ModelPiece] = []
        if any(block.kind not in ("text", "tool_use") for block in blocks):
            pieces.append(ExtrasPiece(data={"blocks": _remembered(blocks)}))
        return [*pieces, FinishPiece(reason=self._finish)] if self._finish is not None else pieces

    def _object(self, data: str) -> JsonObject:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            raise unreadable(self._endpoint, "something that is not JSON", data, retryable=True) from None
        if isinstance(value, dict):
            return value
        raise unreadable(self._endpoint, "JSON that is no event", data, retryable=True)

    # Blocks ---------------------------------------------------------------------------------------------

    def _begin(self, index: int, block: JsonObject) -> list[ModelPiece]:
        self._blocks[index] = _Block(begun=block)
        match block:
            case {"type": "text", "text": str(text)} if text:
                return [TextPiece(text=text)]
            case {"type": "thinking", "thinking": str(text)} if text:
                return [ReasoningPiece(text=text)]
            case {"type": "tool_use"}:
                call_id, name = block.get("id"), block.get("name")
                return [
                    ToolCallPiece(
                        index=index,
                        call_id=call_id if isinstance(call_id, str) and call_id else None,
                        name=self._registry_names.get(name, name) if isinstance(name, str) and name else None,
                    )
                ]
        return []

    def _grow(self, index: int, delta: JsonObject) -> list[ModelPiece]:
        block = self._blocks.setdefault(index, _Block(begun={}))
        match delta:
            case {"type": "text_delta", "text": str(text)} if text:
                block.add("text", text)
                return [TextPiece(text=text)]
            case {"type": "thinking_delta", "thinking": str(text)} if text:
                block.add("thinking", text)
                return [ReasoningPiece(text=text)]
            case {"type": "signature_delta", "signature": str(text)}:
                block.add("signature", text)
            case {"type": "input_json_delta", "partial_json": str(text)} if text:
                block.add("input", text)
                if block.kind == "tool_use":
                    return [ToolCallPiece(index=index, arguments=text)]
        return []

    def _end(self, index: int) -> list[ModelPiece]:
        """A call whose arguments came at its beginning, all at once, is told of them here."""
        block = self._blocks.get(index)
        if block is None or block.kind != "tool_use" or "input" in block.grown or not block.begun.get("input"):
            return []
        return [ToolCallPiece(index=index, arguments=json.dumps(block.begun["input"], ensure_ascii=False))]

    # The message ----------------------------------------------------------------------------------------

    def _note_finish(self, reason: Any) -> None:
        if isinstance(reason, str) and reason:
            self._finish = STOP_REASONS.get(reason, reason)

    def _counted(self, usage: Any) -> list[ModelPiece]:
        """Counts are of the whole message so far; one that is missing stays as it was."""
        counts = {name: count for name, count in _object(usage).items() if type(count) is int and count >= 0}
        if not counts:
            return []
        self._usage |= counts
        cached = self._usage.get("cache_read_input_tokens")
        # The API counts apart what it read from its cache and what it put there; to us all of it is input.
        written = self._usage.get("cache_creation_input_tokens", 0)
        input_tokens = self._usage.get("input_tokens", 0) + written + (cached or 0)
        output_tokens = self._usage.get("output_tokens", 0)
        usage_so_far = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
            cached_tokens=cached,
        )
        return [UsagePiece(usage=usage_so_far)]


def _remembered(blocks: list[_Block]) -> list[JsonObject]:
    """The blocks for the extras; see the module."""
    remembered: list[JsonObject] = []
    calls = 0
    for block in blocks:
        match block.kind:
            case "text":
                remembered.append({"textCharacters": len(block.text("text"))})
            case "tool_use":
                remembered.append({"call": calls})
                calls += 1
            case "thinking":
                remembered.append(block.whole())
            case _:
                remembered.append(_with_input(block))
    return remembered


def _with_input(block: _Block) -> JsonObject:
    """A block of a server's own tool, whose input comes like that of ours."""
    if "input" not in block.grown:
        return block.begun
    try:
        return {**block.begun, "input": json.loads(block.text("input"))}
    except ValueError:
        return block.begun


def _index(value: JsonObject) -> int:
    index = value.get("index")
    return index if type(index) is int else 0


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
