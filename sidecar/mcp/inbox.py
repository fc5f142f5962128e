"""What several streams of one server bring, in one line for whoever reads."""

import asyncio
from collections.abc import Sequence

from sidecar.mcp.framing import Line
from sidecar.mcp.transport import FailedRequest

_UNREAD_BYTES = 4 * 1024 * 1024
"""While more than this waits to be taken, the streams are read no further."""


class Inbox:
    """Items in the order in which they came, until it ends; what came before that can still be taken."""

    def __init__(self) -> None:
        self._items: list[Line | FailedRequest] = []
        self._unread_bytes = 0
        self._news = asyncio.Event()
        self._taken = asyncio.Event()
        self._is_ended = False

    def put(self, item: Line | FailedRequest) -> None:
        """Adds an item, whatever waits already; none after the end."""
        if not self._is_ended:
            self._items.append(item)
            self._unread_bytes += len(item) if isinstance(item, bytes) else 0
            self._news.set()

    def end(self) -> None:
        """Nothing comes any more."""
        self._is_ended = True
        self._news.set()
        self._taken.set()

    async def room(self) -> None:
        """Waits until what has come was taken, where that is much."""
        while self._unread_bytes > _UNREAD_BYTES and not self._is_ended:
            self._taken.clear()
            await self._taken.wait()

    async def take(self) -> Sequence[Line | FailedRequest]:
        """All that has come, at least one item; none once it has ended."""
        while not self._items and not self._is_ended:
            self._news.clear()
            await self._news.wait()
        items, self._items = self._items, []
        self._unread_bytes = 0
        self._taken.set()
        return items
