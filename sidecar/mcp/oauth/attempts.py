"""How often somebody is asked to sign in before it is plain that the server will never be content."""

import time

from sidecar.mcp.oauth.failures import AuthorizationFailure, PersonNeeded

MAX_ATTEMPTS = 3
"""Authorizations for the same scopes in ATTEMPT_WINDOW_SECS (MCP 2025-11-25: "a few")."""

MAX_ATTEMPTS_IN_ALL = 10
"""Authorizations in ATTEMPT_WINDOW_SECS for a server that wants something else each time. Own choice."""

ATTEMPT_WINDOW_SECS = 300.0
DECLINE_MEMORY_SECS = 60.0
"""So long after a no the same is not asked again. Own choice."""


class Attempts:
    """What was tried of late, by the scopes that were asked for."""

    def __init__(self) -> None:
        self._tried: list[tuple[float, tuple[str, ...]]] = []
        self._declined: dict[tuple[str, ...], tuple[float, PersonNeeded]] = {}

    def begin(self, scopes: tuple[str, ...]) -> None:
        """Counts an attempt. Raises AuthorizationFailure where there were too many, and the last no again."""
        now = time.monotonic()
        self._tried = [(when, what) for when, what in self._tried if when > now - ATTEMPT_WINDOW_SECS]
        when, refusal = self._declined.get(scopes, (0.0, None))
        if refusal is not None and when > now - DECLINE_MEMORY_SECS:
            raise refusal
        same = sum(what == scopes for _, what in self._tried)
        if same >= MAX_ATTEMPTS or len(self._tried) >= MAX_ATTEMPTS_IN_ALL:
            asked = f" (scopes: {' '.join(scopes)})" if scopes else ""
            raise AuthorizationFailure(
                f"it gave tokens and still does not let us in after {len(self._tried)} attempts{asked}"
            )
        self._tried.append((now, scopes))

    def declined(self, scopes: tuple[str, ...], refusal: PersonNeeded) -> None:
        """Remembers a no."""
        self._declined = {scopes: (time.monotonic(), refusal)}
