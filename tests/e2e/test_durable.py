"""What outlives a sidecar: sessions go on, events are given again, decisions are remembered, limits hold.

Source: protocol.md, "Durability", `agent/submit` (`queue`), `session/export`, `audit/list`, `permissions/set`.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import Host, Json, RequestFailed, sidecar
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, never_begins, says

Open = Callable[..., AbstractAsyncContextManager[Host]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


def opener(model: ScriptedModel, store: Path, folder: Path) -> Open:
    """Opens sidecars that share a store."""

    def open_one(**more: Any) -> AbstractAsyncContextManager[Host]:
        options = {"model": "test/m", "providers": {"test": {"baseUrl": model.base_url}}, **more}
        return sidecar({"store": {"path": str(store)}, **options}, folders=[folder])

    return open_one


def writing(request: SeenRequest) -> Reply:
    """Writes a file first, then says so."""
    if request.messages[-1]["role"] == "tool":
        return says("written")
    number = sum(message["role"] == "user" for message in request.messages)
    return calls(("write_file", {"path": f"{number}.txt", "content": "x"}))


async def test_a_session_goes_on_in_another_process_with_all_that_was_said(tmp_path: Path, store: Path) -> None:
    async with ScriptedModel(says("first"), says("second"), says("third")) as model:
        again = opener(model, store, tmp_path)
        async with again() as host:
            session = (await host.submit("one", runId="r1"))["sessionId"]
            seen = list(host.events)
        async with again() as host:
            listed = (await host.request("session/list"))["sessions"]
            assert [(s["sessionId"], s["title"], s["messageCount"]) for s in listed] == [(session, "one", 2)]
            got = await host.request("session/get", {"sessionId": session})
            assert [m["content"] for m in got["messages"]] == ["one", "first"]
            assert got["runs"] == [{"runId": "r1", "status": "completed", "stopReason": "stop"}]
            events = await host.request("session/events", {"sessionId": session, "runId": "r1"})
            assert events["events"] == seen
            later = await host.request("session/events", {"sessionId": session, "afterSeq": 1})
            assert later["events"] == seen[2:]
            with pytest.raises(RequestFailed, match="used before"):
                await host.submit("again", runId="r1")
            assert await host.request("agent/steer", {"runId": "r1", "prompt": "x"}) == {"accepted": False}
            fork = (await host.request("session/fork", {"sessionId": session, "atMessage": 1}))["sessionId"]
            await host.submit("two", sessionId=session)
            await host.submit("other", sessionId=fork)
        assert [m["content"] for m in model.requests[1].messages] == ["one", "first", "two"]
        assert [m["content"] for m in model.requests[2].messages] == ["one", "other"]
        async with again() as host:
            assert await host.request("session/delete", {"sessionId": session}) == {"deleted": True}
            assert await host.request("session/delete", {"sessionId": session}) == {"deleted": False}
            left = (await host.request("session/list"))["sessions"]
            assert [(s["sessionId"], s["messageCount"]) for s in left] == [(fork, 3)]


async def test_what_was_allowed_always_and_for_a_session_is_remembered_until_it_is_taken_out(
    tmp_path: Path, store: Path
) -> None:
    decisions = iter(["allowAlways", "allowSession"])
    async with ScriptedModel(answer=writing) as model:
        again = opener(model, store, tmp_path)
        async with again() as host:
            host.answers["agent/requestApproval"] = lambda asked: {"decision": next(decisions)}
            session = (await host.submit("write 1.txt"))["sessionId"]
            await host.submit("write 2.txt", sessionId=session)
        async with again() as host:
            everywhere = (await host.request("permissions/get"))["rules"]
            here = (await host.request("permissions/get", {"sessionId": session}))["rules"]
            assert [rule["arguments"] for rule in everywhere] == [{"path": "1.txt"}]
            assert [rule["arguments"] for rule in here] == [{"path": "1.txt"}, {"path": "2.txt"}]
            await host.submit("write 1.txt")  # Nobody is asked: there is no answer ready.
            kept = {"tool": "read_file", "decision": "deny"}
            await host.request("permissions/set", {"scope": "workspace", "rules": [kept]})
        async with again() as host:
            assert (await host.request("permissions/get"))["rules"] == [], "the host's own do not outlive it"
            here = (await host.request("permissions/get", {"sessionId": session}))["rules"]
            assert [rule["arguments"] for rule in here] == [{"path": "2.txt"}]
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        async with opener(model, store, elsewhere)() as host:
            assert (await host.request("permissions/get"))["rules"] == []


async def test_every_decision_and_its_outcome_is_in_the_audit_log(tmp_path: Path, store: Path) -> None:
    answers = iter(["allowOnce", "deny"])
    async with ScriptedModel(answer=writing) as model:
        again = opener(model, store, tmp_path)
        async with again() as host:
            host.answers["agent/requestApproval"] = lambda asked: {"decision": next(answers)}
            session = (await host.submit("one", runId="r1"))["sessionId"]
            await host.submit("two", sessionId=session, runId="r2")
            await host.request("tools/call", {"name": "list_directory", "arguments": {"path": "."}})
            with pytest.raises(RequestFailed):
                await host.request("tools/call", {"name": "nothing"})
        async with again() as host:
            entries = (await host.request("audit/list"))["entries"]
            assert [(e["toolName"], e.get("decision"), e.get("decidedBy"), e["outcome"]) for e in entries] == [
                ("nothing", None, None, "failed"),
                ("list_directory", "allow", "rule", "ok"),
                ("write_file", "deny", "host", "denied"),
                ("write_file", "allow", "host", "ok"),
            ]
            assert [e.get("runId") for e in entries] == [None, None, "r2", "r1"]
            assert {e.get("answer") for e in entries} == {None, "deny", "allowOnce"}
            first = await host.request("audit/list", {"sessionId": session, "limit": 1})
            rest = await host.request("audit/list", {"sessionId": session, "cursor": first["nextCursor"]})
            assert [e["runId"] for e in (*first["entries"], *rest["entries"])] == ["r2", "r1"]
            assert "nextCursor" not in rest
            with pytest.raises(RequestFailed, match=r"params\.cursor"):
                await host.request("audit/list", {"cursor": "no cursor"})


async def test_an_exported_session_can_be_read_and_played_again(tmp_path: Path, store: Path) -> None:
    may_write = {"permissions": {"ask": [], "allowed": ["write"]}}
    async with ScriptedModel(answer=writing) as model, opener(model, store, tmp_path)(**may_write) as host:
        session = (await host.submit("one"))["sessionId"]
        await host.submit("two", sessionId=session)
        texts = {
            form: (await host.request("session/export", {"sessionId": session, "format": form}))["text"]
            for form in ("json", "markdown", "replay")
        }
        messages = (await host.request("session/get", {"sessionId": session}))["messages"]
        events = host.events
    document = json.loads(texts["json"])
    assert (document["sessionId"], document["messages"]) == (session, messages)
    assert [e["event"] for run in document["runs"] for e in run["events"]] == [e["event"] for e in events]
    for words in ("# one", "## User", "### Call of write_file", "### Result of write_file", "written"):
        assert words in texts["markdown"]
    script = tmp_path / "script.json"
    script.write_text(texts["replay"])
    options = {
        "model": "replay/session",
        "providers": {"replay": {"api": "replay", "file": str(script)}},
        **may_write,
    }
    remove_written(tmp_path)
    async with sidecar(options, folders=[tmp_path]) as host:
        played = (await host.submit("one"))["sessionId"]
        await host.submit("two", sessionId=played)
        assert (await host.request("session/get", {"sessionId": played}))["messages"] == messages


def remove_written(folder: Path) -> None:
    for written in folder.glob("[12].txt"):
        written.unlink()


async def test_one_run_at_a_time_goes_on_in_a_session_whichever_sidecar_runs_it(
    tmp_path: Path, store: Path
) -> None:
    slow = never_begins(says("slow"))
    async with ScriptedModel(says("first"), slow, says("next"), says("last")) as model:
        again = opener(model, store, tmp_path)
        async with again() as one, again() as other:
            session = (await one.submit("begin"))["sessionId"]
            running = one.send("agent/submit", {"prompt": "slow", "sessionId": session, "runId": "slow"})
            await model.received(2)
            for method, params in (
                ("agent/submit", {"prompt": "x", "sessionId": session}),
                ("session/compact", {"sessionId": session}),
                ("session/delete", {"sessionId": session}),
            ):
                with pytest.raises(RequestFailed) as busy:
                    await other.request(method, params)
                assert (busy.value.data["kind"], busy.value.data["runId"]) == ("sessionBusy", "slow")
            waits = other.send("agent/submit", {"prompt": "next", "sessionId": session, "queue": True})
            behind = other.send(
                "agent/submit", {"prompt": "last", "sessionId": session, "queue": True, "wait": False}
            )
            gives_up = other.send(
                "agent/submit", {"prompt": "never", "sessionId": session, "queue": True, "runId": "never"}
            )
            await asyncio.sleep(0)
            assert await other.request("agent/cancel", {"runId": "never"}) == {"cancelled": True}
            with pytest.raises(RequestFailed) as cancelled:
                await gives_up
            assert cancelled.value.code == -32800
            slow.stall.release()
            await running
            assert (await waits)["message"]["content"] == "next"
            await other.wait_for(lambda: len(other.kinds("runCompleted")) == 2)
            assert (await behind)["sessionId"] == session
            got = await one.request("session/get", {"sessionId": session})
    assert [m["content"] for m in got["messages"]] == [
        "begin", "first", "slow", "slow", "next", "next", "last", "last",
    ]  # fmt: skip
    assert [event["runId"] for event in other.events if event["runId"] == "never"] == []


async def test_a_store_that_is_locked_ends_the_run_with_io_and_what_was_kept_stays(
    tmp_path: Path, store: Path
) -> None:
    slow = never_begins(says("never kept"))
    replies = (says("kept"), slow, says("after"))
    async with ScriptedModel(*replies) as model, opener(model, store, tmp_path)() as host:
        session = (await host.submit("one"))["sessionId"]
        running = host.send("agent/submit", {"prompt": "two", "sessionId": session, "runId": "r2"})
        await model.received(2)
        locker = sqlite3.connect(store, isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        slow.stall.release()
        with pytest.raises(RequestFailed) as failed:
            await running
        locker.execute("ROLLBACK")
        locker.close()
        assert_ended_with_io(host, failed.value, "locked; end that program")
        await host.submit("three", sessionId=session)
        got = await host.request("session/get", {"sessionId": session})
    assert [m["content"] for m in got["messages"]] == ["one", "kept", "two", "three", "after"]
    assert [run["status"] for run in got["runs"]] == ["completed", "failed", "completed"]


async def test_a_full_disk_ends_the_run_with_io_and_what_was_kept_stays(tmp_path: Path, store: Path) -> None:
    async with ScriptedModel(says("kept"), says("word " * 60_000, piece_characters=5000)) as model:
        again = opener(model, store, tmp_path)
        async with again() as host:
            session = (await host.submit("one"))["sessionId"]
            limit_file_size(host, largest_file(tmp_path) + 100_000)
            with pytest.raises(RequestFailed) as failed:
                await host.submit("two", sessionId=session)
            assert_ended_with_io(host, failed.value, str(store))
            seen = [event for event in host.events if event["event"]["type"] == "assistantTextDelta"]
        async with again() as host:
            got = await host.request("session/get", {"sessionId": session})
            kept = (await host.request("session/events", {"sessionId": session}))["events"]
    assert [m["content"] for m in got["messages"]][:3] == ["one", "kept", "two"]
    assert [event for event in kept if event["event"]["type"] == "assistantTextDelta"] == seen


def assert_ended_with_io(host: Host, failed: RequestFailed, words: str) -> None:
    """The submit and the last event say the same, and why."""
    last = host.kinds()[-1]
    assert (failed.data["kind"], last["type"], last["stopReason"]) == ("io", "runCompleted", "error")
    assert words in str(failed) and words in last["error"]["message"]
    assert {"sessionId", "runId", "turns", "path"} <= failed.data.keys()


def largest_file(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.iterdir())


def limit_file_size(host: Host, size_bytes: int) -> None:
    """From now on the process cannot make any file larger, as on a full disk."""
    resource = pytest.importorskip("resource")
    server = host.client._server
    assert server is not None
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size_bytes, size_bytes))


async def test_a_store_that_cannot_be_used_is_an_error_where_it_was_named_and_a_warning_where_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "in the way").write_text("")
    home = {"XDG_DATA_HOME": str(tmp_path / "in the way")}
    async with ScriptedModel(says("a")) as model:
        options: Json = {"model": "test/m", "providers": {"test": {"baseUrl": model.base_url}}}
        async with sidecar(options, env=home) as host:
            await host.submit("hi")
            assert [warning["code"] for warning in host.kinds("warning")] == ["storeInMemory"]
        named = {**options, "store": {"path": str(tmp_path / "in the way" / "store.sqlite3")}}
        async with sidecar(named) as host:
            with pytest.raises(RequestFailed, match=r"store\.path") as failed:
                await host.submit("hi")
            assert failed.value.data["kind"] == "io"
            assert (await host.request("tools/list"))["tools"]


async def test_a_session_is_called_by_the_first_words_also_where_something_goes_along(
    tmp_path: Path, store: Path
) -> None:
    async with ScriptedModel(says("first")) as model, opener(model, store, tmp_path)() as host:
        picture = {"type": "image", "data": "eA==", "mimeType": "image/png"}
        words = [{"type": "text", "text": text} for text in ("what is\nthis?", "notes.txt: …")]
        await host.submit([picture, *words])
        (listed,) = (await host.request("session/list"))["sessions"]
        assert listed["title"] == "what is this?"
