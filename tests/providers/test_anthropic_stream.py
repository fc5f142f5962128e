"""Answers of the Messages API are read block by block, and what it wants back is kept byte for byte.

Source: Anthropic's API reference, version 2023-06-01 (streaming, thinking, tool use, stop reasons, usage);
protocol.md, "Decided cases" 10; the streams of other servers with this API as their users report them.
"""

import json
from typing import Any

import pytest

from sidecar.agent.reply import Reply, ReplyFold
from sidecar.protocol.errors import ModelError
from sidecar.protocol.values import Message, ProviderExtras, ToolCall, Usage
from sidecar.providers.anthropic_events import STOP_REASONS
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from tests.harness.anthropic_dialect import redacted, stream, text, thinking, tool_use
from tests.harness.asking import anthropic_at, asks, calls_of, pieces_of, reasoning_of, result, text_of, tool
from tests.harness.model_server import (
    Reply as Scripted,
)
from tests.harness.model_server import (
    ScriptedModel,
    breaks_off,
    calls,
    messages_stream,
    raw,
    says,
    stalls,
    trickles,
    typed_events,
    whole,
)


async def read(reply: Scripted, **server: Any) -> list[ModelPiece]:
    async with ScriptedModel(reply, dialect="anthropic", **server) as model, anthropic_at(model) as provider:
        return await pieces_of(provider)


def folded(pieces: list[ModelPiece]) -> Reply:
    fold = ReplyFold()
    for piece in pieces:
        fold.add(piece)
    return fold.reply()


def remembered(reply: Reply) -> Message:
    """The assistant message that the loop makes of a reply by provider `claude`."""
    given = tuple(
        ToolCall(call_id=call.call_id or "", tool_name=call.name, input=json.loads(call.arguments or "{}"))
        for call in reply.calls
    )
    return Message(
        role="assistant",
        content=reply.text,
        reasoning=reply.reasoning or None,
        tool_calls=given or None,
        provider_extras=None if reply.extras is None else ProviderExtras(provider="claude", data=reply.extras),
    )


# Blocks -------------------------------------------------------------------------------------------------


async def test_text_streams_in_pieces_with_usage_and_finish_last() -> None:
    pieces = await read(says("It is sunny in Paris."))
    assert text_of(pieces) == "It is sunny in Paris."
    assert sum(isinstance(piece, TextPiece) for piece in pieces) == 6
    assert pieces[-2:] == [
        UsagePiece(usage=Usage(input_tokens=11, output_tokens=7, total_tokens=18)),
        FinishPiece(reason="stop"),
    ]


async def test_parallel_calls_keep_their_names_ids_and_arguments() -> None:
    pieces = await read(calls(("look", {"at": "sky"}), ("rest", {}), text="Let me see."))
    assert [(c.call_id, c.name, c.arguments) for c in folded(pieces).calls] == [
        ("call_1_1", "look", '{"at": "sky"}'),
        ("call_1_2", "rest", "{}"),
    ]
    assert text_of(pieces) == "Let me see."
    assert pieces[-1] == FinishPiece(reason="toolCalls")


async def test_a_renamed_tool_comes_back_under_its_own_name() -> None:
    scripted = ScriptedModel(answer=lambda seen: calls((seen.tool_names[0], {})), dialect="anthropic")
    async with scripted as model, anthropic_at(model) as provider:
        pieces = await pieces_of(provider, asks(tools=(tool("files.read/all"),)))
    assert model.requests[0].tool_names[0].startswith("files_read_all_")
    assert [part.name for part in calls_of(pieces) if part.name] == ["files.read/all"]


async def test_thinking_is_kept_apart_from_text() -> None:
    pieces = await read(says("42", reasoning="six by seven"))
    assert (reasoning_of(pieces), text_of(pieces)) == ("six by seven", "42")
    assert [type(piece) for piece in pieces if isinstance(piece, ReasoningPiece | TextPiece)] == [
        *[ReasoningPiece] * 3,
        TextPiece,
    ]


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 64])
async def test_events_do_not_depend_on_how_bytes_arrive(chunk_bytes: int) -> None:
    pieces = await read(says("héllo wörld 🌍", reasoning="hm"), chunk_bytes=chunk_bytes)
    assert text_of(pieces) == "héllo wörld 🌍"
    assert pieces[-1] == FinishPiece(reason="stop")


