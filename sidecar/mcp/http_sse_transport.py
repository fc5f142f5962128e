"""The transport over HTTP of 2024-11-05: one stream of events brings everything, POSTs elsewhere carry ours.

Source: MCP 2024-11-05, basic/transports#http-with-sse. The server is there as long as its stream is.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import HttpServer
from sidecar.mcp.exchange import Exchange, Exchanges
from sidecar.mcp.framing import Line
from sidecar.mcp.http_client import is_same_origin, resolved
from sidecar.mcp.http_edge import HttpAnswer, HttpEdge
from sidecar.mcp.http_failures import answer_in, shown_url
from sidecar.mcp.http_headers import post_headers, stream_headers
from sidecar.mcp.inbox import Inbox
from sidecar.mcp.sse import Event, EventDecoder
from sidecar.mcp.transport import FailedRequest, Outgoing
from sidecar.protocol.errors import ToolError

ENDPOINT_LIMIT_SECS = 10.0
"""How long a stream may take to begin and to say where messages go. Own choice: it is the first that it says."""

POST_LIMIT_SECS = 30.0
"""How long a server may take to accept a message; its answer comes on the stream. Own choice."""

CLOSE_LIMIT_SECS = 1.0
"""How long what is under way may take to break off."""

_NO_SUCH_STREAM = (400, 404, 405, 406)
"""What a server that speaks Streamable HTTP alone may answer to the GET."""

logger = logging.getLogger("sidecar.mcp")


async def open_sse(
    name: str, server: HttpServer, *, secrets: tuple[str, ...] = (), authorization: Authorization | None = None
) -> "HttpSse":
    """Opens the stream of a server and waits to hear where messages go.

    Raises ConfigurationError for an entry that cannot be used, ToolError where there is no such stream.
    """
    transport = HttpSse(await HttpEdge.open(name, server, secrets=secrets, authorization=authorization))
    try:
        await transport.begin()
    except BaseException:
        await transport.close()
        raise
    return transport


class HttpSse:
    """The stream of one server, and the POSTs to the place that it named."""

    def __init__(self, edge: HttpEdge) -> None:
        self._edge = edge
        self._endpoint = edge.endpoint
        self._inbox = Inbox()
        self._exchanges = Exchanges()
        self._place: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._revision: str | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ending = "closed its event stream"
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        return None

    @property
    def unsent_bytes(self) -> int:
        return self._exchanges.unsent_bytes

    async def begin(self) -> None:
        """Opens the stream. Raises ToolError where it is none, or does not say where messages go."""
        headers = stream_headers(revision=None, session_id=None, last_event_id=None)
        try:
            async with asyncio.timeout(ENDPOINT_LIMIT_SECS):
                answer = await self._edge.send("GET", headers, asked="its event stream")
                self._reading = asyncio.create_task(self._read(answer))
                waits: set[asyncio.Future[Any]] = {self._reading, self._place}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise self._no_place(f"did not say within {ENDPOINT_LIMIT_SECS:g} s") from None
        if not self._place.done():
            await self._reading
            raise self._no_place("closed its event stream before it said")
        self._place.result()

    def send(self, message: Outgoing) -> None:
        """Starts the POST of one message."""
        if self._closing is None:
            self._exchanges.begin(message, None, self._carry)

    def withdraw(self, request_id: int) -> bool:
        """A message has to say so."""
        return False

    def speaks(self, revision: str) -> None:
        """From now on messages name the revision."""
        self._revision = revision

    async def receive(self) -> Sequence[Line | FailedRequest]:
        """What has come; none once the stream has ended."""
        return await self._inbox.take()

    async def why_ended(self) -> str:
        """`closed its event stream`, or how it broke."""
        return self._ending

    async def close(self) -> None:
        """Closes the stream, which is all that such a server is told, within CLOSE_LIMIT_SECS."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._end())
        await asyncio.shield(self._closing)

    def kill(self) -> None:
        """Ends everything at once."""
        self._exchanges.cancel()
        if self._reading is not None:
            self._reading.cancel()
        self._inbox.end()

    async def _read(self, answer: HttpAnswer) -> None:
        """Takes in the stream until it ends."""
        decoder = EventDecoder()
        try:
            async with answer:
                if answer.status != 200 or not answer.is_event_stream:
                    raise await self._no_stream(answer)
                async for chunk in answer.chunks():
                    for event in decoder.feed(chunk):
                        self._take(event)
                    await self._inbox.room()
        except ToolError as error:
            self._ending = f"lost its event stream ({error.message})"
            if not self._place.done():
                self._place.set_exception(error)
        finally:
            self._inbox.end()

    def _take(self, event: Event) -> None:
        if event.kind == "endpoint" and isinstance(event.data, bytes) and not self._place.done():
            self._name_place(resolved(self._endpoint.url, event.data.decode(errors="replace")))
        elif event.kind == "message" and event.data:
            self._inbox.put(event.data)

    def _name_place(self, url: str) -> None:
        if is_same_origin(self._endpoint.url, url):
            self._place.set_result(url)
            return
        message = f"{self._endpoint.name} wants messages sent to {shown_url(url)}, which is of another origin"
        self._place.set_exception(self._endpoint.error(f"{message}; tokens must not go there"))

    async def _carry(self, exchange: Exchange) -> None:
        """One POST. A request that was accepted is answered on the stream."""
        try:
            async with asyncio.timeout(POST_LIMIT_SECS):
                await self._post(exchange)
        except ToolError as error:
            self._failed(exchange, error)
        except TimeoutError:
            message = f"{self._endpoint.name} did not accept {exchange.asked} within {POST_LIMIT_SECS:g} s"
            self._failed(exchange, self._endpoint.error(message))
        except Exception:  # The owner of a task: a mistake of ours must not leave a request without an end.
            logger.exception("%s of %s could not be sent", exchange.asked, self._endpoint.name)
            message = f"{exchange.asked} could not be sent: see the log for what broke"
            self._failed(exchange, self._endpoint.error(message))

    async def _post(self, exchange: Exchange) -> None:
        message = exchange.message
        headers = post_headers(message, revision=self._revision, session_id=None)
        place = self._place.result()
        async with await self._edge.send("POST", headers, message.body, url=place, asked=exchange.asked) as answer:
            if 200 <= answer.status < 300:
                return
            body = await answer.words()
            said = answer_in(answer.status, body, message.id)
            if said is not None:
                self._inbox.put(said)
            raise self._endpoint.failed_status(answer.status, answer.headers, body, asked=exchange.asked)

    def _failed(self, exchange: Exchange, error: ToolError) -> None:
        if exchange.message.id is not None:
            self._inbox.put(FailedRequest(exchange.message.id, error))
        else:
            logger.warning("%s was not told %s: %s", self._endpoint.name, exchange.asked, error.message)

    async def _no_stream(self, answer: HttpAnswer) -> ToolError:
        body = await answer.words()
        if 200 <= answer.status < 300:
            return self._endpoint.no_message(answer.status, answer.media_type, body, asked="its event stream")
        advice = self._other_type if answer.status in _NO_SUCH_STREAM else None
        return self._endpoint.failed_status(
            answer.status, answer.headers, body, asked="its event stream", advice=advice
        )

    def _no_place(self, what: str) -> ToolError:
        message = f'{self._endpoint.name} {what} where messages go, as a server of type "sse" must'
        return self._endpoint.error(f"{message}; {self._other_type}")

    @property
    def _other_type(self) -> str:
        return f'if it speaks Streamable HTTP, write "type": "http" in {self._endpoint.path}'

    async def _end(self) -> None:
        try:
            self._inbox.end()
            tasks = self._exchanges.cancel()
            if self._reading is not None:
                self._reading.cancel()
                tasks.add(self._reading)
            if tasks:
                await asyncio.wait(tasks, timeout=CLOSE_LIMIT_SECS)
        finally:
            if self._place.done() and not self._place.cancelled():
                self._place.exception()  # Looked at, so that nobody is told that nobody has.
            await self._edge.aclose()
