"""One submit, as its host sees it: events while it runs, then a result."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from sidecar_client.errors import ClientError
from sidecar_client.frames import JsonObject

Ask = Callable[[str, JsonObject], Coroutine[Any, Any, Any]]
"""Sends a request to the sidecar and gives its result."""


@dataclass(frozen=True, kw_only=True)
class Position:
    """Where a run was left, so that `Sidecar.resume` can go on from there."""

    session_id: str
    run_id: str
    after_seq: int = -1
    """The number of the last event that was seen."""


class Run:
    """A running (or finished) run; `Sidecar.submit` and `Sidecar.resume` make one.

    Iterate it once for its events, await `result()` for its outcome, in either order or both at once. Events
    nobody has read yet are kept until they are read or the run is dropped.
    """

    def __init__(self, run_id: str, session_id: str | None, ask: Ask, clock: Callable[[], float]) -> None:
        self.run_id = run_id
        self.session_id = session_id
        """Known from the start when the host named it, else from the first event on."""
        self.last_seq = -1
        """The number of the last event that came, -1 before the first."""
        self.completed: JsonObject | None = None
        """The last event, once it has come."""
        self.on_completed: Callable[[JsonObject], None] = lambda _: None
        self._ask = ask
        self._clock = clock
        self._held: list[JsonObject] | None = None
        self._turn_text: list[str] = []
        self._is_turn_over = False
        self._events: asyncio.Queue[JsonObject | None] = asyncio.Queue()  # None marks the end
        self._drained = False
        self._answered = asyncio.Event()
        self._outcome: JsonObject | ClientError = {}
        self._heard_at = clock()

    async def result(self) -> JsonObject:
        """`{sessionId, runId, stopReason, message, turns, usage}`, when the run is over.

        Raises RunCancelled, RequestFailed, SidecarExited, BrokenStream, or NoAnswer after a long silence. A run
        whose last event came has ended as it says, also where no answer comes; `message` is absent then.
        Cancelling this does not cancel the run; `cancel()` does.
        """
        await self._answered.wait()
        if isinstance(self._outcome, ClientError):
            raise self._outcome.with_traceback(None)
        return self._outcome

    async def text(self) -> str:
        """The text of the answer, when the run is over; raises as `result` does."""
        message = (await self.result()).get("message")
        content = (message.get("content") or "") if message else "".join(self._turn_text)
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
        if isinstance(self._outcome, ClientError) and self.completed is None:
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

    def go_on_from(self, left: "Run | Position") -> None:
        """Only what came after that is new to this run."""
        if isinstance(left, Run):
            self.last_seq = left.last_seq
            self._turn_text, self._is_turn_over = [*left._turn_text], left._is_turn_over
        else:
            self.last_seq = left.after_seq

    def take(self, notification: JsonObject) -> None:
        """Another `agent/event` of this run; one that was there already is passed over."""
        self._heard_at = self._clock()
        if self._held is not None:
            self._held.append(notification)
            return
        event, seq = notification["event"], notification.get("seq", self.last_seq + 1)
        if event.get("type") == "runCompleted":
            self.completed = event
            self.on_completed(event)
        if seq > self.last_seq:
            self.last_seq = seq
            self.session_id = notification.get("sessionId", self.session_id)
            self._follow_text(event)
            self._events.put_nowait(notification)

    def hold(self) -> None:
        """Puts aside what comes, until `release` has given what came before it."""
        self._held = []

    def release(self, missed: Iterable[JsonObject]) -> None:
        """Takes these, then what was put aside."""
        held, self._held = self._held or [], None
        for notification in (*missed, *held):
            self.take(notification)

    def _follow_text(self, event: JsonObject) -> None:
        """Keeps the text of the last turn, for runs without an answer that holds it."""
        kind = event.get("type")
        if kind not in ("assistantTextDelta", "turnComplete"):
            return
        if self._is_turn_over:
            self._turn_text = []
        self._is_turn_over = kind == "turnComplete"
        if kind == "assistantTextDelta":
            self._turn_text.append(event["text"])

    def end(self, outcome: JsonObject | ClientError) -> None:
        """The answer to the submit, or why there is none; only the first counts."""
        if not self._answered.is_set():
            self._outcome = outcome
            self._events.put_nowait(None)
            self._answered.set()
