"""Answers are read in whatever shape a Chat Completions server sends them.

Source: OpenAI's API reference; the streams of Ollama, vLLM, llama.cpp, OpenRouter, DeepSeek, Mistral, Groq,
Moonshot and Gemini as their users report them; protocol.md, "Model providers".
"""

import asyncio
import json
from typing import Any

import pytest

from sidecar.protocol.errors import ModelError
from sidecar.protocol.values import Usage
from sidecar.providers.base import (
    FinishPiece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from sidecar.providers.openai_chunks import FINISH_REASONS
from tests.harness.asking import asks, calls_of, pieces_of, provider_at, read, reasoning_of, text_of, tool
from tests.harness.model_dialects import DialectName
from tests.harness.model_server import ScriptedModel, breaks_off, calls, delta, events, raw, says, stalls, whole

DIALECTS: tuple[DialectName, ...] = ("openai", "ollama", "vllm", "llamacpp")
USAGE = UsagePiece(usage=Usage(input_tokens=11, output_tokens=7, total_tokens=18))


# Dialects -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_text_streams_in_pieces_with_usage_and_finish_last(dialect: DialectName) -> None:
    pieces = await read(says("It is sunny in Paris."), dialect=dialect)
    assert text_of(pieces) == "It is sunny in Paris."
    assert sum(isinstance(piece, TextPiece) for piece in pieces) == 6
    assert pieces[-2:] == [USAGE, FinishPiece(reason="stop")]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_parallel_calls_keep_their_names_ids_and_arguments(dialect: DialectName) -> None:
    pieces = await read(calls(("look", {"at": "sky"}), ("look", {"at": "sea"})), dialect=dialect)
    parts = calls_of(pieces)
    named = [(part.call_id, part.name) for part in parts if part.name]
    assert named == [("call_1_1", "look"), ("call_1_2", "look")]
    assert "".join(part.arguments for part in parts) == '{"at": "sky"}{"at": "sea"}'
    assert pieces[-1] == FinishPiece(reason="toolCalls")


@pytest.mark.parametrize("dialect", ["ollama", "vllm", "llamacpp"])
async def test_reasoning_is_kept_apart_from_text(dialect: DialectName) -> None:
    pieces = await read(says("42", reasoning="six by seven"), dialect=dialect)
    assert (reasoning_of(pieces), text_of(pieces)) == ("six by seven", "42")


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 64])
async def test_events_do_not_depend_on_how_bytes_arrive(chunk_bytes: int) -> None:
    pieces = await read(says("héllo wörld 🌍"), chunk_bytes=chunk_bytes)
    assert text_of(pieces) == "héllo wörld 🌍"
    assert pieces[-1] == FinishPiece(reason="stop")


async def test_pieces_arrive_while_the_model_still_speaks() -> None:
    reply = stalls(says("one two three", piece_characters=4), after=2)
    async with ScriptedModel(reply) as model, provider_at(model) as provider:
        stream = provider.stream(asks())
        assert await anext(stream) == TextPiece(text="one ")
        reply.stall.release()
        assert text_of([piece async for piece in stream]) == "two three"


async def test_turns_share_one_connection() -> None:
    async with ScriptedModel(says("a"), says("b"), says("c")) as model, provider_at(model) as provider:
        assert [text_of(await pieces_of(provider)) for _ in range(3)] == ["a", "b", "c"]
        assert model.connections == 1


async def test_conversations_at_the_same_time_do_not_wait_for_each_other() -> None:
    held = stalls(says("slow"))
    async with ScriptedModel(held, says("fast")) as model, provider_at(model) as provider:
        slow = asyncio.create_task(pieces_of(provider))
        await held.stall.reached.wait()
        assert text_of(await pieces_of(provider)) == "fast"
        held.stall.release()
        assert text_of(await slow) == "slow"


# Shapes of a stream -------------------------------------------------------------------------------------


async def test_a_server_that_does_not_stream_is_read_all_the_same() -> None:
    pieces = await read(whole(calls(("look", {"n": 1}), ("look", {"n": 2}), text="Let me see.", reasoning="hm")))
    assert (reasoning_of(pieces), text_of(pieces)) == ("hm", "Let me see.")
    assert [(part.index, part.call_id, part.arguments) for part in calls_of(pieces)] == [
        (0, "call_1_1", '{"n": 1}'),
        (1, "call_1_2", '{"n": 2}'),
    ]
    assert pieces[-1] == FinishPiece(reason="toolCalls")


async def test_comments_other_fields_and_windows_line_ends_are_read_over() -> None:
    lines = [
        ": keep-alive",
        "",
        "event: message",
        "id: 7",
        "retry: 10",
        f"data: {json.dumps(delta(content='hi'))}",
    ]
    stream = "\r\n".join([*lines, "", ": OPENROUTER PROCESSING", "", f"data:{json.dumps(delta('stop'))}", "", ""])
    assert await read(raw(stream)) == [TextPiece(text="hi"), FinishPiece(reason="stop")]


