"""One submit, as its host sees it: events while it runs, then a result."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from sidecar_client.errors import ClientError
from sidecar_client.frames import JsonObject

Ask = Callable[[str, JsonObject], Coroutine[Any, Any, Any]]
"""Sends a request to the sidecar and gives its result."""


class Run:
    """A running (or finished) submit; `Sidecar.submit` makes one.

    Iterate it once for its events, await `result()` for its outcome, in either order or both at once. Events
    nobody has read yet are kept until they are read or the run is dropped.
    """

    def __init__(self, run_id: str, session_id: str | None, ask: Ask, clock: Callable[[], float]) -> None:
        self.run_id = run_id
        self.session_id = session_id
        """Known from the start when the host named it, else from the first event on."""
        self._ask = ask
        self._clock = clock
        self._events: asyncio.Queue[JsonObject | None] = asyncio.Queue()  # None marks the end
        self._drained = False
        self._has_ended_by_event = False
        self._answered = asyncio.Event()
        self._outcome: JsonObject | ClientError = {}
        self._heard_at = clock()

    async def result(self) -> JsonObject:
        """`{sessionId, runId, stopReason, message, turns, usage}`, when the run is over.

        Raises RunCancelled, RequestFailed, SidecarExited, BrokenStream, or NoAnswer after a long silence.
        Cancelling this does not cancel the run; `cancel()` does.
        """
        await self._answered.wait()
        if isinstance(self._outcome, ClientError):
            raise self._outcome.with_traceback(None)
        return self._outcome

    async def text(self) -> str:
        """The text of the answer, when the run is over; raises as `result` does."""
        content = ((await self.result()).get("message") or {}).get("content") or ""
        if isinstance(content, str):
            return content
        return "".join(block.get("text", "") for block in content if block.get("type") == "text")

    async def __aiter__(self) -> AsyncIterator[JsonObject]:
        """Each event: `{type, …}`. Raises as `result` does where no `runCompleted` event told of the error."""
        async for notification in self.notifications():
            yield notification["event"]

    async def notifications(self) -> AsyncIterator[JsonObject]:
        """The same events with what surrounds them: `{sessionId, runId, seq, event}`."""
        while not self._drained:
            notification = await self._events.get()
            if notification is None:
                self._drained = True
            else:
                yield notification
        if isinstance(self._outcome, ClientError) and not self._has_ended_by_event:
            raise self._outcome.with_traceback(None)

    async def cancel(self) -> bool:
        """Ends the run; False when it was over. Its `result()` then raises RunCancelled."""
        answer = await self._ask("agent/cancel", {"runId": self.run_id})
        return bool(answer["cancelled"])

    async def steer(self, prompt: str | list[JsonObject]) -> bool:
        """Says something to the model before its next turn; False when there is none."""
        answer = await self._ask("agent/steer", {"runId": self.run_id, "prompt": prompt})
        return bool(answer["accepted"])

    # For the sidecar's side ------------------------------------------------------------------------------

    @property
    def silence_secs(self) -> float:
        """For how long nothing was heard of this run."""
        return self._clock() - self._heard_at

    def take(self, notification: JsonObject) -> None:
        """Another `agent/event` of this run."""
        self._heard_at = self._clock()
        self.session_id = notification.get("sessionId", self.session_id)
        self._has_ended_by_event = notification["event"].get("type") == "runCompleted"
        self._events.put_nowait(notification)

    def end(self, outcome: JsonObject | ClientError) -> None:
        """The answer to the submit, or why there is none; only the first counts."""
        if not self._answered.is_set():
            self._outcome = outcome
            self._events.put_nowait(None)
            self._answered.set()
