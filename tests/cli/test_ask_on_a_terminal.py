"""`agent-sidecar ask` on a real pseudo-terminal, over a scripted sidecar: what a person sees, and their keys.

Source: own choice.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.scripted_sidecar import received, scripted
from tests.harness.terminal import cli, environment, on_terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")

OPTIONS = [
    {"decision": "allowOnce", "label": "Allow once"},
    {"decision": "allowSession", "label": "Allow for this session"},
    {"decision": "allowAlways", "label": "Always allow"},
    {"decision": "deny", "label": "Deny"},
    {"decision": "denyAndStop", "label": "Deny and stop"},
]
WRITES = {"path": "a.txt", "content": "one\ntwo\x1b[31m"}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"event": {"type": kind, **fields}}


def question(given: dict[str, Any] = WRITES, *, how: str = "ask") -> dict[str, Any]:
    params = {
        "requestId": "r",
        "callId": "c",
        "toolName": "write_file",
        "input": given,
        "permissions": ["write"],
        "options": OPTIONS,
    }
    return {how: {"id": "q-1", "method": "agent/requestApproval", "params": params}}


ENDED = [
    event("runCompleted", stopReason="stop", usage={}),
    {"result": {"sessionId": "s-1", "runId": "$runId", "stopReason": "stop"}},
]


def answer_in(folder: Path) -> Any:
    (answer,) = [message for message in received(folder) if message.get("id") == "q-1"]
    return answer.get("result")


@pytest.mark.parametrize(
    ("key", "decision"),
    [
        ("y", "allowOnce"),
        ("s", "allowSession"),
        ("a", "allowAlways"),
        ("n", "deny"),
        ("q", "denyAndStop"),
        ("N", "deny"),
        ("\x1b", "deny"),
        ("x\x1b[Ay", "allowOnce"),
    ],
)
async def test_a_key_decides_on_a_call_that_is_shown_whole(tmp_path: Path, key: str, decision: str) -> None:
    sidecar = scripted(tmp_path, {"agent/submit": [question(), *ENDED]})
    async with on_terminal(cli("ask", "hi", sidecar=sidecar)) as terminal:
        await terminal.sees("[q] Deny and stop")
        assert terminal.picture == [
            "? write_file needs write",
            '  path: "a.txt"',
            "  content:",
            "    │ one",
            "    │ two\\x1b[31m",
            "  [y] Allow once  [s] Allow for this session  [a] Always allow  [n] Deny",
            "  [q] Deny and stop",
        ]
        terminal.press(key)
        assert await terminal.ends() == 0
    assert answer_in(tmp_path) == {"decision": decision}


async def test_keys_pressed_before_the_question_do_not_answer_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = {"agent/submit": [event("assistantTextDelta", text="Wait "), {"gate": str(gate)}, question(), *ENDED]}
    async with on_terminal(cli("ask", "hi", sidecar=scripted(tmp_path, script))) as terminal:
        place = await terminal.sees("Wait")
        terminal.press("y")
        await terminal.sees("y", since=place)  # The terminal's own echo: the key is there, and nobody has read it.
        await asyncio.to_thread(gate.write_bytes, b"")
        await terminal.sees("[q] Deny and stop")
        terminal.press("n")
        assert await terminal.ends() == 0
    assert answer_in(tmp_path) == {"decision": "deny"}


async def test_long_arguments_are_shown_whole_on_demand(tmp_path: Path) -> None:
    given = {"content": "\n".join(f"line {number}" for number in range(100))}
    sidecar = scripted(tmp_path, {"agent/submit": [question(given), *ENDED]})
    async with on_terminal(cli("ask", "hi", sidecar=sidecar)) as terminal:
        await terminal.sees("[v] view 61 more lines")
        assert "line 99" not in terminal.text
        terminal.press("v")
        await terminal.sees("line 99")
        terminal.press("y")
        assert await terminal.ends() == 0
    assert answer_in(tmp_path) == {"decision": "allowOnce"}


async def test_a_question_that_is_withdrawn_goes_away(tmp_path: Path) -> None:
    script = {"agent/submit": [question(how="withdraw"), event("assistantTextDelta", text="Well then."), *ENDED]}
    async with on_terminal(cli("ask", "hi", sidecar=scripted(tmp_path, script))) as terminal:
        assert await terminal.ends() == 0
        assert terminal.picture[0] == "Well then."


async def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    sidecar = scripted(tmp_path, {"agent/submit": [question(), *ENDED]})
    async with on_terminal(cli("ask", "hi", sidecar=sidecar)) as terminal:
        before = terminal.attributes
        await terminal.sees("[q] Deny and stop")
        assert terminal.attributes != before
        terminal.press("y")
        assert await terminal.ends() == 0
        assert terminal.attributes == before


async def test_input_is_typed_and_checked_field_by_field(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
    params = {"requestId": "i", "message": "Who are you?", "schema": schema, "source": "greeter"}
    asked = {"ask": {"id": "q-1", "method": "agent/requestInput", "params": params}}
    sidecar = scripted(tmp_path, {"agent/submit": [asked, *ENDED]})
    async with on_terminal(cli("ask", "hi", sidecar=sidecar)) as terminal:
        await terminal.sees("name: ")
        terminal.press("Adx\x7fa\r")
        place = await terminal.sees("age (integer): ")
        terminal.press("old\r")
        await terminal.sees("a whole number", since=place)
        terminal.press("36\r")
        assert await terminal.ends() == 0
        assert terminal.picture[:3] == ["? Who are you?  (greeter)", "  name: Ada", "  age (integer): 36"]
    assert answer_in(tmp_path) == {"action": "accept", "content": {"name": "Ada", "age": 36}}


async def test_a_secret_is_typed_unseen_and_a_default_by_enter(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "token": {"type": "string", "format": "password", "writeOnly": True},
            "region": {"type": "string", "enum": ["eu", "us"], "default": "eu"},
        },
        "required": ["token", "region"],
    }
    params = {"requestId": "i", "message": "Two lines:\n  \x1b[31mred", "schema": schema, "source": "git"}
    asked = {"ask": {"id": "q-1", "method": "agent/requestInput", "params": params}}
    async with on_terminal(
        cli("ask", "hi", sidecar=scripted(tmp_path, {"agent/submit": [asked, *ENDED]}))
    ) as terminal:
        await terminal.sees("token: ")
        terminal.press("hush")
        await terminal.sees("****")
        terminal.press("\r")
        await terminal.sees("region (eu / us) [eu]: ")
        terminal.press("\r")
        assert await terminal.ends() == 0
        assert "hush" not in terminal.text
        shown = ["? Two lines:  (git)", "    \\x1b[31mred", "  token: ****", "  region (eu / us) [eu]:"]
        assert terminal.picture[:4] == shown
    assert answer_in(tmp_path) == {"action": "accept", "content": {"token": "hush", "region": "eu"}}


async def test_ctrl_d_declines_input(tmp_path: Path) -> None:
    asked = {"ask": {"id": "q-1", "method": "agent/requestInput", "params": {"message": "Colour?"}}}
    async with on_terminal(
        cli("ask", "hi", sidecar=scripted(tmp_path, {"agent/submit": [asked, *ENDED]}))
    ) as terminal:
        await terminal.sees("answer: ")
        terminal.press("\x04")
        assert await terminal.ends() == 0
    assert answer_in(tmp_path) == {"action": "decline"}


CANCELLABLE = {
    "agent/submit": [
        event("assistantTextDelta", text="Working"),
        {"wait": "agent/cancel"},
        event("runCompleted", stopReason="cancelled", usage={}),
        {"error": {"code": -32800, "message": "cancelled", "data": {"kind": "requestCancelled"}}},
    ],
    "agent/cancel": [{"result": {"cancelled": True}}],
}


async def test_ctrl_c_cancels_the_run(tmp_path: Path) -> None:
    async with on_terminal(cli("ask", "hi", sidecar=scripted(tmp_path, CANCELLABLE))) as terminal:
        await terminal.sees("Working")
        terminal.press("\x03")
        assert await terminal.ends() == 130
        assert terminal.picture[-1] == "agent-sidecar: interrupted"
        assert "Traceback" not in terminal.text


async def test_ctrl_c_at_a_question_cancels_the_run(tmp_path: Path) -> None:
    script = {**CANCELLABLE, "agent/submit": [{"wait": "agent/cancel"}, *CANCELLABLE["agent/submit"][2:]]}
    script["agent/submit"].insert(0, {"notify": question()["ask"]})
    async with on_terminal(cli("ask", "hi", sidecar=scripted(tmp_path, script))) as terminal:
        await terminal.sees("[q] Deny and stop")
        terminal.press("\x03")
        assert await terminal.ends() == 130


async def test_a_second_ctrl_c_kills_a_sidecar_that_does_not_react(tmp_path: Path) -> None:
    script = {
        "agent/submit": [event("assistantTextDelta", text="Working"), {"wait": "never"}],
        "agent/cancel": [event("assistantTextDelta", text="Not now")],
    }
    async with on_terminal(cli("ask", "hi", sidecar=scripted(tmp_path, script))) as terminal:
        await terminal.sees("Working")
        terminal.press("\x03")
        await terminal.sees("Not now")  # Only when the first has been acted on is the next one a second.
        terminal.press("\x03")
        assert await terminal.ends() == 130
        assert "Traceback" not in terminal.text


async def test_ctrl_c_while_it_starts_ends_it(tmp_path: Path) -> None:
    script = {"initialize": [{"stderr": "starting\n"}, {"wait": "never"}]}
    command = cli("ask", "--log-level", "debug", "hi", sidecar=scripted(tmp_path, script))
    async with on_terminal(command) as terminal:
        await terminal.sees("starting")
        terminal.press("\x03")
        assert await terminal.ends() == 130
        assert "Traceback" not in terminal.text


async def test_sigterm_ends_it_in_order(tmp_path: Path) -> None:
    async with on_terminal(cli("ask", "hi", sidecar=scripted(tmp_path, CANCELLABLE))) as terminal:
        await terminal.sees("Working")
        terminal.process.send_signal(signal.SIGTERM)
        assert await terminal.ends() == 130
        assert "Traceback" not in terminal.text
    assert received(tmp_path)[-1].get("method") in ("shutdown", "exit")


async def test_no_colour_when_it_is_not_wanted(tmp_path: Path) -> None:
    script = {"agent/submit": [event("warning", code="w", message="look out"), *ENDED]}
    command = cli("ask", "hi", sidecar=scripted(tmp_path, script))
    async with on_terminal(command, env=environment(NO_COLOR="1")) as terminal:
        assert await terminal.ends() == 0
        assert "\x1b[3" not in terminal.text
    async with on_terminal(command) as terminal:
        assert await terminal.ends() == 0
        assert "\x1b[33m" in terminal.text


async def test_a_narrow_terminal_gets_narrow_lines(tmp_path: Path) -> None:
    async with on_terminal(
        cli("ask", "hi", sidecar=scripted(tmp_path, {"agent/submit": [question(), *ENDED]})), columns=30
    ) as terminal:
        await terminal.sees("[q] Deny and stop")
        assert terminal.picture[-4:] == [
            "  [y] Allow once",
            "  [s] Allow for this session",
            "  [a] Always allow  [n] Deny",
            "  [q] Deny and stop",
        ]
        terminal.press("n")
        assert await terminal.ends() == 0


async def test_without_arguments_it_explains_itself_in_80_columns() -> None:
    async with on_terminal(cli()) as terminal:
        assert await terminal.ends() == 0
        assert terminal.picture[0].startswith("Agent Sidecar ")
        lines = terminal.text.splitlines()
        assert max(map(len, lines)) <= 80
        assert [line for line in lines if "agent-sidecar demo" in line]
