"""A script is played turn by turn, and a bad one is refused with file and line.

Source: protocol.md, "Model providers"; the format is our own and described in `sidecar/providers/script.py`.
"""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import Message, Usage
from sidecar.providers import open_provider
from sidecar.providers import script as script_module
from sidecar.providers.base import (
    FinishPiece,
    ModelPiece,
    Provider,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from sidecar.providers.options import ProviderOptions
from tests.harness.asking import asks, called, pieces_of, result, text_of


def playing(script: Any, folder: Path) -> Provider:
    """A provider that plays the script, which is JSON text or a value."""
    file = folder / "script.json"
    file.write_text(script if isinstance(script, str) else json.dumps(script), encoding="utf-8")
    return open_provider("demo", ProviderOptions(file=str(file)))


async def turn(provider: Provider, number: int = 0) -> list[ModelPiece]:
    """The turn with that many answers before it."""
    history = [Message(role="assistant", content="…")] * number
    return await pieces_of(provider, asks("go", *history))


# Playing ------------------------------------------------------------------------------------------------


async def test_a_turn_is_played_in_the_order_of_a_models_answer(tmp_path: Path) -> None:
    full = {
        "reasoning": "hm, well",
        "text": "Let me look. ",
        "calls": [
            {"tool": "look", "input": {"at": "é"}},
            {"tool": "look", "arguments": '{"at": ', "callId": "mine"},
            {"tool": "rest"},
        ],
        "usage": {"inputTokens": 10, "outputTokens": 5, "cachedTokens": 2},
    }
    assert await turn(playing({"turns": [full]}, tmp_path)) == [
        ReasoningPiece(text="hm, "),
        ReasoningPiece(text="well"),
        TextPiece(text="Let "),
        TextPiece(text="me "),
        TextPiece(text="look. "),
        ToolCallPiece(index=0, call_id="call_1_1", name="look", arguments='{"at": "é"}'),
        ToolCallPiece(index=1, call_id="mine", name="look", arguments='{"at": '),
        ToolCallPiece(index=2, call_id="call_1_3", name="rest", arguments="{}"),
        UsagePiece(usage=Usage(input_tokens=10, output_tokens=5, total_tokens=15, cached_tokens=2)),
        FinishPiece(reason="toolCalls"),
    ]


async def test_a_script_may_be_as_short_as_a_list_of_texts(tmp_path: Path) -> None:
    provider = playing(["one two", "three"], tmp_path)
    assert await turn(provider, 0) == [TextPiece(text="one "), TextPiece(text="two"), FinishPiece(reason="stop")]
    assert text_of(await turn(provider, 1)) == "three"


async def test_deltas_that_are_written_out_are_played_as_written(tmp_path: Path) -> None:
    pieces = await turn(playing([{"text": ["a b", "", " c"], "finish": "length"}], tmp_path))
    texts = [TextPiece(text="a b"), TextPiece(text=""), TextPiece(text=" c")]
    assert pieces == [*texts, FinishPiece(reason="length")]


@pytest.mark.parametrize("text", ["", " leading and trailing ", "line\n\n  indented\n", "🌍 é"])
async def test_split_text_is_the_same_text(text: str, tmp_path: Path) -> None:
    assert text_of(await turn(playing([text], tmp_path))) == text


async def test_the_turn_follows_from_the_history_alone(tmp_path: Path) -> None:
    provider = playing([{"calls": [{"tool": "look"}]}, "seen", "bye"], tmp_path)
    history = (called("look"), result("blue"))
    assert text_of(await pieces_of(provider, asks("look", *history))) == "seen"
    assert text_of(await pieces_of(provider, asks("look", *history))) == "seen"
    said = Message(role="assistant", content="seen")
    assert text_of(await pieces_of(provider, asks("look", *history, said, "and?"))) == "bye"


async def test_turns_of_one_place_are_played_one_after_the_other_and_the_last_again(tmp_path: Path) -> None:
    error = {"error": {"message": "busy", "retryable": True}}
    provider = playing([error, {"after": 0, "text": "a"}, {"after": 1, "text": "b"}], tmp_path)
    with pytest.raises(ModelError, match="busy"):
        await turn(provider, 0)
    assert [text_of(await turn(provider, number)) for number in (0, 1, 0)] == ["a", "b", "a"]


async def test_a_call_may_come_in_several_pieces(tmp_path: Path) -> None:
    calls = [
        {"tool": "look", "callId": "c1", "index": 0, "arguments": '{"at"'},
        {"tool": "rest", "callId": "c2", "index": 1, "arguments": ""},
        {"index": 0, "arguments": ": 1}"},
        {"callId": "c2", "arguments": "{}"},
    ]
    assert await turn(playing([{"parts": [{"calls": calls}, {"calls": [{"arguments": " "}]}]}], tmp_path)) == [
        ToolCallPiece(index=0, call_id="c1", name="look", arguments='{"at"'),
        ToolCallPiece(index=1, call_id="c2", name="rest"),
        ToolCallPiece(index=0, arguments=": 1}"),
        ToolCallPiece(call_id="c2", arguments="{}"),
        ToolCallPiece(arguments=" "),
        FinishPiece(reason="toolCalls"),
    ]


async def test_a_turn_can_break_off(tmp_path: Path) -> None:
    assert await turn(playing([{"text": "a", "finish": "brokenOff"}], tmp_path)) == [TextPiece(text="a")]


async def test_a_script_that_has_ended_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"script\.json has 2 turns and was asked for turn 3") as raised:
        await turn(playing(["a", "b"], tmp_path), 2)
    assert not raised.value.retryable


