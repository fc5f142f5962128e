"""Moves what was committed from SQLite's write-ahead log into the file itself, away from the event loop.

A commit appends to the log and does not wait for the disk; moving does. It is no part of any promise, as whoever
reads, reads the log, too.
"""

import logging
import threading
from pathlib import Path

from sidecar.store.database import BUSY_LIMIT_SECS, as_store_error, import_sqlite
from sidecar.store.errors import StoreError

logger = logging.getLogger("sidecar.store")

COMMITS_BETWEEN = 400
"""About 4 MiB of log. Own choice, near SQLite's own of 1000 pages."""

STOP_LIMIT_SECS = 1.0
"""How long the end of the process waits. Own choice; what is left in the log is found there."""


class Checkpoints:
    """One at a time, in a thread that lives as long as it takes. `committed` is to be called after each commit."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._commits = 0
        self._moving: threading.Thread | None = None

    def committed(self) -> None:
        """Counts, and now and then begins to move."""
        self._commits += 1
        if self._commits < COMMITS_BETWEEN or (self._moving is not None and self._moving.is_alive()):
            return
        self._commits = 0
        self._moving = threading.Thread(target=self._move, name="checkpoint", daemon=True)
        self._moving.start()

    def stop(self) -> None:
        """Waits for the one that is under way, within a limit."""
        if self._moving is not None:
            self._moving.join(STOP_LIMIT_SECS)

    def _move(self) -> None:
        try:
            with as_store_error(str(self._file)):
                connection = import_sqlite().connect(self._file, timeout=BUSY_LIMIT_SECS, isolation_level=None)
                try:
                    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                finally:
                    connection.close()
        except StoreError as error:  # The next commit meets the same, if it lasts, and says so.
            logger.info("%s", error.message)
