"""The Python client library against a scripted sidecar: a real process, real pipes.

Source of the behaviours: protocol.md (ground rules, requests to the host), and clients/python/README.md.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from sidecar_client import (
    BrokenStream,
    CannotStart,
    ClientError,
    HostTool,
    Limits,
    NoAnswer,
    RequestFailed,
    RunCancelled,
    Sidecar,
    SidecarExited,
    ToolCall,
)

from tests.harness.scripted_sidecar import received, scripted

ANSWER = {
    "sessionId": "$sessionId",
    "runId": "$runId",
    "stopReason": "stop",
    "message": {"role": "assistant", "content": "Hello"},
    "turns": 1,
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
}
SAYS_HELLO = [
    {"event": {"type": "runStarted", "model": "scripted/one", "prompt": "hi"}},
    {"event": {"type": "assistantTextDelta", "text": "Hel"}},
    {"event": {"type": "assistantTextDelta", "text": "lo"}},
    {"event": {"type": "runCompleted", "stopReason": "stop", "usage": {}}},
    {"result": ANSWER},
]


def asks(method: str, params: dict[str, Any], *, how: str = "ask") -> list[dict[str, Any]]:
    return [{how: {"id": "q-1", "method": method, "params": params}}, {"result": ANSWER}]


def answers_in(folder: Path) -> list[dict[str, Any]]:
    """What the host answered to the scripted question."""
    return [message for message in received(folder) if message.get("id") == "q-1"]


def sidecar(folder: Path, script: dict[str, Any], **arguments: Any) -> Sidecar:
    return Sidecar(command=scripted(folder, script), cwd=folder, **arguments)


# Runs ---------------------------------------------------------------------------------------------------


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
        {"error": {"code": -32800, "message": "cancelled"}},
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


# Questions of the sidecar -------------------------------------------------------------------------------


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
    import threading

    seen = threading.Event()

    def decide(question: dict[str, Any]) -> dict[str, str]:
        return {"decision": "deny" if seen.wait(5) else "allowOnce", "reason": "seen"}

    question = {"id": "q-1", "method": "agent/requestApproval", "params": {}}
    event = {"event": {"type": "assistantTextDelta", "text": "still here"}}
    # The event follows the question, before its answer, thanks to the nested script of a notification.
    script = {"agent/submit": [{"ask": question}, {"result": ANSWER}], "ping": [event, {"result": None}]}

    async with sidecar(tmp_path, script, on_approval=decide) as host:
        run = host.submit("hi")
        await host.request("ping", {"runId": run.run_id})
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
    async with sidecar(tmp_path, {"agent/submit": asks(method, {})}) as host:
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


# Tools of the host --------------------------------------------------------------------------------------


def add(left: int, right: int = 1) -> int:
    """Adds two numbers.

    More than the model needs to know.
    """
    return left + right


async def shout(text: str, call: ToolCall) -> str:
    call.progress(1, 2, "half way")
    return text.upper()


def fail() -> None:
    raise ValueError("out of paper")


async def test_a_function_becomes_a_tool_with_a_schema() -> None:
    assert HostTool.of(add).definition() == {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"left": {"type": "integer"}, "right": {"type": "integer"}},
            "required": ["left"],
            "additionalProperties": False,
        },
        "requiredPermissions": [],
        "requiresApproval": False,
        "tags": [],
    }
    assert "call" not in HostTool.of(shout).input_schema["properties"]


async def test_a_parameter_without_a_schema_is_named() -> None:
    def paint(colour: complex) -> None: ...

    with pytest.raises(TypeError, match=r"tool paint: parameter 'colour'.*pass input_schema"):
        HostTool.of(paint)
    assert HostTool.of(paint, input_schema={"type": "object"}).input_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("add", {"left": 2}, {"ok": True, "data": 3}),
        ("shout", {"text": "hey"}, {"ok": True, "data": "HEY"}),
        ("fail", {}, {"ok": False, "error": "ValueError: out of paper"}),
        ("gone", {}, {"ok": False, "error": "this host has no tool 'gone'"}),
    ],
)
async def test_a_host_tool_is_run_and_its_failure_told(
    tmp_path: Path, name: str, arguments: dict[str, Any], answer: dict[str, Any]
) -> None:
    params = {"callId": "c-1", "name": name, "arguments": arguments}
    script = {"agent/submit": asks("tools/execute", params)}
    async with sidecar(tmp_path, script, tools=[add, shout, fail]) as host:
        await host.submit("hi").result()
    assert [answer["result"] for answer in answers_in(tmp_path)] == [answer]
    registered = [message for message in received(tmp_path) if message.get("method") == "tools/register"]
    assert [tool["name"] for tool in registered[0]["params"]["tools"]] == ["add", "shout", "fail"]


async def test_a_host_tool_reports_progress_under_its_call_id(tmp_path: Path) -> None:
    params = {"callId": "c-1", "name": "shout", "arguments": {"text": "hey"}}
    async with sidecar(tmp_path, {"agent/submit": asks("tools/execute", params)}, tools=[shout]) as host:
        await host.submit("hi").result()
    (progress,) = [message for message in received(tmp_path) if message.get("method") == "$/progress"]
    value = {"kind": "report", "done": 1, "total": 2, "message": "half way"}
    assert progress["params"] == {"token": "c-1", "value": value}


# The process --------------------------------------------------------------------------------------------


async def test_the_death_of_the_process_ends_runs_with_its_status_and_last_words(tmp_path: Path) -> None:
    dying = [
        {"event": {"type": "runStarted", "model": "m"}},
        {"stderr": "first\nout of memory"},
        {"exit": 3},
    ]
    async with sidecar(tmp_path, {"agent/submit": dying}) as host:
        run = host.submit("hi")
        with pytest.raises(SidecarExited, match="exited with status 3: out of memory") as death:
            async for _ in run:
                pass
        assert (death.value.status, death.value.stderr_tail) == (3, "first\nout of memory")
        with pytest.raises(SidecarExited):
            await run.result()
        with pytest.raises(SidecarExited):
            await host.request("tools/list")
        with pytest.raises(SidecarExited):
            await host.submit("again").result()


async def test_a_process_that_is_killed_says_by_which_signal(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {"agent/submit": [{"wait": "never"}]}) as host:
        run = host.submit("hi")
        assert host.pid
        os.kill(host.pid, signal.SIGKILL)
        with pytest.raises(SidecarExited, match="ended by signal 9"):
            await run.result()


async def test_a_command_that_does_not_exist_cannot_start() -> None:
    with pytest.raises(CannotStart, match="cannot start '/no/such/sidecar'"):
        async with Sidecar(command=["/no/such/sidecar"]):
            pass


async def test_a_process_that_prints_is_no_sidecar() -> None:
    with pytest.raises(BrokenStream, match="not a sidecar"):
        async with Sidecar(command=[sys.executable, "-c", "print('hello ' * 2000); input()"]):
            pass


async def test_a_stray_print_breaks_the_stream_and_ends_what_waits(tmp_path: Path) -> None:
    script = {"agent/submit": [{"raw": "debug: here\r\n\r\n"}, {"wait": "never"}]}
    async with sidecar(tmp_path, script) as host:
        with pytest.raises(BrokenStream, match="debug: here"):
            await host.submit("hi").result()


async def test_another_language_server_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BrokenStream, match=r"without experimental\.agentSidecar"):
        async with sidecar(tmp_path, {"initialize": [{"result": {"capabilities": {}}}]}):
            pass


async def test_a_newer_major_version_is_refused(tmp_path: Path) -> None:
    agent = {"capabilities": {"experimental": {"agentSidecar": {"protocolVersion": "2.0"}}}}
    with pytest.raises(BrokenStream, match=r"speaks protocol 2\.0"):
        async with sidecar(tmp_path, {"initialize": [{"result": agent}]}):
            pass


async def test_wrong_options_raise_what_the_sidecar_says(tmp_path: Path) -> None:
    refusal = {"code": -32602, "message": "invalid params: model", "data": {"kind": "invalidParams"}}
    with pytest.raises(RequestFailed, match="invalid params: model"):
        async with sidecar(tmp_path, {"initialize": [{"error": refusal}]}):
            pass


async def test_a_silent_process_does_not_hold_up_the_start(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match=r"initialize within 0\.5 s"):
        async with sidecar(tmp_path, {"initialize": []}, limits=Limits(start_secs=0.5)):
            pass


async def test_closing_ends_runs_and_says_goodbye_in_order(tmp_path: Path) -> None:
    host = sidecar(tmp_path, {"agent/submit": []})
    async with host:
        run = host.submit("hi")
    assert host.status == 0
    with pytest.raises(ClientError):
        await run.result()
    methods = [message["method"] for message in received(tmp_path)]
    assert methods[0] == "initialize"
    assert methods[-2:] == ["shutdown", "exit"]


async def test_a_process_that_ignores_everything_is_killed_with_its_children(tmp_path: Path) -> None:
    program = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, file=sys.stderr, flush=True)
time.sleep(600)
"""
    heard: asyncio.Queue[str] = asyncio.Queue()
    command = [sys.executable, "-c", program]
    host = Sidecar(command=command, on_stderr=heard.put_nowait, limits=Limits(exit_secs=0.3))
    starting = asyncio.create_task(host.__aenter__())
    child = int(await asyncio.wait_for(heard.get(), 5))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    # The start was cancelled, and its clean-up climbs the ladder to its end.
    assert host.status is not None
    assert not await outlives_5_secs(child)


