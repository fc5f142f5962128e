"""Opens the file of a store: made where there is none, brought up to date, set aside where it cannot be used.

Nothing that might be somebody's data is ever overwritten.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sidecar.protocol.events import Warned
from sidecar.store.database import BUSY_LIMIT_SECS, as_store_error, import_sqlite, told
from sidecar.store.errors import StoreError
from sidecar.store.schema import APPLICATION_ID, MIGRATIONS, VERSION

OnWarning = Callable[[Warned], None]

MEMORY = ":memory:"

LOG_BYTES_KEPT = 8 * 1024 * 1024
"""What a log that has grown larger is cut to when it is empty (own choice)."""

LOG_PAGES = 10_000
"""Where SQLite itself stops the log from growing, 40 MiB, should `Checkpoints` not keep up."""


class _UnreadableError(Exception):
    """The file is ours and cannot be read by this version. `kind` is the word for its new name."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def open_memory() -> Any:
    """A store that ends with the process."""
    with as_store_error(MEMORY):
        connection = import_sqlite().connect(MEMORY, isolation_level=None)
        _migrate(connection)
        return connection


def open_file(file: Path, *, is_in_use: Callable[[], bool], on_warning: OnWarning) -> Any:
    """A connection to the newest version of the tables. Raises StoreError.

    A damaged file and one of a newer version are set aside, unless `is_in_use`, and a new one is begun.
    """
    try:
        _make(file)
        return _connected(file)
    except _UnreadableError as error:
        if is_in_use():
            raise StoreError(
                f"the store {file} {error}, and another sidecar works with it; end that one first", path=str(file)
            ) from None
        kept = set_aside(file, error.kind)
        on_warning(
            Warned(
                code="storeSetAside",
                message=f"the store {file} {error}; it was set aside as {kept}, and a new one was begun",
            )
        )
        return _connected(file)
    except OSError as error:
        raise StoreError(
            f"the store {file} cannot be used: {error.strerror or error}; name another file by store.path",
            path=str(file),
        ) from None


def set_aside(file: Path, kind: str) -> Path:
    """Renames a file and what SQLite keeps beside it; returns the new name, which nothing had before."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 0
    while (kept := file.with_name(f"{file.name}.{kind}-{stamp}{f'-{number}' if number else ''}")).exists():
        number += 1
    for ending in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            file.with_name(file.name + ending).rename(kept.with_name(kept.name + ending))
    return kept


def _make(file: Path) -> None:
    """An empty file that its owner alone can read; SQLite gives those beside it the same rights."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))


def _connected(file: Path) -> Any:
    sqlite3 = import_sqlite()
    with as_store_error(str(file)):
        connection = sqlite3.connect(file, timeout=BUSY_LIMIT_SECS, isolation_level=None)
        try:
            _check_ours(connection, file)
            _set_up(connection)
            _migrate(connection)
        except sqlite3.DatabaseError as error:
            connection.close()
            if str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise _UnreadableError("damaged", "is damaged") from None
            raise
        except BaseException:
            connection.close()
            raise
        return connection


def _check_ours(connection: Any, file: Path) -> None:
    """Raises _UnreadableError for a newer file, StoreError for one of another program."""
    connection.execute("BEGIN")  # All as it is at one moment: another sidecar may be making the tables.
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    connection.execute("COMMIT")
    if application_id != APPLICATION_ID and (tables or version or application_id):
        raise StoreError(
            f"the store {file} is the database of another program; name another file by store.path",
            path=str(file),
        )
    if version > VERSION:
        raise _UnreadableError(
            f"version-{version}", f"has version {version}, and this sidecar knows up to {VERSION}"
        )


def _set_up(connection: Any) -> None:
    """WAL with `synchronous = NORMAL`: a commit survives the end of the process at any moment."""
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # Takes effect while there are no tables yet.
        _switch_to_wal(connection)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
    connection.execute("PRAGMA secure_delete = ON")  # What is deleted is gone from the file, too.


def _switch_to_wal(connection: Any) -> None:
    """SQLite does not wait for others here, and two sidecars may begin a file at the same moment."""
    deadline = time.monotonic() + BUSY_LIMIT_SECS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except import_sqlite().OperationalError as error:
            if time.monotonic() > deadline:
                raise told(error, "") from error
        time.sleep(0.005)


def _migrate(connection: Any) -> None:
    """Brings the tables up to date, in one transaction: whoever comes second finds it done."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for migration in MIGRATIONS[version:]:
            migration(connection)
        if version < VERSION:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
