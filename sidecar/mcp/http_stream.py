"""Streams of events from a server over HTTP: read to their end, and taken up again where they broke off."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sidecar.mcp.framing import Line
from sidecar.mcp.http_edge import HttpAnswer
from sidecar.mcp.sse import EventDecoder
from sidecar.protocol.errors import ToolError

DRAIN_SECS = 0.2
"""How long the end of a stream is waited for after its answer, so that its connection can be used again."""

DEFAULT_RETRY_SECS = 1.0
"""Before a stream is taken up again, where the server does not say how long to wait. Own choice."""

LONGEST_PAUSE_SECS = 60.0
"""Between two tries to open the stream of the server's own messages, which goes on as long as the session."""

logger = logging.getLogger("sidecar.mcp")


class Place:
    """Where in its stream a reader is (MCP 2025-11-25, basic/transports#resumability-and-redelivery)."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_secs = DEFAULT_RETRY_SECS

    def move(self, decoder: EventDecoder) -> bool:
        """Takes over what the stream has said so far; whether the place is another."""
        if decoder.retry_ms is not None:
            self.retry_secs = decoder.retry_ms / 1000
        is_news = decoder.last_id is not None and decoder.last_id != self.last_id
        self.last_id = decoder.last_id or self.last_id
        return is_news


class StreamReader:
    """Reads streams. Each message goes to `take`, and `room` waits while too much has not been taken in."""

    def __init__(self, take: Callable[[Line], None], room: Callable[[], Awaitable[None]]) -> None:
        self.place = Place()
        self.lost: ToolError | None = None
        self._take = take
        self._room = room

    async def read(self, answer: HttpAnswer, is_over: Callable[[], bool] = lambda: False) -> bool:
        """Reads a stream to its end; whether it brought anything. `lost` is then what broke it, if something did.

        Once `is_over`, the end is waited for only a moment: some servers leave their streams open.
        """
        decoder, is_news = EventDecoder(), False
        self.lost = None
        try:
            async with asyncio.timeout(None) as limit:
                async for chunk in answer.chunks():
                    for event in decoder.feed(chunk):
                        if event.kind == "message" and event.data:
                            self._take(event.data)
                            is_news = True
                    is_news = self.place.move(decoder) or is_news
                    if is_over() and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + DRAIN_SECS)
                    await self._room()
        except TimeoutError:
            pass
        except ToolError as error:
            self.lost = error
        return is_news


class OwnMessages:
    """The stream of what a server says without being asked, as long as a session; not every server has one.

    `get` opens it, from the event on that it is given.
    """

    def __init__(self, reader: StreamReader, get: Callable[[str | None], Awaitable[HttpAnswer]]) -> None:
        self.is_open = False
        self._reader = reader
        self._get = get
        self._listening = asyncio.create_task(self._listen())

    def stop(self) -> "asyncio.Task[None]":
        """Closes the stream; the task ends soon."""
        self._listening.cancel()
        return self._listening

    async def _listen(self) -> None:
        place, pause_secs = self._reader.place, DEFAULT_RETRY_SECS
        while True:
            is_news = False
            try:
                async with await self._get(place.last_id) as answer:
                    if answer.status < 500 and not (answer.status == 200 and answer.is_event_stream):
                        return
                    if answer.status == 200:
                        self.is_open = True
                        is_news = await self._reader.read(answer)
            except ToolError as error:
                logger.info("a server's stream of messages cannot be had now: %s", error.message)
            finally:
                self.is_open = False
            pause_secs = place.retry_secs if is_news else min(2 * pause_secs, LONGEST_PAUSE_SECS)
            await asyncio.sleep(max(place.retry_secs, pause_secs))
