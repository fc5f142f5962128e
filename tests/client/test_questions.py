"""What the sidecar asks of a host, answered by the client library: each request exactly once.

Source: protocol.md ("Requests to the host", ground rules 2 and 4).
"""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.harness.scripted_host import ANSWER, answers_in, asks, sidecar
from tests.harness.scripted_sidecar import received


async def test_an_approval_is_decided_by_the_callback(tmp_path: Path) -> None:
    asked = []

    async def decide(question: dict[str, Any]) -> str:
        asked.append(question["toolName"])
        return "allowOnce"

    question = {"requestId": "r", "toolName": "write_file", "input": {}}
    script = {"agent/submit": asks("agent/requestApproval", question)}
    async with sidecar(tmp_path, script, on_approval=decide) as host:
        await host.submit("hi").result()
    assert asked == ["write_file"]
    assert [answer["result"] for answer in answers_in(tmp_path)] == [{"decision": "allowOnce"}]


async def test_a_plain_callback_may_block_while_events_go_on(tmp_path: Path) -> None:
    seen = threading.Event()

    def decide(question: dict[str, Any]) -> dict[str, str]:
        return {"decision": "deny" if seen.wait(5) else "allowOnce", "reason": "seen"}

    question = {"id": "q-1", "method": "agent/requestApproval", "params": {}}
    event = {"event": {"type": "assistantTextDelta", "text": "still here"}}
    # The event follows the question, before its answer, thanks to the nested script of another request.
    steered = [event, {"result": {"accepted": True}}]
    script = {"agent/submit": [{"ask": question}, {"result": ANSWER}], "agent/steer": steered}

    async with sidecar(tmp_path, script, on_approval=decide) as host:
        run = host.submit("hi")
        await host.request("agent/steer", {"runId": run.run_id, "prompt": "go on"})
        assert [event["text"] async for event in first_of(run)] == ["still here"]
        seen.set()
        await run.result()
    assert [answer["result"] for answer in answers_in(tmp_path)] == [{"decision": "deny", "reason": "seen"}]


async def first_of(run: Any) -> Any:
    async for event in run:
        yield event
        return


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("blue", {"action": "accept", "content": "blue"}),
        (None, {"action": "decline"}),
        ({"action": "cancel"}, {"action": "cancel"}),
        ({"colour": "blue"}, {"action": "accept", "content": {"colour": "blue"}}),
    ],
)
async def test_input_is_accepted_declined_or_answered_whole(tmp_path: Path, given: Any, answer: Any) -> None:
    script = {"agent/submit": asks("agent/requestInput", {"message": "colour?"})}
    async with sidecar(tmp_path, script, on_input=lambda question: given) as host:
        await host.submit("hi").result()
    assert [answer["result"] for answer in answers_in(tmp_path)] == [answer]


@pytest.mark.parametrize("method", ["agent/requestApproval", "agent/requestInput", "model/complete", "no/such"])
async def test_a_request_without_a_callback_is_refused_as_unknown(tmp_path: Path, method: str) -> None:
    async with sidecar(tmp_path, {"agent/submit": asks(method, {}, is_odd=method == "no/such")}) as host:
        await host.submit("hi").result()
    assert [answer["error"]["code"] for answer in answers_in(tmp_path)] == [-32601]


async def test_a_callback_that_breaks_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    def decide(question: dict[str, Any]) -> str:
        raise LookupError("lost the key")

    script = {"agent/submit": asks("agent/requestApproval", {})}
    async with sidecar(tmp_path, script, on_approval=decide) as host:
        await host.submit("hi").result()
    assert [answer["error"] for answer in answers_in(tmp_path)] == [
        {"code": -32603, "message": "the host's callback failed: LookupError: lost the key"}
    ]


async def test_an_answer_that_is_no_json_is_still_an_answer(tmp_path: Path) -> None:
    script = {"agent/submit": asks("agent/requestInput", {})}
    async with sidecar(tmp_path, script, on_input=lambda question: {1, 2}) as host:
        await host.submit("hi").result()
    assert [answer["error"]["code"] for answer in answers_in(tmp_path)] == [-32603]


async def test_a_question_withdrawn_before_anybody_looked_is_answered_once(tmp_path: Path) -> None:
    async def decide(question: dict[str, Any]) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    script = {"agent/submit": asks("agent/requestApproval", {}, how="withdraw")}
    async with sidecar(tmp_path, script, on_approval=decide) as host:
        await host.submit("hi").result()
    assert [answer["error"]["code"] for answer in answers_in(tmp_path)] == [-32800]


async def test_an_approval_that_was_decided_elsewhere_is_dropped_and_answered(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def decide(question: dict[str, Any]) -> None:
        asked.set()
        await asyncio.Event().wait()

    question = {"id": "q-1", "method": "agent/requestApproval", "params": {"requestId": "r"}}
    resolved = {"event": {"type": "approvalResolved", "requestId": "r", "decision": "allowOnce", "by": "rule"}}
    steered = [resolved, {"result": {"accepted": True}}]
    script = {"agent/submit": [{"ask": question}, {"result": ANSWER}], "agent/steer": steered}
    async with sidecar(tmp_path, script, on_approval=decide) as host:
        run = host.submit("hi")
        await asked.wait()
        await host.request("agent/steer", {"runId": run.run_id, "prompt": "go on"})
        await run.result()
    assert [answer["error"]["code"] for answer in answers_in(tmp_path)] == [-32800]


async def test_capabilities_say_what_callbacks_there_are(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {}, on_approval=lambda _: "deny", opt_out_events=["assistantReasoningDelta"]):
        pass
    params = received(tmp_path)[0]["params"]
    assert params["capabilities"]["experimental"]["agentSidecar"] == {
        "protocolVersion": "1.0",
        "approvals": True,
        "input": False,
        "hostTools": True,
        "hostModel": False,
        "optOutEvents": ["assistantReasoningDelta"],
    }
    assert params["processId"] == os.getpid()
    assert params["workspaceFolders"] == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]
