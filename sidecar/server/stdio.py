"""Serves one host on stdin and stdout, from the first byte to the exit status."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, NoReturn

from sidecar.protocol.errors import RequestError
from sidecar.server.answers import log_failure
from sidecar.server.ending import Ending, leave
from sidecar.server.framing import FrameParser, FramingError
from sidecar.server.guard import StandardStreams, take_standard_streams
from sidecar.server.outbox import Outbox
from sidecar.server.pipes import Reader, Writer
from sidecar.server.rpc import SidecarServer

log = logging.getLogger("sidecar.server")

FLUSH_LIMIT_SECS = 1.0
"""How long, at the end, a host may take to read what was sent to it. Own choice."""

FLUSH_RESERVE_SECS = 0.3
"""What is left of that where closing takes all it can get; the host could read meanwhile. Own choice."""

TASKS_LIMIT_SECS = 0.2
"""How long, at the end, the last tasks may take to tidy up. Own choice."""


def serve_stdio(server: SidecarServer, streams: StandardStreams | None = None) -> NoReturn:
    """Serves until the host leaves, then ends the process.

    Exit status: 0 after `shutdown`, 128 plus the number of a signal, else 1. `streams` are given where they
    had to be taken earlier, before something might print.
    """
    streams = streams or take_standard_streams()
    status = 1
    try:
        status = asyncio.new_event_loop().run_until_complete(_serve(server, streams))
    except BaseException as error:  # noqa: BLE001  the last boundary: whatever it was, the process must end
        log_failure(error, "the sidecar")
    streams.flush_printed()
    leave(status)


async def _serve(server: SidecarServer, streams: StandardStreams) -> int:
    protocol = server.protocol
    ending = Ending(lambda: protocol.exit_status)
    writer = Writer(streams.stdout_fd, on_broken=lambda: ending.begin(1, "the host closed our stdout"))
    protocol.connect(Outbox(writer), ending.begin)
    connection = _Connection(server, streams.stdin_fd, ending)
    ending.heed_signals()
    writer.start()
    connection.start()
    status = await ending.wait()
    await protocol.close()
    await _within(ending.remaining_secs - FLUSH_RESERVE_SECS - TASKS_LIMIT_SECS, server.close())
    await _cancel_tasks()
    await protocol.outbox.close(min(FLUSH_LIMIT_SECS, ending.remaining_secs))
    return status


async def _within(limit_secs: float, work: Coroutine[Any, Any, None]) -> None:
    """Waits for the work no longer than that, even where it does not heed its cancellation."""
    task = asyncio.create_task(work)
    done, _ = await asyncio.wait([task], timeout=limit_secs)
    if not done:
        log.error("closing took longer than %.1f s", limit_secs)
    elif not task.cancelled() and (error := task.exception()) is not None:
        log_failure(error, "closing")


async def _cancel_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=TASKS_LIMIT_SECS)


class _Connection:
    """Bytes in, bodies to the protocol, in order; reads no more while the host does not read either."""

    def __init__(self, server: SidecarServer, stdin_fd: int, ending: Ending) -> None:
        self._server = server
        self._protocol = server.protocol
        self._ending = ending
        self._parser = FrameParser()
        self._reader = Reader(stdin_fd, on_bytes=self._on_bytes, on_end=self._on_end, at_end=ending.arm)
        self._unreleased = 0
        self._at_end = False
        self._is_due = False

    def start(self) -> None:
        self._reader.start()

    def _on_bytes(self, data: bytes) -> None:
        self._parser.receive(data)
        self._unreleased += 1
        if not self._is_due:
            self._handle_bodies()

    def _on_end(self) -> None:
        self._at_end = True
        if not self._is_due or self._protocol.outbox.is_full:
            self._handle_bodies()

    def _handle_bodies(self) -> None:
        """Handles what is complete, then lets the reader go on."""
        self._is_due = False
        try:
            self._is_due = self._handle_some()
        except FramingError as error:
            self._protocol.refuse(None, RequestError("parseError", f"the byte stream is lost: {error}"))
            self._ending.begin(1, str(error))
        if self._is_due:
            return
        if self._at_end:
            self._ending.begin(self._protocol.exit_status, "stdin ended")
        for _ in range(self._unreleased):
            self._reader.release()
        self._unreleased = 0

    def _handle_some(self) -> bool:
        """Handles bodies; true where it has to stop, having seen to it that `_handle_bodies` is called again."""
        outbox = self._protocol.outbox
        self._parser.max_frame_bytes = self._server.max_frame_bytes
        while not self._ending.has_begun:
            if outbox.is_full and not self._at_end:
                outbox.when_room(self._handle_bodies)
                return True
            body = self._parser.next_body()
            if body is None:
                break
            if self._protocol.handle_body(body):  # What was started takes its first step before the next body.
                asyncio.get_running_loop().call_soon(self._handle_bodies)
                return True
        return False
