"""The revision without a handshake, 2026-07-28: the server says what it is when it is asked."""

import math
from typing import Any

from sidecar.mcp import legacy
from sidecar.mcp.connection import Connection, ServerRefusalError
from sidecar.mcp.session import CLIENT_INFO, Session, object_or_none, text_or_none
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

REVISIONS = ("2026-07-28",)
PREFERRED_REVISION = REVISIONS[-1]

META = "io.modelcontextprotocol/"
"""What the keys begin with that the specification sets for `_meta`."""

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
ERRORS = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)
"""Codes that no server of an older revision gives, so whoever gives one is a modern server."""


class UnusableServerError(ToolError):
    """A server that has answered, and that this client cannot talk to."""


async def discover(connection: Connection, *, server: str, capabilities: JsonObject) -> Session | None:
    """Asks the server what it is (MCP 2026-07-28, server/discover), declaring our `capabilities`.

    None for a server that wants a handshake: it does not know the question, or names older revisions only. Waits
    without a limit, as the caller has one. Raises UnusableServerError too.
    """
    try:
        return await _discover(connection, PREFERRED_REVISION, server, capabilities)
    except ServerRefusalError as refusal:
        if refusal.code not in ERRORS:
            return None
        if refusal.code != UNSUPPORTED_VERSION:
            raise _refused(connection, server, refusal) from None
        named = (object_or_none(refusal.data) or {}).get("supported")
    revision = _common_revision(connection, server, named)
    if revision is None:
        return None
    try:
        return await _discover(connection, revision, server, capabilities)
    except ServerRefusalError as refusal:
        raise _refused(connection, server, refusal) from None


async def _discover(
    connection: Connection, revision: str, server: str, capabilities: JsonObject
) -> Session | None:
    params = {"_meta": _meta(revision, capabilities)}
    result = await connection.request("server/discover", params, timeout_secs=math.inf, is_cancellable=False)
    common = _common_revision(connection, server, result.get("supportedVersions"))
    if common is None:
        return None
    return Session(
        protocol_version=common,
        capabilities=object_or_none(result.get("capabilities")) or {},
        server_info=object_or_none((object_or_none(result.get("_meta")) or {}).get(f"{META}serverInfo")),
        instructions=text_or_none(result.get("instructions")),
        meta=_meta(common, capabilities),
    )


def _meta(revision: str, capabilities: JsonObject) -> JsonObject:
    return {
        f"{META}protocolVersion": revision,
        f"{META}clientCapabilities": capabilities,
        f"{META}clientInfo": CLIENT_INFO,
    }


def _common_revision(connection: Connection, server: str, named: Any) -> str | None:
    """The modern revision to speak, of those that the server has named; None where a handshake is the way."""
    revisions = [revision for revision in named if isinstance(revision, str)] if isinstance(named, list) else []
    modern = [revision for revision in REVISIONS if revision in revisions]
    if modern:
        return modern[-1]
    if not revisions or any(revision in legacy.REVISIONS for revision in revisions):
        return None
    raise _unusable(
        connection,
        f"server {server!r} speaks MCP revision {', '.join(revisions[:10])}, and this client "
        f"{', '.join((*legacy.REVISIONS, *REVISIONS))}; use another version of the server",
    )


def _refused(connection: Connection, server: str, refusal: ServerRefusalError) -> UnusableServerError:
    """The failure of a modern server that will not have us."""
    reason = refusal.message
    wanted = (object_or_none(refusal.data) or {}).get("requiredCapabilities")
    if refusal.code == MISSING_CAPABILITY and isinstance(wanted, dict):
        reason += f"; it needs a client that offers {', '.join(wanted)}"
    return _unusable(connection, f"server {server!r} refused server/discover: {reason}")


def _unusable(connection: Connection, message: str) -> UnusableServerError:
    return UnusableServerError("mcpError", message, **connection.error("mcpError", message).data)
