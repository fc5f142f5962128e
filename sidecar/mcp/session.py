"""What opening a conversation has settled, and all that differs between the eras of MCP from there on.

The revisions up to 2025-11-25 begin with a handshake (`legacy.py`); 2026-07-28 has none, and every request says
for itself what it is (`modern.py`).
"""

from typing import Any

from attrs import evolve, frozen

from sidecar import __version__
from sidecar.protocol.values import JsonObject

CLIENT_INFO: JsonObject = {"name": "agent-sidecar", "title": "Agent Sidecar", "version": __version__}

COMPLETE = "complete"
"""The `resultType` of a result that is one."""


@frozen(kw_only=True, eq=False)
class Session:
    """`server_info` is what the server says of itself, for display only.

    `meta` is what every request of a modern session says of itself; None in a legacy one.
    """

    protocol_version: str
    capabilities: JsonObject
    server_info: JsonObject | None
    instructions: str | None
    meta: JsonObject | None = None

    @property
    def is_modern(self) -> bool:
        return self.meta is not None

    def stamped(self, params: JsonObject) -> JsonObject:
        """The params of a request, with what each one has to say of itself; its own `_meta` outweighs that."""
        if self.meta is None:
            return params
        own = params.get("_meta")
        return {**params, "_meta": {**self.meta, **own} if own else self.meta}

    def saying(self, name: str, value: Any) -> "Session":
        """The same, where every request says this of itself too; unchanged in a legacy one."""
        return self if self.meta is None else evolve(self, meta={**self.meta, name: value})

    def next_cursor(self, result: JsonObject) -> str | None:
        """Where the next page of a list begins; None at the end, which legacy servers write as an empty cursor."""
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or not (cursor or self.is_modern):
            return None
        return cursor

    def age_limit_secs(self, said_secs: float | None, *, unsaid_secs: float) -> float:
        """How long a result may be remembered, where the server has said `said_secs` of it or nothing.

        A modern server that says nothing allows no time at all (MCP 2026-07-28, server/utilities/caching).
        """
        return said_secs or 0.0 if self.is_modern else unsaid_secs

    def result_type(self, result: JsonObject) -> Any:
        """What a result is: COMPLETE wherever a server does not say."""
        return COMPLETE if self.meta is None else (result.get("resultType") or COMPLETE)


def object_or_none(value: Any) -> JsonObject | None:
    """The value, where it is an object."""
    return value if isinstance(value, dict) else None


def text_or_none(value: Any) -> str | None:
    """The value, where it is text."""
    return value if isinstance(value, str) else None
