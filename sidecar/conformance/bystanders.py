"""Processes beside the one that is judged: one that stands for the host's own, and whether others still run."""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

if sys.platform == "win32":
    import ctypes

LOOK_SECS = 0.02
"""How often a process is looked for that should be gone. Own choice."""


class HostInPlace:
    """Stands for the process of the host (`processId`), so that it can die while the pipes stay open."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> "HostInPlace":
        """It runs until it is told to die; it ends by itself with this process."""
        until_told = (sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()")
        return cls(await asyncio.create_subprocess_exec(*until_told, stdin=subprocess.PIPE))

    @property
    def pid(self) -> int:
        """What the sidecar is told as `processId`."""
        return self._process.pid

    async def die(self) -> None:
        """Ends it, unless it has ended; nothing is left of it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


async def is_gone_within(pid: int, limit_secs: float) -> bool:
    """Whether there is no process of this number, after some time at most."""
    deadline = time.monotonic() + limit_secs
    while is_running(pid):
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(LOOK_SECS)
    return True


if sys.platform == "win32":

    def is_running(pid: int) -> bool:
        """Whether there is such a process."""
        synchronize, still_running = 0x00100000, 0x00000102
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(synchronize, False, pid)
        if not handle:
            return False
        try:
            return bool(kernel.WaitForSingleObject(handle, 0) == still_running)
        finally:
            kernel.CloseHandle(handle)

else:

    def is_running(pid: int) -> bool:
        """Whether there is such a process. One that has ended and that nobody has reaped is none."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        try:
            state = (Path("/proc") / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0]
        except OSError:  # No /proc, or it ended meanwhile.
            return sys.platform != "linux"
        return state not in ("Z", "X")
