"""All pages of a list that a server has, with guards against lists that do not end."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from sidecar.mcp.connection import ServerRefusalError
from sidecar.mcp.results import Warn
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

MAX_PAGES = 1000
MAX_ENTRIES = 10_000
"""Of one list. Own choice: far more than any server has, few enough to end."""

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Sends a request, by method and params: `Client.request`."""

NextCursor = Callable[[JsonObject], str | None]
"""Where a page says that the next one begins: `Session.next_cursor`."""


class Listed(NamedTuple):
    """What a list holds. `max_age_secs` is how long the server says that it may be remembered, if it does."""

    entries: list[Any]
    max_age_secs: float | None


async def list_all(
    ask: Ask, method: str, field: str, *, next_cursor: NextCursor, server: str, warn: Warn
) -> Listed:
    """Walks a list to its end (MCP 2026-07-28, server/utilities/pagination); `field` of a page has its entries.

    Raises ToolError where the first page cannot be had; when a later one is refused, the entries until there are
    taken, with a warning.
    """
    entries: list[Any] = []
    ages: list[float] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        if len(entries) > MAX_ENTRIES:
            warn(f"the list has more than {MAX_ENTRIES} {field}; the pages after that are left out")
            break
        try:
            page = await ask(method, {} if cursor is None else {"cursor": cursor})
        except ServerRefusalError as refusal:
            if cursor is None:
                message = f"server {server!r} refused {method}: {refusal.message}"
                raise ToolError("mcpError", message, server=server) from None
            warn(f"a page of {field} was refused, and those from there on are left out: {refusal.message}")
            break
        entries += _entries(page, method, field, server)
        ages += _age_secs(page)
        cursor = next_cursor(page)
        if cursor is None:
            break
        if cursor in seen:
            warn(f"the list of {field} goes in a circle; it is taken as far as it went")
            break
        seen.add(cursor)
    else:
        warn(f"the list of {field} has more than {MAX_PAGES} pages; the rest is left out")
    return Listed(entries, min(ages, default=None))


def _entries(page: JsonObject, method: str, field: str, server: str) -> list[Any]:
    entries = page.get(field)
    if not isinstance(entries, list):
        raise ToolError(
            "mcpError", f"server {server!r} answered {method} without a list of {field}", server=server
        )
    return entries


def _age_secs(page: JsonObject) -> tuple[float, ...]:
    """The `ttlMs` of a page, where it has one (MCP 2026-07-28, server/utilities/caching)."""
    match page.get("ttlMs"):
        case bool():
            return ()
        case int() | float() as age_ms:
            return (max(0.0, age_ms / 1000),)
        case _:
            return ()