async def test_an_answer_without_streaming_is_read_all_the_same() -> None:
    reply = whole(calls(("look", {"n": 1}), ("look", {"n": 2}), text="Let me see.", reasoning="hm"))
    pieces = await read(reply)
    assert (reasoning_of(pieces), text_of(pieces)) == ("hm", "Let me see.")
    assert [(c.call_id, json.loads(c.arguments)) for c in folded(pieces).calls] == [
        ("call_1_1", {"n": 1}),
        ("call_1_2", {"n": 2}),
    ]
    assert folded(pieces).usage == Usage(input_tokens=11, output_tokens=7, total_tokens=18)
    assert pieces[-1] == FinishPiece(reason="toolCalls")


async def test_arguments_that_come_whole_at_the_beginning_of_their_block_are_taken() -> None:
    block = {"type": "content_block_start", "index": 0, "content_block": tool_use("c1", "look", {"at": "é"})}
    end = {"type": "content_block_stop", "index": 0}
    assert calls_of(await read(typed_events(block, end, {"type": "message_stop"}))) == [
        ToolCallPiece(index=0, call_id="c1", name="look"),
        ToolCallPiece(index=0, arguments='{"at": "é"}'),
    ]


async def test_events_without_a_name_and_of_other_kinds_are_read_or_passed_over() -> None:
    events = [{"type": "novelty", "index": 0}, *stream(text("hi"), piece_characters=9)]
    events.insert(4, {"type": "content_block_delta", "index": 0, "delta": {"type": "novel_delta", "text": 3}})
    events.insert(
        4, {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}}
    )
    unnamed = raw("".join(f"data: {json.dumps(event)}\n\n" for event in events))
    assert folded(await read(unnamed)).text == "hi"


ODD_EVENTS: dict[str, Any] = {
    "no type": {},
    "no block": {"type": "content_block_start", "index": 1},
    "a block of nothing": {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "text", "text": None},
    },
    "no delta": {"type": "content_block_delta", "index": 1},
    "a delta of nothing": {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "text_delta", "text": None},
    },
    "an end of nothing": {"type": "content_block_stop", "index": 7},
    "no index": {"type": "content_block_stop"},
    "no usage": {"type": "message_delta", "delta": None, "usage": None},
    "usage of nothing": {"type": "message_delta", "delta": {}, "usage": {"output_tokens": None}},
    "no message": {"type": "message_start", "message": None},
}


@pytest.mark.parametrize("odd", ODD_EVENTS.values(), ids=list(ODD_EVENTS))
async def test_an_event_that_says_nothing_makes_no_piece(odd: Any) -> None:
    events = stream(text("hi"), piece_characters=9)
    expected = await read(typed_events(*events))
    named = typed_events(*events[:5], {"type": "x", **odd}, *events[5:])
    assert [piece for piece in await read(named) if not isinstance(piece, ExtrasPiece)] == expected


# Ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("said", "reason"), [*STOP_REASONS.items(), ("pause_turn", "pause_turn")])
async def test_stop_reasons_are_in_our_words(said: str, reason: str) -> None:
    assert (await read(messages_stream(text("hi"), stop_reason=said)))[-1] == FinishPiece(reason=reason)


@pytest.mark.parametrize(
    ("block", "reason"), [(text("hi"), "stop"), (tool_use("c1", "look", {}), "toolCalls")], ids=["text", "call"]
)
async def test_an_end_without_a_stop_reason_is_one_all_the_same(block: Any, reason: str) -> None:
    assert (await read(messages_stream(block, stop_reason=None)))[-1] == FinishPiece(reason=reason)


async def test_the_closing_event_may_be_missing() -> None:
    assert (await read(typed_events(*stream(text("hi"))[:-1])))[-1] == FinishPiece(reason="stop")


async def test_a_stream_that_ends_half_way_has_no_finish() -> None:
    pieces = await read(breaks_off(says("one two three"), after=5))
    assert [piece.text for piece in pieces if isinstance(piece, TextPiece)] == ["one ", "two "]
    assert not any(isinstance(piece, FinishPiece) for piece in pieces)


async def test_pings_are_silence() -> None:
    reply = trickles(says("hello"), b'event: ping\ndata: {"type": "ping"}\n\n', after=3)
    scripted = ScriptedModel(reply, dialect="anthropic")
    async with scripted as model, anthropic_at(model, idle_timeout_secs=0.3) as provider:
        with pytest.raises(ModelError) as raised:
            await pieces_of(provider)
    assert (raised.value.kind, raised.value.retryable) == ("modelTimeout", True)


