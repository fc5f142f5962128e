"""What a server wants back with the next request goes back as it came, and to that provider alone.

Source: protocol.md, "Message"; what DeepSeek (`reasoning_content`), OpenRouter (`reasoning_details`)
and Gemini (`extra_content` with thought signatures) document.
"""

from typing import Any

import pytest

from sidecar.protocol.values import Message, ProviderExtras, ToolCall
from sidecar.providers.base import ExtrasPiece, ModelPiece
from tests.harness.asking import asks, calls_of, pieces_of, provider_at, reasoning_of, result, text_of
from tests.harness.model_server import ScriptedModel, delta, events, says


def remembered(pieces: list[ModelPiece]) -> Message:
    """The assistant message that the loop makes of an answer by provider `local`."""
    (extras,) = (piece.data for piece in pieces if isinstance(piece, ExtrasPiece))
    call_id = next(part.call_id for part in calls_of(pieces) if part.call_id)
    return Message(
        role="assistant",
        content=text_of(pieces),
        reasoning=reasoning_of(pieces) or None,
        tool_calls=(ToolCall(call_id=call_id, tool_name="look", input={}),),
        provider_extras=ProviderExtras(provider="local", data=extras),
    )


CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
DETAIL = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
EXTRAS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "reasoning_content": (
        [delta(reasoning_content="h"), delta(reasoning_content="m")],
        {"reasoning_content": "hm"},
    ),
    "reasoning": ([delta(reasoning="hm")], {"reasoning": "hm"}),
    "empty reasoning_content": ([delta(reasoning_content="")], {"reasoning_content": ""}),
    "reasoning_details": (
        [
            delta(reasoning="h", reasoning_details=[{**DETAIL, "text": "h"}]),
            delta(reasoning="m", reasoning_details=[{**DETAIL, "text": "m"}]),
            delta(
                reasoning_details=[{**DETAIL, "signature": "c2ln"}, {"type": "reasoning.encrypted", "data": "x"}]
            ),
        ],
        {
            "reasoning_details": [
                {**DETAIL, "text": "hm", "signature": "c2ln"},
                {"type": "reasoning.encrypted", "data": "x"},
            ]
        },
    ),
}


@pytest.mark.parametrize(("chunks", "fields"), EXTRAS.values(), ids=list(EXTRAS))
async def test_reasoning_goes_back_as_it_came_and_to_its_provider_alone(chunks: Any, fields: Any) -> None:
    reply = events(*chunks, delta(tool_calls=[CALL]), delta("tool_calls"))
    async with ScriptedModel(reply, says("done"), says("done")) as model, provider_at(model) as provider:
        message = remembered(await pieces_of(provider))
        await pieces_of(provider, asks("look", message, result("blue")))
        async with provider_at(model, "another") as another:
            await pieces_of(another, asks("look", message, result("blue")))
    plain = model.requests[2].messages[1]
    assert model.requests[1].messages[1] == {**plain, **fields}
    assert plain.keys() == {"role", "content", "tool_calls"}


async def test_the_extra_content_of_a_call_goes_back_with_it() -> None:
    signed = {**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    reply = events(delta(tool_calls=[signed]), delta("tool_calls"))
    async with ScriptedModel(reply, says("done")) as model, provider_at(model) as provider:
        message = remembered(await pieces_of(provider))
        await pieces_of(provider, asks("look", message, result("blue")))
    assert model.requests[1].messages[1]["tool_calls"][0]["extra_content"] == signed["extra_content"]
