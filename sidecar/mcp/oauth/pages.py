"""A page that somebody is asked to visit, and what became of it. Cheap to import."""

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple


class PageAnswer(NamedTuple):
    """What became of a page.

    `nobody`: there is nobody who could be asked. `address` is where the page led to, when the host knows: from a
    machine whose browser does not reach this one.
    """

    outcome: Literal["shown", "declined", "nobody"]
    address: str | None = None


ShowPage = Callable[[str, str], Awaitable[PageAnswer]]
"""Asks a person to visit a page: the name of the MCP server, and the URL. Cancelled once the page was visited."""
