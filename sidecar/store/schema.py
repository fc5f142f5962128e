"""The tables, version by version. `user_version` of a file says which it has."""

from collections.abc import Callable
from typing import Any

APPLICATION_ID = 0x41536372
"""Marks a file as ours (SQLite, "PRAGMA application_id"): the letters AScr."""

Migration = Callable[[Any], None]
"""Takes a connection within a transaction."""


def sessions_and_events(connection: Any) -> None:
    """Version 1. Bodies are JSON as on the wire.

    `holder` is the sidecar that had the session last, `busy_with` the run or other work that it does there now.
    A session's key is never used again, because its runs go a little later than it does.
    """
    for statement in (
        "CREATE TABLE owners (number INTEGER PRIMARY KEY AUTOINCREMENT, pid INTEGER NOT NULL)",
        """CREATE TABLE sessions (
            key INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            title TEXT,
            created_ms INTEGER NOT NULL,
            updated_ms INTEGER NOT NULL,
            message_count INTEGER NOT NULL DEFAULT 0,
            latest_start INTEGER NOT NULL DEFAULT 0,
            holder INTEGER,
            busy_with TEXT)""",
        "CREATE INDEX sessions_by_time ON sessions (updated_ms, id)",
        "CREATE INDEX sessions_in_use ON sessions (holder) WHERE busy_with IS NOT NULL",
        """CREATE TABLE messages (
            session INTEGER NOT NULL,
            position INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (session, position)) WITHOUT ROWID""",
        """CREATE TABLE runs (
            key INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            session INTEGER NOT NULL,
            model TEXT NOT NULL,
            status TEXT NOT NULL,
            stop_reason TEXT,
            started_ms INTEGER NOT NULL,
            ended_ms INTEGER)""",
        "CREATE INDEX runs_by_session ON runs (session, key)",
        """CREATE TABLE events (
            run INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            type TEXT NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (run, seq)) WITHOUT ROWID""",
    ):
        connection.execute(statement)


def audit_and_permissions(connection: Any) -> None:
    """Version 2. A call is one row of the audit log; `outcome` is NULL while it goes on."""
    for statement in (
        """CREATE TABLE audit (
            key INTEGER PRIMARY KEY AUTOINCREMENT,
            owner INTEGER NOT NULL,
            time_ms INTEGER NOT NULL,
            session TEXT,
            run TEXT,
            call TEXT NOT NULL,
            tool TEXT NOT NULL,
            input_digest TEXT NOT NULL,
            decision TEXT,
            permission TEXT,
            rule TEXT,
            decided_by TEXT,
            answer TEXT,
            outcome TEXT,
            error_kind TEXT,
            duration_ms INTEGER)""",
        "CREATE INDEX audit_by_session ON audit (session, key)",
        "CREATE INDEX audit_open ON audit (owner, call) WHERE outcome IS NULL",
        """CREATE TABLE permissions (
            scope TEXT PRIMARY KEY,
            options TEXT NOT NULL,
            remembered TEXT NOT NULL) WITHOUT ROWID""",
    ):
        connection.execute(statement)


def pins(connection: Any) -> None:
    """Version 3. `digests` is a JSON object by the names of tools."""
    connection.execute("CREATE TABLE pins (scope TEXT PRIMARY KEY, digests TEXT NOT NULL) WITHOUT ROWID")


MIGRATIONS: tuple[Migration, ...] = (sessions_and_events, audit_and_permissions, pins)
"""What leads from each version to the next, from 0 on. Never change one that was released: add another."""

VERSION = len(MIGRATIONS)
