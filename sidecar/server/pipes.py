"""The two pipes to the host, each with a thread of its own, so that neither can ever hold up the event loop.

Threads rather than asyncio's pipe transports: those refuse regular files, close a socket that serves both
directions, and make a file description non-blocking that others may share.
"""

import asyncio
import os
import queue
import select
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

READ_BYTES = 64 * 1024
"""One read at most: what a pipe holds on Linux."""

READS_AHEAD = 8
"""How many reads may wait to be handled; the host feels the pipe fill up behind them. Own choice."""

HIGH_WATER_BYTES = 256 * 1024
"""The writer takes no more above this. Own choice: some milliseconds of work for the thread."""

LOW_WATER_BYTES = 64 * 1024
"""At this much or less the writer asks for more."""

_SURE_BYTES = getattr(select, "PIPE_BUF", 512)
"""What a pipe or a socket takes whole where it says that it takes something (POSIX, write)."""

_HAND_OVER_BYTES = 64 * 1024
"""At this much the thread is woken, at the latest; waking it costs more than writing a frame. Own choice."""


def _nothing() -> None:
    """Nobody waits."""


class Reader:
    """Reads from a thread. Callbacks run in the event loop's thread, in order.

    Each piece given to `on_bytes` is to be followed by a call of `release`, at once or later: READS_AHEAD
    pieces without one make the reader pause. `at_end` is called in the reader's own thread when the stream
    ends, before `on_end` is due in the loop: for what must happen even if the loop hangs.
    """

    def __init__(
        self,
        fd: int,
        *,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        at_end: Callable[[], None] = _nothing,
    ) -> None:
        self.fd = fd
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._at_end = at_end
        self._loop = asyncio.get_running_loop()
        self._credit = threading.Semaphore(READS_AHEAD)

    def start(self) -> None:
        """Starts the thread, which ends with the stream or with the process."""
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def release(self) -> None:
        """One piece was handled."""
        self._credit.release()

    def _run(self) -> None:
        while data := self._read():
            self._loop.call_soon_threadsafe(self._on_bytes, data)
        self._at_end()
        self._loop.call_soon_threadsafe(self._on_end)

    def _read(self) -> bytes:
        while not self._credit.acquire(timeout=_HANG_UP_CHECK_SECS):
            if _hung_up(self.fd):  # What is left in the pipe is little, and nothing will follow.
                break
        while True:
            try:
                return os.read(self.fd, READ_BYTES)
            except BlockingIOError:
                _wait_until_ready(self.fd, reading=True)
            except OSError:
                return b""


