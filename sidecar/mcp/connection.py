"""One conversation with a server: whose answer is whose, how long to wait, and what to do when it breaks.

Each request ends in exactly one way: its answer, the server's error, its time limit, its caller's cancellation,
or the end of the server. What a server sends wrong fails the one request that it was meant for.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import define, frozen

from sidecar.mcp import envelope
from sidecar.mcp.envelope import (
    METHOD_NOT_FOUND,
    Answer,
    BrokenAnswer,
    Incoming,
    Junk,
    Refusal,
    ServerNotification,
    ServerRequest,
    own_id,
)
from sidecar.mcp.framing import Line
from sidecar.mcp.tail import Tail
from sidecar.mcp.transport import Transport
from sidecar.protocol.errors import ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

OnProgress = Callable[[float | None, float | None, str | None], Awaitable[None]]
"""Told how far a call is: done, total, message. The server is read no further while many such reports wait."""

MAX_JUNK_LINES = 1000
"""So many lines in a row without one message, and the program is no MCP server. Own choice."""

MAX_WAITING_REPORTS = 256
"""Progress reports of one request that may wait for `on_progress`. Own choice."""

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""A server that leaves more than this unread is sent no further requests. Own choice: one largest message."""

_MAX_UNSENT_REPLY_BYTES = 1024 * 1024

logger = logging.getLogger("sidecar.mcp")


