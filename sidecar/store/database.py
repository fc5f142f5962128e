"""One connection to SQLite: opened when it is first used, every failure of a statement told in one way.

Statements run in the event loop's thread. A commit costs some ten microseconds, a thread in between would cost
more, and what was kept must be on disk before the next line runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sidecar.protocol.secrets import Secrets
from sidecar.store.errors import StoreError

BUSY_LIMIT_SECS = 2.0
"""How long a statement waits for another process to finish its own. Own choice: theirs take less than a
millisecond; only a program that holds the file on purpose is in the way for longer."""

_ADVICE = {
    "SQLITE_BUSY": "another program holds it locked; end that program, or name another file by store.path",
    "SQLITE_LOCKED": "another program holds it locked; end that program, or name another file by store.path",
    "SQLITE_FULL": "make room on the disk, or delete sessions",
    "SQLITE_READONLY": "make the file and its folder writable, or name another by store.path",
    "SQLITE_CORRUPT": "move it away to begin a new one",
    "SQLITE_NOTADB": "move it away to begin a new one",
}
_ELSEWHERE = "check the disk, or name another file by store.path"

Row = tuple[Any, ...]


def import_sqlite() -> Any:
    """The library."""
    # 10 ms, and nothing is kept or read before `initialize` is answered.
    import sqlite3  # noqa: PLC0415

    return sqlite3


def _nothing() -> None:
    """Nobody counts."""


def _nothing_of(cursor: Any) -> None:
    """Of a statement that finds nothing."""


class Database:
    """A connection, and the words for what goes wrong with it. `connect` opens it; raises StoreError.

    `on_commit` is called after each commit. `secrets` are in no text that comes from outside: whoever writes such
    text hides them first.
    """

    def __init__(self, connect: Callable[[], Any], *, path: str, secrets: Secrets | None = None) -> None:
        self.path = path
        self.secrets = secrets or Secrets()
        self.on_commit: Callable[[], None] = _nothing
        self._connect = connect
        self._connection: Any = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def rows(self, sql: str, *values: Any) -> list[Row]:
        """What a query finds."""
        found: list[Row] = self._done(sql, values, lambda cursor: cursor.fetchall())
        return found

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row that a query finds."""
        found: Row | None = self._done(sql, values, lambda cursor: cursor.fetchone())
        return found

    def change(self, sql: str, *values: Any) -> int:
        """How many rows a statement has changed."""
        count: int = self._done(sql, values, lambda cursor: cursor.rowcount)
        self._committed()
        return count

    def insert(self, sql: str, *values: Any) -> int:
        """The key of the row that an INSERT has made."""
        key: int = self._done(sql, values, lambda cursor: cursor.lastrowid)
        self._committed()
        return key

    def give_back(self, pages: int) -> None:
        """Returns so many free pages, at most, to the disk."""
        with as_store_error(self.path):
            # Not `execute`, which would take the first step of it alone.
            self._opened().executescript(f"PRAGMA incremental_vacuum({pages})")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is changed inside is committed together, or nothing is. Transactions do not nest."""
        self._done("BEGIN IMMEDIATE", ())
        try:
            yield
            self._done("COMMIT", ())
        except BaseException:
            if self._connection.in_transaction:  # SQLite ends some by itself.
                self._done("ROLLBACK", ())
            raise
        self._committed()

    def close(self) -> None:
        """Lets go of the file; whatever is asked for later opens it again."""
        if self._connection is not None:
            with as_store_error(self.path):
                self._connection.close()
            self._connection = None

    def _committed(self) -> None:
        if not self._connection.in_transaction:
            self.on_commit()

    def _opened(self) -> Any:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _done(self, sql: str, values: Row, take: Callable[[Any], Any] = _nothing_of) -> Any:
        """What `take` finds in the cursor of a statement. Not by `as_store_error`: that costs as much again."""
        try:
            return take(self._opened().execute(sql, tuple(map(_bound, values))))
        except import_sqlite().Error as error:
            raise told(error, self.path) from error


@contextmanager
def as_store_error(path: str) -> Iterator[None]:
    """Turns what SQLite raises into StoreError."""
    errors = import_sqlite().Error
    try:
        yield
    except errors as error:
        raise told(error, path) from error


def told(error: Exception, path: str) -> StoreError:
    """The same failure with what to do about it."""
    name = str(getattr(error, "sqlite_errorname", ""))
    kind = next((known for known in _ADVICE if name.startswith(known)), "")
    return StoreError(f"the store {path}: {error}; {_ADVICE.get(kind, _ELSEWHERE)}", path=path)


def _bound(value: Any) -> Any:
    """A value as SQLite takes it: text is UTF-8, which has no halves of surrogate pairs."""
    if type(value) is not str or value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value
