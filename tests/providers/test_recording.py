"""What a model says is written down, and played again piece by piece; keys and requests are not.

Source: protocol.md, "Options" (`record`); the format is our own and described in `sidecar/providers/script.py`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.agent.reply import Reply, ReplyFold
from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.protocol.values import Message, Usage
from sidecar.providers import open_provider
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ModelRequest,
    Provider,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
    WarningPiece,
)
from sidecar.providers.options import ProviderOptions
from sidecar.providers.recording import Recorder
from tests.harness.anthropic_dialect import redacted, text, thinking, tool_use
from tests.harness.asking import anthropic_at, asks, called, pieces_of, provider_at, result, text_of, tool
from tests.harness.model_server import (
    ScriptedModel,
    breaks_off,
    calls,
    delta,
    events,
    fails,
    messages_stream,
    refuses,
    resets,
    says,
    stalls,
)

KEY = "sk-very-secret-1234"
ODD_TEXT = 'ünïcode \\ "quoted"\n\t 🌍 \u2028 \x00 and half a \ud83d pair'


def replayed(file: Path, name: str = "local") -> Provider:
    return open_provider(name, ProviderOptions(file=str(file)))


def folded(pieces: list[ModelPiece]) -> Reply:
    fold = ReplyFold()
    for piece in pieces:
        fold.add(piece)
    return fold.reply()


def told(pieces: list[ModelPiece]) -> list[ModelPiece]:
    """The pieces in their order, without those of which only the sum counts."""
    return [piece for piece in pieces if not isinstance(piece, ToolCallPiece | UsagePiece)]


async def heard(provider: Provider, request: ModelRequest) -> tuple[list[ModelPiece], ModelError | None]:
    """All that a provider says to a request, and how it failed."""
    pieces: list[ModelPiece] = []
    try:
        async for piece in provider.stream(request):
            pieces.append(piece)
    except ModelError as error:
        return pieces, error
    return pieces, None


class Saying:
    """A provider that says what it is given."""

    name = "local"
    context_tokens = None

    def __init__(self, *pieces: ModelPiece) -> None:
        self._pieces = pieces

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        for piece in self._pieces:
            yield piece


async def recorded_and_replayed(file: Path, *pieces: ModelPiece) -> tuple[list[ModelPiece], list[ModelPiece]]:
    recorder: Any = Recorder(Saying(*pieces), file)  # type: ignore[arg-type]
    said = await pieces_of(recorder)
    return said, await pieces_of(replayed(file))


# The same again -----------------------------------------------------------------------------------------

REPLIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "text": (says("It is sunny in Paris.", piece_characters=3), {}),
    "reasoning and text": (says("42", reasoning="six by seven"), {"dialect": "vllm"}),
    "no text, no usage": (says("", usage=None), {}),
    "calls": (calls(("look", {"at": "ciel é"}), ("look", "{not json"), ("rest", {}, "mine"), text="Well."), {}),
    "calls as Ollama sends them": (calls(("look", {"at": 1}), ("look", {"at": 2})), {"dialect": "ollama"}),
    "calls as llama.cpp sends them": (calls(("look", {"at": 1}), ("look", {"at": 2})), {"dialect": "llamacpp"}),
    "to and fro": (
        events(delta(reasoning="a"), delta(content="b"), delta(reasoning="c"), delta("stop", content="d")),
        {},
    ),
    "interleaved calls": (
        events(
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"at"'}}]),
            delta(tool_calls=[{"index": 1, "id": "b", "function": {"name": "rest", "arguments": "{"}}]),
            delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1"}}]),
            delta(tool_calls=[{"index": 1, "function": {"arguments": "}"}}]),
            delta("tool_calls", tool_calls=[{"index": 0, "function": {"arguments": "}"}}]),
        ),
        {},
    ),
    "cut off": (says("It is", finish="length"), {}),
    "filtered": (says("", finish="content_filter"), {}),
    "half a stream": (breaks_off(says("one two three"), after=3), {}),
    "an error in a stream": (fails(says("one two three"), {"code": 500, "message": "no grammar"}, after=3), {}),
    "a lost connection": (resets(says("one two three"), after=3), {}),
    "a refusal": (refuses(429, "slow down", headers={"retry-after": "7"}), {}),
    "too long": (refuses(400, "maximum context length is 8192 tokens", code="context_length_exceeded"), {}),
}


@pytest.mark.parametrize(("reply", "server"), REPLIES.values(), ids=list(REPLIES))
async def test_a_recording_is_played_again_delta_by_delta(
    reply: Any, server: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    request = asks(tools=(tool("look", at=True), tool("rest")))
    async with ScriptedModel(reply, **server) as model, provider_at(model, record=str(file)) as provider:
        pieces, error = await heard(provider, request)
    again, error_again = await heard(replayed(file), request)
    assert told(again) == told(pieces)
    assert folded(again) == folded(pieces)
    if error is None or error_again is None:
        assert error is error_again
    else:
        assert (str(error_again), error_again.kind, error_again.data) == (str(error), error.kind, error.data)


async def test_what_a_provider_wants_back_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    blocks = [
        thinking(ODD_TEXT.replace("\ud83d", "")),
        redacted(),
        text("Well."),
        tool_use("c1", "look", {"at": "é"}),
    ]
    scripted = ScriptedModel(messages_stream(*blocks, stop_reason="tool_use"), dialect="anthropic")
    async with scripted as model, anthropic_at(model, record=str(file)) as provider:
        pieces = await pieces_of(provider)
    again = await pieces_of(replayed(file, "claude"))
    assert told(again) == told(pieces)
    assert folded(again) == folded(pieces)
    assert folded(again).extras["blocks"][:2] == blocks[:2]


async def test_text_of_any_kind_is_kept(tmp_path: Path) -> None:
    pieces = (
        ReasoningPiece(text=ODD_TEXT),
        TextPiece(text=""),
        TextPiece(text=ODD_TEXT),
        FinishPiece(reason="stop"),
    )
    said, again = await recorded_and_replayed(tmp_path / "run.json", *pieces)
    assert said == again == list(pieces)


ARGUMENTS = st.sampled_from(["", "{", '{"a": 1}', "}", "{}", '"'])
CALLS = st.builds(
    ToolCallPiece,
    index=st.sampled_from([None, 0, 1]),
    call_id=st.sampled_from([None, None, "a", "b"]),
    name=st.sampled_from([None, None, "look", "rest"]),
    arguments=ARGUMENTS,
)
PIECES = st.one_of(
    st.builds(TextPiece, text=st.text(max_size=3)),
    st.builds(ReasoningPiece, text=st.text(max_size=3)),
    CALLS,
    st.just(UsagePiece(usage=Usage(input_tokens=1, output_tokens=2, total_tokens=4, cached_tokens=0))),
    st.just(ExtrasPiece(data={"blocks": [1, None, "é"]})),
)


@given(st.lists(PIECES, max_size=8), st.sampled_from(["stop", "length", "toolCalls", "contentFilter"]))
@settings(deadline=None, max_examples=200)
def test_any_stream_makes_the_same_reply_again(pieces: list[ModelPiece], finish: str) -> None:
    async def both() -> tuple[list[ModelPiece], list[ModelPiece]]:
        with TemporaryDirectory() as folder:
            return await recorded_and_replayed(Path(folder) / "run.json", *pieces, FinishPiece(reason=finish))

    said, again = asyncio.run(both())
    deltas = [piece for piece in said if isinstance(piece, TextPiece | ReasoningPiece)]
    assert [piece for piece in again if isinstance(piece, TextPiece | ReasoningPiece)] == deltas
    assert folded(again) == folded(said)


@pytest.mark.parametrize(
    "parts",
    [
        [
            ToolCallPiece(call_id="a", name="look"),
            ToolCallPiece(arguments='{"at":'),
            ToolCallPiece(arguments="1}"),
        ],
        [ToolCallPiece(arguments='{"at":1}'), ToolCallPiece(call_id="a", name="look")],
        [
            ToolCallPiece(call_id="a", name="look", arguments='{"at":'),
            TextPiece(text="well"),
            ToolCallPiece(arguments="1}"),
            ToolCallPiece(call_id="b", name="rest", arguments="{}"),
        ],
        [
            ToolCallPiece(call_id="a", name="look", arguments="{"),
            ToolCallPiece(call_id="b", name="rest", arguments="{"),
            ToolCallPiece(call_id="a", arguments="}"),
            ToolCallPiece(arguments="}"),
        ],
    ],
    ids=range(4),
)
async def test_calls_without_an_index_are_recorded_too(parts: list[ModelPiece], tmp_path: Path) -> None:
    said, again = await recorded_and_replayed(tmp_path / "run.json", *parts, FinishPiece(reason="toolCalls"))
    assert folded(again) == folded(said)


# The file -----------------------------------------------------------------------------------------------


async def test_a_recording_is_a_script_that_people_can_read(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    script = (calls(("look", {"at": "é"}), text="Let me look."), says("It is blue."))
    async with ScriptedModel(*script) as model, provider_at(model, record=str(file)) as provider:
        await pieces_of(provider, asks("what?"))
        await pieces_of(provider, asks("what?", called("look", "call_1_1", at="é"), result("blue", "call_1_1")))
    whole = file.read_text("utf-8")
    assert json.loads(whole)["turns"] == [
        {
            "after": 0,
            "parts": [
                {"text": ["Let ", "me l", "ook."]},
                {"calls": [{"index": 0, "tool": "look", "callId": "call_1_1", "arguments": '{"at": "\\u00e9"}'}]},
            ],
            "finish": "toolCalls",
            "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
        },
        {
            "after": 1,
            "parts": [{"text": ["It i", "s bl", "ue."]}],
            "finish": "stop",
            "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18},
        },
    ]
    assert len(whole.splitlines()) == 4


async def test_a_failure_and_the_second_try_are_both_played(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    script = (refuses(503, "busy"), says("here"), says("bye"))
    async with ScriptedModel(*script) as model, provider_at(model, record=str(file)) as provider:
        for request in (asks(), asks(), asks("hello", Message(role="assistant", content="here"), "and?")):
            await heard(provider, request)
    player = replayed(file)
    with pytest.raises(ModelError, match="busy") as raised:
        await pieces_of(player)
    assert (raised.value.status, raised.value.retryable) == (503, True)
    assert text_of(await pieces_of(player)) == "here"
    assert text_of(await pieces_of(player, asks("a", Message(role="assistant", content="here"), "b"))) == "bye"


async def test_a_later_recording_goes_on_where_the_file_ends(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text('["hand-written", {"text": "too"}]')
    async with ScriptedModel(says("more")) as model, provider_at(model, record=str(file)) as provider:
        await pieces_of(provider)
    turns = json.loads(file.read_text())["turns"]
    assert [turn.get("text") for turn in turns] == ["hand-written", "too", None]
    assert turns[2]["parts"] == [{"text": ["more"]}]


async def test_no_key_no_header_and_no_request_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    options = {"api_key": KEY, "headers": {"X-Secret": "hunter2secret"}, "record": str(file)}
    script = (refuses(400, f"bad key {KEY} or hunter2secret"), says("hi"))
    async with ScriptedModel(*script, api_key=KEY) as model, provider_at(model, **options) as provider:
        for _ in range(2):
            await heard(provider, asks("my private question"))
    written = file.read_text()
    assert "hi" in written and "bad key *** or ***" in written
    assert not any(secret in written for secret in (KEY, "hunter2secret", "private", "X-Secret"))


async def test_an_answer_that_nobody_waits_for_any_more_is_recorded_as_broken_off(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    reply = stalls(says("one two"), after=2)
    said = asyncio.Event()

    async def listen(provider: Provider) -> None:
        async with aclosing(provider.stream(asks())) as pieces:
            async for _ in pieces:
                said.set()

    async with ScriptedModel(reply) as model, provider_at(model, record=str(file)) as provider:
        listening = asyncio.create_task(listen(provider))
        await asyncio.wait_for(said.wait(), 5)
        listening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await listening
        await asyncio.wait_for(model.requests[0].disconnected.wait(), 1)
    (turn,) = json.loads(file.read_text())["turns"]
    assert turn == {"after": 0, "parts": [{"text": ["one "]}], "finish": "brokenOff"}
    assert await pieces_of(replayed(file)) == [TextPiece(text="one ")]


async def test_a_stream_that_is_closed_is_recorded_as_broken_off(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    async with ScriptedModel(says("one two")) as model, provider_at(model, record=str(file)) as provider:
        stream = provider.stream(asks())
        assert await anext(stream) == TextPiece(text="one ")
        await stream.aclose()
    (turn,) = json.loads(file.read_text())["turns"]
    assert turn == {"after": 0, "parts": [{"text": ["one "]}], "finish": "brokenOff"}


async def test_warnings_are_played_again_before_the_answer(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    async with ScriptedModel(says("hi")) as model, provider_at(model, record=str(file)) as provider:
        pieces = await pieces_of(provider, asks(tools=(tool("a.b"),)))
    assert isinstance(pieces[0], WarningPiece)
    assert (await pieces_of(replayed(file)))[0] == pieces[0]


async def test_a_recorder_is_the_provider_in_everything_else(tmp_path: Path) -> None:
    options = {"record": str(tmp_path / "run.json"), "context_tokens": 4096}
    async with ScriptedModel(models=("a", "b")) as model, provider_at(model, **options) as provider:
        assert (provider.name, provider.context_tokens) == ("local", 4096)
        assert [listed.model for listed in await provider.list_models()] == ["local/a", "local/b"]


# What cannot be recorded --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "nothing can be written into"), ("{}", "is required"), ("notes", "is not JSON")]
)
async def test_a_file_that_cannot_be_recorded_into_is_refused_before_anything_is_asked(
    content: str | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / ("missing/run.json" if content is None else "run.json")
    if content is not None:
        file.write_text(content)
    async with ScriptedModel() as model, provider_at(model, record=str(file)) as provider:
        with pytest.raises(ConfigurationError) as raised:
            await pieces_of(provider)
    assert raised.value.path == "providers.local.record"
    assert reason in raised.value.message and "name another file" in raised.value.message
    assert content is None or file.read_text() == content


async def test_an_answer_is_not_lost_with_its_recording(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    reply = stalls(says("hello"), after=2)
    async with ScriptedModel(reply) as model, provider_at(model, record=str(folder / "run.json")) as provider:
        asked = asyncio.create_task(pieces_of(provider))
        await reply.stall.reached.wait()
        folder.rmdir()
        reply.stall.release()
        pieces = await asked
    assert text_of(pieces) == "hello"
    assert isinstance(pieces[-2], WarningPiece) and pieces[-2].code == "recordingFailed"
    assert "gone" in pieces[-2].message and pieces[-1] == FinishPiece(reason="stop")


@pytest.mark.parametrize("record", ["", "script.json"])
def test_a_script_is_not_recorded_into_itself(record: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_provider("mine", ProviderOptions(file="script.json", record=record))
    assert raised.value.path == "providers.mine.record"
