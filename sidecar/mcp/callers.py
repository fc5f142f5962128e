"""The calls of one server that are under way: whose run a question of the server belongs to, and how long."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Asker(NamedTuple):
    """Who asks: a server, and where that is clear, in whose session and run."""

    server: str
    session_id: str | None = None
    run_id: str | None = None


class CallsOverError(Exception):
    """Nobody waits any more for what a question was for."""


class Callers:
    """A server does not say for which call it asks: where all calls are of one run, it is that run."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._calls: list[Asker] = []
        self._all_over: asyncio.Event | None = None

    @contextmanager
    def calling(self, session_id: str | None, run_id: str | None) -> Iterator[None]:
        """A call is under way inside."""
        call = Asker(self._server, session_id, run_id)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)
            if not self._calls and self._all_over is not None:
                self._all_over.set()
                self._all_over = None

    @property
    def asker(self) -> Asker:
        """Who asks now."""
        first = self._calls[0] if self._calls else None
        return first if first is not None and self._calls.count(first) == len(self._calls) else Asker(self._server)

    async def while_called(self, asking: Awaitable[T]) -> T:
        """What `asking` gives. Once no call is left it is cancelled; raises CallsOverError then.

        A question that comes while no call is under way is the server's own, and is bound to none.
        """
        if not self._calls:
            return await asking
        if self._all_over is None:
            self._all_over = asyncio.Event()
        over = asyncio.ensure_future(self._all_over.wait())
        asked = asyncio.ensure_future(asking)
        try:
            await asyncio.wait({asked, over}, return_when=asyncio.FIRST_COMPLETED)
            if not asked.done():
                raise CallsOverError
            return asked.result()
        finally:
            over.cancel()
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
