"""Sessions with their messages, runs and events, and which sidecar works in which session at the moment."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from attrs import frozen

from sidecar.protocol.codec import decode
from sidecar.protocol.errors import RequestError
from sidecar.protocol.events import AgentEvent, AssistantReasoningDelta, AssistantTextDelta, StopReason
from sidecar.protocol.messages import AgentEventParams, RunStatus, RunSummary, SessionSummary
from sidecar.protocol.values import Message
from sidecar.store.bodies import body_of, event_of, message_of, pieces_of
from sidecar.store.database import Database, Row
from sidecar.store.owners import Owners
from sidecar.store.permissions import session_scope
from sidecar.store.run_log import History, RunLog, add_event, end_run, now_ms

_SUMMARY = "id, title, created_ms, updated_ms, message_count"

_DELTAS = {delta.type: delta for delta in (AssistantTextDelta, AssistantReasoningDelta)}

LONGEST_TITLE = 80
"""Of a name that nobody has given. Own choice: a line of a list."""

EVENTS_AT_ONCE = 10_000
"""How many rows are deleted in one transaction: about 20 ms. Own choice."""

PAGES_AT_ONCE = 2000
"""How much of the file is given back after a deletion: 8 MiB. Own choice; what is left over is used again."""


@frozen(kw_only=True, eq=False, repr=False)
class Held:
    """A session that this sidecar may change now, and nobody else. `is_new` where another was there meanwhile."""

    key: int
    is_new: bool


class SessionTable:
    """What is known of all sessions. Every method raises StoreError."""

    def __init__(self, database: Database, owners: Owners) -> None:
        self._database = database
        self._owners = owners

    # Reading --------------------------------------------------------------------------------------------

    def get(self, session_id: str) -> SessionSummary:
        """Raises RequestError sessionNotFound."""
        row = self._database.row(f"SELECT {_SUMMARY} FROM sessions WHERE id = ?", session_id)
        if row is None:
            raise session_not_found(session_id)
        return _summary(row)

    def page(self, after: tuple[int, str] | None, limit: int) -> list[SessionSummary]:
        """The last touched first; those that follow the one that was touched at `after[0]` and is `after[1]`."""
        place = "" if after is None else "WHERE (updated_ms, id) < (?, ?)"
        rows = self._database.rows(
            f"SELECT {_SUMMARY} FROM sessions {place} ORDER BY updated_ms DESC, id DESC LIMIT ?",
            *(after or ()),
            limit,
        )
        return [_summary(row) for row in rows]

    def messages(self, session_id: str) -> tuple[list[Message], int]:
        """The history, and where the latest run in it begins."""
        key, latest_start = self._found("key, latest_start", session_id)
        rows = self._database.rows("SELECT body FROM messages WHERE session = ? ORDER BY position", key)
        return [message_of(body) for (body,) in rows], latest_start

    def runs(self, session_id: str) -> list[RunSummary]:
        """In the order in which they began."""
        (key,) = self._found("key", session_id)
        rows = self._database.rows("SELECT id, status, stop_reason FROM runs WHERE session = ? ORDER BY key", key)
        return [
            RunSummary(run_id=run_id, status=_status(status), stop_reason=_stop_reason(reason))
            for run_id, status, reason in rows
        ]

    def has_run(self, run_id: str) -> bool:
        """Whether a run has this id, in whatever session."""
        return self._database.row("SELECT 1 FROM runs WHERE id = ?", run_id) is not None

    def events(
        self, session_id: str, run_id: str | None = None, after_seq: int | None = None
    ) -> list[AgentEventParams]:
        """Of one run or of all of them, each from `after_seq` on, as they were sent."""
        (key,) = self._found("key", session_id)
        runs = self._database.rows(
            "SELECT key, id FROM runs WHERE session = ? AND (? IS NULL OR id = ?) ORDER BY key",
            key,
            run_id,
            run_id,
        )
        after = -1 if after_seq is None else after_seq
        return [
            AgentEventParams(session_id=session_id, run_id=found_id, seq=seq, event=event)
            for run, found_id in runs
            for seq, event in self._events_of(run, after)
        ]

    def _events_of(self, run: int, after: int) -> Iterator[tuple[int, AgentEvent]]:
        # The row before may hold deltas beyond `after`.
        first = self._database.row("SELECT max(seq) FROM events WHERE run = ? AND seq <= ?", run, after)
        rows = self._database.rows(
            "SELECT seq, type, body FROM events WHERE run = ? AND seq >= ? ORDER BY seq",
            run,
            (first or (None,))[0] or 0,
        )
        for seq, event in _merged(_read(row) for row in rows):
            if seq > after:
                yield seq, event

    # Changing -------------------------------------------------------------------------------------------

    def create(
        self, session_id: str, title: str | None, messages: Sequence[Message] = (), latest_start: int = 0
    ) -> SessionSummary:
        """A new session, which this sidecar was the last to have."""
        time_ms, me = now_ms(), self._owners.number
        title = title and self._database.secrets.hide(title)
        with self._database.transaction() if messages else nullcontext():
            key = self._database.insert(
                "INSERT INTO sessions (id, title, created_ms, updated_ms, holder) VALUES (?, ?, ?, ?, ?)",
                session_id,
                title,
                time_ms,
                time_ms,
                me,
            )
            History(self._database, key, (), 0).save(messages, latest_start)
        return SessionSummary(
            session_id=session_id,
            title=title,
            created_ms=time_ms,
            updated_ms=time_ms,
            message_count=len(messages),
        )

    def hold(self, session_id: str, work: str) -> Held:
        """Takes a session for a run or other `work`, across all sidecars.

        Raises RequestError sessionNotFound, and sessionBusy where it is taken, be it by one that has died.
        """
        me = self._owners.number
        while True:
            key, holder, busy_with = self._found("key, holder, busy_with", session_id)
            if busy_with is not None:
                raise session_busy(session_id, busy_with)
            # Half the price of a transaction. Nothing is taken where another was faster: then that one is found.
            if self._database.change(
                "UPDATE sessions SET holder = ?, busy_with = ? "
                "WHERE key = ? AND holder IS ? AND busy_with IS NULL",
                me,
                work,
                key,
                holder,
            ):
                return Held(key=key, is_new=holder != me)

    def begin_run(
        self,
        held: Held,
        run_id: str,
        model: str,
        saved: Sequence[Message],
        latest_start: int,
        *,
        opening: str | None = None,
    ) -> RunLog:
        """A run in a session that is held; `saved` is the history as `messages` gave it.

        A session that has no name is called by how the run begins, its `opening`.
        """
        title = self._database.secrets.hide(opening or "")
        shown = title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"
        with self._database.transaction():
            run = self._database.insert(
                "INSERT INTO runs (id, session, model, status, started_ms) VALUES (?, ?, ?, 'running', ?)",
                run_id,
                held.key,
                model,
                now_ms(),
            )
            self._database.change(
                "UPDATE sessions SET title = ? WHERE key = ? AND title IS NULL", shown or None, held.key
            )
        history = History(self._database, held.key, saved, latest_start)
        return RunLog(self._database, session=held.key, run=run, history=history)

    def replace_messages(
        self, held: Held, saved: Sequence[Message], messages: Sequence[Message], latest_start: int
    ) -> None:
        """Another history for a session that is held."""
        with self._database.transaction():
            History(self._database, held.key, saved, -1).save(messages, latest_start)

    def let_go(self, held: Held) -> None:
        """The session is free again."""
        self._database.change(
            "UPDATE sessions SET busy_with = NULL, updated_ms = ? WHERE key = ?", now_ms(), held.key
        )

    # After a sidecar has died ---------------------------------------------------------------------------

    def take_over(self, session_id: str, *, is_ours_idle: bool) -> str | None:
        """What was being done in a session by a sidecar that is no more; the session is held by us from now on.

        None where there is no such session, nothing was being done, or somebody still does it. `is_ours_idle`
        says that this sidecar itself does nothing there, whatever the store has heard.
        """
        row = self._database.row("SELECT holder, busy_with FROM sessions WHERE id = ?", session_id)
        if row is None or row[1] is None:
            return None
        (holder, work), me = row, self._owners.number
        if not (self._is_gone(holder) or (holder == me and is_ours_idle)):
            return None
        taken = self._database.change(
            "UPDATE sessions SET holder = ? WHERE id = ? AND holder IS ? AND busy_with = ?",
            me,
            session_id,
            holder,
            work,
        )
        return str(work) if taken else None

    def model_of(self, run_id: str) -> str | None:
        """The model that a run was begun with."""
        row = self._database.row("SELECT model FROM runs WHERE id = ?", run_id)
        return None if row is None else str(row[0])

    def conclude(
        self,
        session_id: str,
        run_id: str,
        endings: Sequence[tuple[int, AgentEvent]],
        messages: Sequence[Message],
        status: RunStatus,
        stop_reason: StopReason,
    ) -> None:
        """Adds to a run what its sidecar did not live to say, and to the history what it did not write."""
        with self._database.transaction():
            session, length = self._found("key, message_count", session_id)
            for position, message in enumerate(messages, length):
                self._database.change("INSERT INTO messages VALUES (?, ?, ?)", session, position, body_of(message))
            self._database.change(
                "UPDATE sessions SET message_count = ? WHERE key = ?", length + len(messages), session
            )
            found = self._database.row("SELECT key FROM runs WHERE id = ?", run_id)
            if found is not None:
                for seq, event in endings:
                    add_event(self._database, found[0], seq, event.type, body_of(event))
                end_run(self._database, session, found[0], status, stop_reason)

    def release(self, session_id: str) -> None:
        """Frees a session that was taken over and holds no run."""
        self._database.change("UPDATE sessions SET busy_with = NULL WHERE id = ?", session_id)

    # Deleting -------------------------------------------------------------------------------------------

    def delete(self, session_id: str) -> Iterator[None]:
        """Removes all of a session, the session itself first; each step is one short transaction."""
        with self._database.transaction():
            (key,) = self._found("key", session_id)
            self._database.change("DELETE FROM sessions WHERE key = ?", key)
            self._database.change("DELETE FROM messages WHERE session = ?", key)
            self._database.change("DELETE FROM permissions WHERE scope = ?", session_scope(session_id))
            self._database.change("DELETE FROM audit WHERE session = ?", session_id)
        yield
        yield from self._delete_runs(self._database.rows("SELECT key FROM runs WHERE session = ?", key))

    def sweep(self) -> Iterator[None]:
        """Removes what a deletion has left behind that was broken off."""
        lost = "SELECT key FROM runs WHERE session NOT IN (SELECT key FROM sessions)"
        yield from self._delete_runs(self._database.rows(lost))

    def _delete_runs(self, runs: Sequence[Row]) -> Iterator[None]:
        for (run,) in runs:
            while self._database.change(
                "DELETE FROM events WHERE run = ? AND seq IN (SELECT seq FROM events WHERE run = ? LIMIT ?)",
                run,
                run,
                EVENTS_AT_ONCE,
            ):
                yield
            self._database.change("DELETE FROM runs WHERE key = ?", run)
            yield
        self._database.give_back(PAGES_AT_ONCE)

    def oldest_idle(self, *, touched_before_ms: int | None = None) -> str | None:
        """The session that was not touched for the longest time, and that nobody works in."""
        row = self._database.row(
            "SELECT id FROM sessions WHERE busy_with IS NULL AND (? IS NULL OR updated_ms < ?) "
            "ORDER BY updated_ms, id LIMIT 1",
            touched_before_ms,
            touched_before_ms,
        )
        return None if row is None else str(row[0])

    def _found(self, columns: str, session_id: str) -> Row:
        row = self._database.row(f"SELECT {columns} FROM sessions WHERE id = ?", session_id)
        if row is None:
            raise session_not_found(session_id)
        return row

    def _is_gone(self, holder: int | None) -> bool:
        return holder != self._owners.number and not self._owners.is_alive(holder)


def session_not_found(session_id: str) -> RequestError:
    """There is none of this id."""
    return RequestError(
        "sessionNotFound",
        f"there is no session {session_id!r}; session/list names those there are",
        sessionId=session_id,
    )


def session_busy(session_id: str, work: str) -> RequestError:
    """Something goes on in it: a run, or `COMPACTION`."""
    if work == COMPACTION:
        return RequestError(
            "sessionBusy",
            f"session {session_id} is being compacted; try again when that has answered",
            sessionId=session_id,
        )
    return RequestError(
        "sessionBusy",
        f"session {session_id} is busy with run {work}; wait for it, cancel it, steer it, or submit with queue",
        sessionId=session_id,
        runId=work,
    )


COMPACTION = "session/compact"
"""What a session is busy with that holds no run. No run has this id: it is refused."""


def _summary(row: Row) -> SessionSummary:
    session_id, title, created_ms, updated_ms, message_count = row
    return SessionSummary(
        session_id=session_id,
        title=title,
        created_ms=created_ms,
        updated_ms=updated_ms,
        message_count=message_count,
    )


def _status(text: str) -> RunStatus:
    return decode(text, RunStatus)  # type: ignore[arg-type]


def _stop_reason(text: str | None) -> StopReason | None:
    return None if text is None else decode(text, StopReason)  # type: ignore[arg-type]


def _read(row: Row) -> Iterator[tuple[int, AgentEvent]]:
    seq, type_, body = row
    if delta := _DELTAS.get(type_):
        for number, text in pieces_of(body):
            yield number, delta(text=text)
    else:
        yield seq, event_of(body)


def _merged(rows: Iterator[Iterator[tuple[int, AgentEvent]]]) -> Iterator[tuple[int, AgentEvent]]:
    """The events of all rows; a delta whose pieces lie in two rows is one again."""
    waiting: tuple[int, AgentEvent] | None = None
    for row in rows:
        for seq, event in row:
            if waiting is not None and waiting[0] == seq:
                assert isinstance(event, AssistantTextDelta | AssistantReasoningDelta)
                assert isinstance(waiting[1], AssistantTextDelta | AssistantReasoningDelta)
                event = type(event)(text=waiting[1].text + event.text)
            elif waiting is not None:
                yield waiting
            waiting = (seq, event)
    if waiting is not None:
        yield waiting
