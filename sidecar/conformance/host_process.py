"""The host under test as a process: started as the contract says, heard, and ended for certain."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from attrs import define, field

from sidecar.conformance.lives import News
from sidecar.conformance.subject import CannotStartError
from sidecar.protocol.values import JsonObject

STDERR_LINES = 8

LARGEST_LINE_BYTES = 16 * 1024 * 1024

TASKKILL_SECS = 5.0
"""For Windows' own tool to end a process tree. Own choice."""


@define(kw_only=True)
class HostProcess:
    """The program under test."""

    process: asyncio.subprocess.Process
    news: News
    printed: list[JsonObject] = field(factory=list)
    said: deque[str] = field(factory=lambda: deque(maxlen=STDERR_LINES))
    """The last that it wrote to stderr."""
    has_ended: bool = False
    was_killed: bool = False
    """Whether its end is ours."""
    _tasks: list[asyncio.Task[None]] = field(factory=list)

    @classmethod
    async def start(
        cls, command: Sequence[str], sidecar_command: Sequence[str], scenario: JsonObject, news: News
    ) -> "HostProcess":
        """Runs it. Raises CannotStartError."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={
                    **os.environ,
                    "AGENT_SIDECAR_COMMAND": json.dumps(sidecar_command),
                    "AGENT_SIDECAR_SCENARIO": json.dumps(scenario),
                },
                limit=LARGEST_LINE_BYTES,
                **_own_group(),
            )
        except OSError as error:
            raise CannotStartError(f"{command[0]!r} cannot be started: {error.strerror}") from error
        host = cls(process=process, news=news)
        host._tasks = [asyncio.create_task(host._listen()), asyncio.create_task(host._hear_complaints())]
        return host

    @property
    def unsupported(self) -> str | None:
        """What it says that it cannot do."""
        return next((str(line["unsupported"]) for line in self.printed if "unsupported" in line), None)

    @property
    def last_words(self) -> str:
        """For a failure: what it said last on stderr."""
        return f"; it said: {' / '.join(self.said)}" if self.said else ""

    def kill_alone(self) -> None:
        """Ends it by force, and nothing that it started."""
        self.was_killed = True
        with suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        """Ends it and what it started, by force where it still runs."""
        _kill(self.process)
        await self.process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self) -> None:
        assert self.process.stdout
        async for line in self.process.stdout:
            with suppress(ValueError):
                printed = json.loads(line)
                if isinstance(printed, dict):
                    self.printed.append(printed)
                    self.news.tell()
        await self.process.wait()
        self.has_ended = True
        self.news.tell()

    async def _hear_complaints(self) -> None:
        assert self.process.stderr
        async for line in self.process.stderr:
            self.said.append(line.decode("utf-8", "replace").rstrip())


if sys.platform == "win32":

    def _own_group() -> dict[str, Any]:
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}

    def _kill(process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            command = ("taskkill", "/T", "/F", "/PID", str(process.pid))
            subprocess.run(command, capture_output=True, check=False, timeout=TASKKILL_SECS)

else:

    def _own_group() -> dict[str, Any]:
        """What it starts ends with it."""
        return {"start_new_session": True}

    def _kill(process: asyncio.subprocess.Process) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
