"""Takes stdin and stdout away from everything but the wire.

After `take_standard_streams` a print, a library or a child process can neither put a byte between the frames
nor eat one of the host's. What they print goes to the host's stderr by way of a pipe that a thread of ours
keeps empty: a host that does not read stderr must not freeze who prints. Imports little, to come first.
"""

import io
import os
import queue
import select
import sys
import threading
from contextlib import suppress

if sys.platform == "win32":
    import msvcrt

PRINTED_BYTES_KEPT = 1024 * 1024
"""How much printed output waits for a host that does not read stderr; more is dropped. Own choice."""

_FLUSH_SECS = 0.2


class StandardStreams:
    """The descriptors of the wire, and what was printed and waits to be passed on."""

    def __init__(self, stdin_fd: int, stdout_fd: int, printed: "_Printed") -> None:
        self.stdin_fd = stdin_fd
        self.stdout_fd = stdout_fd
        self._printed = printed

    def flush_printed(self) -> None:
        """Passes on what was printed so far, within a fraction of a second. To be called last."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # Closed, or none at all.
                stream.flush()
        self._printed.finish(_FLUSH_SECS)


def take_standard_streams() -> StandardStreams:
    """Call it before anything may print, once."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # First, as it asks a file for its position and a pipe has none.
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    for fd in (0, 1, 2):
        _open_if_closed(fd)
    stdin_fd, stdout_fd, stderr_fd = _own(0), _own(1), _own(2)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    printed = _Printed(stderr_fd)
    printed.start()
    return StandardStreams(stdin_fd, stdout_fd, printed)


def _open_if_closed(fd: int) -> None:
    """A stream that was closed before we started is an empty one."""
    try:
        os.fstat(fd)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # Takes the lowest number that is free, which is this one.


def _own(fd: int) -> int:
    """A copy that children do not inherit."""
    copy = os.dup(fd)
    if sys.platform == "win32":
        msvcrt.setmode(copy, os.O_BINARY)
    return copy


class _Printed:
    """Descriptors 1 and 2 lead into a pipe; one thread empties it, another feeds the host's stderr."""

    def __init__(self, stderr_fd: int) -> None:
        self._stderr_fd = stderr_fd
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._taken_bytes = 0
        self._passed_bytes = 0
        self._finished = threading.Event()

    def start(self) -> None:
        source, sink = os.pipe()
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.close(sink)
        threading.Thread(target=self._empty, args=(source,), name="printed", daemon=True).start()
        threading.Thread(target=self._pass_on, name="stderr", daemon=True).start()

    def finish(self, limit_secs: float) -> None:
        # Without writers of ours the pipe ends, unless a child still holds it open.
        os.dup2(self._stderr_fd, 1)
        os.dup2(self._stderr_fd, 2)
        self._finished.wait(limit_secs)

    def _empty(self, source: int) -> None:
        while piece := os.read(source, 64 * 1024):
            if self._taken_bytes - self._passed_bytes < PRINTED_BYTES_KEPT:
                self._taken_bytes += len(piece)
                self._pieces.put(piece)
        self._pieces.put(b"")

    def _pass_on(self) -> None:
        while piece := self._pieces.get():
            rest = memoryview(piece)
            while rest:
                try:
                    rest = rest[os.write(self._stderr_fd, rest) :]
                except BlockingIOError:
                    select.select([], [self._stderr_fd], [])
                except OSError:  # The host closed it: whatever is printed from now on is lost, and that is all.
                    break
            self._passed_bytes += len(piece)
        self._finished.set()