async def test_closing_the_stream_ends_the_request_at_once() -> None:
    reply = stalls(says("hello world"), after=4)
    async with ScriptedModel(reply, dialect="anthropic") as model, anthropic_at(model) as provider:
        answer = provider.stream(asks())
        while not isinstance(await anext(answer), TextPiece):
            pass
        await answer.aclose()
        await model.requests[0].disconnected.wait()


# Usage --------------------------------------------------------------------------------------------------


async def test_what_the_cache_holds_is_input_and_counted_apart() -> None:
    cache = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 2000}
    pieces = await read(messages_stream(text("hi"), usage=(11, 7), cache=cache))
    assert folded(pieces).usage == Usage(input_tokens=2111, output_tokens=7, total_tokens=2118, cached_tokens=2000)


async def test_later_counts_replace_earlier_ones_and_missing_ones_do_not() -> None:
    events = stream(text("hi"), usage=(11, 7))
    delta = next(event for event in events if event["type"] == "message_delta")
    delta["usage"] = {
        "input_tokens": 15,
        "output_tokens": 9,
        "cache_read_input_tokens": None,
        "server_tool_use": {},
    }
    assert folded(await read(typed_events(*events))).usage == Usage(
        input_tokens=15, output_tokens=9, total_tokens=24
    )


# What goes back -----------------------------------------------------------------------------------------

SECRET_THOUGHT = 'ünïcode \\ "quotes"\n\t 🌍  and   spaces '
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "a thought before a call": [thinking(SECRET_THOUGHT), tool_use("c1", "look", {"at": "sky"})],
    "a thought that nobody may read": [redacted(), thinking("hm"), text("Well."), tool_use("c1", "look", {})],
    "thoughts between calls": [
        thinking("first"),
        tool_use("c1", "look", {}),
        thinking("second"),
        text("and then"),
        tool_use("c2", "look", {}),
    ],
    "a thought that is not shown": [thinking(""), tool_use("c1", "look", {})],
    "text in several blocks": [
        thinking("a"),
        text("One. "),
        thinking("b"),
        text("Two."),
        tool_use("c1", "look", {}),
    ],
}


@pytest.mark.parametrize("blocks", ANSWERS.values(), ids=list(ANSWERS))
async def test_thoughts_go_back_byte_for_byte_and_in_their_place(blocks: list[dict[str, Any]]) -> None:
    first = messages_stream(*blocks, stop_reason="tool_use")
    parameters = {"thinking": {"type": "adaptive"}}
    scripted = ScriptedModel(first, says("done"), dialect="anthropic")
    async with scripted as model, anthropic_at(model, parameters=parameters) as provider:
        reply = folded(await pieces_of(provider))
        results = [result("blue", call.call_id or "") for call in reply.calls]
        await pieces_of(provider, asks("look", remembered(reply), *results))
    assert model.requests[1].messages[1] == {"role": "assistant", "content": blocks}


async def test_thoughts_go_to_the_provider_that_sent_them_and_to_no_other() -> None:
    first = messages_stream(thinking("hm"), tool_use("c1", "look", {}), stop_reason="tool_use")
    scripted = ScriptedModel(first, says("done"), dialect="anthropic")
    async with scripted as model, anthropic_at(model) as provider, anthropic_at(model, "another") as another:
        message = remembered(folded(await pieces_of(provider)))
        await pieces_of(another, asks("look", message, result("blue")))
    assert model.requests[1].messages[1]["content"] == [tool_use("c1", "look", {})]


async def test_an_answer_without_thoughts_leaves_nothing_to_go_back() -> None:
    pieces = await read(calls(("look", {}), text="Let me see."))
    assert not any(isinstance(piece, ExtrasPiece) for piece in pieces)


async def test_blocks_of_tools_that_the_server_runs_itself_go_back_too() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [{"encrypted_content": "x"}],
    }
    delta = {"type": "input_json_delta", "partial_json": '{"query": "sky"}'}
    said = {"type": "content_block_start", "index": 2, "content_block": text("It is blue.")}
    pieces = await read(
        typed_events(
            {"type": "content_block_start", "index": 0, "content_block": use},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": found},
            {"type": "content_block_stop", "index": 1},
            said,
            {"type": "message_stop"},
        )
    )
    reply = folded(pieces)
    assert reply.extras == {"blocks": [{**use, "input": {"query": "sky"}}, found, {"textCharacters": 11}]}
    assert (reply.text, reply.calls) == ("It is blue.", ())
