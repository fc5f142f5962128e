"""Reads one answer to its end: events in, pieces out, whichever API they are of."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Protocol

from sidecar.protocol.errors import ModelError
from sidecar.providers.base import ModelPiece, WarningPiece
from sidecar.providers.http_client import Answer, StreamEvent

TRAILER_SECS = 5.0
"""How long usage and the closing event are waited for once the model has said that it stops (own choice).

Some servers send neither and keep the stream open; the answer itself is complete by then.
"""


class AnswerReader(Protocol):
    """Knows the events of one API. Made anew for each answer."""

    is_over: bool

    @property
    def is_finished(self) -> bool:
        """Whether the model has said that it stops; usage may still follow."""
        ...

    def read(self, data: str, *, event: str = "") -> list[ModelPiece]:
        """The pieces in one server-sent event. Raises ModelError for an error and for what cannot be read."""
        ...

    def read_whole(self, body: str) -> list[ModelPiece]:
        """The pieces of an answer that came as one JSON body although a stream was asked for."""
        ...

    def ending(self) -> list[ModelPiece]:
        """What is known only once the stream is over."""
        ...


async def pieces_of(
    answer: Answer, reader: AnswerReader, *, warnings: Iterable[WarningPiece], idle_secs: float
) -> AsyncGenerator[ModelPiece, None]:
    """The warnings, then the pieces of an answer, which is closed at the end, however that comes.

    Raises ModelError.
    """
    async with aclosing(answer):
        for warning in warnings:
            yield warning
        while not reader.is_over and (event := await _next_event(answer, reader, idle_secs)) is not None:
            is_whole = event.is_whole
            for piece in reader.read_whole(event.data) if is_whole else reader.read(event.data, event=event.name):
                yield piece
        if reader.is_over:
            await answer.drain()
    for piece in reader.ending():
        yield piece


async def _next_event(answer: Answer, reader: AnswerReader, idle_secs: float) -> StreamEvent | None:
    try:
        return await answer.next_event(min(TRAILER_SECS, idle_secs) if reader.is_finished else idle_secs)
    except ModelError:
        if reader.is_finished:
            return None  # All that is lost is what some servers send after the end.
        raise
