"""The audit log: every call of a tool, what was decided about it and by whom, and what came of it."""

import hashlib
import json
from typing import Any

from attrs import frozen

from sidecar.protocol.codec import decode
from sidecar.protocol.events import ApprovalDecision, DecidedBy
from sidecar.protocol.messages import AuditEntry, AuditListParams, CallOutcome, RuleDecision
from sidecar.protocol.values import JsonObject
from sidecar.store.database import Database, Row
from sidecar.store.owners import Owners
from sidecar.store.run_log import now_ms

_COLUMNS = (
    "key, owner, time_ms, session, run, call, tool, input_digest, decision, permission, rule, decided_by, answer, "
    "outcome, error_kind, duration_ms"
)


@frozen(kw_only=True, eq=False, repr=False)
class AuditedCall:
    """Which call an entry is about."""

    session_id: str | None
    run_id: str | None
    call_id: str
    tool_name: str
    input: JsonObject


_CallKey = tuple[str | None, str, str]
"""A call that goes on, by run, id and tool."""


class AuditTable:
    """One row a call, from the first that is decided about it to its end. Every method raises StoreError."""

    def __init__(self, database: Database, owners: Owners) -> None:
        self._database = database
        self._owners = owners
        self._asked: dict[_CallKey, int] = {}
        self._decided: dict[_CallKey, int] = {}

    def decided(
        self,
        call: AuditedCall,
        *,
        decision: RuleDecision,
        rule: str,
        permission: str | None,
        decided_by: DecidedBy | None,
        answer: ApprovalDecision | None,
    ) -> None:
        """A decision; `"ask"` while somebody is being asked, to be followed by another."""
        key = _key_of(call)
        columns = {
            "decision": decision,
            "permission": permission,
            "rule": self._database.secrets.hide(rule),
            "decided_by": decided_by,
            "answer": answer,
        }
        row = self._asked.pop(key, None)
        if row is None:
            row = self._begin(call, columns)
        else:
            self._change(row, columns)
        (self._asked if decision == "ask" and answer is None else self._decided)[key] = row

    def ended(
        self, call: AuditedCall, outcome: CallOutcome, *, error_kind: str | None = None, duration_ms: int = 0
    ) -> None:
        """The call is over, be it that it has run or not. `call` has the arguments that it ran with."""
        key = _key_of(call)
        row = self._decided.pop(key, None) or self._asked.pop(key, None) or self._open_row(call)
        columns = {
            "outcome": outcome,
            "error_kind": error_kind,
            "duration_ms": duration_ms,
            "input_digest": digest_of(call.input),
        }
        self._change(row or self._begin(call, {}), columns)

    def page(self, asked: AuditListParams, before: int | None, limit: int) -> list[tuple[int, AuditEntry]]:
        """The newest first, with their keys: those that fit the filters and have a key below `before`."""
        wanted = {
            "session = ?": asked.session_id,
            "run = ?": asked.run_id,
            "tool = ?": asked.tool_name,
            "decision = ?": asked.decision,
            "time_ms >= ?": asked.since_ms,
            "time_ms <= ?": asked.until_ms,
            "key < ?": before,
        }
        given = {condition: value for condition, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM audit {where} ORDER BY key DESC LIMIT ?", *given.values(), limit
        )
        return [(row[0], self._entry(row)) for row in rows]

    def forget_before(self, time_ms: int) -> None:
        """Drops what is older and belongs to no session; everything else goes with its session."""
        self._database.change("DELETE FROM audit WHERE session IS NULL AND time_ms < ?", time_ms)

    def _begin(self, call: AuditedCall, more: dict[str, Any]) -> int:
        columns = {
            "owner": self._owners.number,
            "time_ms": now_ms(),
            "session": call.session_id,
            "run": call.run_id,
            "call": call.call_id,
            "tool": call.tool_name,
            "input_digest": digest_of(call.input),
            **more,
        }
        marks = ", ".join("?" * len(columns))
        return self._database.insert(
            f"INSERT INTO audit ({', '.join(columns)}) VALUES ({marks})", *columns.values()
        )

    def _change(self, row: int, columns: dict[str, Any]) -> None:
        changes = ", ".join(f"{column} = ?" for column in columns)
        self._database.change(f"UPDATE audit SET {changes} WHERE key = ?", *columns.values(), row)

    def _open_row(self, call: AuditedCall) -> int | None:
        """The newest row of this call without an outcome, for when two calls at a time have one id."""
        row = self._database.row(
            "SELECT max(key) FROM audit "
            "WHERE owner = ? AND call = ? AND outcome IS NULL AND tool = ? AND run IS ?",
            self._owners.number,
            call.call_id,
            call.tool_name,
            call.run_id,
        )
        return None if row is None else row[0]

    def _entry(self, row: Row) -> AuditEntry:
        _, owner, time_ms, session, run, call, tool, digest, decision, permission, rule = row[:11]
        decided_by, answer, outcome, error_kind, duration_ms = row[11:]
        if outcome is None and owner != self._owners.number and not self._owners.is_alive(owner):
            outcome = "interrupted"
        return AuditEntry(
            time_ms=time_ms,
            session_id=session,
            run_id=run,
            call_id=call,
            tool_name=tool,
            input_digest=digest,
            decision=_one_of(decision, RuleDecision),
            permission=permission,
            rule=rule,
            decided_by=_one_of(decided_by, DecidedBy),
            answer=_one_of(answer, ApprovalDecision),
            outcome=_one_of(outcome, CallOutcome),
            error_kind=error_kind,
            duration_ms=duration_ms,
        )


def _key_of(call: AuditedCall) -> _CallKey:
    return (call.run_id, call.call_id, call.tool_name)


def digest_of(arguments: JsonObject) -> str:
    """SHA-256 of the arguments as compact JSON with sorted keys: tells whether two calls were the same."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _one_of(text: str | None, choices: Any) -> Any:
    return None if text is None else decode(text, choices)
