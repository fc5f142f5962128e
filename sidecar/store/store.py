"""The store: one file for all sidecars of a user, or memory. Opened when it is first used."""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from sidecar.protocol.events import Warned
from sidecar.protocol.secrets import Secrets
from sidecar.store.audit import AuditTable
from sidecar.store.checkpoints import Checkpoints
from sidecar.store.database import Database
from sidecar.store.errors import StoreError
from sidecar.store.opening import MEMORY, OnWarning, open_file, open_memory
from sidecar.store.owners import Owners
from sidecar.store.permissions import KeptPermissions
from sidecar.store.pins import PinnedTools
from sidecar.store.run_log import now_ms
from sidecar.store.sessions import SessionTable

logger = logging.getLogger("sidecar.store")

DAY_MS = 24 * 3600 * 1000

ROOM_SHARE = 0.9
"""What a store that has grown too large is brought down to, so that it is not tidied up after every run."""


@frozen(kw_only=True, eq=False, repr=False)
class StorePlace:
    """Where to keep things, and for how long. `file` None: in memory.

    `is_chosen`: somebody named the file, so that nothing else may take its place.
    """

    file: Path | None = None
    is_chosen: bool = False
    max_age_days: float | None = None
    max_bytes: int | None = None


class Store:
    """Its tables, each for one thing. Nothing is opened before one of them is used; then StoreError may rise.

    No text in it shows `secrets` that were known when it was written.
    """

    def __init__(
        self,
        place: StorePlace,
        *,
        on_warning: OnWarning = lambda warning: None,
        secrets: Secrets | None = None,
    ) -> None:
        self._place = place
        self._on_warning = on_warning
        self._file = place.file
        self._database = Database(self._connect, path=str(place.file or MEMORY), secrets=secrets)
        self._checkpoints: Checkpoints | None = None
        lock_file = place.file.with_name(f"{place.file.name}-owners") if place.file else None
        self._owners = Owners(self._database, lock_file)
        self.sessions = SessionTable(self._database, self._owners)
        self.audit = AuditTable(self._database, self._owners)

    def permissions(self, workspace: Callable[[], Sequence[Path]]) -> KeptPermissions:
        """What people decided in a workspace, and in any session."""
        return KeptPermissions(self._database, workspace)

    def pinned_tools(self, workspace: Callable[[], Sequence[Path]]) -> PinnedTools:
        """What the servers of a workspace offered when they were last seen."""
        return PinnedTools(self._database, workspace)

    @property
    def is_open(self) -> bool:
        return self._database.is_open

    def tidy(self) -> Iterator[None]:
        """Deletes sessions that are too old, and the oldest while all together are too large.

        Each step takes some milliseconds; those who wait in between may go on.
        """
        self._owners.forget_dead()
        yield from self.sessions.sweep()
        if self._place.max_age_days is not None:
            cutoff_ms = now_ms() - round(self._place.max_age_days * DAY_MS)
            self.audit.forget_before(cutoff_ms)
            while old := self.sessions.oldest_idle(touched_before_ms=cutoff_ms):
                yield from self.sessions.delete(old)
        if self.is_too_large:
            assert self._place.max_bytes is not None
            while self.size_bytes > self._place.max_bytes * ROOM_SHARE and (old := self.sessions.oldest_idle()):
                yield from self.sessions.delete(old)

    @property
    def size_bytes(self) -> int:
        """What is kept takes so much of the file."""
        (pages,), (free,), (page_bytes,) = (
            self._database.row(f"PRAGMA {name}") or (0,) for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * page_bytes)

    @property
    def is_too_large(self) -> bool:
        return self._place.max_bytes is not None and self.size_bytes > self._place.max_bytes

    def close(self) -> None:
        """Lets go of the file."""
        if self._database.is_open:
            try:
                if self._checkpoints is not None:
                    self._checkpoints.stop()
                self._owners.leave()
                self._database.close()
            except StoreError as error:
                logger.warning("%s", error.message)

    def _connect(self) -> Any:
        if self._file is None:
            return open_memory()
        try:
            connection = open_file(self._file, is_in_use=self._owners.others_run, on_warning=self._on_warning)
            self._checkpoints = Checkpoints(self._file)
            self._database.on_commit = self._checkpoints.committed
            return connection
        except (StoreError, OSError) as error:
            if self._place.is_chosen:
                raise
            self._on_warning(
                Warned(code="storeInMemory", message=f"{error}; sessions end with this process until then")
            )
            self._file = None
            self._owners.forget_file()
            return open_memory()
