"""One conversation with a server: whose answer is whose, and what to do when it breaks.

Each request ends in exactly one way: its answer, the server's error, its time limit, its caller's cancellation,
or the end of the server. What a server sends wrong fails the one request that it was meant for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sidecar.mcp import envelope
from sidecar.mcp.envelope import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Answer,
    BrokenAnswer,
    Incoming,
    Junk,
    Refusal,
    RequestId,
    ServerNotification,
    ServerRequest,
    own_id,
)
from sidecar.mcp.framing import Line
from sidecar.mcp.pending import Heard, Pending, PendingRequests, settle
from sidecar.mcp.progress import OnProgress, Reports, read_report
from sidecar.mcp.tail import TAIL_BYTES, Tail
from sidecar.mcp.transport import FailedRequest, Outgoing, Transport
from sidecar.protocol.errors import ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

Reply = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a request of the server from its params; raises ReplyRefusal where it does not."""

MAX_JUNK_LINES = 1000
"""So many lines in a row without one message, and the program is no MCP server. Own choice."""

MAX_UNSENT_BYTES = 64 * 1024 * 1024
"""A server that leaves more than this unread is sent no further requests. Own choice: one largest message."""

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
"""Where a notification says which subscription it belongs to, in `_meta`."""

MAX_OPEN_REPLIES = 100
"""Requests of one server that may be worked on at the same time; those beyond are refused. Own choice."""

_MAX_UNSENT_REPLY_BYTES = 1024 * 1024

logger = logging.getLogger("sidecar.mcp")


