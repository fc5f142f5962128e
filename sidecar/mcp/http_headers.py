"""The headers of a message to a server over HTTP. Pure.

Source: MCP 2025-11-25, basic/transports#streamable-http; MCP 2026-07-28, basic/transports/streamable-http.
"""

from typing import Any

from sidecar.mcp.header_params import header_value
from sidecar.mcp.transport import Outgoing
from sidecar.protocol.values import JsonObject

REVISION_META = "io.modelcontextprotocol/protocolVersion"
"""Where a request of a stateless revision says which one it is of."""

SESSION_ID = "mcp-session-id"
_REVISION = "mcp-protocol-version"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""By method: the param that `Mcp-Name` repeats."""


def stateless_revision(message: Outgoing) -> str | None:
    """The revision that a request says it is of; None for those of revisions with a handshake."""
    meta: Any = (message.params or {}).get("_meta")
    revision = meta.get(REVISION_META) if isinstance(meta, dict) else None
    return revision if isinstance(revision, str) else None


def post_headers(message: Outgoing, *, revision: str | None, session_id: str | None) -> dict[str, str]:
    """For a message on its way out. `revision` and `session_id` are what a handshake has settled, if anything."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    stateless = stateless_revision(message)
    if stateless is None:
        return headers | session_headers(revision=revision, session_id=session_id)
    headers[_REVISION] = stateless
    headers["mcp-method"] = header_value(message.method or "")
    name = _name(message.method, message.params or {})
    if name is not None:
        headers["mcp-name"] = header_value(name)
    return headers | dict(message.headers or {})


def stream_headers(*, revision: str | None, session_id: str | None, last_event_id: str | None) -> dict[str, str]:
    """For a GET: a stream of the server's own messages, or the rest of one that broke off."""
    headers = {"accept": "text/event-stream"} | session_headers(revision=revision, session_id=session_id)
    return headers if last_event_id is None else {**headers, "last-event-id": last_event_id}


def session_headers(*, revision: str | None, session_id: str | None) -> dict[str, str]:
    """What ties a request to a session; nothing before the handshake."""
    pairs = ((_REVISION, revision), (SESSION_ID, session_id))
    return {name: value for name, value in pairs if value is not None}


def _name(method: str | None, params: JsonObject) -> str | None:
    field = _NAMED.get(method or "")
    name = params.get(field) if field is not None else None
    return name if isinstance(name, str) else None
