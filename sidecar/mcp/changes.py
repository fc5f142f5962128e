"""Word that a server's lists have changed, passed on once however often it comes."""

import asyncio
from collections.abc import Callable
from typing import Literal

PAUSE_SECS = 0.1
"""From the first word until it is passed on; what comes in between is one with it. Own choice."""

MAX_URIS = 1000
"""Resources named in one pause; further ones stand for the whole list. Own choice."""

Changed = Literal["resources", "prompts", "resource"]
"""A list, or one resource."""

OnChange = Callable[[Changed, str | None], None]
"""Hears what changed, and of one resource its address."""


class Changes:
    """Of one server."""

    def __init__(self, on_change: OnChange) -> None:
        self._on_change = on_change
        self._waiting: dict[tuple[Changed, str | None], None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, what: Changed, uri: str | None = None) -> None:
        """Something changed."""
        if uri is not None and len(self._waiting) >= MAX_URIS:
            what, uri = "resources", None
        self._waiting[what, uri] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECS, self._pass_on)

    def close(self) -> None:
        """Passes nothing on any more."""
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _pass_on(self) -> None:
        self._timer = None
        changed, self._waiting = self._waiting, {}
        for what, uri in changed:
            self._on_change(what, uri)
