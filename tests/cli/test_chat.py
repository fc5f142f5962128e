"""`agent-sidecar chat` over a scripted sidecar: on a terminal and piped.

Source: own choice; Ctrl-C ends the run, Ctrl-D the chat.
"""

import asyncio
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.harness.scripted_sidecar import received, scripted
from tests.harness.terminal import TerminalSession, cli, environment, on_terminal

LIMIT_SECS = 20


def says(text: str) -> list[dict[str, Any]]:
    return [
        {"event": {"type": "assistantTextDelta", "text": text}},
        {"event": {"type": "runCompleted", "stopReason": "stop", "usage": {}}},
        {"result": {"sessionId": "$sessionId", "runId": "$runId", "stopReason": "stop"}},
    ]


def submits(folder: Path) -> list[dict[str, Any]]:
    return [message["params"] for message in received(folder) if message.get("method") == "agent/submit"]


def chat(folder: Path, script: dict[str, Any], typed: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        cli("chat", sidecar=scripted(folder, script)),
        input=typed,
        capture_output=True,
        env=environment(),
        cwd=folder,
        timeout=LIMIT_SECS,
        check=False,
    )


async def test_prompts_join_one_session_until_ctrl_d(tmp_path: Path) -> None:
    sidecar = scripted(tmp_path, {"agent/submit": [says("One."), says("Two.")]})
    async with on_terminal(cli("chat", sidecar=sidecar)) as terminal:
        await terminal.sees("> ")
        terminal.press("first\r")
        place = await terminal.sees("One.")
        await terminal.sees("> ", since=place)
        terminal.press("second\r")
        place = await terminal.sees("Two.")
        await terminal.sees("> ", since=place)
        terminal.press("\x04")
        assert await terminal.ends() == 0
    assert [(params["prompt"], params.get("sessionId")) for params in submits(tmp_path)] == [
        ("first", None),
        ("second", "s-1"),
    ]


async def pressed_until(terminal: TerminalSession, key: str, words: str) -> int:
    """Presses a key again, as a person would, until the words come: Python loses a Ctrl-C just before it reads."""
    while True:
        terminal.press(key)
        with suppress(TimeoutError):
            async with asyncio.timeout(2):
                return await terminal.sees(words)


async def test_ctrl_c_ends_the_run_and_not_the_chat(tmp_path: Path) -> None:
    endless = [
        {"event": {"type": "assistantTextDelta", "text": "Working"}},
        {"wait": "agent/cancel"},
        {"error": {"code": -32800, "message": "cancelled", "data": {"kind": "requestCancelled"}}},
    ]
    script = {"agent/submit": [endless, says("Back.")], "agent/cancel": [{"result": {"cancelled": True}}]}
    async with on_terminal(cli("chat", sidecar=scripted(tmp_path, script))) as terminal:
        await terminal.sees("> ")
        terminal.press("go\r")
        await terminal.sees("Working")
        terminal.press("\x03")
        place = await terminal.sees("interrupted")
        await terminal.sees("> ", since=place)
        terminal.press("still there?\r")
        place = await terminal.sees("Back.")
        await terminal.sees("> ", since=place)
        terminal.press("half a line")
        await terminal.sees("half a line", since=place)
        place = await pressed_until(terminal, "\x03", "(Ctrl-D leaves)")
        await terminal.sees("> ", since=place)
        terminal.press("\x04")
        assert await terminal.ends() == 0
        assert "Traceback" not in terminal.text
    assert [params["prompt"] for params in submits(tmp_path)] == ["go", "still there?"]


async def test_a_typed_line_can_be_edited_and_called_back(tmp_path: Path) -> None:
    sidecar = scripted(tmp_path, {"agent/submit": [says("One."), says("Two.")]})
    async with on_terminal(cli("chat", sidecar=sidecar)) as terminal:
        await terminal.sees("> ")
        terminal.press("wrld\x1b[D\x1b[D\x1b[Do\r")  # Three steps left, then the missing letter.
        place = await terminal.sees("One.")
        await terminal.sees("> ", since=place)
        terminal.press("\x1b[A\r")
        place = await terminal.sees("Two.")
        await terminal.sees("> ", since=place)
        terminal.press("/quit\r")
        assert await terminal.ends() == 0
    assert [params["prompt"] for params in submits(tmp_path)] == ["world", "world"]


async def test_the_death_of_the_sidecar_ends_the_chat(tmp_path: Path) -> None:
    sidecar = scripted(tmp_path, {"agent/submit": [{"stderr": "out of memory\n"}, {"exit": 5}]})
    async with on_terminal(cli("chat", sidecar=sidecar)) as terminal:
        await terminal.sees("> ")
        terminal.press("hello\r")
        assert await terminal.ends() == 1
        assert terminal.picture[-1] == "agent-sidecar: error: the sidecar exited with status 5: out of memory"


def test_piped_lines_are_prompts_and_commands(tmp_path: Path) -> None:
    tool = {
        "name": "read_file",
        "description": "Reads\x1b a file",
        "inputSchema": {"type": "object"},
        "kind": "file",
        "tags": [],
        "requiredPermissions": ["read"],
        "requiresApproval": False,
        "source": {"type": "builtin"},
        "stats": {},
    }
    server = {"name": "git", "status": "failed", "toolCount": 0, "error": {"kind": "io", "message": "no git"}}
    script = {
        "agent/submit": says("Hello."),
        "tools/list": [{"result": {"tools": [tool]}}],
        "mcp/list": [{"result": {"servers": [server]}}],
    }
    done = chat(tmp_path, script, b"hi\n\n/tools\n/servers\n/model openai/gpt\n/new\nhi again\n/quit\nnever\n")
    assert (done.returncode, done.stdout) == (0, b"Hello.\nHello.\n")
    assert done.stderr.decode().splitlines() == [
        "read_file  [read]  Reads\\x1b a file",
        "1 tool",
        "git  failed  0 tools  no git",
        "model: openai/gpt",
        "a new conversation",
    ]
    assert [(params["prompt"], params.get("model"), params.get("sessionId")) for params in submits(tmp_path)] == [
        ("hi", None, None),
        ("hi again", "openai/gpt", None),
    ]


def test_piped_the_last_line_decides_the_status(tmp_path: Path) -> None:
    refused = [{"error": {"code": -31020, "message": "no model", "data": {"kind": "modelError"}}}]
    assert chat(tmp_path, {"agent/submit": [says("ok"), refused]}, b"one\ntwo\n").returncode == 1
    assert chat(tmp_path, {"agent/submit": [refused, says("ok")]}, b"one\ntwo\n").returncode == 0
