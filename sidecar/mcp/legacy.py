"""The revisions that begin with a handshake: 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25."""

from sidecar import __version__
from sidecar.mcp.connection import Connection, ServerRefusalError
from sidecar.mcp.session import Session, object_or_none, text_or_none
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

OFFERED_REVISION = "2025-11-25"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", OFFERED_REVISION)


async def shake_hands(
    connection: Connection, *, server: str, timeout_secs: float, capabilities: JsonObject
) -> Session:
    """Opens the conversation (MCP 2025-11-25, basic/lifecycle#initialization), declaring our `capabilities`.

    Raises ToolError: `mcpTimeout` after `timeout_secs`, `mcpError` for a server that refuses, makes no sense or
    speaks a revision that this client does not.
    """
    params = {
        "protocolVersion": OFFERED_REVISION,
        "capabilities": capabilities,
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
    connection.speaks(revision)
    connection.notify("notifications/initialized")
    return Session(
        protocol_version=revision,
        capabilities=object_or_none(result.get("capabilities")) or {},
        server_info=object_or_none(result.get("serverInfo")),
        instructions=text_or_none(result.get("instructions")),
    )
