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
from contextlib import suppress

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import HttpServer
from sidecar.mcp.exchange import Exchange, Exchanges
from sidecar.mcp.framing import Line
from sidecar.mcp.http_edge import HttpAnswer, HttpEdge
from sidecar.mcp.http_failures import answer_in
from sidecar.mcp.http_headers import SESSION_ID, post_headers, session_headers, stream_headers
from sidecar.mcp.inbox import Inbox
from sidecar.mcp.sse import EventDecoder
from sidecar.mcp.transport import FailedRequest, Outgoing, SessionLostError
from sidecar.protocol.errors import ToolError

NOTICE_LIMIT_SECS = 30.0
"""How long a server may take to accept a notification or an answer of ours. Requests have limits of their own."""

ORDER_LIMIT_SECS = 5.0
"""How long requests wait for `notifications/initialized` to have arrived: each message travels on its own."""

WITHDRAWN_SECS = 1.0
"""How long a request that was cancelled by a message is still listened to."""

DRAIN_SECS = 0.2
"""How long the end of a stream is waited for after its answer, so that its connection can be used again."""

DELETE_LIMIT_SECS = 1.0
"""How long a server may take to end a session. Everything of ours must end within 3 s."""

DEFAULT_RETRY_SECS = 1.0
"""Before a stream is resumed, where the server does not say how long to wait. Own choice."""

MAX_FRUITLESS_RESUMES = 5
"""So many times in a row a stream may end again without anything new. Own choice."""

LONGEST_PAUSE_SECS = 60.0
"""Between two tries to open the stream of the server's own messages, which goes on as long as the session."""

_SESSION_WORDS = re.compile(rb"session", re.IGNORECASE)
_VISIBLE = re.compile(r"[\x21-\x7e]+")

logger = logging.getLogger("sidecar.mcp")


