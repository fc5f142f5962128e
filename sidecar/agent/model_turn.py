"""One request to a model: streamed, retried where that is safe, folded into a reply."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing

from sidecar.agent.characters import WholeCharacters
from sidecar.agent.config import CycleConfig, RunSettings
from sidecar.agent.reply import Reply, ReplyFold
from sidecar.protocol.errors import ModelError
from sidecar.protocol.events import (
    AgentEvent,
    AssistantReasoningDelta,
    AssistantTextDelta,
    Retrying,
    Warned,
)
from sidecar.protocol.values import Message
from sidecar.providers.base import ModelPiece, ModelRequest, ReasoningPiece, TextPiece, WarningPiece

Emit = Callable[[AgentEvent], Awaitable[None]]


class ModelTurn:
    """Asks once. `partial()` is what had come when it was broken off, so that nothing is lost."""

    def __init__(self, settings: RunSettings, emit: Emit) -> None:
        self._settings = settings
        self._emit = emit
        self._fold = ReplyFold()

    def partial(self) -> Reply:
        """What has come so far."""
        return self._fold.reply()

    async def ask(self, request: ModelRequest) -> Reply:
        """The whole reply. Tries again while nothing has come yet and the provider says that it may help.

        Raises ModelError, with `retryAfterSecs` in its data where the provider asks for more patience than
        `max_retry_delay_secs`.
        """
        attempt = 0
        while True:
            try:
                return await self._ask_once(request)
            except ModelError as error:
                attempt += 1
                delay_secs = retry_delay_secs(error, attempt, self._settings.config)
                if delay_secs is None or not self._fold.is_empty:
                    raise
                await self._emit(
                    Retrying(attempt=attempt, delay_ms=round(delay_secs * 1000), reason=error.message)
                )
            await asyncio.sleep(delay_secs)

    async def _ask_once(self, request: ModelRequest) -> Reply:
        self._fold = ReplyFold()
        characters = WholeCharacters()
        async with aclosing(self._settings.provider.stream(request)) as pieces:
            async for piece in pieces:
                await self._take(characters.add(piece))
        await self._take(characters.rest())
        reply = self._fold.reply()
        if reply.finish is None:
            raise ModelError(
                "the model's stream broke off before it was complete; submit again to go on",
                provider=self._settings.provider.name,
                retryable=True,
            )
        return reply

    async def _take(self, pieces: Iterable[ModelPiece]) -> None:
        for piece in pieces:
            self._fold.add(piece)
            await self._report(piece)

    async def _report(self, piece: ModelPiece) -> None:
        match piece:
            case TextPiece(text=text) if text:
                await self._emit(AssistantTextDelta(text=text))
            case ReasoningPiece(text=text) if text:
                await self._emit(AssistantReasoningDelta(text=text))
            case WarningPiece(code=code, message=message):
                await self._emit(Warned(code=code, message=message))


def summariser(settings: RunSettings) -> Callable[[str], Awaitable[str]]:
    """Asks the run's own model for a summary, without tools, told to nobody."""

    async def summarise(question: str) -> str:
        message = Message(role="user", content=question)
        request = ModelRequest(model=settings.model, messages=(message,))
        return (await ModelTurn(settings, _nobody_hears).ask(request)).text

    return summarise


async def _nobody_hears(event: AgentEvent) -> None:
    """A summary is no part of the answer."""


def retry_delay_secs(error: ModelError, attempt: int, config: CycleConfig) -> float | None:
    """How long to wait before try number `attempt` + 1; None when there is to be none.

    The provider's Retry-After counts up to `max_retry_delay_secs`. Otherwise the wait doubles, with full
    jitter over its upper half (own choice).
    """
    if not error.retryable or attempt > config.max_retries:
        return None
    if error.retry_after_secs is not None:
        return error.retry_after_secs if error.retry_after_secs <= config.max_retry_delay_secs else None
    longest_secs: float = min(config.retry_base_secs * 2 ** (attempt - 1), config.max_retry_delay_secs)
    return longest_secs * random.uniform(0.5, 1.0)
