"""How the process comes to its end: by one reason, with one exit status, within a time that nothing can extend."""

import asyncio
import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

log = logging.getLogger("sidecar.server")

LIMIT_SECS = 4.3
"""From the reason to the end, all included. Hosts are promised 5 s, and a busy machine needs some of that."""

SIGNAL_NAMES = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
"""Those that ask a process to go; the last two exist on POSIX and on Windows respectively."""


class Ending:
    """Waits for the first reason to end. Once there is one, the process is gone LIMIT_SECS later at most.

    `fallback_status` is the exit status if the event loop hangs, so that no reason reached it.
    """

    def __init__(self, fallback_status: Callable[[], int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._fallback_status = fallback_status
        self._begun = asyncio.Event()
        self._status: int | None = None
        self._arming = threading.RLock()  # A signal may come while its own thread arms.
        self._armed_at: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether there was a reason."""
        return self._status is not None

    @property
    def remaining_secs(self) -> float:
        """How much time is left; never below zero."""
        since = time.monotonic() if self._armed_at is None else self._armed_at
        return max(0.0, since + LIMIT_SECS - time.monotonic())

    def begin(self, status: int, reason: str) -> None:
        """The first call decides the exit status."""
        if self._status is None:
            self._status = status
            log.info("ending with status %d: %s", status, reason)
            self.arm()
            self._begun.set()

    def arm(self) -> None:
        """Starts the clock before the reason is stated, for any thread: the loop may hang."""
        with self._arming:
            if self._armed_at is not None:
                return
            self._armed_at = time.monotonic()
            clock = threading.Timer(LIMIT_SECS, lambda: os._exit(self._exit_status()))
            clock.daemon = True
            clock.start()

    async def wait(self) -> int:
        """Returns the exit status once there is a reason."""
        await self._begun.wait()
        return self._exit_status()

    def heed_signals(self) -> None:
        """From now on the signals in SIGNAL_NAMES are reasons; the status is 128 plus the signal's number."""
        for name in SIGNAL_NAMES:
            number = getattr(signal, name, None)
            if number is None:
                continue
            # The kernel may give a signal to any thread, while Python runs handlers in the main one, which may
            # sleep in the loop: this makes the signal wake it. Windows' loop wakes up by itself.
            with contextlib.suppress(NotImplementedError):
                self._loop.add_signal_handler(number, lambda: None)
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Not a handler of the loop's, which would not run if the loop hangs.
        self._fallback_status = lambda: 128 + number
        self.arm()
        self._loop.call_soon_threadsafe(self.begin, 128 + number, signal.Signals(number).name)

    def _exit_status(self) -> int:
        return self._fallback_status() if self._status is None else self._status


def leave(status: int) -> NoReturn:
    """Ends the process at once. The interpreter's own way out would wait for busy worker threads."""
    logging.shutdown()
    os._exit(status)
