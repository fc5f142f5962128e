"""`agent-sidecar demo`, for real: the sidecar, the built-in tools, and the demo's MCP server as processes.

Source: own choice, within "Try it" of README.md: every kind of step is shown, and it needs nothing.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.demo import HERE
from tests.harness.terminal import cli, environment, on_terminal

LIMIT_SECS = 45


def bare_environment(home: Path) -> dict[str, str]:
    """Nothing to find: no PATH with a Node on it, an empty home, and a proxy that would fail any request."""
    dead_end = "http://127.0.0.1:9"
    return environment(HOME=str(home), PATH="", HTTP_PROXY=dead_end, HTTPS_PROXY=dead_end)


@pytest.mark.timeout(90)
def test_piped_it_shows_every_step_and_says_yes_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        cli("demo"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=bare_environment(tmp_path),
        cwd=tmp_path,
        timeout=LIMIT_SECS,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    assert (done.returncode, done.stderr) == (0, b"")
    shown = "\n".join(lines)
    for step in (
        "ok read_file  ",
        "ok list_directory  ",
        "ok demo__count_words  ",
        "ok demo__slow_sum  ",
        "ok editor_selection  ",
        "ok find_files  ",
        "ok search_text  ",
        "failed delete  ",
        "failed run_command  ",
        "ok move  ",
        "ok edit_file  ",
        "! write_file needs write: on a terminal you are asked, here the demo says yes",
        "ok write_file  ",
        "  # Summary",
    ):
        assert step in shown, shown
    assert "demo done: 4 turns, 12 calls, 2 denied by policy, 1 asked about and allowed, " in shown
    assert list(tmp_path.iterdir()) == []  # It tidies up, and leaves nothing in the home either.


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("key", "outcome"), [("y", "allowed"), ("n", "not allowed")])
async def test_on_a_terminal_the_person_decides(tmp_path: Path, key: str, outcome: str) -> None:
    async with on_terminal(cli("demo"), columns=100, env=bare_environment(tmp_path), cwd=tmp_path) as terminal:
        await terminal.sees("━")  # Progress of the slow tool.
        await terminal.sees("[q] Deny and stop")
        terminal.press(key)
        assert await terminal.ends() == 0
        picture = terminal.picture
    assert f"1 asked about and {outcome}" in "\n".join(picture)
    assert ("summary.md, as it now is:" in picture) == (outcome == "allowed")


async def test_ctrl_c_leaves_no_process_and_no_folder_behind(tmp_path: Path) -> None:
    env = {**bare_environment(tmp_path), "TMPDIR": str(tmp_path)}
    async with on_terminal(cli("demo"), env=env, cwd=tmp_path) as terminal:
        await terminal.sees("━")
        terminal.press("\x03")
        assert await terminal.ends() == 130
        assert "Traceback" not in terminal.text
    assert os.listdir(tmp_path) == []  # noqa: PTH208  pathlib may not be used in async functions


def test_what_the_replayed_model_says_agrees_with_what_the_tools_answer() -> None:
    script = json.loads((HERE / "script.json").read_text(encoding="utf-8"))
    (numbers,) = [
        call["input"]["numbers"] for call in script["turns"][0]["calls"] if call["tool"] == "demo__slow_sum"
    ]
    hours, minutes = sum(numbers[::2]), sum(numbers[1::2])
    assert f"24 h {minutes} min" in script["turns"][1]["text"]
    assert hours == 24


# The demo's MCP server ----------------------------------------------------------------------------------


def conversation(*requests: dict[str, Any]) -> list[dict[str, Any]]:
    """What the server writes when it is sent these requests, until all of them are answered."""
    waiting = {request["id"] for request in requests if "id" in request}
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(HERE / "server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout
        process.stdin.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        process.stdin.flush()
        said = []
        while waiting:
            said.append(json.loads(process.stdout.readline()))
            waiting.discard(said[-1].get("id"))
        process.stdin.close()
        assert process.wait(5) == 0
    return said


def call(request_id: int, name: str, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def test_a_slow_call_reports_and_holds_up_nothing() -> None:
    said = conversation(
        call(1, "slow_sum", {"progressToken": "p"}, numbers=[1, 2]), call(2, "count_words", text="one two three")
    )
    assert [message.get("id") for message in said] == [2, None, None, 1]
    assert said[0]["result"]["content"] == [{"type": "text", "text": "3 words"}]
    assert [message["params"]["progress"] for message in said[1:3]] == [1, 2]
    assert said[3]["result"]["content"] == [{"type": "text", "text": "3"}]


def test_what_the_server_does_not_know_is_an_error() -> None:
    unknown = conversation({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, call(2, "no_such"))
    assert [message["error"]["code"] for message in sorted(unknown, key=lambda message: message["id"])] == [
        -32601,
        -32602,
    ]
