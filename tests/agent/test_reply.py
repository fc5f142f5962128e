"""How pieces of a stream fold into one reply. The shapes are those that servers were seen to send."""

import pytest

from sidecar.agent.reply import ReplyFold, RequestedCall, UnreadableArgumentsError, read_arguments
from sidecar.protocol.values import Usage
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)


def calls_of(*pieces: ModelPiece) -> list[tuple[str | None, str, str]]:
    fold = ReplyFold()
    for piece in pieces:
        fold.add(piece)
    return [(call.call_id, call.name, call.arguments) for call in fold.reply().calls]


def part(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: str = ""
) -> ToolCallPiece:
    return ToolCallPiece(index=index, call_id=call_id, name=name, arguments=arguments)


STREAMS = {
    "as OpenAI sends them: id and name first, then arguments by index": (
        [part(0, "a", "one"), part(0, arguments='{"x"'), part(0, arguments=":1}"), part(1, "b", "two", "{}")],
        [("a", "one", '{"x":1}'), ("b", "two", "{}")],
    ),
    "index always 0, told apart by id": (
        [part(0, "a", "one", "{}"), part(0, "b", "two", "{}")],
        [("a", "one", "{}"), ("b", "two", "{}")],
    ),
    "index missing everywhere": (
        [part(None, "a", "one"), part(arguments='{"x":'), part(arguments="1}"), part(None, "b", "two", "{}")],
        [("a", "one", '{"x":1}'), ("b", "two", "{}")],
    ),
    "whole calls without id or with index always 0, told apart by name": (
        [part(0, None, "one", "{}"), part(0, None, "two", "{}")],
        [(None, "one", "{}"), (None, "two", "{}")],
    ),
    "the same tool twice, whole, without ids": (
        [part(0, None, "one", '{"x":1}'), part(0, None, "one", '{"x":2}')],
        [(None, "one", '{"x":1}'), (None, "one", '{"x":2}')],
    ),
    "the name repeated with every fragment": (
        [part(0, "a", "one", '{"x'), part(0, "a", "one", '":1}')],
        [("a", "one", '{"x":1}')],
    ),
    "the name repeated with every fragment, without id": (
        [part(0, None, "one", '{"x'), part(0, None, "one", '":1}')],
        [(None, "one", '{"x":1}')],
    ),
    "arguments before the name": (
        [part(0, arguments='{"x":1}'), part(0, "a", "one")],
        [("a", "one", '{"x":1}')],
    ),
    "two calls interleaved by index": (
        [part(0, "a", "one"), part(1, "b", "two"), part(0, arguments="{}"), part(1, arguments='{"y":2}')],
        [("a", "one", "{}"), ("b", "two", '{"y":2}')],
    ),
    "two calls interleaved by id with index always 0": (
        [
            part(0, "a", "one"),
            part(0, "b", "two"),
            part(0, "a", arguments="{}"),
            part(0, "b", arguments='{"y":2}'),
        ],
        [("a", "one", "{}"), ("b", "two", '{"y":2}')],
    ),
    "the id only in the second piece": (
        [part(0, None, "one"), part(0, "a", None, "{}")],
        [("a", "one", "{}")],
    ),
    "the name in fragments": (
        [part(0, "a", "get_"), part(0, None, "weather"), part(0, arguments="{}")],
        [("a", "get_weather", "{}")],
    ),
    "one id for two calls, whole": (
        [part(0, "a", "one", '{"x":1}'), part(1, "a", "one", '{"x":2}'), part(2, "a", "two", "{}")],
        [("a", "one", '{"x":1}'), ("a", "one", '{"x":2}'), ("a", "two", "{}")],
    ),
    "one id for two calls, with index always 0": (
        [part(0, "a", "one", '{"x":1}'), part(0, "a", "one", '{"x":2}')],
        [("a", "one", '{"x":1}'), ("a", "one", '{"x":2}')],
    ),
    "one id for two calls, in fragments by index": (
        [
            part(0, "a", "one"),
            part(0, arguments='{"x"'),
            part(0, arguments=":1}"),
            part(1, "a", "one"),
            part(1, arguments='{"x":2}'),
            part(2, "a", "two"),
            part(2, "a", arguments="{}"),
        ],
        [("a", "one", '{"x":1}'), ("a", "one", '{"x":2}'), ("a", "two", "{}")],
    ),
    "one call at several indexes, told apart by nothing": (
        [part(0, "a", "one"), part(1, "a", "one", '{"x":1}'), part(2, "a", "one", '{"x":1}')],
        [("a", "one", '{"x":1}')],
    ),
    "id, name and arguments said again at the end": (
        [
            part(0, "a", "one", '{"x"'),
            part(0, "a", None, ":1}"),
            part(0, "a", "one", '{"x":1}'),
            part(0, "a", "one"),
        ],
        [("a", "one", '{"x":1}')],
    ),
    "another id with every fragment": (
        [part(0, "a", "one"), part(0, "b", None, '{"x"'), part(0, "c", None, ":1}"), part(1, "d", "two", "{}")],
        [("a", "one", '{"x":1}'), ("d", "two", "{}")],
    ),
    "an empty-argument call before another of the same index, without ids": (
        [part(0, None, "one"), part(0, None, "two", "{}")],
        [(None, "one", ""), (None, "two", "{}")],
    ),
    "an empty-argument call before another": (
        [part(0, "a", "one"), part(1, "b", "two", "{}")],
        [("a", "one", ""), ("b", "two", "{}")],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_calls_are_gathered_from(name: str) -> None:
    pieces, expected = STREAMS[name]
    assert calls_of(*pieces) == expected


def test_text_reasoning_usage_and_extras_are_kept_apart() -> None:
    fold = ReplyFold()
    usage = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
    for piece in (
        ReasoningPiece(text="hm"),
        TextPiece(text="a"),
        TextPiece(text="b"),
        ExtrasPiece(data={"signature": "s"}),
        UsagePiece(usage=Usage()),
        UsagePiece(usage=usage),
        FinishPiece(reason="stop"),
    ):
        fold.add(piece)
    reply = fold.reply()
    assert (reply.text, reply.reasoning, reply.finish) == ("ab", "hm", "stop")
    assert (reply.usage, reply.extras, reply.calls) == (usage, {"signature": "s"}, ())


def test_a_fold_is_empty_until_something_comes_that_a_second_try_would_repeat() -> None:
    fold = ReplyFold()
    fold.add(UsagePiece(usage=Usage()))
    assert fold.is_empty
    fold.add(part(0, "a", "one"))
    assert not fold.is_empty
    assert fold.reply().calls == (RequestedCall(call_id="a", name="one", arguments=""),)


@pytest.mark.parametrize("text", ["", "  ", "{}", "\n{}\n"])
def test_arguments_that_were_never_sent_are_an_empty_object(text: str) -> None:
    assert read_arguments(text).value == {}


def test_an_object_inside_a_json_string_is_opened_once() -> None:
    opened = read_arguments('"{\\"x\\": 1}"')
    assert (opened.value, opened.was_string) == ({"x": 1}, True)


@pytest.mark.parametrize(
    "text", ["{", "[1]", "3", "null", '"x"', '{"x": NaN}', '{"x": 1} {"y": 2}', "[" * 100_000]
)
def test_arguments_that_are_no_object_are_refused_in_words_for_the_model(text: str) -> None:
    with pytest.raises(UnreadableArgumentsError, match="JSON") as raised:
        read_arguments(text)
    assert len(str(raised.value)) < 500
