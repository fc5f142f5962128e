"""All pages of a server's tools, with guards against lists that do not end."""

from typing import Any

from sidecar.mcp.connection import Connection, ServerRefusalError
from sidecar.mcp.legacy import next_cursor
from sidecar.mcp.results import McpToolDefinition, Warn, read_tools

MAX_PAGES = 1000
MAX_TOOLS = 10_000
"""Of one list. Own choice: far more than any server has, few enough to end."""


async def list_tools(connection: Connection, *, server: str, warn: Warn) -> tuple[McpToolDefinition, ...]:
    """Walks `tools/list` to its end (MCP 2025-11-25, server/utilities/pagination).

    Raises ToolError where the first page cannot be had; when a later one is refused, the tools until there are
    taken, with a warning.
    """
    entries: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        if len(entries) > MAX_TOOLS:
            warn(f"the list has more than {MAX_TOOLS} tools; the pages after that are left out")
            break
        try:
            result = await connection.request("tools/list", {} if cursor is None else {"cursor": cursor})
        except ServerRefusalError as refusal:
            if not seen:
                message = f"server {server!r} refused tools/list: {refusal.message}"
                raise connection.error("mcpError", message) from None
            warn(f"a page of tools was refused, and those from there on are left out: {refusal.message}")
            break
        page = result.get("tools")
        if not isinstance(page, list):
            raise connection.error("mcpError", f"server {server!r} answered tools/list without a list of tools")
        entries += page
        cursor = next_cursor(result)
        if cursor is None:
            break
        if cursor in seen:
            warn("the list of tools goes in a circle; it is taken as far as it went")
            break
        seen.add(cursor)
    else:
        warn(f"the list of tools has more than {MAX_PAGES} pages; the rest is left out")
    return tuple(read_tools(entries, warn))
