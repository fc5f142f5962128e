"""What a server writes into its client's log (MCP 2025-11-25, server/utilities/logging), made bearable.

Messages are cut and made visible, and those beyond a rate are counted only: a server can write faster than any
host reads.
"""

import json
import logging
from collections.abc import Callable
from time import monotonic
from typing import Any, get_args

from sidecar.protocol.values import JsonObject, LogLevel

LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)

MAX_MESSAGE_CHARS = 2000
MAX_LOGGER_CHARS = 100
MAX_BURST = 100
MESSAGES_PER_SEC = 10.0
"""Own choice: a person reads no more, and a server that goes wrong is seen to."""

OnLog = Callable[[LogLevel, str], None]
"""Hears a level, and a line that names the server."""

_LEVELS: dict[LogLevel, int] = {"debug": logging.DEBUG, "info": logging.INFO, "notice": logging.INFO}
"""In our log. What is worse than these is a warning: it is no error of ours."""

logger = logging.getLogger("sidecar.mcp")


class ServerLog:
    """The log of one server, written into ours, and told to `on_log`."""

    def __init__(self, server: str, on_log: OnLog) -> None:
        self._server = server
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
            self._write("notice", None, f"{self._left_out} messages came too fast and were left out")
            self._left_out = 0
        level, name = params.get("level"), params.get("logger")
        self._write(
            level if level in LOG_LEVELS else "info",
            name[:MAX_LOGGER_CHARS] if isinstance(name, str) else None,
            _text(params.get("data")),
        )

    def _write(self, level: LogLevel, name: str | None, text: str) -> None:
        named = f" ({_visible(name)})" if name else ""
        line = f"MCP server {self._server!r}{named}: {level}: {_visible(text)}"
        logger.log(_LEVELS.get(level, logging.WARNING), "%s", line)
        self._on_log(level, line)

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


def _visible(text: str) -> str:
    """What could hide, reorder or forge lines is shown as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
