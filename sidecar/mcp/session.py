"""What opening a conversation has settled, and all that differs between the eras of MCP from there on.

The revisions up to 2025-11-25 begin with a handshake (`legacy.py`); 2026-07-28 has none, and every request says
for itself what it is (`modern.py`).
"""

from typing import Any

from attrs import frozen

from sidecar.protocol.values import JsonObject


@frozen(kw_only=True, eq=False)
class Session:
    """`server_info` is what the server says of itself, for display only."""

    protocol_version: str
    capabilities: JsonObject
    server_info: JsonObject | None
    instructions: str | None
    is_modern: bool = False

    def next_cursor(self, result: JsonObject) -> str | None:
        """Where the next page of a list begins; None at the end, which legacy servers write as an empty cursor."""
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or not (cursor or self.is_modern):
            return None
        return cursor


def object_or_none(value: Any) -> JsonObject | None:
    """The value, where it is an object."""
    return value if isinstance(value, dict) else None


def text_or_none(value: Any) -> str | None:
    """The value, where it is text."""
    return value if isinstance(value, str) else None
