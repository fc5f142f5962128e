"""Writes one run down while it goes on: its events, and the history of its session as it was at each of them."""

import time
from collections.abc import Sequence
from operator import is_

from sidecar.protocol.events import AssistantReasoningDelta, AssistantTextDelta, StopReason
from sidecar.protocol.messages import AgentEventParams, RunStatus
from sidecar.protocol.values import Message
from sidecar.store.bodies import body_of, piece_body
from sidecar.store.database import Database

ROW_BYTES = 2048
"""Where a row of deltas ends and another begins. Own choice: each piece that is appended writes the row anew, and
a page of the file, 4 KiB, is written in any case."""


class History:
    """The messages of a session as they are on disk; writes what has changed since."""

    def __init__(self, database: Database, session: int, messages: Sequence[Message], latest_start: int) -> None:
        self._database = database
        self._session = session
        self._saved = list(messages)
        self._told = (len(messages), latest_start)

    def is_saved(self, messages: Sequence[Message], latest_start: int) -> bool:
        """Whether `save` would find nothing to write."""
        return (len(messages), latest_start) == self._told and all(map(is_, self._saved, messages))

    def save(self, messages: Sequence[Message], latest_start: int) -> None:
        """To be called in a transaction. Messages are compared by identity: they are frozen."""
        for position in self._changed(messages):
            self._database.change(
                "INSERT INTO messages VALUES (?, ?, ?) "
                "ON CONFLICT (session, position) DO UPDATE SET body = excluded.body",
                self._session,
                position,
                self._database.secrets.hide(body_of(messages[position])),
            )
            self._saved[position : position + 1] = messages[position : position + 1]
        if len(messages) < len(self._saved):
            self._database.change(
                "DELETE FROM messages WHERE session = ? AND position >= ?", self._session, len(messages)
            )
            del self._saved[len(messages) :]
        if (len(messages), latest_start) != self._told:
            self._database.change(
                "UPDATE sessions SET message_count = ?, latest_start = ? WHERE key = ?",
                len(messages),
                latest_start,
                self._session,
            )
            self._told = (len(messages), latest_start)

    def _changed(self, messages: Sequence[Message]) -> list[int]:
        """The positions of messages that are not on disk. Almost always none or the last, found without a loop."""
        same = list(map(is_, self._saved, messages))
        earlier = [] if all(same) else [position for position, is_same in enumerate(same) if not is_same]
        return [*earlier, *range(len(same), len(messages))]


class RunLog:
    """A run of this sidecar. `keep` commits; raises StoreError."""

    def __init__(self, database: Database, *, session: int, run: int, history: History) -> None:
        self._database = database
        self._session = session
        self._run = run
        self._history = history
        self._streak: tuple[str, int] = ("", 0)
        self._streak_bytes = 0

    def keep(self, event: AgentEventParams, messages: Sequence[Message], latest_start: int) -> None:
        """An event that is about to be sent, and the history that it tells of.

        A delta may come in pieces that have one number.
        """
        match event.event:
            case AssistantTextDelta(text=text) | AssistantReasoningDelta(text=text) as delta:
                piece = piece_body(event.seq, self._database.secrets.hide(text))
                # More of a delta whose own row is full has no other row to go to.
                is_full = self._streak_bytes >= ROW_BYTES and event.seq != self._streak[1]
                if self._streak[0] == delta.type and not is_full:
                    self._append(piece)
                else:
                    self._add(event.seq, delta.type, piece, messages, latest_start)
                    self._streak, self._streak_bytes = (delta.type, event.seq), len(piece)
            case other:
                body = self._database.secrets.hide(body_of(other))
                self._add(event.seq, other.type, body, messages, latest_start)
                self._streak, self._streak_bytes = ("", 0), 0

    def end(
        self, status: RunStatus, stop_reason: StopReason, messages: Sequence[Message], latest_start: int
    ) -> None:
        """The run is over, and its session free for the next."""
        with self._database.transaction():
            self._history.save(messages, latest_start)
            end_run(self._database, self._session, self._run, status, stop_reason)

    def _append(self, piece: str) -> None:
        self._database.change(
            "UPDATE events SET body = body || ? WHERE run = ? AND seq = ?", piece, self._run, self._streak[1]
        )
        self._streak_bytes += len(piece)

    def _add(self, seq: int, type_: str, body: str, messages: Sequence[Message], latest_start: int) -> None:
        if self._history.is_saved(messages, latest_start):
            add_event(self._database, self._run, seq, type_, body)
            return
        with self._database.transaction():
            self._history.save(messages, latest_start)
            add_event(self._database, self._run, seq, type_, body)


def add_event(database: Database, run: int, seq: int, type_: str, body: str) -> None:
    """A row of its own."""
    database.change("INSERT INTO events VALUES (?, ?, ?, ?)", run, seq, type_, body)


def end_run(database: Database, session: int, run: int, status: RunStatus, stop_reason: StopReason) -> None:
    """Marks a run as over and frees its session, in a transaction of the caller's."""
    ended_ms = now_ms()
    database.change(
        "UPDATE runs SET status = ?, stop_reason = ?, ended_ms = ? WHERE key = ?",
        status,
        stop_reason,
        ended_ms,
        run,
    )
    database.change("UPDATE sessions SET busy_with = NULL, updated_ms = ? WHERE key = ?", ended_ms, session)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
