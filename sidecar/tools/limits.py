"""Work under a time limit that stands still while a person is waited for."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

from sidecar.tools.base import CancellationToken

T = TypeVar("T")

GRACE_SECS = 1.0
"""How long a cancelled tool may take to end before its caller goes on without it (own choice)."""

SHORTEST_WAIT_SECS = 0.01
"""A limit is exact to this: while a person is waited for it moves on with the clock."""

logger = logging.getLogger("sidecar.tools")


def _none() -> float:
    return 0.0


class Stopwatch:
    """Counts the seconds that are the tool's own, up to `limit_secs`.

    `person_secs` says how long, in all, somebody was waited for of whom this watch is not told.
    """

    def __init__(self, limit_secs: float, person_secs: Callable[[], float] = _none) -> None:
        self.limit_secs = limit_secs
        self._person_secs = person_secs
        self._person_secs_before = person_secs()
        self._spent = 0.0
        self._since = monotonic()
        self._pauses = 0

    @property
    def spent_secs(self) -> float:
        return max(0.0, self._ticked_secs - (self._person_secs() - self._person_secs_before))

    @property
    def expired(self) -> bool:
        return self.spent_secs >= self.limit_secs

    @property
    def check_again_secs(self) -> float:
        """The limit cannot be reached before this many seconds have gone by, or hardly."""
        return max(self.limit_secs - self.spent_secs, 0.1 if self._pauses else SHORTEST_WAIT_SECS)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stands still inside; several pauses may overlap."""
        self._spent, self._pauses = self._ticked_secs, self._pauses + 1
        try:
            yield
        finally:
            self._pauses -= 1
            self._since = monotonic()

    @property
    def _ticked_secs(self) -> float:
        return self._spent + (0.0 if self._pauses else monotonic() - self._since)


class Stragglers:
    """Tools that were told to end and have not; kept so that somebody ends them at last."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def end(self, task: "asyncio.Task[Any]") -> None:
        """Cancels a task and waits for it, but not for long. Costs nothing where it has ended already."""
        if task.done():
            self._ended(task)
            return
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_SECS)
        if not task.done():
            logger.warning("%s was cancelled and goes on; it is not waited for", task.get_name())

    async def aclose(self) -> None:
        """Cancels what is left once more, and waits no longer than for one."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_SECS)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Read, so that asyncio does not complain about an error that nobody wants.


class OutOfTimeError(Exception):
    """The limit of a Stopwatch was reached."""


async def within(
    watch: Stopwatch,
    work: Coroutine[Any, Any, T],
    *,
    name: str,
    token: CancellationToken,
    stragglers: Stragglers,
) -> T:
    """The result of `work`; when time is up or the caller is cancelled, `token` and the work are, too.

    Raises OutOfTimeError, and whatever `work` raises. Does not outlast its end by more than GRACE_SECS.
    """
    task = asyncio.create_task(work, name=name)
    try:
        while not task.done() and not watch.expired:
            await asyncio.wait({task}, timeout=watch.check_again_secs)
    except asyncio.CancelledError:
        token.cancel("cancelled")
        await stragglers.end(task)
        raise
    if task.done():
        return task.result()
    token.cancel("timeout")
    await stragglers.end(task)
    raise OutOfTimeError
