"""The sidecar's process: started in a session of its own, listened to, and ended for certain.

Its stdout is decoded into messages, its stderr is always drained and kept as a tail. Stopping it climbs a
ladder: stdin is closed, which the protocol takes as the order to save and go; then SIGTERM; then the whole
process group is killed.
"""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from sidecar_client.errors import BrokenStream, CannotStart, ClientError, SidecarExited
from sidecar_client.frames import FrameDecoder, JsonObject, encode_frame

DRAIN_SECS = 1.0
"""How long the pipes of a process that has exited are read for its last words. Own choice: a grandchild may
hold them open for ever."""

STDERR_TAIL_LINES = 40
"""Enough for a traceback. Own choice."""

MAX_STDERR_LINE_BYTES = 8 * 1024
"""Where a line that never ends is cut, so that it cannot grow without limit."""

TASKKILL_SECS = 5.0
"""For Windows' own tool to end a process tree. Own choice."""

STDIN, STDOUT, STDERR = 0, 1, 2

log = logging.getLogger("sidecar_client")


class SidecarProcess(asyncio.SubprocessProtocol):
    """One process, from its start to its end; `start` makes one.

    `on_message` is called with each message; `on_lost` once, when nothing more can come, with the reason.
    """

    def __init__(
        self,
        on_message: Callable[[JsonObject], None],
        on_lost: Callable[[ClientError], None],
        on_stderr: Callable[[str], None] | None,
    ) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._on_stderr = on_stderr
        self._decoder = FrameDecoder()
        self._tail: deque[str] = deque(maxlen=STDERR_TAIL_LINES)
        self._stderr_rest = b""
        self._open_pipes = {STDOUT, STDERR}
        self._lost = False
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        on_message: Callable[[JsonObject], None],
        on_lost: Callable[[ClientError], None],
        on_stderr: Callable[[str], None] | None,
    ) -> "SidecarProcess":
        """Runs `command`. Raises CannotStart."""
        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.subprocess_exec(
                lambda: cls(on_message, on_lost, on_stderr),
                *command,
                cwd=cwd,
                env=None if env is None else dict(env),
                **_own_group(),
            )
        except OSError as error:
            raise CannotStart(f"cannot start {command[0]!r}: {error.strerror or error}") from error
        return protocol

    @property
    def pid(self) -> int | None:
        return self._transport.get_pid() if self._transport else None

    @property
    def status(self) -> int | None:
        """Exit status, the negative number of a signal, or None while it runs."""
        return self._transport.get_returncode() if self._transport else None

    @property
    def stderr_tail(self) -> str:
        return "\n".join(self._tail)

    def send(self, message: JsonObject) -> None:
        """Queues a message; without effect once the process is lost. Raises ValueError for what is not JSON."""
        frame = encode_frame(message)
        stdin = self._stdin()
        if not self._lost and stdin and not stdin.is_closing():
            stdin.write(frame)

    async def stop(self, grace_secs: float) -> None:
        """Ends the process, which gets `grace_secs` at each rung of the ladder; it is gone when this returns.

        Cancelling this kills it at once.
        """
        try:
            for climb in (self._close_input, self._terminate, self.kill_group):
                climb()
                if await self._is_gone_within(grace_secs):
                    break
            else:
                log.error("the sidecar (process %s) outlives SIGKILL", self.pid)
        except asyncio.CancelledError:
            self.kill_group()
            raise
        finally:
            if self._transport:
                self._transport.close()

    def kill_group(self) -> None:
        """Ends the process, and with it everything in its group."""
        # Only while the process has not been waited for: afterwards its number may be somebody else's.
        if self.pid is None or self.status is not None:
            return
        if sys.platform == "win32":
            command = ("taskkill", "/T", "/F", "/PID", str(self.pid))
            subprocess.run(command, capture_output=True, check=False, timeout=TASKKILL_SECS)
        else:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def _is_gone_within(self, grace_secs: float) -> bool:
        try:
            async with asyncio.timeout(grace_secs):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast(asyncio.WriteTransport, self._transport.get_pipe_transport(STDIN)) if self._transport else None

    def _close_input(self) -> None:
        if stdin := self._stdin():
            stdin.close()

    def _terminate(self) -> None:
        if self._transport and self.status is None:
            self._transport.terminate()

    # What asyncio calls --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == STDERR:
            self._take_stderr(data)
        elif not self._lost:
            try:
                for message in self._decoder.feed(data):
                    self._on_message(message)
            except BrokenStream as error:
                self._lose(error)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open_pipes.discard(fd)
        if fd == STDERR:
            self._take_stderr(b"\n" if self._stderr_rest else b"")  # a last line without its end counts too
        if not self._open_pipes and self.status is not None:
            self._lose_to_exit()
        elif fd == STDOUT:
            asyncio.get_running_loop().call_later(DRAIN_SECS, self._lose_to_exit)

    def process_exited(self) -> None:
        self._exited.set()
        if not self._open_pipes:
            self._lose_to_exit()
        else:
            asyncio.get_running_loop().call_later(DRAIN_SECS, self._lose_to_exit)

    def _take_stderr(self, data: bytes) -> None:
        *lines, self._stderr_rest = (self._stderr_rest + data).split(b"\n")
        if len(self._stderr_rest) > MAX_STDERR_LINE_BYTES:
            lines.append(self._stderr_rest)
            self._stderr_rest = b""
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip("\r")
            self._tail.append(text)
            if self._on_stderr:
                self._on_stderr(text)

    def _lose_to_exit(self) -> None:
        self._lose(SidecarExited(self.status, self.stderr_tail))

    def _lose(self, reason: ClientError) -> None:
        if not self._lost:
            self._lost = True
            self._on_lost(reason)


if sys.platform == "win32":

    def _own_group() -> dict[str, Any]:
        return {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}

else:

    def _own_group() -> dict[str, Any]:
        """A Ctrl-C at the terminal is for the host to deal with, and the whole group can be ended at once."""
        return {"start_new_session": True}
