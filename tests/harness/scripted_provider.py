"""A Provider in this process that plays a script: for tests of the loop that have to be fast and exact.

It is a second implementation of the protocol beside those that speak HTTP, and keeps to it: pieces one at a time,
errors between them, nothing after its generator is closed.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator

from attrs import frozen

from sidecar.protocol.errors import ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.providers.base import FinishPiece, ModelPiece, ModelRequest, TextPiece


@frozen
class Pause:
    """The model thinks: so many times, whoever else can run does."""

    ticks: int = 1


Step = ModelPiece | ModelError | Pause

ENOUGH: tuple[Step, ...] = (TextPiece(text="Enough."), FinishPiece(reason="stop"))
"""What it says when its script is over."""


class ScriptedProvider:
    """Answers each request with the next turn. `requests` are those it got, `open` how many it is answering."""

    name = "scripted"

    def __init__(self, turns: Iterable[Iterable[Step]] = (), *, context_tokens: int | None = None) -> None:
        self.context_tokens = context_tokens
        self.requests: list[ModelRequest] = []
        self.open = 0
        self._turns: Iterator[Iterable[Step]] = iter(turns)

    def play(self, turns: Iterable[Iterable[Step]]) -> None:
        """Replaces what is left of the script."""
        self._turns = iter(turns)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        self.requests.append(request)
        self.open += 1
        try:
            for step in next(self._turns, ENOUGH):
                match step:
                    case Pause(ticks=ticks):
                        for _ in range(ticks):
                            await asyncio.sleep(0)
                    case ModelError():
                        raise step
                    case piece:
                        yield piece
        finally:
            self.open -= 1

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return (ModelInfo(model="scripted/any", provider="scripted", context_tokens=self.context_tokens),)

    async def aclose(self) -> None:
        """Holds nothing."""
