"""A command while it runs: its output as it comes, and its end with everything that it started."""

import asyncio
import codecs
import subprocess
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from sidecar.mcp.process import ProcessTree

MAX_KEPT_BYTES = 1024 * 1024
"""Of a longer output its beginning and its end are kept, half of this each. Own choice."""

GRACE_SECS = 1.0
"""From asking a command to end to ending it by force; also how long its output may stay open after its end,
held by something that it left behind. Own choice."""

_UNTAKEN_BYTES = 256 * 1024
"""More output than this is left in the pipe until somebody has taken what was read."""


class RunningCommand(asyncio.SubprocessProtocol):
    """One command. Whoever starts it calls `end`, however it went."""

    @classmethod
    async def start(cls, command: list[str], *, folder: Path, environ: dict[str, str]) -> "RunningCommand":
        """Starts the command without input. Raises OSError or ValueError."""
        tree = ProcessTree()
        tree.prepare()
        try:
            transport, running = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(tree),
                *command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**environ, **tree.environ},
                **tree.spawn_options,
            )
        except BaseException:
            tree.kill()
            await tree.release()
            raise
        tree.adopt(transport.get_pid())
        return running

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree
        self._transport: asyncio.SubprocessTransport | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._untaken: list[str] = []
        self._untaken_bytes = 0
        self._kept = _Kept()
        self._news = asyncio.Event()
        self._exited = asyncio.Event()
        self._exited_at: float | None = None
        self._is_closed = False

    @property
    def exit_code(self) -> int | None:
        """None while it runs; as a shell has it, 128 and more for a signal."""
        assert self._transport is not None
        code = self._transport.get_returncode()
        return 128 - code if code is not None and code < 0 else code

    async def output_until(self, deadline: float) -> AsyncIterator[str]:
        """What it writes, as it comes, until it has ended or `deadline` (of the event loop's clock) has passed."""
        loop = asyncio.get_running_loop()
        while True:
            limit = deadline if self._exited_at is None else min(deadline, self._exited_at + GRACE_SECS)
            try:
                async with asyncio.timeout_at(limit):
                    await self._news.wait()
            except TimeoutError:
                return
            self._news.clear()
            if text := self._take():
                yield text
            if (self._is_closed and self._exited_at is not None) or loop.time() >= limit:
                return

    def kept_output(self) -> str:
        """All that it wrote, or the beginning and the end of very much."""
        return self._kept.text()

    async def end(self) -> None:
        """Ends the command and all that it started, within about two graces."""
        assert self._transport is not None
        try:
            if self._exited_at is None:
                self._tree.terminate()
                await self._exits()
        finally:
            # Always: what it started may be there still.
            self._tree.kill()
            await self._exits()
            self._transport.close()
            await self._tree.release()

    async def _exits(self) -> None:
        try:
            async with asyncio.timeout(GRACE_SECS):
                await self._exited.wait()
        except TimeoutError:
            pass  # Something the system cannot end; nobody waits for it any longer.

    def _take(self) -> str:
        text = "".join(self._untaken)
        self._untaken.clear()
        if self._untaken_bytes > _UNTAKEN_BYTES:
            self._pipe().resume_reading()
        self._untaken_bytes = 0
        return text

    def _pipe(self) -> asyncio.ReadTransport:
        assert self._transport is not None
        pipe = self._transport.get_pipe_transport(1)
        assert isinstance(pipe, asyncio.ReadTransport)
        return pipe

    # What the event loop reports ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._kept.add(data)
        self._untaken.append(self._decoder.decode(data))
        was_full = self._untaken_bytes > _UNTAKEN_BYTES
        self._untaken_bytes += len(data)
        if self._untaken_bytes > _UNTAKEN_BYTES and not was_full:
            self._pipe().pause_reading()
        self._news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._is_closed = True
        self._untaken.append(self._decoder.decode(b"", final=True))
        self._news.set()

    def process_exited(self) -> None:
        self._exited_at = asyncio.get_running_loop().time()
        self._exited.set()
        self._news.set()


class _Kept:
    """Bytes of which the beginning and the end stay."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = MAX_KEPT_BYTES // 2 - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail.append(data[room:] if room > 0 else data)
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) > MAX_KEPT_BYTES // 2:
            dropped = len(self._tail.popleft())
            self._tail_bytes -= dropped
            self._left_out += dropped

    def text(self) -> str:
        middle = f"\n[... {self._left_out} bytes left out ...]\n".encode() if self._left_out else b""
        return (bytes(self._head) + middle + b"".join(self._tail)).decode(errors="replace")
