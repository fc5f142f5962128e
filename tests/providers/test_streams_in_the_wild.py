"""Streams as servers really send them, from the wire to the reply: HTTP, events, chunks, and calls put together.

Source: OpenAI's API reference; what users report of Ollama, vLLM, SGLang, llama.cpp, LocalAI, OpenRouter, Groq,
Gemini, DeepSeek, Zhipu, Moonshot, Poolside and Dynamo; protocol.md, "Decided cases" 1, 2, 4 and 11.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from sidecar.agent.reply import Reply, ReplyFold, UnreadableArgumentsError, read_arguments
from sidecar.protocol.errors import ModelError
from sidecar.protocol.values import Usage
from tests.harness.asking import anthropic_at, asks, provider_at
from tests.harness.host import sidecar
from tests.harness.model_server import (
    Reply as Scripted,
)
from tests.harness.model_server import (
    ScriptedModel,
    breaks_off,
    calls,
    delta,
    disconnects,
    events,
    fails,
    raw,
    resets,
    says,
    stalls,
    typed_events,
    whole,
)

Calls = list[tuple[str | None, str, str]]


async def folded(scripted: Scripted, **options: Any) -> tuple[Reply, ModelError | None]:
    """What has become of a stream, and how it failed."""
    fold = ReplyFold()
    async with ScriptedModel(scripted) as model, provider_at(model, **options) as provider:
        try:
            async for piece in provider.stream(asks()):
                fold.add(piece)
        except ModelError as error:
            return fold.reply(), error
    return fold.reply(), None


async def reply_of(scripted: Scripted) -> Reply:
    reply, error = await folded(scripted)
    assert error is None
    return reply


def listed(reply: Reply) -> Calls:
    return [(call.call_id, call.name, call.arguments) for call in reply.calls]


def part(name: str | None = None, arguments: Any = "", **fields: Any) -> dict[str, Any]:
    """A part of a call as a chunk holds it."""
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return {**fields, "function": function}


def stream_of(parts: Sequence[Any], finish: str | None = "tool_calls") -> Scripted:
    """A stream with a chunk for each part; several parts in a list share one."""
    chunks = [delta(tool_calls=p if isinstance(p, list) else [p]) for p in parts]
    return events(*chunks, delta(finish))


# Calls --------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[Sequence[Any], Calls]] = {
    "by id, then index": (
        [
            part("look", id="a", index=0),
            part("rest", id="b", index=1),
            part(arguments='{"at"', index=0),
            part(arguments="{}", id="b", index=0),
            part(arguments=": 1}", index=0),
        ],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "by nothing but their order": (
        [
            part("look", id="a"),
            part(arguments='{"at"'),
            part(arguments=": 1}"),
            part("rest", id="b"),
            part(arguments="{}"),
        ],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "index always 0, with ids": (
        [part("look", '{"at": 1}', id="a", index=0), part("look", '{"at": 2}', id="b", index=0)],
        [("a", "look", '{"at": 1}'), ("b", "look", '{"at": 2}')],
    ),
    "index always 0, in fragments": (
        [
            part("look", id="a", index=0),
            part(arguments='{"at": 1}', index=0),
            part("rest", id="b", index=0),
            part(arguments="{}", index=0),
        ],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "index always 0, without ids": (
        [part("look", '{"at": 1}', index=0), part("look", '{"at": 2}', index=0), part("rest", "{}", index=0)],
        [(None, "look", '{"at": 1}'), (None, "look", '{"at": 2}'), (None, "rest", "{}")],
    ),
    "neither index nor id": (
        [part("look", '{"at": 1}'), part("look", '{"at": 2}')],
        [(None, "look", '{"at": 1}'), (None, "look", '{"at": 2}')],
    ),
    "the head of the second call with the index of the first": (
        [
            part("look", id="a", index=0),
            part(arguments='{"at": 1}', index=0),
            part("rest", id="b", index=0),
            part(arguments="{}", id="b", index=1),
        ],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "arguments before the name": (
        [part(arguments='{"at"', index=0), part(arguments=": 1}", index=0), part("look", id="a", index=0)],
        [("a", "look", '{"at": 1}')],
    ),
    "interleaved, by index": (
        [
            [part("look", id="a", index=0), part("rest", id="b", index=1)],
            part(arguments='{"at"', index=0),
            part(arguments="{", index=1),
            [part(arguments="}", index=1), part(arguments=": 1}", index=0)],
        ],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "interleaved, by id": (
        [
            part("look", id="a"),
            part("rest", id="b"),
            part(arguments='{"at"', id="a"),
            part(arguments="{}", id="b"),
            part(arguments=": 1}", id="a"),
        ],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "whole arguments in one piece": (
        [part("look", '{"at": 1}', id="a", index=0)],
        [("a", "look", '{"at": 1}')],
    ),
    "arguments as an object": ([part("look", {"at": 1}, id="a", index=0)], [("a", "look", '{"at": 1}')]),
    "all calls in one chunk": (
        [[part("look", '{"at": 1}', id="a", index=0), part("rest", "{}", id="b", index=1)]],
        [("a", "look", '{"at": 1}'), ("b", "rest", "{}")],
    ),
    "a call without arguments before another": (
        [part("rest", id="a", index=0), part("look", '{"at": 1}', id="b", index=1)],
        [("a", "rest", ""), ("b", "look", '{"at": 1}')],
    ),
    "arguments null": ([part("rest", None, id="a", index=0)], [("a", "rest", "")]),
    "one id for parallel calls": (
        [part("look", '{"at": 1}', id="a", index=0), part("look", '{"at": 2}', id="a", index=1)],
        [("a", "look", '{"at": 1}'), ("a", "look", '{"at": 2}')],
    ),
    "one call at two indexes": (
        [part("look", id="a", index=0), part("look", '{"at": 1}', id="a", index=1)],
        [("a", "look", '{"at": 1}')],
    ),
    "one call said twice": (
        [part("look", '{"at": 1}', id="a", index=0), part("look", '{"at": 1}', id="a", index=1)],
        [("a", "look", '{"at": 1}')],
    ),
    "another id with every fragment": (
        [
            part("look", id="a", index=0),
            part(arguments='{"at"', id="b", index=0),
            part(arguments=": 1}", id="c", index=0),
        ],
        [("a", "look", '{"at": 1}')],
    ),
    "the id repeated, empty and null": (
        [
            part("look", id="a", index=0),
            part(arguments='{"at"', id="a", index=0),
            part(arguments=": ", id="", index=0),
            part(arguments="1}", id=None, index=0),
        ],
        [("a", "look", '{"at": 1}')],
    ),
    "the name repeated with every fragment": (
        [part("look", '{"at"', id="a", index=0), part("look", ": 1}", id="a", index=0)],
        [("a", "look", '{"at": 1}')],
    ),
}


@pytest.mark.parametrize(("parts", "expected"), CALLS.values(), ids=list(CALLS))
async def test_calls_are_put_together(parts: Sequence[Any], expected: Calls) -> None:
    assert listed(await reply_of(stream_of(parts))) == expected


async def test_the_older_way_to_call_is_a_call_too() -> None:
    head, rest = {"name": "look", "arguments": ""}, {"arguments": '{"at": 1}'}
    older = events(delta(function_call=head), delta(function_call=rest), delta("function_call"))
    assert listed(await reply_of(older)) == [(None, "look", '{"at": 1}')]


@pytest.mark.parametrize("text", ["", "{}", " {} ", '""', '"{}"'])
async def test_arguments_that_hold_nothing_are_an_empty_object(text: str) -> None:
    reply = await reply_of(stream_of([part("rest", text, id="a", index=0)]))
    assert read_arguments(reply.calls[0].arguments).value == {}


@pytest.mark.parametrize("text", ['{"at": ', "[]", "null", '{"at": 1}{"at": 2}', "look at it"])
async def test_arguments_that_are_no_object_are_kept_to_be_told_to_the_model(text: str) -> None:
    reply = await reply_of(stream_of([part("look", text, id="a", index=0)]))
    assert reply.calls[0].arguments == text
    with pytest.raises(UnreadableArgumentsError):
        read_arguments(reply.calls[0].arguments)


async def test_calls_count_and_not_the_finish_reason() -> None:
    stopped = await reply_of(stream_of([part("look", "{}", id="a", index=0)], finish="stop"))
    assert (len(stopped.calls), stopped.finish) == (1, "stop")
    claimed = await reply_of(events(delta(content="done"), delta("tool_calls")))
    assert (claimed.calls, claimed.text, claimed.finish) == ((), "done", "toolCalls")


async def test_text_and_reasoning_around_calls_are_kept() -> None:
    chunks = [
        delta(reasoning_content="hm"),
        delta(content="Let me "),
        delta(tool_calls=[part("look", '{"at"', id="a", index=0)]),
        delta(content="see."),
        delta(tool_calls=[part(arguments=": 1}", index=0)]),
        delta("tool_calls"),
    ]
    reply = await reply_of(events(*chunks))
    assert (reply.text, reply.reasoning) == ("Let me see.", "hm")
    assert listed(reply) == [("a", "look", '{"at": 1}')]


# Usage and ends -----------------------------------------------------------------------------------------

COUNTED = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
USAGE = Usage(input_tokens=5, output_tokens=3, total_tokens=8)


@pytest.mark.parametrize(
    ("chunks", "usage"),
    [
        ([delta(content="hi"), delta("stop"), {"choices": [], "usage": COUNTED}], USAGE),
        ([delta(content="hi"), {**delta("stop"), "usage": COUNTED}], USAGE),
        (
            [
                {**delta(content="hi"), "usage": {**COUNTED, "completion_tokens": 1}},
                {**delta("stop"), "usage": COUNTED},
            ],
            USAGE,
        ),
        ([delta(content="hi"), delta("stop")], None),
        ([{**delta(content="hi"), "usage": None}, {**delta("stop"), "usage": None}], None),
    ],
    ids=["in its own chunk", "in the last chunk", "in every chunk", "nowhere", "null"],
)
async def test_usage_may_stand_anywhere_or_nowhere(chunks: list[Any], usage: Usage | None) -> None:
    reply = await reply_of(events(*chunks))
    assert (reply.text, reply.finish, reply.usage) == ("hi", "stop", usage)


async def test_done_may_be_missing() -> None:
    reply = await reply_of(events(delta(content="hi"), delta("stop"), done=False))
    assert (reply.text, reply.finish) == ("hi", "stop")


async def test_a_finish_reason_that_comes_twice_repeats_no_call() -> None:
    last = delta("tool_calls", content="")
    chunks = [delta(tool_calls=[part("look", "{}", id="a", index=0)]), last, {**last, "usage": COUNTED}]
    assert listed(await reply_of(events(*chunks))) == [("a", "look", "{}")]


@pytest.mark.parametrize(
    ("lose", "has_failed"),
    [(breaks_off, False), (disconnects, True), (resets, True)],
    ids=["end", "close", "reset"],
)
async def test_what_came_of_a_stream_that_ends_half_way_is_kept_and_is_no_end(lose: Any, has_failed: bool) -> None:
    reply, error = await folded(lose(says("one two three", piece_characters=4), after=3))
    assert (reply.text, reply.finish) == ("one two ", None)
    assert (error is not None and error.retryable) == has_failed


async def test_what_came_of_a_stream_that_stalls_is_kept() -> None:
    reply, error = await folded(stalls(says("one two", piece_characters=4), after=2), idle_timeout_secs=0.2)
    assert (reply.text, reply.finish) == ("one ", None)
    assert error is not None and (error.kind, error.retryable) == ("modelTimeout", True)


async def test_an_error_object_inside_a_good_stream_is_an_error() -> None:
    broken = fails(says("one two", piece_characters=4), {"code": 500, "message": "no grammar fits"}, after=2)
    reply, error = await folded(broken)
    assert (reply.text, reply.finish) == ("one ", None)
    assert error is not None and "no grammar fits" in error.message


# Events -------------------------------------------------------------------------------------------------

CHUNKS = [
    delta(content="ciel é 🌍 "),
    delta(tool_calls=[part("look", '{"at": "ciel é"}', id="a", index=0)]),
    delta("tool_calls"),
]
LINES = [json.dumps(chunk, ensure_ascii=False) for chunk in CHUNKS]


def is_whole_reply(reply: Reply) -> bool:
    return (reply.text, listed(reply), reply.finish) == (
        "ciel é 🌍 ",
        [("a", "look", '{"at": "ciel é"}')],
        "toolCalls",
    )


SHAPES: dict[str, str] = {
    "as OpenAI sends them": "".join(f"data: {line}\n\n" for line in LINES) + "data: [DONE]\n\n",
    "comments between": "".join(f": OPENROUTER PROCESSING\n\n: ping\ndata: {line}\n\n" for line in LINES),
    "Windows line ends": "".join(f"data: {line}\r\n\r\n" for line in LINES) + "data: [DONE]\r\n\r\n",
    "old Macintosh line ends": "".join(f"data: {line}\r\r" for line in LINES),
    "data on several lines": "".join(
        "data: " + json.dumps(chunk, indent=1).replace("\n", "\ndata: ") + "\n\n" for chunk in CHUNKS
    ),
    "no space after the colon": "".join(f"data:{line}\n\n" for line in LINES),
    "other fields beside": "".join(
        f"event: message\nid: {n}\nretry: 5\ndata: {line}\n\n" for n, line in enumerate(LINES)
    ),
    "no empty line at the end": "\n\n".join(f"data: {line}" for line in LINES) + "\n\n" + "data: [DONE]",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=list(SHAPES))
async def test_events_are_read_in_any_shape(text: str) -> None:
    assert is_whole_reply(await reply_of(raw(text)))


@pytest.mark.parametrize("size", [1, 2, 3, 5, 17, 1000, 100_000])
async def test_events_may_be_split_at_any_byte_and_come_several_at_once(size: int) -> None:
    body = SHAPES["Windows line ends"].encode()
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert is_whole_reply(await reply_of(raw(*pieces)))


@pytest.mark.parametrize("cut", range(SHAPES["as OpenAI sends them"].encode().index(b"\n\n") + 3))
async def test_the_first_event_may_be_cut_anywhere(cut: int) -> None:
    body = SHAPES["as OpenAI sends them"].encode()
    assert is_whole_reply(await reply_of(raw(body[:cut], body[cut:]) if cut else raw(body)))


async def test_a_whole_answer_instead_of_a_stream_is_the_same_reply() -> None:
    reply = await reply_of(whole(calls(("look", {"at": 1}), ("look", {"at": 2}), text="Well.", reasoning="hm")))
    assert (reply.text, reply.reasoning, reply.finish) == ("Well.", "hm", "toolCalls")
    assert [(name, json.loads(arguments)) for _, name, arguments in listed(reply)] == [
        ("look", {"at": 1}),
        ("look", {"at": 2}),
    ]


# Through the whole sidecar ------------------------------------------------------------------------------


def options(model: ScriptedModel, **provider: Any) -> dict[str, Any]:
    return {"model": "test/scripted", "providers": {"test": {"baseUrl": model.base_url, **provider}}}


async def test_calls_that_share_an_id_all_run_and_leave_a_history_that_providers_take(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    both = [part("read_file", {"path": name}, id="same", index=n) for n, name in enumerate(("a.txt", "b.txt"))]
    again = [part("read_file", {"path": "a.txt"}, id="same", index=0)]
    script = (stream_of([both]), stream_of([again]), says("one and two"))
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        result = await host.submit("read them")
    assert result["message"]["content"] == "one and two"
    completed = {event["callId"]: event["output"] for event in host.kinds("toolExecutionCompleted")}
    assert len(completed) == 3
    assert sorted(str(output).strip()[-3:] for output in completed.values()) == ["one", "one", "two"]


async def test_calls_of_the_messages_api_that_share_an_id_all_run_too(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "b.txt").write_text("two")
    blocks: list[dict[str, Any]] = []
    for index, name in enumerate(("a.txt", "b.txt")):
        begun = {"type": "tool_use", "id": "read:0", "name": "read_file", "input": {}}
        argument = {"type": "input_json_delta", "partial_json": json.dumps({"path": name})}
        blocks += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            {"type": "content_block_delta", "index": index, "delta": argument},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
    script = (typed_events(*blocks, end, {"type": "message_stop"}), says("one and two"))
    async with (
        ScriptedModel(*script, dialect="anthropic") as model,
        sidecar(options(model, api="anthropic"), folders=[tmp_path]) as host,
    ):
        assert (await host.submit("read them"))["message"]["content"] == "one and two"
    outputs = [str(event["output"]).strip()[-3:] for event in host.kinds("toolExecutionCompleted")]
    assert sorted(outputs) == ["one", "two"]


async def test_an_answer_that_claims_calls_and_has_none_ends_the_run() -> None:
    async with ScriptedModel(says("done", finish="tool_calls")) as model, sidecar(options(model)) as host:
        result = await host.submit("go")
    assert (result["stopReason"], result["turns"]) == ("stop", 1)


async def test_arguments_that_are_no_json_are_told_to_the_model(tmp_path: Any) -> None:
    script = (calls(("read_file", '{"path": "a.')), says("sorry"))
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        assert (await host.submit("go"))["message"]["content"] == "sorry"
    told = model.requests[1].messages[-1]
    assert told["role"] == "tool" and "JSON" in told["content"]
    assert model.requests[1].messages[-2]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_both_apis_fold_alike() -> None:
    scripted = calls(("look", {"at": "é"}), ("rest", {}), text="Well.", reasoning="hm")
    fold = ReplyFold()
    async with ScriptedModel(scripted, dialect="anthropic") as model, anthropic_at(model) as provider:
        async for piece in provider.stream(asks()):
            fold.add(piece)
    other = ReplyFold()
    async with ScriptedModel(scripted, dialect="vllm") as model, provider_at(model) as provider:
        async for piece in provider.stream(asks()):
            other.add(piece)
    ours, theirs = fold.reply(), other.reply()
    assert (ours.text, ours.reasoning, ours.calls, ours.finish) == (
        theirs.text,
        theirs.reasoning,
        theirs.calls,
        theirs.finish,
    )
