"""What is judged, as a process: started in a group of its own, listened to under limits, and ended for certain."""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from sidecar.conformance.frames import Body, FrameReader, Garbage
from sidecar.protocol.values import JsonObject

CHUNK_BYTES = 64 * 1024
MOST_BYTES = 512 * 1024 * 1024
MOST_FRAMES = 20_000
"""What one process may write before it counts as a flood. Own choice: the kit's own cases stay far below."""

GRACE_SECS = 6.0
"""For the process to go after its stdin has ended: the 5 s of `protocol.md`, ground rule 7.1, and a little."""

TASKKILL_SECS = 5.0
"""For Windows' own tool to end a process tree. Own choice."""

STDERR_LINES = 20
MARK_VARIABLE = "AGENT_SIDECAR_CONFORMANCE"


class CannotStartError(Exception):
    """There is no such program, or it cannot be run."""


@define
class Arrived:
    """Something that was written to us: a frame, or what is wrong with what is none.

    `at_secs` is the time of a monotonic clock. `is_read`: a step has taken it.
    """

    frame: JsonObject | None
    fault: str | None
    at_secs: float
    is_read: bool = False


@define
class Inbox:
    """What has come, in its order, and why nothing more will."""

    entries: list[Arrived] = field(factory=list)
    ended: str | None = None
    _news: asyncio.Event = field(factory=asyncio.Event)

    def add(self, entry: Arrived) -> None:
        """Something came."""
        self.entries.append(entry)
        self._news.set()

    def end(self, why: str) -> None:
        """Nothing more comes."""
        self.ended = self.ended or why
        self._news.set()

    def clear(self) -> None:
        """Forgets what came so far."""
        self.entries.clear()

    async def wait(self, deadline_secs: float) -> bool:
        """Until something comes or ends; False where nothing did in time. For one waiter at a time."""
        self._news.clear()
        try:
            async with asyncio.timeout(deadline_secs - time.monotonic()):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class Subject:
    """One running process. `start` makes one, `end` must follow."""

    def __init__(self, process: asyncio.subprocess.Process, mark: str) -> None:
        self.inbox = Inbox()
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._process = process
        self._mark = mark
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._readers = [asyncio.create_task(self._read_frames()), asyncio.create_task(self._read_stderr())]

    @classmethod
    async def start(cls, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> "Subject":
        """Runs `command`. Raises CannotStartError."""
        mark = secrets.token_hex(8)
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env={**os.environ, **env, MARK_VARIABLE: mark},
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                **_own_group(),
            )
        except (OSError, ValueError) as error:
            raise CannotStartError(
                f"cannot start {command[0]!r}: {getattr(error, 'strerror', None) or error}"
            ) from error
        return cls(process, mark)

    async def send(self, data: bytes, limit_secs: float) -> bool:
        """Whether it was taken in time. What has ended takes everything: its end is told by the inbox."""
        stdin = self._process.stdin
        assert stdin is not None
        try:
            async with asyncio.timeout(limit_secs):
                stdin.write(data)
                await stdin.drain()
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def read_on(self, on: bool) -> None:
        """Stops or goes on reading what it writes."""
        if on:
            self._may_read.set()
        else:
            self._may_read.clear()

    def close_input(self) -> None:
        """Ends its stdin."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def terminate(self) -> None:
        """Asks it to go by SIGTERM."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """Ends it by force, and nothing that it started."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def exit_status(self, limit_secs: float) -> int | None:
        """Its status once it has ended, the negative number of a signal; None where it has not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_secs):
                return await self._process.wait()
        return None

    async def end(self, grace_secs: float = GRACE_SECS) -> None:
        """Ends it and everything that it started; politely first."""
        self._may_read.set()
        try:
            if self.inbox.ended is None:
                self.close_input()
                await self.exit_status(grace_secs)
        finally:
            self._kill_tree()
            for reader in self._readers:
                reader.cancel()
            await asyncio.gather(*self._readers, return_exceptions=True)
            await self.exit_status(GRACE_SECS)
            self._close_pipes()

    def _kill_tree(self) -> None:
        if sys.platform == "win32":
            command = ("taskkill", "/T", "/F", "/PID", str(self._process.pid))
            if self._process.returncode is None:
                subprocess.run(command, capture_output=True, check=False, timeout=TASKKILL_SECS)
            return
        strays = set(_marked(self._mark))
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pid in strays:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _close_pipes(self) -> None:
        # What the process started and left may hold the other ends open; nobody waits for that.
        transport = getattr(self._process, "_transport", None)
        if transport is not None:
            transport.close()

    async def _read_frames(self) -> None:
        reader, total = FrameReader(), 0
        stdout = self._process.stdout
        assert stdout is not None
        while data := await stdout.read(CHUNK_BYTES):
            for found in reader.feed(data):
                self.inbox.add(_arrived(found))
            total += len(data)
            if total > MOST_BYTES or len(self.inbox.entries) > MOST_FRAMES:
                self._kill_tree()
                self.inbox.end("it wrote without end, and was stopped")
                return
            await self._may_read.wait()
        if rest := reader.rest():
            self.inbox.add(_arrived(Garbage(rest)))
        status = await self.exit_status(GRACE_SECS)
        self.inbox.end(
            "it closed its stdout" if status is None else f"it ended with status {status}{self._last_words()}"
        )

    async def _read_stderr(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while data := await stderr.read(CHUNK_BYTES):
            self.stderr.extend(data.decode("utf-8", "replace").splitlines())

    def _last_words(self) -> str:
        last = next((line for line in reversed(self.stderr) if line.strip()), "")
        return f"; the last line on stderr: {last[:200]}" if last else ""


def _own_group() -> dict[str, Any]:
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    return {"start_new_session": True}


def _marked(mark: str) -> Iterator[int]:
    """Processes that carry the mark, wherever they have moved. Linux tells; elsewhere the group has to do."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if wanted in environ.read_bytes().split(b"\0"):
                yield int(environ.parent.name)


def _arrived(found: Body | Garbage) -> Arrived:
    now = time.monotonic()
    if isinstance(found, Garbage):
        return Arrived(None, f"bytes that are no frame: {found.data[:80]!r}", now)
    try:
        message = json.loads(found.data)
    except ValueError as error:
        return Arrived(None, f"a body that is not JSON ({error}): {found.data[:80]!r}", now)
    except RecursionError:
        return Arrived(None, "a body that is nested without end", now)
    if not isinstance(message, dict):
        return Arrived(None, f"a body that is no object: {found.data[:80]!r}", now)
    return Arrived(message, None, now)
