"""How different servers stream the same Chat Completions answer. Pure.

Each dialect is a function from an Answer to the chunks of its stream. Shapes follow what the servers send:
OpenAI's API reference, Ollama 0.12, vLLM 0.11 and llama.cpp's server of late 2025.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

from attrs import evolve, frozen

DialectName = Literal["openai", "ollama", "vllm", "llamacpp"]
Chunk = dict[str, Any]


@frozen(kw_only=True)
class Call:
    """A tool call of an answer. `arguments` is JSON text, valid or not."""

    call_id: str
    name: str
    arguments: str


@frozen(kw_only=True)
class Answer:
    """What the model says in one turn. `piece_characters` is how long the pieces of a stream are."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: str | None = None
    usage: tuple[int, int] | None = (11, 7)
    piece_characters: int = 4

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.calls else "stop")

    def pieces(self, text: str) -> Iterator[str]:
        """The text cut as a stream cuts it."""
        for start in range(0, len(text), self.piece_characters):
            yield text[start : start + self.piece_characters]


def chunks(answer: Answer, *, dialect: DialectName, model: str, with_usage: bool) -> list[Chunk]:
    """The stream of an answer, less the closing `[DONE]`."""
    counted = answer if with_usage else evolve(answer, usage=None)
    return [_chunk(model, choices, more) for choices, more in _DIALECTS[dialect](counted)]


def completion(answer: Answer, *, model: str) -> Chunk:
    """The answer in one object, as a request without `stream` gets it."""
    message: Chunk = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_whole_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
    return whole | ({"usage": _usage(answer.usage)} if answer.usage else {})


Parts = Iterator[tuple[list[Chunk], Chunk]]
"""Choices, and what else a chunk holds."""


def _openai(answer: Answer) -> Parts:
    """Role first, name first, arguments in pieces, `usage: null` everywhere, a last chunk without choices.

    Reasoning is not shown: OpenAI keeps it to itself.
    """
    counting = {"usage": None} if answer.usage else {}
    yield _choice({"role": "assistant", "content": None if answer.calls else "", "refusal": None}), counting
    for text in answer.pieces(answer.text):
        yield _choice({"content": text}), counting
    for index, call in enumerate(answer.calls):
        head = {"index": index, "id": call.call_id, "type": "function"}
        yield _calls({**head, "function": {"name": call.name, "arguments": ""}}), counting
        for text in answer.pieces(call.arguments):
            yield _calls({"index": index, "function": {"arguments": text}}), counting
    yield _choice({}, answer.finish_reason), counting
    if answer.usage:
        yield [], {"usage": _usage(answer.usage)}


def _ollama(answer: Answer) -> Parts:
    """Role in every chunk, whole calls, all of them with index 0; usage in the last chunk."""
    for text in answer.pieces(answer.reasoning):
        yield _choice({"role": "assistant", "content": "", "reasoning": text}), {}
    for text in answer.pieces(answer.text):
        yield _choice({"role": "assistant", "content": text}), {}
    for call in answer.calls:
        whole = {"index": 0, **_whole_call(call)}
        yield _choice({"role": "assistant", "content": "", "tool_calls": [whole]}), {}
    last = {"usage": _usage(answer.usage)} if answer.usage else {}
    yield _choice({"role": "assistant", "content": ""}, answer.finish_reason), last


def _vllm(answer: Answer) -> Parts:
    """Role first, arguments in pieces, then the finish reason, then usage without choices."""
    yield _choice({"role": "assistant", "content": ""}), {}
    for text in answer.pieces(answer.reasoning):
        yield _choice({"reasoning_content": text}), {}
    for text in answer.pieces(answer.text):
        yield _choice({"content": text}), {}
    for index, call in enumerate(answer.calls):
        yield _calls({"id": call.call_id, "type": "function", "index": index, "function": {"name": call.name}}), {}
        for text in answer.pieces(call.arguments):
            yield _calls({"index": index, "function": {"arguments": text}}), {}
    yield [{**_choice({"content": ""}, answer.finish_reason)[0], "stop_reason": None}], {}
    if answer.usage:
        yield [], {"usage": _usage(answer.usage)}


def _llamacpp(answer: Answer) -> Parts:
    """Content null first, the first call delta with `{`, small pieces after it, timings beside usage."""
    yield _choice({"role": "assistant", "content": None}), {}
    for text in answer.pieces(answer.reasoning):
        yield _choice({"reasoning_content": text}), {}
    for text in answer.pieces(answer.text):
        yield _choice({"content": text}), {}
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": call.arguments[:1]}
        yield _calls({"index": index, "id": call.call_id, "type": "function", "function": function}), {}
        for text in answer.pieces(call.arguments[1:]):
            yield _calls({"index": index, "function": {"arguments": text}}), {}
    timings = {"timings": {"prompt_n": 11, "predicted_n": 7, "predicted_per_second": 21.5}}
    yield _choice({}, answer.finish_reason), {} if answer.usage else timings
    if answer.usage:
        yield [], {"usage": _usage(answer.usage), **timings}


_DIALECTS: dict[str, Callable[[Answer], Parts]] = {
    "openai": _openai,
    "ollama": _ollama,
    "vllm": _vllm,
    "llamacpp": _llamacpp,
}


def _chunk(model: str, choices: list[Chunk], more: Chunk) -> Chunk:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    return {**head, "choices": choices, **more}


def _choice(delta: Chunk, finish_reason: str | None = None) -> list[Chunk]:
    return [{"index": 0, "delta": delta, "finish_reason": finish_reason}]


def _calls(call: Chunk) -> list[Chunk]:
    return _choice({"tool_calls": [call]})


def _whole_call(call: Call) -> Chunk:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _usage(usage: tuple[int, int] | None) -> Chunk | None:
    if usage is None:
        return None
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}


def arguments_text(arguments: Any) -> str:
    """Arguments as a model writes them; a string is taken for text that is already written."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
