"""The revisions that begin with a handshake: 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25."""

import math

from sidecar.mcp.connection import Connection
from sidecar.mcp.session import CLIENT_INFO, Session, object_or_none, text_or_none
from sidecar.protocol.values import JsonObject

OFFERED_REVISION = "2025-11-25"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", OFFERED_REVISION)


async def initialize(connection: Connection, *, server: str, capabilities: JsonObject) -> Session:
    """Asks for a conversation (MCP 2025-11-25, basic/lifecycle#initialization), declaring our `capabilities`.

    Whoever takes the session up has to say so with `notifications/initialized`. Waits without a limit, as the
    caller has one. Raises ServerRefusalError where the server refuses, ToolError `mcpError` where it makes no
    sense or speaks a revision that this client does not.
    """
    params = {"protocolVersion": OFFERED_REVISION, "capabilities": capabilities, "clientInfo": CLIENT_INFO}
    result = await connection.request("initialize", params, timeout_secs=math.inf, is_cancellable=False)
    revision = result.get("protocolVersion")
    if revision not in REVISIONS:
        raise connection.error(
            "mcpError",
            f"server {server!r} speaks MCP revision {revision!r}, and this client {', '.join(REVISIONS)}; "
            "use another version of the server",
        )
    return Session(
        protocol_version=revision,
        capabilities=object_or_none(result.get("capabilities")) or {},
        server_info=object_or_none(result.get("serverInfo")),
        instructions=text_or_none(result.get("instructions")),
    )