class Writer:
    """Writes frames in order. `write` never waits; ask `has_room` before.

    Little that surely fits into the pipe is written at once, which costs a tenth of waking a thread. For all else
    there is the thread.
    """

    def __init__(self, fd: int, *, on_broken: Callable[[], None]) -> None:
        self.on_room: Callable[[], None] = _nothing
        self.fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._batches: queue.SimpleQueue[list[bytes] | None] = queue.SimpleQueue()
        self._batch: list[bytes] = []
        self._batch_bytes = 0
        # Each count is changed by one thread alone, which spares a lock for every frame.
        self._given_bytes = 0
        self._written_bytes = 0
        self._wants_room = False
        self._is_broken = False
        self._is_reported = False
        self._poll = _room_poll(fd)
        self._drained = asyncio.Event()

    def start(self) -> None:
        """Starts the thread, which ends with `close` or with the process."""
        threading.Thread(target=self._run, name="stdout", daemon=True).start()
        self._watch()

    @property
    def waiting_bytes(self) -> int:
        """What was given and is not written yet."""
        return self._given_bytes - self._written_bytes

    @property
    def has_room(self) -> bool:
        """Whether to give another frame now; if not, `on_room` is called once there is room again."""
        if self._given_bytes - self._written_bytes < HIGH_WATER_BYTES:
            return True
        self._wants_room = True
        # The thread may have emptied the queue before it could see the wish.
        return self.waiting_bytes < HIGH_WATER_BYTES

    def write(self, frame: bytes) -> None:
        """Takes a frame; it is written some time soon, or never where the host has closed its end."""
        size = len(frame)
        self._given_bytes += size
        if not self._batch:
            self._loop.call_soon(self._hand_over)
        self._batch.append(frame)
        self._batch_bytes += size
        if self._batch_bytes >= _HAND_OVER_BYTES:
            self._hand_over()

    async def close(self, limit_secs: float) -> None:
        """Waits until everything is written, at most so long."""
        self._hand_over()
        self._batches.put(None)
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_secs):
                await self._drained.wait()

    def _hand_over(self) -> None:
        """Sends off what came since the last time: once in each round of the loop, or when it is much."""
        if self._batch:
            batch, size = self._batch, self._batch_bytes
            self._batch, self._batch_bytes = [], 0
            is_first = self._given_bytes == self._written_bytes + size
            if is_first and size <= _SURE_BYTES and self._takes_some():
                batch = self._rest_of(b"".join(batch))
            if batch:
                self._batches.put(batch)

    def _takes_some(self) -> bool:
        """Whether a write would not wait, as far as the system can tell."""
        return self._poll is not None and self._poll.poll(0) == [(self.fd, select.POLLOUT)]

    def _rest_of(self, data: bytes) -> list[bytes]:
        """What one write leaves to the thread: something only where another has filled the pipe meanwhile."""
        try:
            sent = os.write(self.fd, data)
        except OSError:
            return [data]  # The thread meets the same, and knows what to do.
        self._given_bytes -= sent
        return [data[sent:]] if sent < len(data) else []

    def _watch(self) -> None:
        """Notices at once that nobody will read any more, where the system can tell without a write."""
        if not hasattr(select, "epoll"):  # Only Linux can; elsewhere the next write fails.
            return
        closing = select.epoll()
        with suppress(PermissionError):  # What is no pipe, a file for instance, never closes.
            closing.register(self.fd, 0)  # Asks for nothing: errors and hang-ups are always told.
            self._loop.add_reader(closing.fileno(), self._broken, closing)

    def _broken(self, closing: Any = None) -> None:
        if closing is not None:
            self._loop.remove_reader(closing.fileno())
            closing.close()
        if not self._is_reported:
            self._is_reported = True
            self._on_broken()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, ended = self._next_batch()
            self._write(batch)
            self._written_bytes += len(batch)
            if self._wants_room and self.waiting_bytes <= LOW_WATER_BYTES:
                self._wants_room = False
                self._loop.call_soon_threadsafe(self.on_room)
        self._loop.call_soon_threadsafe(self._drained.set)

    def _next_batch(self) -> tuple[bytes, bool]:
        """Waits for frames and takes those behind them; true when none will follow."""
        frames: list[bytes] = []
        batch = self._batches.get()
        while batch is not None:
            frames += batch
            try:
                batch = self._batches.get_nowait()
            except queue.Empty:
                return b"".join(frames), False
        return b"".join(frames), True

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._is_broken:
            try:
                rest = rest[os.write(self.fd, rest) :]
            except BlockingIOError:
                _wait_until_ready(self.fd, reading=False)
            except OSError:
                self._is_broken = True
                self._loop.call_soon_threadsafe(self._broken)


def _room_poll(fd: int) -> Any:
    """Tells whether `_SURE_BYTES` can be written without a wait; None where no system call tells that."""
    if not hasattr(select, "poll"):  # Windows.
        return None
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return None
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return poll


_HANG_UP_CHECK_SECS = 0.5
"""How soon a host is noticed that went away while nothing is read from it. Own choice."""


def _hung_up(fd: int) -> bool:
    """Whether nobody can write to this pipe any more."""
    if not hasattr(select, "poll"):  # Windows: a pipe cannot be asked; the host's process is watched instead.
        return False
    poll = select.poll()
    poll.register(fd, 0)
    return bool(poll.poll(0))


def _wait_until_ready(fd: int, *, reading: bool) -> None:
    """Waits until a descriptor that somebody made non-blocking can be used; only POSIX has such pipes."""
    if reading:
        select.select([fd], [], [])
    else:
        select.select([], [fd], [])