class _Place:
    """Where in its stream a reader is, for resuming it."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_secs = DEFAULT_RETRY_SECS

    def move(self, decoder: EventDecoder) -> bool:
        """Takes over what the stream has said so far; whether that is news."""
        if decoder.retry_ms is not None:
            self.retry_secs = decoder.retry_ms / 1000
        is_news = decoder.last_id is not None and decoder.last_id != self.last_id
        self.last_id = decoder.last_id or self.last_id
        return is_news


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
        self._session_id: str | None = None
        self._revision: str | None = None
        self._is_lost = False
        self._is_heard = False
        self._initialized: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
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
            self._is_lost = False
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
        for task in (self._listening, self._closing):
            if task is not None:
                task.cancel()
        self._exchanges.cancel()
        self._inbox.end()

    # One exchange ---------------------------------------------------------------------------------------

    async def _carry(self, exchange: Exchange) -> None:
        """One message to its end. Whatever comes of it, a request is settled."""
        try:
            if exchange.is_request:
                await self._in_order(exchange)
                await self._post(exchange)
                self._fail(exchange, f"sent no answer to {exchange.asked} in what it sent for it")
            else:
                async with asyncio.timeout(NOTICE_LIMIT_SECS):
                    await self._post(exchange)
        except ToolError as error:
            self._failed(exchange, error)
        except TimeoutError:
            logger.warning("%s did not accept %s in time", self._endpoint.name, exchange.asked)
        except Exception:  # The owner of a task: a mistake of ours must not leave a request without an end.
            logger.exception("%s of %s could not be sent", exchange.asked, self._endpoint.name)
            self._fail(exchange, f"could not be asked {exchange.asked}: see the log for what broke")

    async def _in_order(self, exchange: Exchange) -> None:
        """A server may take each connection in its own time, so what follows the handshake waits for its end."""
        before = self._initialized
        if before is not None and not before.done() and exchange.message.method != "initialize":
            await asyncio.wait({before}, timeout=ORDER_LIMIT_SECS)

    async def _post(self, exchange: Exchange) -> None:
        message = exchange.message
        if self._is_lost and not exchange.is_stateless and message.method != "initialize":
            raise self._lost()
        headers = post_headers(message, revision=self._revision, session_id=exchange.session_id)
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
            self._lose(exchange.session_id)
            raise self._lost()
        error = self._endpoint.failed_status(answer.status, answer.headers, body, asked=exchange.asked)
        said = answer_in(answer.status, body, exchange.message.id)
        if said is not None:
            self._take(said, exchange)
        raise error

    def _accepted(self, message: Outgoing) -> None:
        if message.method == "notifications/initialized" and self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def _take_body(self, exchange: Exchange, answer: HttpAnswer) -> None:
        body = await answer.body()
        start = (body if isinstance(body, bytes) else body.head).removeprefix(b"\xef\xbb\xbf").lstrip()[:1000]
        if start.startswith((b"{", b"[")):
            await self._inbox.room()
            self._take(body.removeprefix(b"\xef\xbb\xbf") if isinstance(body, bytes) else body, exchange)
        elif start:
            raise self._endpoint.no_message(exchange.asked, answer.media_type, start)
        elif answer.status == 202 and self._is_heard:
            await exchange.answered.wait()  # On the stream of its own messages, as some servers do.
        else:
            raise self._endpoint.error(
                f"{self._endpoint.name} answered {exchange.asked} with HTTP {answer.status} and nothing else"
            )

    def _take(self, line: Line, exchange: Exchange | None) -> None:
        """Lets a message go on, unless it is an answer to another request than it came for."""
        if not self._exchanges.note_answer(line, exchange):
            logger.warning("%s answered one request with the id of another", self._endpoint.name)
            return
        self._inbox.put(line)

    def _fail(self, exchange: Exchange, what: str) -> None:
        self._failed(exchange, self._endpoint.error(f"{self._endpoint.name} {what}"))

    def _failed(self, exchange: Exchange, error: ToolError) -> None:
        if exchange.message.id is not None:
            self._inbox.put(FailedRequest(exchange.message.id, error))
        else:
            logger.warning("%s was not told %s: %s", self._endpoint.name, exchange.asked, error.message)

    # Streams --------------------------------------------------------------------------------------------

    async def _follow(self, exchange: Exchange, answer: HttpAnswer) -> None:
        """Reads the stream that answers a request, and where it breaks off resumes it, if that is possible."""
        place, fruitless = _Place(), 0
        is_news, lost = await self._read_events(answer, exchange, place)
        while not exchange.is_answered:
            fruitless = 0 if is_news else fruitless + 1
            if exchange.is_stateless or place.last_id is None or fruitless > MAX_FRUITLESS_RESUMES:
                raise self._broken_off(exchange, lost)
            await answer.close()
            await asyncio.sleep(place.retry_secs)
            if not exchange.is_answered:  # The stream of its own messages may have brought it meanwhile.
                is_news, lost = await self._resume(exchange, place)

    async def _resume(self, exchange: Exchange, place: _Place) -> tuple[bool, ToolError | None]:
        asked = f"the rest of {exchange.asked}"
        try:
            answer = await self._get(place.last_id, asked=asked)
        except ToolError as error:
            return False, error
        async with answer:
            if answer.status == 200 and answer.is_event_stream:
                return await self._read_events(answer, exchange, place)
            body = await answer.words()
            if exchange.session_id is not None and _is_lost_session(answer.status, body):
                self._lose(exchange.session_id)
            lost = self._endpoint.failed_status(answer.status, answer.headers, body, asked=asked)
            raise self._broken_off(exchange, lost)

    async def _read_events(
        self, answer: HttpAnswer, exchange: Exchange | None, place: _Place
    ) -> tuple[bool, ToolError | None]:
        """Reads a stream to its end: whether its place has moved, and the error that ended it, if one did.

        After the answer that it was for, the end is waited for only a moment.
        """
        decoder, is_news = EventDecoder(), False
        try:
            async with asyncio.timeout(None) as limit:
                async for chunk in answer.chunks():
                    for event in decoder.feed(chunk):
                        if event.kind == "message" and event.data:
                            self._take(event.data, exchange)
                            is_news = True
                    is_news = place.move(decoder) or is_news
                    if exchange is not None and exchange.is_answered and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + DRAIN_SECS)
                    await self._inbox.room()
        except TimeoutError:
            pass  # The answer is there; this server leaves its streams open.
        except ToolError as error:
            return is_news, error
        return is_news, None

    async def _listen(self) -> None:
        """The stream of the server's own messages, as long as the session; not every server has one."""
        place, fruitless = _Place(), 0
        while True:
            is_news = False
            try:
                async with await self._get(place.last_id, asked="its stream of messages") as answer:
                    if answer.status < 500 and not (answer.status == 200 and answer.is_event_stream):
                        return
                    if answer.status == 200:
                        self._is_heard = True
                        is_news, _ = await self._read_events(answer, None, place)
            except ToolError as error:
                logger.info("%s has no stream of messages now: %s", self._endpoint.name, error.message)
            finally:
                self._is_heard = False
            fruitless = 0 if is_news else fruitless + 1
            await asyncio.sleep(max(place.retry_secs, min(LONGEST_PAUSE_SECS, 2.0 ** (fruitless - 1))))

    async def _get(self, last_event_id: str | None, *, asked: str) -> HttpAnswer:
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

    def _lose(self, session_id: str) -> None:
        """The server no longer knows a session; until the next handshake nothing can be asked in one."""
        if self._session_id == session_id:
            self._forget_session()
            self._is_lost = True

    def _forget_session(self) -> None:
        self._session_id = self._revision = self._initialized = None
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    def _lost(self) -> SessionLostError:
        message = f"{self._endpoint.name} has forgotten this session, as after a restart"
        return SessionLostError(message, server=self._endpoint.server)

    async def _end(self) -> None:
        session_id, revision = self._session_id, self._revision
        try:
            self._inbox.end()
            tasks = self._exchanges.cancel()
            if self._listening is not None:
                self._listening.cancel()
                tasks.add(self._listening)
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
    """404, as the specification has it, or the 400 with a word on sessions that servers after the official
    TypeScript examples answer."""
    return status == 404 or (status == 400 and _SESSION_WORDS.search(body) is not None)
