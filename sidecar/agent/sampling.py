"""A model's answer for an MCP server that asked for one; whether it may ask is decided before."""

import asyncio

from sidecar.agent.config import RunSettings
from sidecar.agent.model_turn import ModelTurn
from sidecar.agent.models import Models
from sidecar.agent.reply import Reply
from sidecar.mcp.sampling import SamplingAnswer, SamplingRequest
from sidecar.protocol.errors import ModelError
from sidecar.protocol.events import AgentEvent
from sidecar.providers.base import ModelRequest

LIMIT_SECS = 600.0
"""Of one answer, however lively its stream is. Own choice."""


async def sample(models: Models, request: SamplingRequest) -> SamplingAnswer:
    """Asks the model of a submit that names none. Raises SidecarError where that cannot be."""
    provider, model, label = models.resolve(None)
    turn = ModelTurn(RunSettings(provider=provider, model=model, label=label), _nobody_hears)
    asked = ModelRequest(
        model=model,
        messages=request.messages,
        system=request.system,
        temperature=request.temperature,
        max_output_tokens=request.max_tokens,
    )
    try:
        async with asyncio.timeout(LIMIT_SECS):
            reply = await turn.ask(asked)
    except TimeoutError:
        message = f"no whole answer within {LIMIT_SECS:g} s"
        raise ModelError(message, provider=provider.name, kind="modelTimeout") from None
    return _answer(reply, label, request.stop_sequences)


async def _nobody_hears(event: AgentEvent) -> None:
    """The answer is the server's, and part of no run."""


def _answer(reply: Reply, model: str, stop_sequences: tuple[str, ...]) -> SamplingAnswer:
    """Stop sequences are applied here, because not every provider takes them."""
    ends = [end for sequence in stop_sequences if (end := reply.text.find(sequence)) >= 0]
    if ends:
        return SamplingAnswer(reply.text[: min(ends)], model, "stopSequence")
    return SamplingAnswer(reply.text, model, "maxTokens" if reply.finish == "length" else "endTurn")
