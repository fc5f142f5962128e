"""Runs of the client library over a scripted sidecar: events, results, cancelling, steering.

Source: protocol.md ("Events", `agent/submit`) and clients/python/README.md.
"""

from pathlib import Path
from typing import Any

import pytest
from sidecar_client import (
    Limits,
    NoAnswer,
    RequestFailed,
    RunCancelled,
)

from tests.harness.scripted_host import ANSWER, SAYS_HELLO, sidecar
from tests.harness.scripted_sidecar import received


async def test_a_run_gives_its_events_in_order_and_then_its_result(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {"agent/submit": SAYS_HELLO}) as host:
        run = host.submit("hi")
        notifications = [notification async for notification in run.notifications()]
        assert [notification["seq"] for notification in notifications] == [0, 1, 2, 3]
        assert {notification["runId"] for notification in notifications} == {run.run_id}
        assert [notification["event"]["type"] for notification in notifications] == [
            "runStarted",
            "assistantTextDelta",
            "assistantTextDelta",
            "runCompleted",
        ]
        assert (await run.result())["stopReason"] == "stop"
        assert await run.text() == "Hello"
        assert run.session_id == "s-1"


async def test_events_can_be_read_after_the_result(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {"agent/submit": SAYS_HELLO}) as host:
        run = host.submit("hi")
        await run.result()
        assert len([event async for event in run]) == 4
        assert [event async for event in run] == []


async def test_parameters_go_out_in_camel_case_beside_the_prompt(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {"agent/submit": SAYS_HELLO}) as host:
        await host.submit("hi", session_id="s-9", max_turns=3, tools={"names": ["read_*"]}).result()
    (submit,) = [message for message in received(tmp_path) if message["method"] == "agent/submit"]
    run_id = submit["params"].pop("runId")
    assert len(run_id) == 32
    assert submit["params"] == {
        "prompt": "hi",
        "sessionId": "s-9",
        "maxTurns": 3,
        "tools": {"names": ["read_*"]},
    }


async def test_a_run_that_fails_tells_so_by_event_and_by_result(tmp_path: Path) -> None:
    error = {"code": -31020, "message": "no luck", "data": {"kind": "modelError", "provider": "x"}}
    failing = [
        {"event": {"type": "runCompleted", "stopReason": "error", "usage": {}, "error": error}},
        {"error": error},
    ]
    async with sidecar(tmp_path, {"agent/submit": failing}) as host:
        run = host.submit("hi")
        assert [event["type"] async for event in run] == ["runCompleted"]
        with pytest.raises(RequestFailed, match="no luck") as failure:
            await run.result()
    assert (failure.value.code, failure.value.kind) == (-31020, "modelError")
    assert failure.value.data["provider"] == "x"


async def test_a_run_that_never_started_raises_from_the_iteration_too(tmp_path: Path) -> None:
    refused = [{"error": {"code": -31031, "message": "busy", "data": {"kind": "sessionBusy"}}}]
    async with sidecar(tmp_path, {"agent/submit": refused}) as host:
        with pytest.raises(RequestFailed, match="busy"):
            async for _ in host.submit("hi"):
                pass


async def test_a_cancelled_run_raises_run_cancelled(tmp_path: Path) -> None:
    waits = [
        {"event": {"type": "runStarted", "model": "m"}},
        {"wait": "agent/cancel"},
        {"event": {"type": "runCompleted", "stopReason": "cancelled", "usage": {}}},
        {"error": {"code": -32800, "message": "cancelled", "data": {"kind": "requestCancelled"}}},
    ]
    script = {"agent/submit": waits, "agent/cancel": [{"result": {"cancelled": True}}]}
    async with sidecar(tmp_path, script) as host:
        run = host.submit("hi")
        async for event in run:
            if event["type"] == "runStarted":
                assert await run.cancel() is True
        with pytest.raises(RunCancelled):
            await run.result()


async def test_steering_reaches_the_run(tmp_path: Path) -> None:
    script = {
        "agent/submit": [{"wait": "agent/steer"}, {"result": ANSWER}],
        "agent/steer": [{"result": {"accepted": True}}],
    }
    async with sidecar(tmp_path, script) as host:
        run = host.submit("hi")
        assert await run.steer("shorter") is True
        await run.result()
    (steer,) = [message for message in received(tmp_path) if message.get("method") == "agent/steer"]
    assert steer["params"] == {"runId": run.run_id, "prompt": "shorter"}


async def test_a_run_that_falls_silent_ends_at_its_limit_and_is_withdrawn(tmp_path: Path) -> None:
    script: dict[str, Any] = {"agent/submit": [{"wait": "$/cancelRequest"}]}
    async with sidecar(tmp_path, script, limits=Limits(run_silence_secs=0.2)) as host:
        with pytest.raises(NoAnswer, match=r"agent/submit within 0\.2 s"):
            await host.submit("hi").result()
    assert "$/cancelRequest" in [message["method"] for message in received(tmp_path)]
