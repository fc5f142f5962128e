"""Cancelling reaches the model's stream, the tool, the host's tool and the MCP server (ground rule 3)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import Host, RequestFailed, sidecar
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import ScriptedModel, calls, says, stalls


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    return {
        "model": "test/m",
        "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
        "permissions": {"ask": []},
        **more,
    }


async def cancelled(host: Host, run: "asyncio.Future[Any]") -> RequestFailed:
    with pytest.raises(RequestFailed) as failed:
        await run
    assert failed.value.code == -32800
    assert host.kinds()[-1]["stopReason"] == "cancelled"
    return failed.value


async def test_cancelling_the_request_ends_the_model_s_stream_and_keeps_what_came() -> None:
    slow = stalls(says("one two three", piece_characters=4), after=3)
    async with ScriptedModel(slow, says("on")) as model, sidecar(options(model)) as host:
        run = host.send("agent/submit", {"prompt": "go"}, request_id="the-run")
        await host.wait_for_event("assistantTextDelta")
        host.notify("$/cancelRequest", {"id": "the-run"})
        host.notify("$/cancelRequest", {"id": "the-run"})
        await cancelled(host, run)
        async with asyncio.timeout(5):
            await model.requests[0].disconnected.wait()
        session_id = host.events[0]["sessionId"]
        session = await host.request("session/get", {"sessionId": session_id})
        assert session["runs"][0]["status"] == "cancelled"
        assert session["messages"][-1]["content"]
        assert (await host.submit("go on", sessionId=session_id))["message"]["content"] == "on"


async def test_cancelling_by_session_reaches_the_mcp_server_and_the_history_stays_valid(tmp_path: Path) -> None:
    script = (calls(("srv__slow", {"secs": 60}, "c1"), ("srv__echo", {"text": "x"}, "c2")), says("on"))
    servers = {"srv": server_entry()}
    opts = {"allowed": ["read", "mcp:*"], "ask": []}
    async with (
        ScriptedModel(*script) as model,
        sidecar(options(model, mcpServers=servers, permissions=opts)) as host,
    ):
        run = host.send("agent/submit", {"prompt": "go"})
        await host.wait_for_event("toolExecutionCompleted", callId="c2")
        session_id = host.events[0]["sessionId"]
        assert await host.request("agent/cancel", {"sessionId": session_id}) == {"cancelled": True}
        await cancelled(host, run)
        (ended,) = [e for e in host.kinds("toolExecutionCompleted") if e["callId"] == "c1"]
        assert ended["isError"]
        assert await host.request("agent/cancel", {"sessionId": session_id}) == {"cancelled": False}
        # The server itself says what it was told to drop.
        told = await host.request(
            "tools/call", {"name": "srv__received", "arguments": {"method": "notifications/cancelled"}}
        )
        (notice,) = json.loads(told["content"][0]["text"])
        assert "requestId" in notice
        assert (await host.submit("go on", sessionId=session_id))["message"]["content"] == "on"


async def test_cancelling_reaches_the_host_s_own_tool() -> None:
    tool = {"name": "wait", "description": "waits", "inputSchema": {"type": "object"}}
    async with ScriptedModel(calls(("wait", {}, "c1"))) as model, sidecar(options(model)) as host:
        host.answers["tools/execute"] = lambda asked: asyncio.Event().wait()
        await host.request("tools/register", {"tools": [tool]})
        run = host.send("agent/submit", {"prompt": "go", "runId": "r"})
        await host.wait_for(lambda: host.asked)
        await host.request("agent/cancel", {"runId": "r"})
        await cancelled(host, run)
        await host.wait_for(lambda: host.withdrawn == ["c1"])


async def test_cancelling_at_once_still_gives_a_run_its_first_and_last_event() -> None:
    slow = stalls(says("x"), after=0)
    async with ScriptedModel(slow) as model, sidecar(options(model)) as host:
        run = host.send("agent/submit", {"prompt": "go"}, request_id="now")
        host.notify("$/cancelRequest", {"id": "now"})
        await cancelled(host, run)
        assert host.types() == ["runStarted", "runCompleted"]
        (session,) = (await host.request("session/list"))["sessions"]
        assert session["messageCount"] <= 1


@pytest.mark.parametrize("params", [{"runId": "none"}, {"sessionId": "none"}])
async def test_cancelling_what_is_not_there_is_no_error(params: dict[str, str]) -> None:
    async with ScriptedModel() as model, sidecar(options(model)) as host:
        assert await host.request("agent/cancel", params) == {"cancelled": False}


async def test_shutting_down_cancels_what_runs() -> None:
    slow = stalls(says("x"), after=0)
    async with ScriptedModel(slow) as model, sidecar(options(model)) as host:
        run = host.send("agent/submit", {"prompt": "go"})
        await model.received(1)
        await host.request("shutdown")
        await cancelled(host, run)
        host.client.capabilities = None  # It is shut down already.
        host.notify("exit", None)
        await host.client._server.wait()  # type: ignore[union-attr]


async def test_a_cancelled_submit_names_its_session_and_run_however_it_was_cancelled() -> None:
    slow = stalls(says("abc", piece_characters=1), after=2)
    async with ScriptedModel(slow) as model, sidecar(options(model)) as host:
        run = host.send("agent/submit", {"prompt": "go", "runId": "r"}, request_id="mine")
        await host.wait_for_event("assistantTextDelta")
        host.notify("$/cancelRequest", {"id": "mine"})
        with pytest.raises(RequestFailed) as failed:
            await run
    assert failed.value.code == -32800
    assert failed.value.data == {
        "kind": "requestCancelled",
        "sessionId": host.events[0]["sessionId"],
        "runId": "r",
    }
