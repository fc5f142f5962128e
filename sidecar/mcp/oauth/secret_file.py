"""A JSON file of secrets that its owner alone can read, shared by all sidecars of one person.

A write replaces the whole file at once, under a lock. A damaged file is set aside, never deleted.
"""

import contextlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOCK_LIMIT_SECS = 5.0
"""How long another sidecar is waited for. A write takes milliseconds; who holds it longer has gone. Own choice."""

_LOCK_PAUSE_SECS = 0.02
_REPLACE_TRIES = 5

logger = logging.getLogger("sidecar.mcp")

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _owner_alone(path: Path) -> bool:
        """Whose file it is, the profile folder says: its access list lets no other user in."""
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _owner_alone(path: Path) -> bool:
        return path.stat().st_mode & 0o077 == 0


class SecretFile:
    """JSON objects by name. Every method blocks; OSError rises where the disk does not take what it is given."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, name: str) -> dict[str, Any] | None:
        """The object of that name."""
        value = self._read().get(name)
        return value if isinstance(value, dict) else None

    def put(self, name: str, value: dict[str, Any] | None) -> None:
        """Keeps an object; None takes it away."""
        if value is None and name not in self._read():
            return
        with locked(self._path):
            entries = self._read()
            entries.pop(name, None)
            if value is not None:
                entries[name] = value
            self._replace(entries)

    def _read(self) -> dict[str, Any]:
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        if not _owner_alone(self._path):
            logger.warning("%s could be read by others; it is now readable by its owner alone", self._path)
            self._path.chmod(0o600)
        try:
            entries = json.loads(text)
        except (ValueError, RecursionError):
            entries = None
        if isinstance(entries, dict):
            return entries
        self._set_aside()
        return {}

    def _set_aside(self) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{time.time_ns()}")
        with contextlib.suppress(FileNotFoundError):  # Another sidecar was faster.
            self._path.replace(aside)
            logger.warning("%s was damaged and is set aside as %s; sign in again", self._path, aside.name)

    def _replace(self, entries: dict[str, Any]) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f"{self._path.name}.")  # 0600
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(entries, file)
                file.flush()
                os.fsync(file.fileno())
            _move(Path(temporary), self._path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise


def _move(source: Path, target: Path) -> None:
    """Windows refuses while somebody has the target open, which nobody has for long."""
    for tries_left in reversed(range(_REPLACE_TRIES)):
        try:
            source.replace(target)
            return
        except PermissionError:
            if sys.platform != "win32" or tries_left == 0:
                raise
            time.sleep(_LOCK_PAUSE_SECS)


@contextlib.contextmanager
def locked(path: Path, limit_secs: float = LOCK_LIMIT_SECS) -> Iterator[None]:
    """Holds the lock beside `path`; after `limit_secs` goes on without it, rather than never. Blocks."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    deadline = time.monotonic() + limit_secs
    try:
        while True:
            try:
                _try_lock(descriptor)
                break
            except OSError:
                if time.monotonic() > deadline:
                    logger.warning("the lock of %s is held for long; going on without it", path)
                    break
                time.sleep(_LOCK_PAUSE_SECS)
        yield
    finally:
        os.close(descriptor)  # That lets go of the lock, too.
