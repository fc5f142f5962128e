"""The revisions that begin with a handshake: 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25.

What differs between eras of the protocol is said here and nowhere else: how a connection opens, and what the
end of a list looks like.
"""

from typing import Any

from attrs import frozen

from sidecar import __version__
from sidecar.mcp.connection import Connection, ServerRefusalError
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

OFFERED_REVISION = "2025-11-25"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", OFFERED_REVISION)


@frozen(kw_only=True, eq=False)
class Session:
    """What the handshake settled. `server_info` is what the server says of itself, for display only."""

    protocol_version: str
    capabilities: JsonObject
    server_info: JsonObject | None
    instructions: str | None


async def shake_hands(connection: Connection, *, server: str, timeout_secs: float) -> Session:
    """Opens the conversation (MCP 2025-11-25, basic/lifecycle#initialization).

    Raises ToolError: `mcpTimeout` after `timeout_secs`, `mcpError` for a server that refuses, makes no sense or
    speaks a revision that this client does not.
    """
    params = {
        "protocolVersion": OFFERED_REVISION,
        "capabilities": {},
        "clientInfo": {"name": "agent-sidecar", "title": "Agent Sidecar", "version": __version__},
    }
    try:
        result = await connection.request("initialize", params, timeout_secs=timeout_secs, is_cancellable=False)
    except ServerRefusalError as refusal:
        raise connection.error("mcpError", f"server {server!r} refused initialize: {refusal.message}") from None
    except ToolError as error:
        if error.kind != "mcpTimeout":
            raise
        advice = f"raise mcpServers.{server}.startTimeoutSecs if it needs longer to start"
        raise connection.error("mcpTimeout", f"{error.message}; {advice}") from None
    revision = result.get("protocolVersion")
    if revision not in REVISIONS:
        raise connection.error(
            "mcpError",
            f"server {server!r} speaks MCP revision {revision!r}, and this client {', '.join(REVISIONS)}; "
            "use another version of the server",
        )
    connection.notify("notifications/initialized")
    return Session(
        protocol_version=revision,
        capabilities=_object(result.get("capabilities")) or {},
        server_info=_object(result.get("serverInfo")),
        instructions=_text(result.get("instructions")),
    )


def next_cursor(result: JsonObject) -> str | None:
    """Where the next page of a list begins; None at the end, which some servers write as an empty cursor."""
    return _text(result.get("nextCursor")) or None


def _object(value: Any) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