async def test_delays_are_kept_for_each_delta(tmp_path: Path) -> None:
    provider = playing({"delayMs": 100, "turns": ["a b c", {"text": "a b c", "delayMs": 0}]}, tmp_path)
    began = time.monotonic()
    await turn(provider, 0)
    slow = time.monotonic() - began
    await turn(provider, 1)
    assert slow >= 0.3 and time.monotonic() - began - slow < 0.3


async def test_a_delay_can_be_broken_off(tmp_path: Path) -> None:
    provider = playing([{"text": "a", "delayMs": 60_000}], tmp_path)
    asked = asyncio.create_task(turn(provider))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asked, 5)


async def test_an_error_comes_after_what_was_said(tmp_path: Path) -> None:
    error = {"message": "slow down", "status": 429, "retryable": True, "retryAfterSecs": 2}
    stream = playing([{"text": "well", "error": error}], tmp_path).stream(asks())
    assert await anext(stream) == TextPiece(text="well")
    with pytest.raises(ModelError, match="demo: slow down") as raised:
        await anext(stream)
    assert raised.value.data == {"provider": "demo", "retryable": True, "status": 429, "retryAfterSecs": 2.0}


async def test_an_error_can_be_of_any_kind(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        await turn(playing([{"error": {"message": "too long", "kind": "contextOverflow"}}], tmp_path))
    assert raised.value.kind == "contextOverflow"


async def test_a_script_that_is_edited_is_read_again(tmp_path: Path) -> None:
    provider = playing(["before"], tmp_path)
    assert text_of(await turn(provider)) == "before"
    playing(["and after"], tmp_path)
    assert text_of(await turn(provider)) == "and after"


async def test_a_script_is_one_model(tmp_path: Path) -> None:
    provider = playing(["a"], tmp_path)
    assert await provider.list_models() == (ModelInfo(model="demo/script", provider="demo"),)
    await provider.aclose()


async def test_the_examples_in_the_description_work(tmp_path: Path) -> None:
    described = str(script_module.__doc__)
    short = described[described.index("    [") : described.index("In full")]
    assert text_of(await turn(playing(short, tmp_path))) == "Hello!"
    full = described[described.index("    {\n") : described.index("A turn needs")]
    provider = playing(full, tmp_path)
    assert text_of(await turn(provider, 1)) == "It says: hi."
    assert (await turn(provider, 0))[-1] == FinishPiece(reason="toolCalls")
    with pytest.raises(ModelError, match="slow down"):
        await turn(provider, 2)
    assert await turn(provider, 2) == [
        TextPiece(text="And "),
        ReasoningPiece(text="hm"),
        TextPiece(text="bye."),
        FinishPiece(reason="stop"),
    ]


# Bad files ----------------------------------------------------------------------------------------------

BAD: dict[str, tuple[str, str, str]] = {
    "no JSON": ('{\n "turns": [\n  "a",\n ]\n}', "script.json:4: is not JSON", ""),
    "no script": ('"text"', "must be an object, not string", ""),
    "no turns": ("{}", "turns: is required", "turns"),
    "turns no list": ('{"turns": "a"}', "turns: must be an array", "turns"),
    "no turn in it": ("[]", "must hold at least one turn", "turns"),
    "a typing error": (
        '{\n"turns": [\n"a",\n{"txt": "b"}]}',
        "script.json:4: turns[1].txt: is not known here; known are after, text,",
        "turns[1].txt",
    ),
    "a typing error outside": ('{"turn": [], "turns": ["a"]}', "turn: is not known here", "turn"),
    "a typing error in a call": (
        '[{"calls": [{"tool": "a", "args": {}}]}]',
        "turns[0].calls[0].args: is not known",
        "turns[0].calls[0].args",
    ),
    "a typing error in usage": ('[{"text": "a", "usage": {"in": 1}}]', "turns[0].usage.in", "turns[0].usage.in"),
    "an empty turn": ('[\n"a",\n{}]', "script.json:3: turns[1]: needs `text`", "turns[1]"),
    "no tool": ('[{"calls": [{"input": {}}]}]', "turns[0].calls[0].tool: is required", "turns[0].calls[0].tool"),
    "input no object": (
        '[{"calls": [{"tool": "a", "input": 3}]}]',
        "must be an object",
        "turns[0].calls[0].input",
    ),
    "an unknown finish": ('[{"text": "a", "finish": "end"}]', "must be one of 'stop'", "turns[0].finish"),
    "a typing error in a part's call": (
        '[{"parts": [{"calls": [{"args": {}}]}]}]',
        "turns[0].parts[0].calls[0].args: is not known",
        "turns[0].parts[0].calls[0].args",
    ),
    "a typing error in a part": ('[{"parts": [{"txt": "a"}]}]', "parts[0].txt: is not", "turns[0].parts[0].txt"),
    "a place before the first": ('[{"text": "a", "after": -1}]', "must not be negative", "turns[0].after"),
    "time running backwards": ('[{"text": "a", "delayMs": -1}]', "must not be negative", "turns[0].delayMs"),
    "a turn of another type": ('["a", 3]', "turns[1]: must be an object, not number", "turns[1]"),
    "calls no list": ('[{"calls": "look"}]', "turns[0].calls: must be an array", "turns[0].calls"),
    "too deep": ("[" * 100_000, "is nested too deeply", ""),
}


@pytest.mark.parametrize(("text", "message", "path"), BAD.values(), ids=list(BAD))
async def test_a_bad_script_is_refused_with_its_place(text: str, message: str, path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        await turn(playing(text, tmp_path))
    assert message in raised.value.message
    assert raised.value.path == (path or str(tmp_path / "script.json"))
    assert raised.value.data["file"] == str(tmp_path / "script.json")


async def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    provider = playing("[]", tmp_path)
    (tmp_path / "script.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        await turn(provider)


@pytest.mark.parametrize("file", ["missing.json", "."])
async def test_a_file_that_cannot_be_read_names_the_option(file: str, tmp_path: Path) -> None:
    provider = open_provider("demo", ProviderOptions(file=str(tmp_path / file)))
    with pytest.raises(ConfigurationError, match=r"correct `providers\.demo\.file`") as raised:
        await turn(provider)
    assert raised.value.path == "providers.demo.file"


async def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert text_of(await turn(playing("\ufeff" + '["hi"]', tmp_path))) == "hi"
