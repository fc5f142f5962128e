"""What a server writes into its client's log (MCP 2025-11-25, server/utilities/logging), made bearable.

Messages are cut, and those beyond a rate are counted only: a server can write faster than any host reads.
"""

import json
from collections.abc import Callable
from time import monotonic
from typing import Any, get_args

from sidecar.protocol.messages import LogLevel
from sidecar.protocol.values import JsonObject

LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)

MAX_MESSAGE_CHARS = 2000
MAX_LOGGER_CHARS = 100
MAX_BURST = 100
MESSAGES_PER_SEC = 10.0
"""Own choice: a person reads no more, and a server that goes wrong is seen to."""

OnLog = Callable[[LogLevel, str | None, str], None]
"""Hears a level, the name of the server's logger, and the text."""


class ServerLog:
    """The log of one server."""

    def __init__(self, on_log: OnLog) -> None:
        self._on_log = on_log
        self._room = float(MAX_BURST)
        self._filled_at = monotonic()
        self._left_out = 0

    def take(self, params: JsonObject) -> None:
        """Passes a `notifications/message` on, if there is room for it."""
        if not self._has_room():
            self._left_out += 1
            return
        if self._left_out:
            self._on_log("notice", None, f"{self._left_out} messages came too fast and were left out")
            self._left_out = 0
        level, name = params.get("level"), params.get("logger")
        self._on_log(
            level if level in LOG_LEVELS else "info",
            name[:MAX_LOGGER_CHARS] if isinstance(name, str) else None,
            _text(params.get("data")),
        )

    def _has_room(self) -> bool:
        now = monotonic()
        self._room = min(MAX_BURST, self._room + (now - self._filled_at) * MESSAGES_PER_SEC)
        self._filled_at = now
        if self._room < 1:
            return False
        self._room -= 1
        return True


def _text(data: Any) -> str:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(", ", ": "))
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"
