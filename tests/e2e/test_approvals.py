"""Permissions and approvals over the wire (protocol.md, Permissions, and Approvals and questions)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.harness.host import RequestFailed, sidecar
from tests.harness.model_server import ScriptedModel, calls, says

WRITE = {"path": "a.txt", "content": "new"}


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    return {
        "model": "test/m",
        "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
        **more,
    }


def writes_once() -> ScriptedModel:
    return ScriptedModel(calls(("write_file", WRITE, "c1")), says("done"))


async def test_a_risky_call_asks_and_runs_when_it_is_allowed(tmp_path: Path) -> None:
    async with writes_once() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "allowOnce"}
        await host.submit("write")
    assert (tmp_path / "a.txt").read_text() == "new"
    ((method, question),) = host.asked
    assert method == "agent/requestApproval"
    assert (question["toolName"], question["input"], question["callId"]) == ("write_file", WRITE, "c1")
    assert "write" in question["permissions"]
    assert {o["decision"] for o in question["options"]} >= {"allowOnce", "allowSession", "allowAlways", "deny"}
    requested, resolved = host.kinds("approvalRequested", "approvalResolved")
    assert requested["requestId"] == resolved["requestId"] == question["requestId"]
    assert (resolved["decision"], resolved["by"]) == ("allowOnce", "host")
    order = host.types()
    assert order.index("turnComplete") < order.index("approvalRequested") < order.index("toolExecutionCompleted")


async def test_a_denied_call_never_runs_and_the_model_is_told_why(tmp_path: Path) -> None:
    async with writes_once() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "deny", "reason": "not on my disk"}
        result = await host.submit("write")
    assert not (tmp_path / "a.txt").exists()
    assert result["message"]["content"] == "done"
    assert "not on my disk" in model.requests[1].messages[-1]["content"]
    (done,) = host.kinds("toolExecutionCompleted")
    assert (done["isError"], done["errorKind"]) == (True, "permissionDenied")


async def test_deny_and_stop_ends_the_run(tmp_path: Path) -> None:
    async with writes_once() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "denyAndStop"}
        with pytest.raises(RequestFailed) as failed:
            await host.submit("write", errorPolicy={"permissionDenied": "tellModel"})
    assert failed.value.code == -31004
    assert failed.value.data["tool"] == "write_file"
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(
    "answer", ["yes", True, {"decision": "maybe"}, {"decision": "false"}, {"approved": True}, None]
)
async def test_an_answer_that_is_not_understood_is_a_denial_that_says_how_to_allow(
    answer: Any, tmp_path: Path
) -> None:
    async with writes_once() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: answer
        with pytest.raises(RequestFailed) as failed, host.being_odd():
            await host.submit("write")
    assert failed.value.code == -31004
    assert "permissions" in failed.value.message
    assert not (tmp_path / "a.txt").exists()


async def test_no_answer_within_the_deadline_denies_and_withdraws_the_question(tmp_path: Path) -> None:
    cycle = {"approvalTimeoutSecs": 0.2}
    async with writes_once() as model, sidecar(options(model, cycle=cycle), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: asyncio.Event().wait()
        with pytest.raises(RequestFailed) as failed:
            await host.submit("write")
        (question,) = [params for _, params in host.asked]
        await host.wait_for(lambda: host.withdrawn == [question["requestId"]])
    assert question["deadlineMs"] == 200
    assert failed.value.code == -31004
    assert host.kinds("approvalResolved")[0]["by"] == "deadline"


async def test_nobody_there_to_ask_is_a_denial(tmp_path: Path) -> None:
    async with writes_once() as model, sidecar(options(model), can={}, folders=[tmp_path]) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("write")
    assert failed.value.code == -31004
    assert failed.value.data["kind"] == "permissionDenied"


async def test_an_editor_without_our_requests_is_asked_by_its_own_message_with_buttons(tmp_path: Path) -> None:
    lsp = types.ClientCapabilities(
        window=types.WindowClientCapabilities(show_message=types.ShowMessageRequestClientCapabilities())
    )
    shown: list[Any] = []
    async with writes_once() as model, sidecar(options(model), can={}, lsp=lsp, folders=[tmp_path]) as host:

        @host.client.feature("window/showMessageRequest")
        def choose(params: types.ShowMessageRequestParams) -> types.MessageActionItem:
            shown.append(params)
            return (params.actions or [])[0]

        await host.submit("write")
    (message,) = shown
    assert "write_file" in message.message
    assert "a.txt" in message.message
    assert (tmp_path / "a.txt").read_text() == "new"


async def test_allowed_for_the_session_is_not_asked_again_there_but_elsewhere(tmp_path: Path) -> None:
    script = [calls(("write_file", WRITE)), says("one"), calls(("write_file", WRITE)), says("two")]
    async with (
        ScriptedModel(*script, calls(("write_file", WRITE)), says("three")) as model,
        sidecar(options(model), folders=[tmp_path]) as host,
    ):
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "allowSession"}
        session_id = (await host.submit("write"))["sessionId"]
        await host.submit("write", sessionId=session_id)
        assert len(host.asked) == 1
        await host.submit("write")
        assert len(host.asked) == 2
        kept = await host.request("permissions/get", {"sessionId": session_id})
    offered = next(o for o in host.asked[0][1]["options"] if o["decision"] == "allowSession")
    assert offered["rule"] in kept["rules"]


async def test_allowed_always_holds_in_every_session_for_what_was_shown_alone(tmp_path: Path) -> None:
    other = {"path": "b.txt", "content": "new"}
    script = [calls(("write_file", WRITE)), says("1"), calls(("write_file", WRITE)), says("2")]
    async with (
        ScriptedModel(*script, calls(("write_file", other)), says("3")) as model,
        sidecar(options(model), folders=[tmp_path]) as host,
    ):
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "allowAlways"}
        await host.submit("write")
        await host.submit("write")
        assert len(host.asked) == 1
        await host.submit("write elsewhere")
        assert len(host.asked) == 2


async def test_edited_input_is_what_runs(tmp_path: Path) -> None:
    edited = {"path": "edited.txt", "content": "mine"}
    async with writes_once() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "allowOnce", "updatedInput": edited}
        await host.submit("write")
    assert (tmp_path / "edited.txt").read_text() == "mine"
    assert not (tmp_path / "a.txt").exists()


async def test_a_denied_permission_ends_the_run_and_names_tool_permission_and_rule(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("keep")
    script = (calls(("delete", {"path": "a.txt"})),)
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("delete")
    assert (tmp_path / "a.txt").exists()
    assert failed.value.code == -31004
    assert (failed.value.data["tool"], failed.value.data["permission"]) == ("delete", "delete")
    assert "denied" in failed.value.data["rule"]
    assert not host.asked


async def test_check_tells_what_would_be_decided_and_set_changes_it(tmp_path: Path) -> None:
    async with ScriptedModel() as model, sidecar(options(model), folders=[tmp_path]) as host:

        async def check(name: str, **more: Any) -> str:
            decision = (await host.request("permissions/check", {"name": name, **more}))["decision"]
            return str(decision)

        assert await check("read_file", arguments={"path": "a"}) == "allow"
        assert await check("write_file", arguments=WRITE) == "ask"
        assert await check("delete", arguments={"path": "a"}) == "deny"
        rule = {"tool": "write_file", "decision": "allow", "arguments": {"path": "src/**"}}
        session_id = (await host.request("session/create"))["sessionId"]
        await host.request("permissions/set", {"scope": "session", "sessionId": session_id, "rules": [rule]})
        there = {"path": "src/a.py", "content": ""}
        assert await check("write_file", arguments=there, sessionId=session_id) == "allow"
        assert await check("write_file", arguments=WRITE, sessionId=session_id) == "ask"
        assert await check("write_file", arguments=there) == "ask"
        await host.request("permissions/set", {"scope": "workspace", "denied": ["write"]})
        assert await check("write_file", arguments=there) == "deny"
        with pytest.raises(RequestFailed) as failed:
            await host.request("permissions/set", {"scope": "session"})
        assert failed.value.data["path"] == "params.sessionId"
        with pytest.raises(RequestFailed) as failed:
            await check("no_such_tool")
        assert failed.value.code == -31001


async def test_tools_call_goes_through_the_same_question(tmp_path: Path) -> None:
    async with ScriptedModel() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "deny"}
        with pytest.raises(RequestFailed) as failed:
            await host.request("tools/call", {"name": "write_file", "arguments": WRITE, "callId": "mine"})
        assert failed.value.code == -31004
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "allowOnce"}
        result = await host.request("tools/call", {"name": "write_file", "arguments": WRITE, "callId": "mine"})
    assert result["callId"] == "mine"
    assert result["result"]["ok"] is True
    assert (tmp_path / "a.txt").read_text() == "new"


async def test_cancelling_a_run_withdraws_its_question(tmp_path: Path) -> None:
    async with writes_once() as model, sidecar(options(model), folders=[tmp_path]) as host:
        host.answers["agent/requestApproval"] = lambda asked: asyncio.Event().wait()
        run = host.send("agent/submit", {"prompt": "write", "runId": "r1"})
        requested = await host.wait_for_event("approvalRequested")
        await host.wait_for(lambda: host.asked)  # The event comes before the question itself.
        assert await host.request("agent/cancel", {"runId": "r1"}) == {"cancelled": True}
        with pytest.raises(RequestFailed) as failed:
            await run
        await host.wait_for(lambda: host.withdrawn == [requested["requestId"]])
    assert failed.value.code == -32800
    assert host.kinds("approvalResolved")[0]["by"] == "cancel"
    assert host.kinds()[-1] == {
        "type": "runCompleted",
        "stopReason": "cancelled",
        "usage": host.kinds()[-1]["usage"],
    }