class ServerRefusalError(Exception):
    """The server answered a request with an error. `code` and `data` are its own."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.message = refusal.message
        self.code = refusal.code
        self.data = refusal.data


@frozen
class _Report:
    done: float | None
    total: float | None
    message: str | None


@define(eq=False)
class _Pending:
    """A request that waits. `reports` is there as long as somebody follows its progress."""

    method: str
    answer: "asyncio.Future[JsonObject]"
    limit_secs: float
    deadline: float
    is_cancellable: bool
    reports: "asyncio.Queue[_Report | None] | None" = None


class Connection:
    """Requests to one server, and its answers, over a transport.

    `replies` says how the server's own requests are answered, `on_notification` hears its notifications; neither
    may wait. Everything that fails raises ToolError, a refusal of the server ServerRefusalError.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        server: str,
        timeout_secs: float,
        tail: Tail,
        replies: Mapping[str, Callable[[JsonObject], JsonObject]],
        on_notification: Callable[[str, JsonObject], None],
    ) -> None:
        self._transport = transport
        self._server = server
        self._timeout_secs = timeout_secs
        self._tail = tail
        self._replies = replies
        self._on_notification = on_notification
        self._loop = asyncio.get_running_loop()
        self._ids = itertools.count(1)  # Not 0: some servers take that for no progress token.
        self._pending: dict[int, _Pending] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._crowded: _Pending | None = None
        self._reports_taken = asyncio.Event()
        self._junk_lines = 0
        self._ending: str | None = None
        self._ended = asyncio.Event()

    @property
    def ending(self) -> str | None:
        """What became of the server, as the end of a sentence; None while it is there."""
        return self._ending

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout_secs: float | None = None,
        on_progress: OnProgress | None = None,
        is_cancellable: bool = True,
    ) -> JsonObject:
        """The server's result.

        Raises ToolError `mcpTimeout` after `timeout_secs`, `mcpError` where the server ends or answers what cannot
        be read, `invalidArguments` for params that are no JSON. When the limit passes or the caller is cancelled,
        the server is told, except where the specification forbids that (`is_cancellable`).
        """
        request_id = next(self._ids)
        if on_progress is not None:
            params = {**(params or {}), "_meta": {"progressToken": request_id}}
        self._send(method, self._encoded(request_id, method, params))
        limit_secs = self._timeout_secs if timeout_secs is None else timeout_secs
        deadline = self._loop.time() + limit_secs
        pending = _Pending(method, self._loop.create_future(), limit_secs, deadline, is_cancellable)
        self._pending[request_id] = pending
        self._set_alarm(deadline)
        try:
            if on_progress is None:
                return await pending.answer
            return await self._followed(pending, on_progress)
        except asyncio.CancelledError:
            self._withdraw(request_id, "the caller no longer waits")
            raise
        finally:
            self._pending.pop(request_id, None)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Tells the server something."""
        self._transport.send(envelope.notification(method, params))

    async def read(self) -> None:
        """Takes in what the server sends until it ends; then fails whatever still waits. Runs as a task."""
        try:
            while self._ending is None and (lines := await self._transport.receive()):
                for line in lines:
                    self._take_line(line)
                await self._room_for_reports()
            if self._ending is None:
                self.end(await self._transport.why_ended())
        finally:
            self.end("was stopped")

    def end(self, ending: str) -> None:
        """Fails all that waits and all that comes, because the server `ending`. The first reason stays."""
        if self._ending is not None:
            return
        self._ending = ending
        self._ended.set()
        if self._alarm is not None:
            self._alarm.cancel()
        for request_id, pending in list(self._pending.items()):
            message = f"server {self._server!r} {ending} before it answered {pending.method}"
            self._fail(request_id, self.error("mcpError", message))

    async def wait_ended(self) -> str:
        """Returns the `ending` once there is one."""
        await self._ended.wait()
        return self._ending or ""

    def error(self, kind: ToolErrorKind, message: str) -> ToolError:
        """A failure of this server, with its last words."""
        tail = self._tail.text()
        data: dict[str, Any] = {} if tail is None else {"stderrTail": tail}
        return ToolError(kind, message, server=self._server, **data)

    # Sending --------------------------------------------------------------------------------------------

    def _encoded(self, request_id: int, method: str, params: JsonObject | None) -> bytes:
        try:
            return envelope.request(request_id, method, params)
        except (ValueError, TypeError, RecursionError) as error:
            raise self.error("invalidArguments", f"what {method} is given is no JSON: {error}") from None

    def _send(self, method: str, message: bytes) -> None:
        if self._ending is not None:
            raise self.error("mcpError", f"server {self._server!r} {self._ending}, so {method} cannot be sent")
        if self._transport.unsent_bytes > MAX_UNSENT_BYTES:
            raise self.error("mcpError", f"server {self._server!r} does not read what it is sent")
        self._transport.send(message)

    def _reply(self, request: ServerRequest) -> None:
        if self._transport.unsent_bytes > _MAX_UNSENT_REPLY_BYTES:
            logger.warning("server %r asks more than it reads answers; one is left out", self._server)
            return
        reply = self._replies.get(request.method)
        if reply is None:
            reason = f"{request.method} is not offered by this client"
            self._transport.send(envelope.error(request.id, METHOD_NOT_FOUND, reason))
        else:
            self._transport.send(envelope.result(request.id, reply(request.params)))

    def _withdraw(self, request_id: int, reason: str) -> None:
        """Tells the server that a request is over, unless it is over for both."""
        pending = self._pending.pop(request_id, None)
        if pending is not None and pending.is_cancellable:
            self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})

    # Time limits ----------------------------------------------------------------------------------------

    def _set_alarm(self, deadline: float) -> None:
        """One timer serves all requests: it is set to the earliest deadline that was known when it was set."""
        if self._alarm is not None:
            if self._alarm.when() <= deadline:
                return
            self._alarm.cancel()
        self._alarm = self._loop.call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        now = self._loop.time()
        for request_id, pending in list(self._pending.items()):
            if pending.deadline <= now:
                limit = f"{pending.limit_secs:g} s"
                message = f"server {self._server!r} did not answer {pending.method} within {limit}"
                self._withdraw(request_id, f"no answer within {limit}")
                _settle(pending, self.error("mcpTimeout", message))
        if self._pending:
            self._set_alarm(min(pending.deadline for pending in self._pending.values()))

    # Receiving ------------------------------------------------------------------------------------------

    def _take_line(self, line: Line) -> None:
        try:
            for message in envelope.read_line(line):
                self._take(message)
        except Exception:  # The reader: what one message sets off must not stop the others.
            logger.exception("a message of server %r could not be handled", self._server)

    def _take(self, message: Incoming) -> None:
        if not isinstance(message, Junk):
            self._junk_lines = 0
        match message:
            case Answer(request_id, result):
                if (pending := self._pending.pop(request_id, None)) is not None:
                    _settle(pending, result)
            case ServerNotification("notifications/progress", params):
                self._report(params)
            case ServerNotification(method, params):
                self._on_notification(method, params)
            case ServerRequest():
                self._reply(message)
            case Refusal(request_id):
                self._fail(self._only_pending() if request_id is None else request_id, ServerRefusalError(message))
            case BrokenAnswer(ids, reason):
                self._salvage(ids, reason)
            case Junk(text):
                self._note(text)

    def _salvage(self, ids: tuple[int, ...], reason: str) -> None:
        """Fails the request that a broken answer was for, where that is clear."""
        ours = [request_id for request_id in ids if request_id in self._pending]
        request_id = ours[0] if len(ours) == 1 else None if ids else self._only_pending()
        if request_id is None:
            logger.warning("server %r sent a broken message: %s", self._server, reason)
            return
        method = self._pending[request_id].method
        self._fail(request_id, self.error("mcpError", f"server {self._server!r} failed at {method}: {reason}"))

    def _note(self, text: str) -> None:
        """Keeps a line that is no message for error messages; gives up on a program that writes nothing else."""
        self._tail.add(f"{text}\n".encode(errors="replace"))
        self._junk_lines += 1
        if self._junk_lines > MAX_JUNK_LINES:
            self.end("writes on its stdout what is no MCP message")

    def _only_pending(self) -> int | None:
        return next(iter(self._pending)) if len(self._pending) == 1 else None

    def _fail(self, request_id: int | None, error: Exception) -> None:
        pending = None if request_id is None else self._pending.pop(request_id, None)
        if pending is not None:
            _settle(pending, error)

    # Progress -------------------------------------------------------------------------------------------

    def _report(self, params: JsonObject) -> None:
        token = own_id(params.get("progressToken"))
        pending = None if token is None else self._pending.get(token)
        if pending is None or pending.reports is None:
            return
        message = params.get("message")
        report = _Report(
            done=_number(params.get("progress")),
            total=_number(params.get("total")),
            message=message if isinstance(message, str) else None,
        )
        pending.reports.put_nowait(report)
        if pending.reports.qsize() > MAX_WAITING_REPORTS:
            self._crowded = pending

    async def _room_for_reports(self) -> None:
        """Waits while a request has too many reports waiting. Its time limit ends this at the latest."""
        while (
            self._crowded is not None
            and (reports := self._crowded.reports) is not None
            and reports.qsize() > MAX_WAITING_REPORTS
        ):
            self._reports_taken.clear()
            await self._reports_taken.wait()
        self._crowded = None

    async def _followed(self, pending: _Pending, on_progress: OnProgress) -> JsonObject:
        """The answer, after the reports that came before it; not later than the request's time limit."""
        reports = pending.reports = asyncio.Queue()
        reporter = asyncio.create_task(self._hand_on(pending, reports, on_progress))
        try:
            result = await pending.answer
            reports.put_nowait(None)
            await asyncio.wait({reporter}, timeout=max(0.0, pending.deadline - self._loop.time()))
            if reporter.done():
                reporter.result()
            return result
        finally:
            reporter.cancel()
            await asyncio.gather(reporter, return_exceptions=True)

    async def _hand_on(
        self, pending: _Pending, reports: "asyncio.Queue[_Report | None]", on_progress: OnProgress
    ) -> None:
        try:
            while (report := await reports.get()) is not None:
                self._reports_taken.set()
                await on_progress(report.done, report.total, report.message)
        finally:
            pending.reports = None
            self._reports_taken.set()


def _settle(pending: _Pending, outcome: JsonObject | Exception) -> None:
    if pending.answer.done():  # Its caller was cancelled in this very moment.
        return
    if isinstance(outcome, Exception):
        pending.answer.set_exception(outcome)
    else:
        pending.answer.set_result(outcome)


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
