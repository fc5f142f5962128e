"""What servers turned out to be, remembered so that none has to be found out twice.

The memory is only there to save time: one that cannot be read or written is an empty one.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from sidecar.mcp.config import HttpServer, Server

Verdict = Literal["modern", "legacy", "sse"]
"""Without a handshake; with one; with one, and over the HTTP transport of 2024-11-05."""

MAX_AGE_SECS = 7 * 24 * 3600.0
"""After so long a server is asked again: an update may have taught it a newer revision. Own choice."""

MAX_VERDICTS = 500
"""Remembered at most; the oldest are forgotten first. Own choice."""

MAX_FILE_BYTES = 1024 * 1024
"""A larger file is none of ours."""

logger = logging.getLogger("sidecar.mcp")


class Verdicts:
    """Verdicts by configuration, in memory and, where `path` is given, in that file, shared with other processes.

    The file holds digests of configurations and can be read by its owner alone. `now` gives seconds since 1970.
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        self._path = path
        self._now = now
        self._known: dict[str, tuple[Verdict, float]] | None = None

    def get(self, server: Server) -> Verdict | None:
        """What is known of a server with this configuration."""
        verdict, at = self._memory().get(_digest(server), (None, 0.0))
        return verdict if 0 <= self._now() - at < MAX_AGE_SECS else None

    def remember(self, server: Server, verdict: Verdict) -> None:
        """Keeps what was found out; the time of a verdict that is known already stays."""
        if self.get(server) != verdict:
            self._change(_digest(server), verdict)

    def forget(self, server: Server) -> None:
        """Lets the server be asked again."""
        if _digest(server) in self._memory():
            self._change(_digest(server), None)

    def _memory(self) -> dict[str, tuple[Verdict, float]]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _change(self, digest: str, verdict: Verdict | None) -> None:
        known = {**self._memory(), **self._read()}  # Other processes have written since.
        known.pop(digest, None)
        if verdict is not None:
            known[digest] = (verdict, self._now())
        by_age = sorted(known.items(), key=lambda item: item[1][1])
        self._known = dict(by_age[-MAX_VERDICTS:])
        self._write()

    def _read(self) -> dict[str, tuple[Verdict, float]]:
        if self._path is None:
            return {}
        try:
            with self._path.open("rb") as file:
                kept = json.loads(file.read(MAX_FILE_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(kept, dict):
            return {}
        return {digest: entry for digest, raw in kept.items() if (entry := _entry(raw)) is not None}

    def _write(self) -> None:
        """Replaces the file in one step, so that nobody reads half of it."""
        if self._path is None:
            return
        scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(scratch, "w", encoding="ascii", opener=_for_us_alone) as file:
                json.dump(self._known, file)
            scratch.replace(self._path)
        except OSError as error:
            logger.info("what MCP servers speak is not kept: %s", error.strerror)


def _for_us_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _digest(server: Server) -> str:
    """A name for a configuration that gives nothing of it away."""
    match server:
        case HttpServer():
            identity: Any = [server.url]
        case _:
            identity = [server.command, server.args, server.env, server.env_file, server.cwd]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def _entry(raw: Any) -> tuple[Verdict, float] | None:
    match raw:
        case [str() as verdict, int() | float() as at] if verdict in get_args(Verdict):
            return verdict, float(at)  # type: ignore[return-value]  # it is one of them
        case _:
            return None
