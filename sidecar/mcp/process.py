"""A server as a child process: its pipes, its last words, and its end.

The process is started in a session of its own. Its stdout is cut into lines, its stderr is always read, so that
it can never block on it, and only the last of it kept. When it is closed, or has died, everything that it
started is ended with it.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from typing import cast

from sidecar.mcp.config import Launch
from sidecar.mcp.framing import Line, LineSplitter
from sidecar.mcp.tail import Tail
from sidecar.mcp.transport import Outgoing

if sys.platform == "win32":
    from sidecar.mcp.windows_tree import ProcessTree as ProcessTree
else:
    from sidecar.mcp.posix_tree import ProcessTree as ProcessTree

EXIT_GRACE_SECS = 1.0
"""From the end of its stdin to SIGTERM. MCP 2025-11-25, basic/lifecycle#shutdown has the order, the times are
ours: the whole ladder must fit into the 3 s in which everything of ours ends."""

TERMINATE_GRACE_SECS = 0.75
"""From SIGTERM to SIGKILL."""

KILL_GRACE_SECS = 0.5
"""From SIGKILL to giving up on a process that the system cannot end."""

DRAIN_SECS = 0.25
"""How long stdout may stay open, held by a grandchild, after the server has exited or closed its stdin."""

LAST_WORDS_SECS = 0.1
"""How long exit status and stderr are waited for when stdout has ended."""

_UNREAD_BYTES = 4 * 1024 * 1024
"""More than this is left in the pipe until somebody has taken what was read."""


class ServerProcess:
    """The transport over the stdin and stdout of a child process."""

    def __init__(self, tree: ProcessTree, transport: asyncio.SubprocessTransport, pipes: "_Pipes") -> None:
        self._tree = tree
        self._transport = transport
        self._pipes = pipes
        self._stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
        self._loop = asyncio.get_running_loop()
        self._writes_at_once = True
        self._held: list[bytes] = []
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, launch: Launch, tail: Tail) -> "ServerProcess":
        """Starts the server; what it writes to stderr goes to `tail`. Raises OSError or ValueError."""
        tree = ProcessTree()
        tree.prepare()
        try:
            transport, pipes = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Pipes(tail),
                launch.program,
                *launch.args,
                env={**launch.environ, **tree.environ},
                cwd=launch.folder,
                **tree.spawn_options,
            )
        except BaseException:
            tree.kill()
            await tree.release()
            raise
        tree.adopt(transport.get_pid())
        return cls(tree, transport, pipes)

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    @property
    def unsent_bytes(self) -> int:
        return self._stdin.get_write_buffer_size()

    def send(self, message: Outgoing) -> None:
        """Writes one line: the first after something came at once, those behind it together in one go."""
        if self._writes_at_once and not self._held:
            self._writes_at_once = False
            self._write(message.body)
            return
        if not self._held:
            self._loop.call_soon(self._write_held)
        self._held.append(message.body)

    def withdraw(self, request_id: int) -> bool:
        """On a pipe a message has to say so, in every revision."""
        return False

    def speaks(self, revision: str) -> None:
        """All revisions look alike on a pipe."""

    def hand_over(self, take: Callable[[Line], bool]) -> None:
        """Gives lines to `take` as they come; one that it does not take waits for `receive`, with all behind it.

        That spares each answer a turn of the loop, a tenth of the time of a call.
        """

        def take_at_once(line: Line) -> bool:
            self._writes_at_once = True
            return take(line)

        self._pipes.take_at_once = take_at_once

    async def receive(self) -> Sequence[Line]:
        """The lines that have come; none once stdout has ended."""
        lines = await self._pipes.lines()
        self._writes_at_once = True
        return lines

    async def why_ended(self) -> str:
        """`exited with status 1`, `was ended by SIGKILL`, `closed its stdout`."""
        await asyncio.wait({self._pipes.exited, self._pipes.stderr_ended}, timeout=LAST_WORDS_SECS)
        status = self._transport.get_returncode()
        if status is None:
            return f"closed its {self._pipes.lost}"
        return f"was ended by {_signal_name(-status)}" if status < 0 else f"exited with status {status}"

    async def close(self) -> None:
        """Ends the process and all that it started; takes at most the sum of the three graces above."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        # Whoever gives up waiting must not leave a process behind.
        await asyncio.shield(self._closing)

    def kill(self) -> None:
        """Ends everything at once, for when there is no time left to wait."""
        self._tree.kill()

    def _write(self, lines: bytes) -> None:
        if not self._stdin.is_closing():
            self._stdin.write(lines + b"\n")

    def _write_held(self) -> None:
        if self._held:
            self._write(b"\n".join(self._held))
            self._held.clear()

    async def _end(self) -> None:
        try:
            self._write_held()
            self._stdin.close()
            self._pipes.discard()
            if not await self._exits_within(EXIT_GRACE_SECS) or self._tree.is_alive():
                self._tree.terminate()
                await self._is_gone_within(TERMINATE_GRACE_SECS)
        finally:
            # Always, however politely the process itself has gone: what it started may be there still.
            self._tree.kill()
            await self._is_gone_within(KILL_GRACE_SECS)
            self._transport.close()
            await self._tree.release()

    async def _exits_within(self, limit_secs: float) -> bool:
        done, _ = await asyncio.wait({self._pipes.exited}, timeout=limit_secs)
        return bool(done)

    async def _is_gone_within(self, limit_secs: float) -> None:
        """Waits for the process and its group. Nothing tells when a group has ended, so it is looked at."""
        deadline = asyncio.get_running_loop().time() + limit_secs
        if await self._exits_within(limit_secs):
            while self._tree.is_alive() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110  no event
                await asyncio.sleep(0.02)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Pipes(asyncio.SubprocessProtocol):
    """Takes in what the process writes, as the event loop reports it."""

    def __init__(self, tail: Tail) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.stderr_ended: asyncio.Future[None] = loop.create_future()
        self.lost = "stdout"
        self._loop = loop
        self._tail = tail
        self._splitter = LineSplitter()
        self._lines: list[Line] = []
        self._unread_bytes = 0
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None
        self._stdout: asyncio.ReadTransport | None = None
        self._is_paused = False
        self._is_wanted = True
        self.take_at_once: Callable[[Line], bool] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        process = cast(asyncio.SubprocessTransport, transport)
        self._stdout = cast(asyncio.ReadTransport, process.get_pipe_transport(1))
        self._stdout.set_protocol(_Stdout(self, self._stdout.get_protocol()))

    async def lines(self) -> Sequence[Line]:
        while not self._lines and not self._ended:
            self._waiter = self._loop.create_future()
            await self._waiter
        lines, self._lines = self._lines, []
        self._resume()
        return lines

    def discard(self) -> None:
        """From now on stdout is read and thrown away: a process that blocks on it could not end by itself."""
        self._is_wanted = False
        self._lines.clear()
        self._resume()
        self._end()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._tail.add(data)
        elif self._is_wanted and (lines := self._not_taken(self._splitter.feed(data))):
            self._lines += lines
            self._unread_bytes += len(data)
            self._wake()
            if self._unread_bytes > _UNREAD_BYTES and self._stdout is not None:
                self._is_paused = True
                self._stdout.pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        match fd:
            case 0:
                self._end_soon("stdin")
            case 1:
                self._end()
            case 2 if not self.stderr_ended.done():
                self.stderr_ended.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)
        self._end_soon("stdout")

    def _not_taken(self, lines: list[Line]) -> list[Line]:
        """What is left for `lines`, which has to be waiting: else it has others to take first."""
        take = self.take_at_once
        if take is None or self._lines or self._waiter is None or self._waiter.done():
            return lines
        for number, line in enumerate(lines):
            if not take(line):
                return lines[number:]
        return []

    def _end_soon(self, lost: str) -> None:
        """Ends the stream, but not before what is still in the pipe was read."""
        if not self._ended:
            self.lost = lost
            self._loop.call_later(DRAIN_SECS, self._end)

    def _end(self) -> None:
        if self._is_paused:
            self._end_soon(self.lost)
        elif not self._ended:
            self._lines += self._splitter.flush()
            self._ended = True
            self._wake()

    def _resume(self) -> None:
        self._unread_bytes = 0
        if self._is_paused and self._stdout is not None:
            self._is_paused = False
            self._stdout.resume_reading()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Stdout(asyncio.Protocol):
    """Hands on at once what comes on stdout, and its end to asyncio, which waits for that.

    asyncio's own protocol puts everything off by a turn of the loop; over a call that is a tenth of the time.
    """

    def __init__(self, pipes: _Pipes, asyncios_own: asyncio.BaseProtocol) -> None:
        self._pipes = pipes
        self._asyncios_own = asyncios_own

    def data_received(self, data: bytes) -> None:
        self._pipes.pipe_data_received(1, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._asyncios_own.connection_lost(exc)