async def outlives_5_secs(pid: int) -> bool:
    """Whether the process outlives five seconds; a zombie that nobody has waited for counts as gone."""
    for _ in range(100):
        if state_of(pid) in ("", "Z"):
            return False
        await asyncio.sleep(0.05)
    return True


def state_of(pid: int) -> str:
    """The letter that Linux has for a process's state, empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


async def test_stderr_lines_reach_the_callback_and_a_broken_callback_ends_nothing(tmp_path: Path) -> None:
    lines = []

    def hear(line: str) -> None:
        lines.append(line)
        raise RuntimeError("broken")

    script = {"agent/submit": [{"stderr": "one\ntwo\n"}, *SAYS_HELLO]}
    async with sidecar(tmp_path, script, on_stderr=hear) as host:
        assert await host.submit("hi").text() == "Hello"
    assert lines == ["one", "two"]


async def test_notifications_and_events_of_unknown_runs_reach_the_callback(tmp_path: Path) -> None:
    heard = []
    other = {"method": "agent/event", "params": {"runId": "other", "seq": 0, "event": {"type": "x"}}}
    changed = {"method": "tools/changed", "params": {"added": ["a"], "removed": [], "changed": []}}
    script = {"agent/submit": [{"notify": changed}, {"notify": other}, *SAYS_HELLO]}
    async with sidecar(
        tmp_path, script, on_notification=lambda method, params: heard.append((method, params))
    ) as host:
        await host.submit("hi").result()
    assert heard == [("tools/changed", changed["params"]), ("agent/event", other["params"])]


async def test_a_cancelled_request_is_withdrawn(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {"slow": []}) as host:
        asking = asyncio.create_task(host.request("slow"))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    sent = received(tmp_path)
    (slow,) = [message for message in sent if message.get("method") == "slow"]
    assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": slow["id"]}} in sent