async def test_data_on_several_lines_is_one_chunk() -> None:
    pretty = json.dumps(delta("stop", content="hi"), indent=1).replace("\n", "\ndata: ")
    assert await read(raw(f"data: {pretty}\n\n")) == [TextPiece(text="hi"), FinishPiece(reason="stop")]


async def test_a_byte_order_mark_does_not_hide_the_first_chunk() -> None:
    assert await read(raw(b"\xef\xbb\xbf" + f"data: {json.dumps(delta('stop', content='hi'))}\n\n".encode())) == [
        TextPiece(text="hi"),
        FinishPiece(reason="stop"),
    ]


@pytest.mark.parametrize("content_type", ["text/plain", "text/event-stream; charset=iso-8859-1", ""])
async def test_a_stream_is_read_whatever_the_server_calls_it(content_type: str) -> None:
    stream = f"data: {json.dumps(delta('stop', content='é'), ensure_ascii=False)}\n\n"
    assert text_of(await read(raw(stream, content_type=content_type))) == "é"


async def test_the_whole_text_so_far_beside_each_delta_is_not_said_again() -> None:
    both = [
        {"choices": [{"delta": {"content": "one "}, "message": {"content": "one "}}]},
        {"choices": [{"delta": {"content": "two"}, "message": {"content": "one two"}, "finish_reason": "stop"}]},
    ]
    assert text_of(await read(events(*both))) == "one two"


async def test_a_whole_completion_in_one_event_is_an_answer() -> None:
    pieces = await read(events({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}, done=False))
    assert pieces == [TextPiece(text="hi"), FinishPiece(reason="stop")]


async def test_done_may_be_missing() -> None:
    assert await read(events(delta(content="hi"), delta("stop"), done=False)) == [
        TextPiece(text="hi"),
        FinishPiece(reason="stop"),
    ]


@pytest.mark.parametrize(
    ("said", "reason"),
    [(delta(content="hi"), "stop"), (delta(tool_calls=[{"function": {"name": "f"}}]), "toolCalls")],
)
async def test_done_without_a_finish_reason_is_an_end_all_the_same(said: Any, reason: str) -> None:
    assert (await read(events(said)))[-1] == FinishPiece(reason=reason)


async def test_a_stream_that_ends_half_way_has_no_finish() -> None:
    pieces = await read(breaks_off(says("one two three"), after=3))
    assert pieces == [TextPiece(text="one "), TextPiece(text="two ")]


async def test_a_server_that_never_closes_a_finished_stream_is_left() -> None:
    reply = stalls(events(delta("stop", content="hi"), done=False), after=1)
    async with ScriptedModel(reply) as model, provider_at(model, idle_timeout_secs=0.2) as provider:
        assert (await pieces_of(provider))[-1] == FinishPiece(reason="stop")
        await asyncio.wait_for(model.requests[0].disconnected.wait(), 5)


async def test_a_server_that_goes_on_after_done_is_left() -> None:
    reply = stalls(events(delta("stop", content="hi")), after=2)
    async with ScriptedModel(reply) as model, provider_at(model) as provider:
        assert (await pieces_of(provider))[-1] == FinishPiece(reason="stop")
        await asyncio.wait_for(model.requests[0].disconnected.wait(), 5)


ODD_CHUNKS: dict[str, Any] = {
    "delta null": {"choices": [{"delta": None, "finish_reason": None}]},
    "choices empty": {"choices": []},
    "choices null": {"choices": None},
    "no choices": {"id": "x", "prompt_filter_results": []},
    "a choice null": {"choices": [None]},
    "content null": delta(content=None, tool_calls=None, reasoning_content=None, function_call=None),
    "content empty": delta(role="assistant", content=""),
    "finish empty": delta("", content=""),
    "call null": delta(tool_calls=[None]),
    "error null": {"error": None, "choices": []},
    "usage null": {"choices": [], "usage": None},
    "usage empty": {"choices": [], "usage": {}},
}


@pytest.mark.parametrize("chunk", ODD_CHUNKS.values(), ids=list(ODD_CHUNKS))
async def test_a_chunk_that_says_nothing_makes_no_piece(chunk: Any) -> None:
    assert await read(events(chunk, delta(content="hi"), delta("stop"))) == [
        TextPiece(text="hi"),
        FinishPiece(reason="stop"),
    ]


# Calls --------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[Any, ToolCallPiece]] = {
    "no index": ({"id": "a", "function": {"name": "f"}}, ToolCallPiece(call_id="a", name="f")),
    "index null": ({"index": None, "function": {"name": "f"}}, ToolCallPiece(name="f")),
    "index no number": ({"index": "0", "function": {"name": "f"}}, ToolCallPiece(name="f")),
    "id empty": ({"index": 1, "id": "", "function": {"arguments": "{"}}, ToolCallPiece(index=1, arguments="{")),
    "name null": (
        {"index": 0, "function": {"name": None, "arguments": "}"}},
        ToolCallPiece(index=0, arguments="}"),
    ),
    "name empty": (
        {"index": 0, "function": {"name": "", "arguments": "}"}},
        ToolCallPiece(index=0, arguments="}"),
    ),
    "arguments null": (
        {"index": 0, "function": {"name": "f", "arguments": None}},
        ToolCallPiece(index=0, name="f"),
    ),
    "arguments object": (
        {"index": 0, "function": {"name": "f", "arguments": {"a": "é"}}},
        ToolCallPiece(index=0, name="f", arguments='{"a": "é"}'),
    ),
    "function null": ({"index": 0, "id": "a", "function": None}, ToolCallPiece(index=0, call_id="a")),
}


