"""Streamable HTTP: each message a POST of its own, each answer a body or a stream of events.

Source: MCP 2025-11-25, basic/transports#streamable-http, for revisions with a handshake, with their sessions,
their stream of the server's own messages and the resuming of streams; MCP 2026-07-28,
basic/transports/streamable-http, for the stateless one, which has none of these. Which of the two a request
belongs to, it says itself.

Nothing here decides what an answer means: bodies and events go on as lines. A request whose HTTP exchange is over
without an answer fails; where its answer has gone on before, that comes too late and is passed over.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import HttpServer
from sidecar.mcp.exchange import Exchange, Exchanges
from sidecar.mcp.framing import Line
from sidecar.mcp.http_edge import HttpAnswer, HttpEdge
from sidecar.mcp.http_failures import answer_in
from sidecar.mcp.http_headers import SESSION_ID, post_headers, session_headers, stream_headers
from sidecar.mcp.http_stream import OwnMessages, StreamReader
from sidecar.mcp.inbox import Inbox
from sidecar.mcp.transport import FailedRequest, HttpStatusError, Outgoing, SessionLostError
from sidecar.protocol.errors import ToolError

NOTICE_LIMIT_SECS = 30.0
"""How long a server may take to accept a notification or an answer of ours. Requests have limits of their own."""

ORDER_LIMIT_SECS = 5.0
"""How long requests wait for `notifications/initialized` to have arrived: each message travels on its own."""

WITHDRAWN_SECS = 0.5
"""How long a request that was cancelled by a message is still listened to."""

DELETE_LIMIT_SECS = 1.0
"""How long a server may take to end a session. Everything of ours must end within 3 s."""

MAX_OPEN_REQUESTS = 64
"""Requests to one server at the same time; more wait for their turn. Own choice: each takes a connection, and the
files that a process may have open are few."""

MAX_FRUITLESS_RESUMES = 5
"""So many times in a row a stream may end again without anything new. Own choice."""

_LOST = re.compile(
    rb"(no valid|invalid|unknown|expired|missing) (mcp[- ])?session"
    rb"|session.{0,30}(not found|not exist|unknown|invalid|expired|terminated|closed)|not initialized",
    re.IGNORECASE,
)
_VISIBLE = re.compile(r"[\x21-\x7e]+")

logger = logging.getLogger("sidecar.mcp")


async def open_http(
    name: str, server: HttpServer, *, secrets: tuple[str, ...] = (), authorization: Authorization | None = None
) -> "StreamableHttp":
    """The way to a server; nothing is sent yet. Raises ConfigurationError for an entry that cannot be used."""
    return StreamableHttp(await HttpEdge.open(name, server, secrets=secrets, authorization=authorization))


class StreamableHttp:
    """The transport over HTTP. It does not end by itself: a server that is away fails the requests to it."""

    def __init__(self, edge: HttpEdge) -> None:
        self._edge = edge
        self._endpoint = edge.endpoint
        self._inbox = Inbox()
        self._exchanges = Exchanges()
        self._turns = asyncio.Semaphore(MAX_OPEN_REQUESTS)
        self._session_id: str | None = None
        self._revision: str | None = None
        self._loss: str | None = None
        self._initialized: asyncio.Task[None] | None = None
        self._own_messages: OwnMessages | None = None
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return None

    @property
    def unsent_bytes(self) -> int:
        return self._exchanges.unsent_bytes

    def send(self, message: Outgoing) -> None:
        """Starts the exchange of one message. A handshake begins a new session."""
        if self._closing is not None:
            return
        if message.method == "initialize":
            self._forget_session()
            self._loss = None
        exchange = self._exchanges.begin(message, self._session_id, self._carry)
        if message.method == "notifications/initialized":
            self._initialized = exchange.task

    def withdraw(self, request_id: int) -> bool:
        """Stateless requests are cancelled by closing their stream; for the others a message says so."""
        return self._exchanges.withdraw(request_id, WITHDRAWN_SECS)

    def speaks(self, revision: str) -> None:
        """From now on the messages of a session name its revision."""
        self._revision = revision

    async def receive(self) -> Sequence[Line | FailedRequest]:
        """What has come on all streams; none once this is closed."""
        return await self._inbox.take()

    async def why_ended(self) -> str:
        """Only closing ends it."""
        return "was closed"

    async def close(self) -> None:
        """Ends all exchanges, and the session at the server, within DELETE_LIMIT_SECS."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        await asyncio.shield(self._closing)

    def kill(self) -> None:
        """Ends everything at once; the server is not told."""
        if self._own_messages is not None:
            self._own_messages.stop()
        if self._closing is not None:
            self._closing.cancel()
        self._exchanges.cancel()
        self._inbox.end()

    # One exchange ---------------------------------------------------------------------------------------

    async def _carry(self, exchange: Exchange) -> None:
        """One message to its end. Whatever comes of it, a request is settled."""
        try:
            if exchange.is_request:
                # A new session is for those, too, that wait for their turn.
                async with nullcontext() if exchange.message.method == "initialize" else self._turns:
                    await self._in_order(exchange)
                    await self._post(exchange)
                # Where its answer has gone on, this comes too late.
                what = f"sent no answer to {exchange.asked} in what it sent for it"
                self._failed(exchange, self._status(200, what))
            else:
                async with asyncio.timeout(NOTICE_LIMIT_SECS):
                    await self._post(exchange)
        except ToolError as error:
            self._failed(exchange, error)
        except TimeoutError:
            logger.warning("%s did not accept %s in time", self._endpoint.name, exchange.asked)
        except Exception:  # The owner of a task: a mistake of ours must not leave a request without an end.
            logger.exception("%s of %s could not be sent", exchange.asked, self._endpoint.name)
            message = f"{exchange.asked} could not be sent to {self._endpoint.name}: see the log for what broke"
            self._failed(exchange, self._endpoint.error(message))

    async def _in_order(self, exchange: Exchange) -> None:
        """A server may take each connection in its own time, so what follows the handshake waits for its end."""
        before = self._initialized
        if before is not None and not before.done() and exchange.message.method != "initialize":
            await asyncio.wait({before}, timeout=ORDER_LIMIT_SECS)

    async def _post(self, exchange: Exchange) -> None:
        message = exchange.message
        if self._loss is not None and not exchange.is_stateless and message.method != "initialize":
            raise SessionLostError(self._loss, server=self._endpoint.server)
        headers = post_headers(message, revision=self._revision, session_id=exchange.session_id)
        exchange.is_sent = True
        async with await self._edge.send("POST", headers, message.body, asked=exchange.asked) as answer:
            self._exchanges.taken(exchange)
            if not 200 <= answer.status < 300:
                await self._refused(exchange, answer)
                return
            if message.method == "initialize":
                self._keep_session(answer)
            if not exchange.is_request:
                self._accepted(message)
            elif answer.is_event_stream:
                await self._follow(exchange, answer)
            else:
                await self._take_body(exchange, answer)

    async def _refused(self, exchange: Exchange, answer: HttpAnswer) -> None:
        """Another status than 2xx: a session that is gone, a JSON-RPC error, or an error of HTTP alone."""
        body = await answer.words()
        if exchange.session_id is not None and _is_lost_session(answer.status, body):
            raise self._lost(exchange.session_id, answer.status, body)
        error = self._endpoint.failed_status(answer.status, answer.headers, body, asked=exchange.asked)
        said = answer_in(answer.status, body, exchange.message.id)
        if said is not None:
            self._take(said, exchange)
        raise error

    def _accepted(self, message: Outgoing) -> None:
        if message.method == "notifications/initialized" and self._own_messages is None:
            reader = StreamReader(self._take, self._inbox.room)
            self._own_messages = OwnMessages(reader, lambda last_id: self._get(last_id, "its stream of messages"))

    async def _take_body(self, exchange: Exchange, answer: HttpAnswer) -> None:
        body = await answer.body()
        start = (body if isinstance(body, bytes) else body.head).removeprefix(b"\xef\xbb\xbf").lstrip()[:1000]
        if start.startswith((b"{", b"[")):
            await self._inbox.room()
            self._take(body.removeprefix(b"\xef\xbb\xbf") if isinstance(body, bytes) else body, exchange)
        elif start:
            raise self._endpoint.no_message(answer.status, answer.media_type, start, asked=exchange.asked)
        elif answer.status == 202 and self._own_messages is not None and self._own_messages.is_open:
            await exchange.answered.wait()  # On the stream of its own messages, as some servers do.
        else:
            what = f"answered {exchange.asked} with HTTP {answer.status} and nothing else"
            raise self._status(answer.status, what)

    def _take(self, line: Line, exchange: Exchange | None = None) -> None:
        """Lets a message go on, unless it is an answer to another request than it came for."""
        if not self._exchanges.note_answer(line, exchange):
            logger.warning("%s answered one request with the id of another", self._endpoint.name)
            return
        self._inbox.put(line)

    def _status(self, status: int, what: str) -> HttpStatusError:
        return HttpStatusError(f"{self._endpoint.name} {what}", server=self._endpoint.server, status=status)

    def _failed(self, exchange: Exchange, error: ToolError) -> None:
        if exchange.message.id is not None:
            self._inbox.put(FailedRequest(exchange.message.id, error))
        else:
            logger.warning("%s was not told %s: %s", self._endpoint.name, exchange.asked, error.message)

    # Streams --------------------------------------------------------------------------------------------

    async def _follow(self, exchange: Exchange, answer: HttpAnswer) -> None:
        """Reads the stream that answers a request, and where it breaks off resumes it, if that is possible."""
        reader, fruitless = StreamReader(lambda line: self._take(line, exchange), self._inbox.room), 0
        is_news = await reader.read(answer, lambda: exchange.is_answered)
        while not exchange.is_answered:
            fruitless = 0 if is_news else fruitless + 1
            if exchange.is_stateless or reader.place.last_id is None or fruitless > MAX_FRUITLESS_RESUMES:
                raise self._broken_off(exchange, reader.lost)
            await answer.close()
            await asyncio.sleep(reader.place.retry_secs)
            if not exchange.is_answered:  # The stream of its own messages may have brought it meanwhile.
                is_news = await self._resume(exchange, reader)

    async def _resume(self, exchange: Exchange, reader: StreamReader) -> bool:
        asked = f"the rest of {exchange.asked}"
        try:
            answer = await self._get(reader.place.last_id, asked)
        except ToolError as error:
            reader.lost = error
            return False
        async with answer:
            if answer.status == 200 and answer.is_event_stream:
                return await reader.read(answer, lambda: exchange.is_answered)
            body = await answer.words()
            if exchange.session_id is not None and _is_lost_session(answer.status, body):
                self._lost(exchange.session_id, answer.status, body)
            lost = self._endpoint.failed_status(answer.status, answer.headers, body, asked=asked)
            raise self._broken_off(exchange, lost)

    async def _get(self, last_event_id: str | None, asked: str) -> HttpAnswer:
        headers = stream_headers(revision=self._revision, session_id=self._session_id, last_event_id=last_event_id)
        return await self._edge.send("GET", headers, asked=asked)

    def _broken_off(self, exchange: Exchange, lost: ToolError | None) -> ToolError:
        reason = f" ({lost.message})" if lost is not None else ""
        return self._endpoint.error(
            f"the stream of {self._endpoint.name} ended before its answer to {exchange.asked}{reason}; whether it "
            "was carried out is not known, so it is not sent again"
        )

    # The session ----------------------------------------------------------------------------------------

    def _keep_session(self, answer: HttpAnswer) -> None:
        session_id = answer.headers.get(SESSION_ID)
        if session_id is None or _VISIBLE.fullmatch(session_id):
            self._session_id = session_id
        else:
            logger.warning("%s gave a session id that no header can carry", self._endpoint.name)

    def _lost(self, session_id: str, status: int, body: bytes) -> SessionLostError:
        """The server no longer knows a session; until the next handshake nothing can be asked in one."""
        words = f"HTTP {status} {self._endpoint.words(body)}".rstrip()
        loss = f"{self._endpoint.name} has forgotten this session, as after a restart: {words}"
        if self._session_id == session_id:
            self._forget_session()
            self._loss = loss
        return SessionLostError(loss, server=self._endpoint.server)

    def _forget_session(self) -> None:
        self._session_id = self._revision = self._initialized = None
        if self._own_messages is not None:
            self._own_messages.stop()
            self._own_messages = None

    async def _end(self) -> None:
        session_id, revision = self._session_id, self._revision
        try:
            self._inbox.end()
            tasks = self._exchanges.cancel()
            if self._own_messages is not None:
                tasks.add(self._own_messages.stop())
            if tasks:
                await asyncio.wait(tasks, timeout=DELETE_LIMIT_SECS)
            if session_id is not None:
                await self._delete_session(session_id, revision)
        finally:
            await self._edge.aclose()

    async def _delete_session(self, session_id: str, revision: str | None) -> None:
        """Tells the server that nobody will come back; whatever it answers is all right."""
        headers = session_headers(revision=revision, session_id=session_id)
        with suppress(ToolError, TimeoutError):
            async with asyncio.timeout(DELETE_LIMIT_SECS):
                await (await self._edge.send("DELETE", headers, asked="the end of its session")).close()


def _is_lost_session(status: int, body: bytes) -> bool:
    """404, as the specification has it, or the 400 that says so, as many servers have it: those after the examples
    of the official SDKs."""
    return status == 404 or (status == 400 and _LOST.search(body) is not None)
