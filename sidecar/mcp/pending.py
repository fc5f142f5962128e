"""Requests of ours that wait for an answer, and how long they may."""

import asyncio
import itertools
import math
from collections.abc import Callable

from sidecar.mcp.progress import Reports
from sidecar.protocol.values import JsonObject

Heard = Callable[[str, JsonObject], None]
"""Takes a notification, by method and params; may not wait."""

_SHORTEST_ALARM_SECS = 0.05
"""While time stands still a deadline moves on with the clock; it is looked at no more often than this."""


class Pending:
    """A request that waits. `advice` is for whoever it keeps waiting too long.

    `reports` is there when somebody follows its progress, `heard` when it is a subscription: that takes what the
    server notifies of under the id of the request. `paused_before_secs` is how much of what counts against no
    limit was over before it.
    """

    __slots__ = (
        "advice",
        "answer",
        "deadline",
        "heard",
        "id",
        "is_cancellable",
        "limit_secs",
        "method",
        "paused_before_secs",
        "reports",
    )

    def __init__(
        self, request_id: int, method: str, *, limit_secs: float, advice: str = "", is_cancellable: bool = True
    ) -> None:
        loop = asyncio.get_running_loop()
        self.id = request_id
        self.method = method
        self.limit_secs = limit_secs
        self.advice = advice
        self.deadline = loop.time() + limit_secs
        self.is_cancellable = is_cancellable
        self.answer: asyncio.Future[JsonObject] = loop.create_future()
        self.reports: Reports | None = None
        self.heard: Heard | None = None
        self.paused_before_secs = 0.0


class PendingRequests:
    """The requests of one connection by id. Whoever takes one out settles it, so none is settled twice.

    `on_expired` is called with each request whose time is over, already taken out. `paused_secs` says how much
    time has passed in all that counts against no limit.
    """

    def __init__(self, on_expired: Callable[[Pending], None], paused_secs: Callable[[], float]) -> None:
        self._on_expired = on_expired
        self._paused_secs = paused_secs
        self._by_id: dict[int, Pending] = {}
        self._ids = itertools.count(1)  # Not 0: some servers take that for no progress token.
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None

    def next_id(self) -> int:
        """An id that no request of this connection has had."""
        return next(self._ids)

    def add(self, pending: Pending) -> None:
        """Lets a request wait."""
        self._by_id[pending.id] = pending
        pending.paused_before_secs = self._paused_secs()
        if pending.deadline < math.inf:
            self._set_alarm(pending.deadline)

    def get(self, request_id: int | None) -> Pending | None:
        """The request of that id, if it waits still."""
        return None if request_id is None else self._by_id.get(request_id)

    def only(self) -> Pending | None:
        """The request that waits, where there is exactly one; subscriptions, which always do, are not counted."""
        waiting = [pending for pending in self._by_id.values() if pending.heard is None]
        return waiting[0] if len(waiting) == 1 else None

    def take(self, request_id: int) -> Pending | None:
        """Takes a request out, if it waits still."""
        return self._by_id.pop(request_id, None)

    def take_all(self) -> list[Pending]:
        """Takes all requests out, for good."""
        pending = list(self._by_id.values())
        self._by_id.clear()
        if self._alarm is not None:
            self._alarm.cancel()
        return pending

    def _set_alarm(self, deadline: float) -> None:
        """One timer serves all requests: it is set to the earliest deadline that was known when it was set."""
        if self._alarm is not None:
            if self._alarm.when() <= deadline:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        now, paused_secs = self._loop.time(), self._paused_secs()
        next_deadline = math.inf
        for pending in list(self._by_id.values()):
            deadline = pending.deadline + paused_secs - pending.paused_before_secs
            if deadline <= now:
                del self._by_id[pending.id]
                self._on_expired(pending)
            else:
                next_deadline = min(next_deadline, deadline)
        if next_deadline < math.inf:
            self._set_alarm(max(next_deadline, now + _SHORTEST_ALARM_SECS) if paused_secs else next_deadline)


def settle(pending: Pending, outcome: JsonObject | Exception) -> None:
    """Gives a request its outcome, unless its caller was cancelled in this very moment."""
    if pending.answer.done():
        return
    if isinstance(outcome, Exception):
        pending.answer.set_exception(outcome)
    else:
        pending.answer.set_result(outcome)
