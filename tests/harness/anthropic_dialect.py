"""How the Messages API streams an answer, block by block. Pure.

Shapes follow Anthropic's API reference, version 2023-06-01. Thinking is signed: `signature` gives the only one
that `anthropic_strictness` takes back for a text, so that a thought that was changed on the way cannot pass.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.harness.model_dialects import Answer

Json = dict[str, Any]

STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
"""The API's words for those of `Answer.finish`; others are sent as they are."""


def thinking(text: str) -> Json:
    """A block of thought, signed."""
    return {"type": "thinking", "thinking": text, "signature": signature(text)}


def redacted(data: str = "EmwKAhgBEgy3va3") -> Json:
    """A block of thought that nobody may read."""
    return {"type": "redacted_thinking", "data": data}


def text(said: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": said}


def tool_use(call_id: str, name: str, arguments: Any) -> Json:
    """A block that calls a tool. `arguments` may be raw text, which only a stream can hold."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def signature(thought: str) -> str:
    """What a thought is signed with."""
    return "Sig+" + hashlib.sha256(thought.encode("utf-8", "surrogatepass")).hexdigest()[:24] + "=="


def stream(
    *blocks: Json,
    stop_reason: str | None = "end_turn",
    usage: tuple[int, int] = (11, 7),
    cache: Json | None = None,
    piece_characters: int = 4,
    model: str = "scripted",
) -> list[Json]:
    """The events of an answer made of these blocks, from `message_start` to `message_stop`.

    `cache` holds the token counts of the cache, as they stand in `usage`.
    """
    counted = {"input_tokens": usage[0], **(cache or {})}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    start = {**head, "stop_reason": None, "stop_sequence": None, "usage": {**counted, "output_tokens": 1}}
    body = [event for index, block in enumerate(blocks) for event in _block_events(index, block, piece_characters)]
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [
        {"type": "message_start", "message": start},
        {"type": "ping"},
        *body,
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage[1]}},
        {"type": "message_stop"},
    ]


def answer_stream(answer: Answer, *, model: str) -> list[Json]:
    """The events of an answer in `Answer`'s words. Usage is always there."""
    return stream(
        *_blocks(answer),
        stop_reason=STOP_REASONS.get(answer.finish_reason, answer.finish_reason),
        usage=answer.usage or (0, 0),
        piece_characters=answer.piece_characters,
        model=model,
    )


def message(answer: Answer, *, model: str) -> Json:
    """The answer in one object, as a request without `stream` gets it."""
    blocks = [{**b, "input": json.loads(b["input"])} if b["type"] == "tool_use" else b for b in _blocks(answer)]
    start: Json = answer_stream(answer, model=model)[0]["message"]
    reason = STOP_REASONS.get(answer.finish_reason, answer.finish_reason)
    usage = {"input_tokens": (answer.usage or (0, 0))[0], "output_tokens": (answer.usage or (0, 0))[1]}
    return {**start, "content": blocks, "stop_reason": reason, "usage": usage}


def _blocks(answer: Answer) -> Iterator[Json]:
    if answer.reasoning:
        yield thinking(answer.reasoning)
    if answer.text:
        yield text(answer.text)
    for call in answer.calls:
        yield tool_use(call.call_id, call.name, call.arguments)


def _block_events(index: int, block: Json, size: int) -> Iterator[Json]:
    """A block as it streams: begun empty, then its deltas, then its end. What has no deltas comes whole."""
    match block:
        case {"type": "text", "text": said}:
            begun, deltas = (
                {**block, "text": ""},
                [{"type": "text_delta", "text": part} for part in _cut(said, size)],
            )
        case {"type": "thinking", "thinking": thought}:
            begun = {**block, "thinking": "", **({"signature": ""} if "signature" in block else {})}
            deltas = [{"type": "thinking_delta", "thinking": part} for part in _cut(thought, size)]
            if "signature" in block:
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case {"type": "tool_use", "input": arguments}:
            begun = {**block, "input": {}}
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ["", *_cut(raw, size)]]
        case _:
            begun, deltas = block, []
    yield {"type": "content_block_start", "index": index, "content_block": begun}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _cut(whole: str, size: int) -> Iterator[str]:
    for start in range(0, len(whole), size):
        yield whole[start : start + size]
