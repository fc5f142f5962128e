"""The HTTP exchanges that are under way with one server, and which of our requests they have answered."""

import asyncio
from collections.abc import Awaitable, Callable

from sidecar.mcp import envelope
from sidecar.mcp.envelope import Answer, BrokenAnswer, Refusal
from sidecar.mcp.framing import Line, OversizedLine
from sidecar.mcp.http_headers import stateless_revision
from sidecar.mcp.transport import Outgoing

_READ_BYTES = 64 * 1024
"""Longer messages are judged by their two ends: they must not be read twice."""

_ENDS_BYTES = 1024


class Exchange:
    """One message of ours on its way, until its HTTP answer is over. `session_id` is the one it was sent with."""

    def __init__(self, message: Outgoing, session_id: str | None) -> None:
        self.message = message
        self.is_stateless = stateless_revision(message) is not None
        self.session_id = None if self.is_stateless else session_id
        self.answered = asyncio.Event()
        self.is_sent = False
        self.is_taken = False
        self.task: asyncio.Task[None]

    @property
    def is_answered(self) -> bool:
        return self.answered.is_set()

    @property
    def is_request(self) -> bool:
        return self.message.id is not None

    @property
    def asked(self) -> str:
        return self.message.method or "an answer"


class Exchanges:
    """All of one transport, each in a task of its own."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self._all: set[Exchange] = set()
        self._requests: dict[int, Exchange] = {}

    def begin(
        self, message: Outgoing, session_id: str | None, carry: Callable[[Exchange], Awaitable[None]]
    ) -> Exchange:
        """Starts an exchange; `carry` takes it to its end."""
        exchange = Exchange(message, session_id)
        self.unsent_bytes += len(message.body)
        self._all.add(exchange)
        if message.id is not None:
            self._requests[message.id] = exchange
        exchange.task = asyncio.create_task(self._run(exchange, carry))
        return exchange

    def taken(self, exchange: Exchange) -> None:
        """The server has the message."""
        if not exchange.is_taken:
            exchange.is_taken = True
            self.unsent_bytes -= len(exchange.message.body)

    def note_answer(self, line: Line, exchange: Exchange | None) -> bool:
        """Marks the requests that a message answers; false where it came for `exchange`, but answers others."""
        answered = [found for request_id in answered_ids(line) if (found := self._requests.get(request_id))]
        if exchange is not None and answered and exchange not in answered:
            return False
        for each in answered:
            each.answered.set()
        return True

    def withdraw(self, request_id: int, grace_secs: float) -> bool:
        """Ends a request that nobody waits for; true where its server sees that by itself, at once."""
        exchange = self._requests.get(request_id)
        if exchange is None:
            return True  # It is over already.
        if exchange.is_stateless or not exchange.is_sent:
            exchange.task.cancel()
            return True
        asyncio.get_running_loop().call_later(grace_secs, exchange.task.cancel)
        return False

    def cancel(self) -> set[asyncio.Task[None]]:
        """Breaks all off; their tasks, which end soon."""
        tasks = {exchange.task for exchange in self._all}
        for task in tasks:
            task.cancel()
        return tasks

    async def _run(self, exchange: Exchange, carry: Callable[[Exchange], Awaitable[None]]) -> None:
        try:
            await carry(exchange)
        finally:
            self._ended(exchange)

    def _ended(self, exchange: Exchange) -> None:
        self.taken(exchange)
        self._all.discard(exchange)
        if exchange.message.id is not None:
            self._requests.pop(exchange.message.id, None)


def answered_ids(line: Line) -> tuple[int, ...]:
    """Which of our requests a message seems to answer. Of a long one a guess: too many rather than too few."""
    if isinstance(line, bytes) and len(line) > _READ_BYTES:
        line = OversizedLine(line[:_ENDS_BYTES], line[-_ENDS_BYTES:])
    if isinstance(line, OversizedLine) and b'"method"' in line.head:
        return ()
    return tuple(request_id for message in envelope.read_line(line) for request_id in _ids_of(message))


def _ids_of(message: envelope.Incoming) -> tuple[int, ...]:
    match message:
        case Answer(request_id):
            return (request_id,)
        case Refusal(int(request_id)):
            return (request_id,)
        case BrokenAnswer(ids):
            return ids
        case _:
            return ()
