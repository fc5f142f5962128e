"""Notices when the host's process is gone, for a host that dies while something else holds its pipes open."""

import asyncio
import os
import sys
from collections.abc import Callable

if sys.platform == "win32":
    import ctypes

POLL_SECS = 1.0
"""How often a process is looked for where the system cannot tell by itself. Own choice."""


class HostProcess:
    """Calls `on_gone` once, from the event loop, when the process is there no more, or never was."""

    def __init__(self, process_id: int, on_gone: Callable[[], None]) -> None:
        self._process_id = process_id
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()

    def watch(self) -> None:
        """Watches until the process is gone; there is no way to stop, as nobody needs one."""
        try:
            fd = os.pidfd_open(self._process_id) if sys.platform == "linux" else None
        except ProcessLookupError:
            self._loop.call_soon(self._on_gone)
            return
        except OSError:  # An old kernel or a sandbox has no pidfd.
            fd = None
        if fd is None:
            self._poll()
        else:
            self._loop.add_reader(fd, self._gone, fd)

    def _gone(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        os.close(fd)
        self._on_gone()

    def _poll(self) -> None:
        if is_alive(self._process_id):
            self._loop.call_later(POLL_SECS, self._poll)
        else:
            self._on_gone()


if sys.platform == "win32":

    def is_alive(process_id: int) -> bool:
        """Whether there is such a process."""
        synchronize, still_running = 0x00100000, 0x00000102
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(synchronize, False, process_id)
        if not handle:
            return False
        try:
            return bool(kernel.WaitForSingleObject(handle, 0) == still_running)
        finally:
            kernel.CloseHandle(handle)

else:

    def is_alive(process_id: int) -> bool:
        """Whether there is such a process, ours or not."""
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
