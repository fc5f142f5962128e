"""Progress reports on their way from the reader of a connection to whoever made the call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sidecar.protocol.values import JsonObject

Report = tuple[float | None, float | None, str | None]
"""Done, total, message."""

OnProgress = Callable[[float | None, float | None, str | None], Awaitable[None]]
"""Told how far a call is: done, total, message. The server is read no further while many such reports wait."""

MAX_WAITING_REPORTS = 256
"""Reports of one request that may wait for `on_progress`. Own choice."""


class Reports:
    """The reports of one request: none is dropped, and they arrive in order, before the answer."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Report | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._is_followed = True

    @property
    def are_crowded(self) -> bool:
        return self._is_followed and self._waiting.qsize() > MAX_WAITING_REPORTS

    def put(self, report: Report) -> None:
        """Adds a report; without waiting, for the reader serves other requests too."""
        if self._is_followed:
            self._waiting.put_nowait(report)

    async def room(self) -> None:
        """Waits until they are not crowded any more."""
        while self.are_crowded:
            self._taken.clear()
            await self._taken.wait()

    async def follow(
        self, answer: "asyncio.Future[JsonObject]", on_progress: OnProgress, deadline: float
    ) -> JsonObject:
        """The answer, once `on_progress` has had every report that came before it, or `deadline` has passed."""
        handing_on = asyncio.create_task(self._hand_on(on_progress))
        try:
            result = await answer
            self._waiting.put_nowait(None)
            left_secs = max(0.0, deadline - asyncio.get_running_loop().time())
            if (await asyncio.wait({handing_on}, timeout=left_secs))[0]:
                handing_on.result()
            return result
        finally:
            handing_on.cancel()
            await asyncio.gather(handing_on, return_exceptions=True)

    async def _hand_on(self, on_progress: OnProgress) -> None:
        try:
            while (report := await self._waiting.get()) is not None:
                self._taken.set()
                await on_progress(*report)
        finally:
            self._is_followed = False
            self._taken.set()


def read_report(params: JsonObject) -> Report:
    """A progress notification's content, less what has the wrong type."""
    message = params.get("message")
    text = message if isinstance(message, str) else None
    return _number(params.get("progress")), _number(params.get("total")), text


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