class ServerRefusalError(Exception):
    """The server answered a request with an error. `code` and `data` are its own."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.message = refusal.message
        self.code = refusal.code
        self.data = refusal.data


class ReplyRefusal(Exception):
    """A request of the server that is not granted, with the code and the message of its error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Connection:
    """Requests to one server, and its answers, over a transport.

    `replies` says how the server's own requests are answered, each in a task of its own; `on_notification` hears
    its notifications and may not wait. `paused_secs` says how long, in all, the server has waited for a person,
    which counts against no limit. Everything that fails raises ToolError, a refusal of the server
    ServerRefusalError.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        server: str,
        timeout_secs: float,
        tail: Tail,
        replies: Mapping[str, Reply],
        on_notification: Heard,
        paused_secs: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._transport = transport
        self._server = server
        self._timeout_secs = timeout_secs
        self._timeout_advice = f"; raise mcpServers.{server}.timeoutSecs"
        self._tail = tail
        self._replies = replies
        self._on_notification = on_notification
        self._pending = PendingRequests(self._expired, paused_secs)
        self._replying: dict[RequestId, asyncio.Task[None]] = {}
        self._crowded: Reports | None = None
        self._is_modern = False
        self._junk_lines = 0
        self._ending: str | None = None
        self._ended = asyncio.Event()

    @property
    def ending(self) -> str | None:
        """What became of the server, as the end of a sentence; None while it is there."""
        return self._ending

    async def wait_ended(self) -> str:
        """Returns the `ending` once there is one."""
        await self._ended.wait()
        return self._ending or ""

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        timeout_secs: float | None = None,
        on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
        heard: Heard | None = None,
        is_cancellable: bool = True,
    ) -> JsonObject:
        """The server's result. `heard` takes, for a subscription, what the server notifies of under its id.

        Raises ToolError `mcpTimeout` after `timeout_secs`, `mcpError` where the server ends or answers what cannot
        be read, `invalidArguments` for params that are no JSON. When the limit passes or the caller is cancelled,
        the server is told, except where the specification forbids that (`is_cancellable`).
        """
        request_id = self._pending.next_id()
        if on_progress is not None:
            params = params or {}
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": request_id}}
        self._send(Outgoing(self._encoded(request_id, method, params), request_id, method, params, headers))
        pending = Pending(
            request_id,
            method,
            limit_secs=self._timeout_secs if timeout_secs is None else timeout_secs,
            advice=self._timeout_advice if timeout_secs is None else "",
            is_cancellable=is_cancellable,
        )
        pending.heard = heard
        self._pending.add(pending)
        try:
            if on_progress is None:
                return await pending.answer
            pending.reports = Reports()
            return await pending.reports.follow(pending.answer, on_progress, pending.deadline)
        except asyncio.CancelledError:
            if self._pending.take(request_id) is not None:
                self._withdraw(pending, "the caller no longer waits")
            raise

    def speaks(self, revision: str, *, is_modern: bool) -> None:
        """Told once both sides have settled which revision of MCP they speak.

        In a modern one the server has no requests of its own, and must not be sent answers to any.
        """
        self._is_modern = is_modern
        self._transport.speaks(revision)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Tells the server something."""
        self._transport.send(Outgoing(envelope.notification(method, params), None, method, params))

    async def read(self) -> None:
        """Takes in what the server sends until it ends; then fails whatever still waits. Runs as a task."""
        try:
            while self._ending is None and (received := await self._transport.receive()):
                await self._room_for_reports()
                for item in received:
                    if isinstance(item, bytes) and envelope.is_long(item):
                        self._take_all(await asyncio.to_thread(envelope.read_line, item))
                    else:
                        self._take_item(item)
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
        for replying in self._replying.values():
            replying.cancel()
        for pending in self._pending.take_all():
            settle(pending, self.error("mcpError", f"{self._name} {ending} before it answered {pending.method}"))

    def error(self, kind: ToolErrorKind, message: str) -> ToolError:
        """A failure of this server, with its last words."""
        tail = self._tail.text()
        data: dict[str, Any] = {} if tail is None else {"stderrTail": tail}
        return ToolError(kind, message, server=self._server, **data)

    # Sending --------------------------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"server {self._server!r}"

    def _encoded(self, request_id: int, method: str, params: JsonObject | None) -> bytes:
        try:
            return envelope.request(request_id, method, params)
        except (ValueError, TypeError, RecursionError) as error:
            raise self.error("invalidArguments", f"what {method} is given is no JSON: {error}") from None

    def _send(self, message: Outgoing) -> None:
        method = message.method
        if self._ending is not None:
            raise self.error("mcpError", f"{self._name} {self._ending}, so {method} cannot be sent")
        if self._transport.unsent_bytes > MAX_UNSENT_BYTES:
            raise self.error("mcpError", f"{self._name} does not read what it is sent, so {method} is not sent")
        self._transport.send(message)

    def _reply_to(self, request: ServerRequest) -> None:
        reply = self._replies.get(request.method)
        if self._is_modern:
            logger.warning(
                "%s sent a request, %s, which its revision has no place for", self._name, request.method
            )
        elif self._transport.unsent_bytes > _MAX_UNSENT_REPLY_BYTES:
            logger.warning("%s asks more than it reads answers; one is left out", self._name)
        elif request.method == "ping":
            self._answer(envelope.result(request.id, {}))
        elif reply is None:
            reason = f"{request.method} is not offered by this client"
            self._answer(envelope.error(request.id, METHOD_NOT_FOUND, reason))
        elif request.id in self._replying or len(self._replying) >= MAX_OPEN_REPLIES:
            self._answer(envelope.error(request.id, INVALID_REQUEST, "too many requests, or this id is in use"))
        else:
            replying = asyncio.create_task(self._reply(request, reply))
            self._replying[request.id] = replying
            replying.add_done_callback(lambda task: self._replying.pop(request.id, None))

    async def _reply(self, request: ServerRequest, reply: Reply) -> None:
        """Answers a request of the server, exactly once, unless the server takes it back."""
        try:
            answer = envelope.result(request.id, await reply(request.params))
        except ReplyRefusal as refusal:
            answer = envelope.error(request.id, refusal.code, refusal.message)
        except Exception:  # The boundary to whoever answers: the server must hear something.
            logger.exception("%s of %s could not be answered", request.method, self._name)
            answer = envelope.error(request.id, INTERNAL_ERROR, "the client failed at this request")
        self._answer(answer)

    def _answer(self, body: bytes) -> None:
        if self._ending is None:
            self._transport.send(Outgoing(body))

    def _taken_back(self, params: JsonObject) -> None:
        """The server no longer wants an answer, or ends a subscription (MCP, basic/utilities/cancellation)."""
        request_id = params.get("requestId")
        if self._is_modern:
            pending = self._pending.get(own_id(request_id))
            if pending is not None and pending.heard is not None:
                self._settle(pending, {})
        elif isinstance(request_id, int | str | float) and request_id in self._replying:
            self._replying[request_id].cancel()

    def _expired(self, pending: Pending) -> None:
        limit = f"{pending.limit_secs:g} s"
        self._withdraw(pending, f"no answer within {limit}")
        message = f"{self._name} did not answer {pending.method} within {limit}{pending.advice}"
        settle(pending, self.error("mcpTimeout", message))

    def _withdraw(self, pending: Pending, reason: str) -> None:
        if pending.is_cancellable and not self._transport.withdraw(pending.id):
            self.notify("notifications/cancelled", {"requestId": pending.id, "reason": reason})

    # Receiving ------------------------------------------------------------------------------------------

    def take_at_once(self, line: Line) -> bool:
        """Takes a line that `read` is waiting for, unless that would take long or somebody is not ready for it."""
        if envelope.is_long(line) or self._crowded is not None:
            return False
        self._take_item(line)
        return self._ending is None  # What ends it has to wake `read` as well.

    async def _room_for_reports(self) -> None:
        if self._crowded is not None:
            await self._crowded.room()
            self._crowded = None

    def _take_item(self, item: Line | FailedRequest) -> None:
        if isinstance(item, FailedRequest):
            self._settle(self._pending.get(item.id), item.error)
        else:
            self._take_all(envelope.read_line(item))

    def _take_all(self, messages: Sequence[Incoming]) -> None:
        try:
            for message in messages:
                self._take(message)
        except Exception:  # The reader: what one message sets off must not stop the others.
            logger.exception("a message of %s could not be handled", self._name)

    def _take(self, message: Incoming) -> None:
        if not isinstance(message, Junk):
            self._junk_lines = 0
        match message:
            case Answer(request_id, result):
                self._settle(self._pending.get(request_id), result)
            case ServerNotification("notifications/progress", params):
                self._report(params)
            case ServerNotification("notifications/cancelled", params):
                self._taken_back(params)
            case ServerNotification(method, params) if "_meta" in params:
                self._deliver(method, params)
            case ServerNotification(method, params):
                self._on_notification(method, params)
            case ServerRequest():
                self._reply_to(message)
            case Refusal(id=None):
                self._settle(self._pending.only(), ServerRefusalError(message))
            case Refusal(request_id):
                self._settle(self._pending.get(request_id), ServerRefusalError(message))
            case BrokenAnswer(ids, reason):
                self._salvage(ids, reason)
            case Junk(text):
                self._note(text)

    def _deliver(self, method: str, params: JsonObject) -> None:
        """A notification under the id of a subscription is for that alone (MCP 2026-07-28, subscriptions)."""
        meta = params["_meta"]
        if not isinstance(meta, dict) or SUBSCRIPTION_ID not in meta:
            self._on_notification(method, params)
        elif (
            pending := self._pending.get(own_id(meta[SUBSCRIPTION_ID]))
        ) is not None and pending.heard is not None:
            pending.heard(method, params)

    def _settle(self, pending: Pending | None, outcome: JsonObject | Exception) -> None:
        """What is for nobody came too late, or twice."""
        if pending is not None:
            self._pending.take(pending.id)
            settle(pending, outcome)

    def _salvage(self, ids: tuple[int, ...], reason: str) -> None:
        """Fails the request that a broken answer was for, where that is clear."""
        ours = [pending for request_id in ids if (pending := self._pending.get(request_id)) is not None]
        pending = (ours[0] if len(ours) == 1 else None) if ids else self._pending.only()
        if pending is None:
            logger.warning("%s sent a broken message: %s", self._name, reason)
        else:
            self._settle(pending, self.error("mcpError", f"{self._name} failed at {pending.method}: {reason}"))

    def _report(self, params: JsonObject) -> None:
        pending = self._pending.get(own_id(params.get("progressToken")))
        if pending is not None and pending.reports is not None:
            pending.reports.put(read_report(params))
            if pending.reports.are_crowded:
                self._crowded = pending.reports

    def _note(self, text: str) -> None:
        """Keeps a line that is no message for error messages; gives up on a program that writes nothing else."""
        self._tail.add(f"{text[:TAIL_BYTES]}\n".encode(errors="replace"))
        self._junk_lines += 1
        if self._junk_lines > MAX_JUNK_LINES:
            self.end("writes on its stdout what is no MCP message")
