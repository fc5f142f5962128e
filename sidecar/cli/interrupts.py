"""Ctrl-C while a run is on: the first cancels the run, the second kills the sidecar."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from sidecar_client import ClientError, Run, Sidecar

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks us to stop; Windows has no SIGHUP."""


class Interrupts:
    """Takes signals for as long as `taken` lasts. `happened` says whether one came.

    While a run is on (`of`) Ctrl-C is for the run. At other times, and for the other signals, the task that
    entered `taken` is cancelled, so that everything it holds is closed in order.
    """

    def __init__(self) -> None:
        self.happened = False
        self._run: tuple[Run, Sidecar] | None = None
        self._cancelling: asyncio.Task[None] | None = None

    @contextmanager
    def taken(self) -> Iterator["Interrupts"]:
        """On the main thread, in a task."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None

        def take(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._interrupt, task, number)

        before = {number: signal.signal(number, take) for number in SIGNALS}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def of(self, run: Run, sidecar: Sidecar) -> Iterator[None]:
        """Ctrl-C is for this run."""
        self._run = (run, sidecar)
        try:
            yield
        finally:
            self._run = None

    def _interrupt(self, task: "asyncio.Task[object]", number: int) -> None:
        is_second, self.happened = self.happened, True
        if self._run is None or number != signal.SIGINT:
            task.cancel()
            return
        run, sidecar = self._run
        if is_second:
            sidecar.kill()
        else:
            self._cancelling = asyncio.get_running_loop().create_task(_cancel(run))


async def _cancel(run: Run) -> None:
    with suppress(ClientError):  # The run itself says how it ended.
        await run.cancel()
