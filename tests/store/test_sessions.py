"""Sessions, messages and events as they are kept and given back.

Source: protocol.md, "Durability", `session/list`, `session/events`; how rows are laid out is our own choice.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.protocol.errors import RequestError
from sidecar.protocol.events import (
    AgentEvent,
    AssistantReasoningDelta,
    AssistantTextDelta,
    RunStarted,
    Warned,
)
from sidecar.protocol.messages import AgentEventParams, AuditListParams, PermissionOptions, PermissionRule
from sidecar.protocol.secrets import Secrets
from sidecar.protocol.values import Message, ToolCall
from sidecar.store.audit import AuditedCall
from sidecar.store.run_log import RunLog
from sidecar.store.store import DAY_MS, Store, StorePlace


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(StorePlace(file=tmp_path / "store.sqlite3", is_chosen=True))
    yield store
    store.close()


def in_memory() -> Store:
    return Store(StorePlace())


def user(text: str) -> Message:
    return Message(role="user", content=text)


def begun(store: Store, session_id: str = "ses_1", run_id: str = "run_1") -> RunLog:
    store.sessions.create(session_id, None)
    held = store.sessions.hold(session_id, run_id)
    return store.sessions.begin_run(held, run_id, "test/m", [], 0)


def keep(log: RunLog, seq: int, event: AgentEvent, messages: Sequence[Message] = ()) -> None:
    log.keep(AgentEventParams(session_id="ses_1", run_id="run_1", seq=seq, event=event), messages, 0)


def kept(store: Store, after_seq: int | None = None) -> list[tuple[int, AgentEvent]]:
    return [(params.seq, params.event) for params in store.sessions.events("ses_1", "run_1", after_seq)]


# Messages -----------------------------------------------------------------------------------------------


def test_a_history_is_kept_with_each_event_however_it_changes(store: Store) -> None:
    log = begun(store)
    call = ToolCall(call_id="c1", tool_name="look", input={"half": "\ud83d", "deep": [1, {"a": None}]})
    asks = Message(role="assistant", content="", tool_calls=(call,))
    history = [user("go"), asks, Message(role="tool", content="?", call_id="c1")]
    keep(log, 0, Warned(code="a", message="grown"), history)
    history[2] = Message(role="tool", content="seen", call_id="c1")
    history.append(user("more"))
    keep(log, 1, Warned(code="b", message="replaced and grown"), history)
    assert store.sessions.messages("ses_1") == (history, 0)
    shrunk = [user("summary"), history[3]]
    keep(log, 2, Warned(code="c", message="compacted"), shrunk)
    assert store.sessions.messages("ses_1") == (shrunk, 0)
    assert store.sessions.get("ses_1").message_count == 2


def test_what_one_store_has_kept_another_reads_at_once(store: Store, tmp_path: Path) -> None:
    log = begun(store)
    keep(log, 0, RunStarted(model="test/m", prompt="go"), [user("go")])
    other = Store(StorePlace(file=tmp_path / "store.sqlite3", is_chosen=True))
    assert other.sessions.messages("ses_1") == ([user("go")], 0)
    assert kept(other) == [(0, RunStarted(model="test/m", prompt="go"))]
    other.close()


# Events -------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=()), min_size=1, max_size=1500)
steps = st.lists(st.tuples(st.sampled_from(["text", "reasoning", "warning"]), texts, st.booleans()), max_size=40)


@given(steps)
@settings(max_examples=60, deadline=None)
def test_deltas_that_share_rows_come_back_one_by_one_with_their_numbers(
    steps: list[tuple[str, str, bool]],
) -> None:
    store = in_memory()
    log = begun(store)
    expected: list[tuple[int, AgentEvent]] = []
    for kind, text, joins in steps:
        event: AgentEvent = {
            "text": AssistantTextDelta(text=text),
            "reasoning": AssistantReasoningDelta(text=text),
            "warning": Warned(code="w", message=text),
        }[kind]  # type: ignore[assignment]
        last = expected[-1][1] if expected else None
        if joins and kind != "warning" and type(last) is type(event):
            seq = expected[-1][0]
            expected[-1] = (seq, type(event)(text=last.text + text))  # type: ignore[union-attr, call-arg]
        else:
            seq = len(expected)
            expected.append((seq, event))
        keep(log, seq, event)
    assert kept(store) == expected
    for after in range(-1, len(expected) + 1):
        assert kept(store, after) == expected[after + 1 :]


def test_neighbouring_deltas_take_few_rows(store: Store) -> None:
    log = begun(store)
    for seq in range(1000):
        keep(log, seq, AssistantTextDelta(text="word "))
    rows = store.sessions._database.row("SELECT count(*) FROM events")
    assert rows is not None and rows[0] <= 10
    assert len(kept(store)) == 1000


# Lists --------------------------------------------------------------------------------------------------


def test_pages_follow_each_other_to_the_end_whatever_was_touched_at_the_same_moment(store: Store) -> None:
    for number in range(25):
        store.sessions.create(f"ses_{number:02}", None)
    found: list[str] = []
    after = None
    while page := store.sessions.page(after, 7):
        found += [session.session_id for session in page]
        after = (page[-1].updated_ms, page[-1].session_id)
    assert sorted(found) == [f"ses_{number:02}" for number in range(25)]
    times = [store.sessions.get(session_id).updated_ms for session_id in found]
    assert times == sorted(times, reverse=True)


# Who works where ----------------------------------------------------------------------------------------


def test_a_session_that_is_held_is_busy_until_it_is_let_go(store: Store) -> None:
    log = begun(store)
    with pytest.raises(RequestError) as busy:
        store.sessions.hold("ses_1", "run_2")
    assert (busy.value.kind, busy.value.data["runId"]) == ("sessionBusy", "run_1")
    log.end("completed", "stop", [user("go")], 0)
    assert [run.status for run in store.sessions.runs("ses_1")] == ["completed"]
    store.sessions.let_go(store.sessions.hold("ses_1", "run_2"))


def test_a_session_that_is_not_there_is_named(store: Store) -> None:
    for ask in (store.sessions.get, store.sessions.messages, store.sessions.runs, store.sessions.events):
        with pytest.raises(RequestError, match="there is no session 'ses_x'"):
            ask("ses_x")


# Deleting -----------------------------------------------------------------------------------------------


def test_a_deleted_session_leaves_nothing_in_the_file_and_others_alone(store: Store, tmp_path: Path) -> None:
    secret = "the launch code is 0000"
    permissions = store.permissions(lambda: [tmp_path])
    for number in (1, 2):
        log = begun(store, f"ses_{number}", f"run_{number}")
        log.keep(
            AgentEventParams(
                session_id=f"ses_{number}", run_id=f"run_{number}", seq=0, event=Warned(code="w", message=secret)
            ),
            [user(secret)],
            0,
        )
        log.end("completed", "stop", [user(secret)], 0)
        call = AuditedCall(
            session_id=f"ses_{number}", run_id=None, call_id="c", tool_name=secret, input={"a": secret}
        )
        store.audit.ended(call, "ok")
        rule = PermissionRule(tool="t", decision="allow", arguments={"a": secret})
        permissions.save(f"ses_{number}", PermissionOptions(), (rule,))
    for number in (1, 2):
        for _ in store.sessions.delete(f"ses_{number}"):
            pass
        left = store.sessions.page(None, 10)
        assert [session.session_id for session in left] == ["ses_2"][: 2 - number]
        assert len(store.audit.page(AuditListParams(), None, 10)) == 2 - number
        assert len(permissions.load("ses_2")[1]) == 2 - number
    store.close()
    assert secret.encode() not in (tmp_path / "store.sqlite3").read_bytes()


def test_sessions_go_by_age_and_by_size_the_oldest_first(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite3"
    store = Store(StorePlace(file=file, is_chosen=True, max_age_days=1, max_bytes=300_000))
    for number in range(10):
        store.sessions.create(f"ses_{number}", None, [user("x" * 50_000)])
        store.sessions._database.change(
            "UPDATE sessions SET updated_ms = updated_ms - ? WHERE id = ?",
            2 * DAY_MS if number < 2 else 1000 - number,
            f"ses_{number}",
        )
    for call_id in ("old", "new"):
        call = AuditedCall(session_id=None, run_id=None, call_id=call_id, tool_name="t", input={})
        store.audit.ended(call, "ok")
    store.sessions._database.change("UPDATE audit SET time_ms = time_ms - ? WHERE call = 'old'", 2 * DAY_MS)
    store.sessions.hold("ses_2", "run_1")  # What is worked with stays.
    assert store.is_too_large
    for _ in store.tidy():
        pass
    left = [session.session_id for session in store.sessions.page(None, 100)]
    assert "ses_2" in left
    assert [entry.call_id for _, entry in store.audit.page(AuditListParams(), None, 10)] == ["new"]
    assert left[0] == "ses_9"
    assert not {"ses_0", "ses_1", "ses_3"} & set(left)
    assert store.size_bytes <= 300_000
    store.close()
    assert file.stat().st_size <= 400_000, "room that was freed goes back to the disk"


# Secrets ------------------------------------------------------------------------------------------------


def test_a_known_secret_is_in_no_text_of_the_file(tmp_path: Path) -> None:
    secret = 'sk-"very"-secret-ключ'
    file = tmp_path / "store.sqlite3"
    store = Store(StorePlace(file=file, is_chosen=True), secrets=Secrets([secret]))
    log = begun(store)
    keep(log, 0, AssistantTextDelta(text=f"it is {secret}."), [user(secret)])
    keep(log, 1, Warned(code="w", message=secret), [user(secret), user("plain")])
    store.sessions.create("ses_2", f"about {secret}")
    call = AuditedCall(session_id=None, run_id=None, call_id="c", tool_name="t", input={"a": secret})
    said = {"permission": None, "decided_by": "rule", "answer": None}
    store.audit.decided(call, decision="allow", rule=f"a={secret}", **said)  # type: ignore[arg-type]
    rule = PermissionRule(tool="t", decision="allow", arguments={"a": secret})
    store.permissions(lambda: []).save("ses_2", PermissionOptions(), (rule,))
    assert store.sessions.messages("ses_1")[0] == [user("***"), user("plain")]
    assert kept(store)[0] == (0, AssistantTextDelta(text="it is ***."))
    store.close()
    assert b"very" not in file.read_bytes()
