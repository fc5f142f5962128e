"""What Chat Completions servers send, read into pieces. Pure.

Servers agree on little beyond `choices[0].delta`, so every field is looked at as if it might be missing, null
or of another type. What cannot be read as a chunk at all is a ModelError.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sidecar.protocol.errors import ModelError
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

FINISH_REASONS: Mapping[str, str] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "complete": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "toolCalls",
    "tool_call": "toolCalls",
    "tool_use": "toolCalls",
    "function_call": "toolCalls",
    "content_filter": "contentFilter",
    "safety": "contentFilter",
}
"""Our word for a server's, in lower case. Words that are not here are passed on as they came."""

BROKEN_OFF = frozenset({"error", "insufficient_system_resource", "abort"})
"""Finish reasons that mean a failure: OpenRouter's, DeepSeek's, vLLM's."""

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""DeepSeek, llama.cpp and vLLM say the first, OpenRouter, Ollama and newer vLLM the second, some say both."""


class ChunkReader:
    """Reads one answer, event by event. Call `ending` once the stream is over."""

    def __init__(self, endpoint: Endpoint, *, model: str, registry_names: Mapping[str, str]) -> None:
        self._endpoint = endpoint
        self._model = model
        self._registry_names = registry_names
        self._finish: str | None = None
        self._has_calls = False
        self._reasoning_field: str | None = None
        self._reasoning_details: list[JsonObject] = []
        self._call_extras: dict[str, Any] = {}
        self.is_over = False

    @property
    def is_finished(self) -> bool:
        """Whether the model has said that it stops; usage may still follow."""
        return self._finish is not None

    def read(self, data: str, *, event: str = "") -> list[ModelPiece]:
        """The pieces in one server-sent event. Raises ModelError for an error object and for what is no chunk."""
        if data.strip() == "[DONE]":
            self.is_over = True
            return []
        chunk = self._chunk(data)
        if error := _error_in(chunk, event):
            raise failed_in_stream(self._endpoint, error, model=self._model)
        choice = _first_choice(chunk)
        # Perplexity sends the whole message so far beside each delta; only without a delta is it the answer.
        is_whole = "delta" not in choice and bool(_object(choice.get("message")))
        pieces: list[ModelPiece] = []
        self._read_delta(_object(choice.get("message" if is_whole else "delta")), is_whole, pieces)
        if usage := _usage(chunk, choice):
            pieces.append(UsagePiece(usage=usage))
        self._note_finish(choice.get("finish_reason"))
        self.is_over = is_whole
        return pieces

    def read_whole(self, body: str) -> list[ModelPiece]:
        """The pieces of an answer that came as one JSON body although a stream was asked for."""
        pieces = self.read(body)
        if not self.is_over:
            raise unreadable(self._endpoint, "JSON that is no chat completion", body, retryable=False)
        return pieces

    def ending(self) -> list[ModelPiece]:
        """What is known only at the end: extras for the next request, and why the model stopped.

        Without a finish reason the answer is complete only where the server said so by `[DONE]`.
        """
        if self._finish is None and self.is_over:
            self._finish = "toolCalls" if self._has_calls else "stop"
        extras = self._extras()
        pieces: list[ModelPiece] = [ExtrasPiece(data=extras)] if extras else []
        return [*pieces, FinishPiece(reason=self._finish)] if self._finish is not None else pieces

    def _chunk(self, data: str) -> JsonObject:
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise unreadable(self._endpoint, "something that is not JSON", data, retryable=True) from None
        if isinstance(chunk, dict):
            return chunk
        raise unreadable(self._endpoint, "JSON that is no chat completion", data, retryable=True)

    def _read_delta(self, delta: JsonObject, is_whole: bool, pieces: list[ModelPiece]) -> None:
        self._read_reasoning(delta, pieces)
        for name in ("content", "refusal"):  # Where OpenAI's models decline is to the reader the answer.
            text = delta.get(name)
            if isinstance(text, str):
                if text:
                    pieces.append(TextPiece(text=text))
            elif isinstance(text, list):
                pieces.extend(_parts(text))
        if calls := delta.get("tool_calls"):
            listed = calls if isinstance(calls, list) else [calls]
            pieces.extend(
                self._call(c, n if is_whole else None) for n, c in enumerate(listed) if isinstance(c, dict)
            )
        if legacy := _object(delta.get("function_call")):
            pieces.append(self._call({"index": 0, "function": legacy}, 0))

    def _read_reasoning(self, delta: JsonObject, pieces: list[ModelPiece]) -> None:
        for name in REASONING_FIELDS:
            text = delta.get(name)
            if isinstance(text, str) and text:
                self._reasoning_field = name
                pieces.append(ReasoningPiece(text=text))
                break
            if text == "":  # DeepSeek wants the field back even if there was no thought in it.
                self._reasoning_field = self._reasoning_field or name
        details = delta.get("reasoning_details")
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, dict):
                _join_detail(self._reasoning_details, detail)

    def _call(self, call: JsonObject, position: int | None) -> ToolCallPiece:
        self._has_calls = True
        function = _object(call.get("function"))
        index = call.get("index")
        call_id = call.get("id")
        name = function.get("name")
        if isinstance(call_id, str) and call.get("extra_content") is not None:
            self._call_extras[call_id] = call["extra_content"]
        return ToolCallPiece(
            index=index if type(index) is int else position,
            call_id=call_id if isinstance(call_id, str) and call_id else None,
            name=self._registry_names.get(name, name) if isinstance(name, str) and name else None,
            arguments=_arguments(function.get("arguments")),
        )

    def _note_finish(self, reason: Any) -> None:
        if not isinstance(reason, str) or not reason:
            return
        if reason.lower() in BROKEN_OFF:
            raise ModelError(
                f"{self._endpoint.provider}: the server broke off the answer ({reason})",
                provider=self._endpoint.provider,
                retryable=True,
            )
        self._finish = FINISH_REASONS.get(reason.lower(), reason)

    def _extras(self) -> JsonObject:
        """What has to go back with the message: see `openai_messages`."""
        extras: JsonObject = {}
        if self._reasoning_field is not None:
            extras["reasoningField"] = self._reasoning_field
        if self._reasoning_details:
            extras["reasoningDetails"] = self._reasoning_details
        if self._call_extras:
            extras["callExtras"] = self._call_extras
        return extras


def _error_in(chunk: JsonObject, event: str) -> Any:
    """The error object of an event: under `error`, or the whole of it where the event says so."""
    error = chunk.get("error")
    if error:
        return error
    return chunk if event == "error" or chunk.get("object") == "error" else None


def _first_choice(chunk: JsonObject) -> JsonObject:
    choices = chunk.get("choices")
    return _object(choices[0]) if isinstance(choices, list) and choices else {}


def _parts(content: list[Any]) -> Iterator[ModelPiece]:
    """Content as a list of parts, which is how Mistral separates thinking from text."""
    for part in map(_object, content):
        match part:
            case {"type": "thinking", "thinking": list(thoughts)}:
                text = "".join(str(_object(thought).get("text") or "") for thought in thoughts)
                if text:
                    yield ReasoningPiece(text=text)
            case {"text": str(text)} if text:
                yield TextPiece(text=text)


def _arguments(arguments: Any) -> str:
    """A fragment of argument text; a server that sends the object itself gets it written out."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _join_detail(details: list[JsonObject], piece: JsonObject) -> None:
    """Adds a piece of OpenRouter's `reasoning_details`: text and summaries are joined, the rest is kept."""
    last = details[-1] if details else {}
    joined = {"reasoning.text": "text", "reasoning.summary": "summary"}.get(str(piece.get("type")))
    is_same = all(last.get(name) == piece.get(name) for name in ("type", "index"))
    if joined is None or not is_same:
        details.append(dict(piece))
        return
    text = str(last.get(joined) or "") + str(piece.get(joined) or "")
    last.update({name: value for name, value in piece.items() if value is not None})
    last[joined] = text


def _usage(chunk: JsonObject, choice: JsonObject) -> Usage | None:
    """Tokens, where a server puts them: in the chunk, in the choice (Moonshot), or under `x_groq`."""
    usage = chunk.get("usage") or choice.get("usage") or _object(chunk.get("x_groq")).get("usage")
    if isinstance(usage, dict) and usage:
        return _openai_usage(usage)
    timings = _object(chunk.get("timings"))
    return _llama_cpp_usage(timings) if timings else None


def _openai_usage(usage: JsonObject) -> Usage:
    input_tokens, output_tokens = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    details = _object(usage.get("prompt_tokens_details"))
    cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))  # The second is DeepSeek's.
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=_count(usage.get("total_tokens")) or input_tokens + output_tokens,
        cached_tokens=None if cached is None else _count(cached),
    )


def _llama_cpp_usage(timings: JsonObject) -> Usage:
    cached = _count(timings.get("cache_n"))
    input_tokens, output_tokens = cached + _count(timings.get("prompt_n")), _count(timings.get("predicted_n"))
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        cached_tokens=cached,
    )


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return max(0, int(value)) if type(value) in (int, float) and value == value else 0