@pytest.mark.parametrize(("call", "piece"), CALLS.values(), ids=list(CALLS))
async def test_a_call_is_passed_on_with_what_it_has(call: Any, piece: ToolCallPiece) -> None:
    assert calls_of(await read(events(delta(tool_calls=[call]), delta("tool_calls")))) == [piece]


async def test_the_function_call_of_old_servers_is_a_call() -> None:
    pieces = await read(events(delta(function_call={"name": "f", "arguments": "{}"}), delta("function_call")))
    assert pieces == [ToolCallPiece(index=0, name="f", arguments="{}"), FinishPiece(reason="toolCalls")]


async def test_a_renamed_tool_comes_back_under_its_own_name() -> None:
    scripted = ScriptedModel(answer=lambda seen: calls((seen.tool_names[0], {})))
    async with scripted as model, provider_at(model) as provider:
        pieces = await pieces_of(provider, asks(tools=(tool("files.read/all"),)))
    assert model.requests[0].tool_names[0].startswith("files_read_all_")
    assert [part.name for part in calls_of(pieces) if part.name] == ["files.read/all"]


# Why it stopped -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "reason"), [*FINISH_REASONS.items(), ("STOP", "stop"), ("odd", "odd")])
async def test_finish_reasons_are_in_our_words(said: str, reason: str) -> None:
    assert (await read(events(delta(content="hi"), delta(said))))[-1] == FinishPiece(reason=reason)


@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "abort"])
async def test_a_finish_reason_that_means_failure_is_an_error(reason: str) -> None:
    with pytest.raises(ModelError, match=reason) as raised:
        await read(events(delta(content="hi"), delta(reason)))
    assert raised.value.retryable


# Usage --------------------------------------------------------------------------------------------------

COUNTED = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
PLACES: dict[str, tuple[Any, Usage]] = {
    "own chunk": ({"choices": [], "usage": COUNTED}, Usage(input_tokens=5, output_tokens=3, total_tokens=8)),
    "last chunk": ({**delta("stop"), "usage": COUNTED}, Usage(input_tokens=5, output_tokens=3, total_tokens=8)),
    "in the choice": (
        {"choices": [{"delta": {}, "usage": COUNTED}]},
        Usage(input_tokens=5, output_tokens=3, total_tokens=8),
    ),
    "x_groq": (
        {"choices": [], "x_groq": {"usage": COUNTED}},
        Usage(input_tokens=5, output_tokens=3, total_tokens=8),
    ),
    "timings": (
        {"choices": [], "timings": {"cache_n": 2, "prompt_n": 3, "predicted_n": 3}},
        Usage(input_tokens=5, output_tokens=3, total_tokens=8, cached_tokens=2),
    ),
    "cached": (
        {"choices": [], "usage": {**COUNTED, "prompt_tokens_details": {"cached_tokens": 4}}},
        Usage(input_tokens=5, output_tokens=3, total_tokens=8, cached_tokens=4),
    ),
    "cached, DeepSeek": (
        {"choices": [], "usage": {**COUNTED, "prompt_cache_hit_tokens": 4}},
        Usage(input_tokens=5, output_tokens=3, total_tokens=8, cached_tokens=4),
    ),
    "no total": (
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
        Usage(input_tokens=5, output_tokens=3, total_tokens=8),
    ),
    "nonsense": (
        {"choices": [], "usage": {"prompt_tokens": "many", "completion_tokens": 3.0, "total_tokens": -1}},
        Usage(input_tokens=0, output_tokens=3, total_tokens=3),
    ),
}


@pytest.mark.parametrize(("chunk", "usage"), PLACES.values(), ids=list(PLACES))
async def test_usage_is_found_where_servers_put_it(chunk: Any, usage: Usage) -> None:
    assert UsagePiece(usage=usage) in await read(events(delta(content="hi"), delta("stop"), chunk))


async def test_usage_may_be_missing() -> None:
    pieces = await read(says("hi", usage=None))
    assert not any(isinstance(piece, UsagePiece) for piece in pieces)


# Reasoning and extras -----------------------------------------------------------------------------------


async def test_reasoning_under_both_names_is_told_once() -> None:
    pieces = await read(events(delta(reasoning_content="hm", reasoning="hm"), delta("stop", content="hi")))
    assert reasoning_of(pieces) == "hm"


async def test_parts_of_content_are_told_apart() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    pieces = await read(events(delta(content=[thinking, {"type": "text", "text": "hi"}]), delta("stop")))
    assert pieces[:2] == [ReasoningPiece(text="hm"), TextPiece(text="hi")]


async def test_a_refusal_is_the_answer() -> None:
    assert text_of(await read(events(delta(refusal="I cannot."), delta("stop")))) == "I cannot."
