"""One entry a call, from its first decision to its end.

Source: protocol.md, `audit/list` and `AuditEntry`.
"""

import hashlib
from typing import Any

import pytest

from sidecar.protocol.messages import AuditEntry, AuditListParams
from sidecar.store.audit import AuditedCall, digest_of
from sidecar.store.store import Store, StorePlace


@pytest.fixture
def store() -> Store:
    return Store(StorePlace())


def call(tool: str = "write_file", **fields: Any) -> AuditedCall:
    about = {"session_id": "ses_1", "run_id": "run_1", "call_id": "c1", "input": {"path": "a"}}
    return AuditedCall(tool_name=tool, **{**about, **fields})


def entries(store: Store, **asked: Any) -> list[AuditEntry]:
    return [entry for _, entry in store.audit.page(AuditListParams(**asked), None, 100)]


def decide(store: Store, about: AuditedCall, decision: Any = "allow", **fields: Any) -> None:
    said = {"rule": "permissions.ask", "permission": "write", "decided_by": "rule", "answer": None}
    store.audit.decided(about, decision=decision, **{**said, **fields})


def test_a_question_its_answer_and_the_outcome_are_one_entry(store: Store) -> None:
    decide(store, call(), "ask", decided_by=None)
    (asked,) = entries(store)
    assert (asked.decision, asked.decided_by, asked.outcome) == ("ask", None, None)
    decide(store, call(), "allow", decided_by="host", answer="allowOnce")
    store.audit.ended(call(input={"path": "edited"}), "ok", duration_ms=7)
    (entry,) = entries(store)
    assert entry == AuditEntry(
        time_ms=entry.time_ms,
        session_id="ses_1",
        run_id="run_1",
        call_id="c1",
        tool_name="write_file",
        input_digest=hashlib.sha256(b'{"path":"edited"}').hexdigest(),
        decision="allow",
        permission="write",
        rule="permissions.ask",
        decided_by="host",
        answer="allowOnce",
        outcome="ok",
        duration_ms=7,
    )


def test_a_call_that_came_to_no_decision_is_an_entry_too(store: Store) -> None:
    store.audit.ended(call(), "failed", error_kind="invalidArguments")
    (entry,) = entries(store)
    assert (entry.decision, entry.outcome, entry.error_kind) == (None, "failed", "invalidArguments")


def test_a_tool_that_calls_itself_under_one_id_leaves_an_entry_for_each(store: Store) -> None:
    decide(store, call())
    decide(store, call(input={"path": "inner"}))
    store.audit.ended(call(input={"path": "inner"}), "failed")
    store.audit.ended(call(), "ok")
    assert [(entry.outcome, entry.input_digest) for entry in entries(store)] == [
        ("failed", digest_of({"path": "inner"})),
        ("ok", digest_of({"path": "a"})),
    ]


def test_every_filter_takes_away_what_does_not_fit(store: Store) -> None:
    decide(store, call(run_id=None, session_id=None), "deny")
    decide(store, call("read_file", session_id="ses_2", run_id="run_2"))
    decide(store, call())
    times = [entry.time_ms for entry in entries(store)]
    assert [entry.session_id for entry in entries(store)] == ["ses_1", "ses_2", None]
    assert [entry.session_id for entry in entries(store, session_id="ses_2")] == ["ses_2"]
    assert [entry.session_id for entry in entries(store, run_id="run_1")] == ["ses_1"]
    assert [entry.session_id for entry in entries(store, tool_name="read_file")] == ["ses_2"]
    assert [entry.session_id for entry in entries(store, decision="deny")] == [None]
    assert entries(store, since_ms=times[0] + 1) == entries(store, until_ms=times[-1] - 1) == []
    assert len(entries(store, since_ms=times[-1], until_ms=times[0])) == 3


def test_the_digest_is_that_of_the_arguments_whatever_their_order() -> None:
    assert digest_of({"a": 1, "b": "é"}) == digest_of({"b": "é", "a": 1})
    assert digest_of({"b": "é"}) == hashlib.sha256(b'{"b":"\\u00e9"}').hexdigest()
