"""`agent-sidecar ask` without a terminal, over a scripted sidecar: real processes, real pipes.

Source: own choice. Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli.arguments import build_parser, serve_flags
from tests.harness.scripted_sidecar import received, scripted
from tests.harness.terminal import cli, environment

SCRIPTED = Path(__file__).parents[1] / "harness" / "scripted_sidecar.py"
LIMIT_SECS = 20


def ended(stop_reason: str = "stop") -> list[dict[str, Any]]:
    return [
        {"event": {"type": "runCompleted", "stopReason": stop_reason, "usage": {}}},
        {"result": {"sessionId": "s-1", "runId": "$runId", "stopReason": stop_reason}},
    ]


def says(text: str) -> list[dict[str, Any]]:
    return [{"event": {"type": "assistantTextDelta", "text": text}}, *ended()]


def question(*permissions: str, tool: str = "write_file") -> dict[str, Any]:
    params = {
        "requestId": "r",
        "callId": "c",
        "toolName": tool,
        "input": {"path": "a"},
        "permissions": list(permissions),
        "options": [{"decision": "allowOnce", "label": "Allow once"}, {"decision": "deny", "label": "Deny"}],
    }
    return {"ask": {"id": "q-1", "method": "agent/requestApproval", "params": params}}


def ask(
    folder: Path, script: dict[str, Any], *arguments: str, stdin: bytes | None = None, **changes: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        cli("ask", *arguments, sidecar=scripted(folder, script)),
        stdin=subprocess.DEVNULL if stdin is None else None,
        input=stdin,
        capture_output=True,
        env=environment(**changes),
        cwd=folder,
        timeout=LIMIT_SECS,
        check=False,
    )


def submitted(folder: Path) -> dict[str, Any]:
    """The params of the one submit."""
    (params,) = [message["params"] for message in received(folder) if message.get("method") == "agent/submit"]
    assert isinstance(params, dict)
    return params


def decision(folder: Path) -> str:
    (answer,) = [message["result"] for message in received(folder) if message.get("id") == "q-1"]
    return str(answer["decision"])


def test_text_goes_to_stdout_and_the_rest_to_stderr(tmp_path: Path) -> None:
    warning = {"event": {"type": "warning", "code": "w", "message": "look out"}}
    done = ask(tmp_path, {"agent/submit": [warning, *says("Hello.")]}, "hi", "there")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Hello.\n", b"! look out\n")
    assert submitted(tmp_path)["prompt"] == "hi there"


@pytest.mark.parametrize(
    ("arguments", "prompt"),
    [((), "from\nstdin\n"), (("-",), "from\nstdin\n"), (("sum up", "-"), "sum up\n\nfrom\nstdin\n")],
)
def test_the_prompt_can_be_piped_in(tmp_path: Path, arguments: tuple[str, ...], prompt: str) -> None:
    done = ask(tmp_path, {"agent/submit": says("ok")}, *arguments, stdin=b"from\nstdin\n")
    assert done.returncode == 0
    assert submitted(tmp_path)["prompt"] == prompt


def test_a_prompt_on_the_command_line_leaves_stdin_alone(tmp_path: Path) -> None:
    with subprocess.Popen(
        cli("ask", "hi", sidecar=scripted(tmp_path, {"agent/submit": says("ok")})),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        cwd=tmp_path,
    ) as process:
        assert process.stdout
        assert process.stdout.read() == b"ok\n"  # Although stdin is still open.
        assert process.wait(LIMIT_SECS) == 0


@pytest.mark.parametrize(
    ("arguments", "stdin", "complaint"),
    [
        ((), b" \n", "nothing to ask: the prompt is empty"),
        (("--bogus",), b"", "unrecognized arguments: --bogus; see `agent-sidecar --help`"),
        (
            ("--max-turns", "0", "hi"),
            b"",
            "argument --max-turns: must be at least 1; see `agent-sidecar ask --help`",
        ),
        (("--cwd", "/no/such", "hi"), b"", "--cwd: '/no/such' is no folder"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], stdin: bytes, complaint: str
) -> None:
    done = ask(tmp_path, {}, *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"agent-sidecar: error: {complaint}\n"


def test_flags_reach_the_submit(tmp_path: Path) -> None:
    ask(tmp_path, {"agent/submit": says("ok")}, "--system", "be brief", "--max-turns", "3", "hi")
    params = submitted(tmp_path)
    assert (params["system"], params["maxTurns"]) == ("be brief", 3)


def test_raw_events_are_printed_as_they_came(tmp_path: Path) -> None:
    done = ask(tmp_path, {"agent/submit": says("Hello.")}, "--json", "hi")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["seq"] for event in events] == [0, 1]
    assert events[0]["event"] == {"type": "assistantTextDelta", "text": "Hello."}
    assert events[0]["runId"] == submitted(tmp_path)["runId"]
    assert (done.returncode, done.stderr) == (0, b"")


# Approvals ----------------------------------------------------------------------------------------------


def test_nobody_there_denies_and_says_how_to_allow(tmp_path: Path) -> None:
    done = ask(tmp_path, {"agent/submit": [question("write", "mcp:git"), *says("ok")]}, "hi")
    assert decision(tmp_path) == "deny"
    assert done.stderr.decode() == (
        "! write_file was denied, because nobody can be asked here; to allow it: --allow write --allow mcp:git\n"
    )


@pytest.mark.parametrize(
    ("allowed", "needs", "decided"),
    [
        (["write"], ["write"], "allowOnce"),
        (["write"], ["write", "shell"], "deny"),
        (["mcp:*"], ["mcp:git"], "allowOnce"),
        (["write_*"], ["write", "shell"], "allowOnce"),
        (["write_file"], [], "allowOnce"),
        (["network"], [], "deny"),
    ],
)
def test_what_is_allowed_by_flag_is_not_asked_about(
    tmp_path: Path, allowed: list[str], needs: list[str], decided: str
) -> None:
    permissions = {"allowed": ["read"], "denied": [], "ask": [], "allowUnspecified": True, "rules": []}
    script = {
        "session/create": [{"result": {"sessionId": "s-1"}}],
        "permissions/get": [{"result": permissions}],
        "permissions/set": [{"result": permissions}],
        "agent/submit": [question(*needs), *says("ok")],
    }
    ask(tmp_path, script, *(word for entry in allowed for word in ("--allow", entry)), "hi")
    assert decision(tmp_path) == decided


@pytest.mark.parametrize(("before", "after"), [(["read"], ["read", "delete"]), ([], [])])
def test_what_is_allowed_by_flag_is_denied_no_more_in_this_session(
    tmp_path: Path, before: list[str], after: list[str]
) -> None:
    permissions = {"denied": ["delete", "shell"], "ask": [], "allowUnspecified": True, "rules": []}
    script = {
        "session/create": [{"result": {"sessionId": "s-7"}}],
        "permissions/get": [{"result": {"allowed": before, **permissions}}],
        "permissions/set": [{"result": {"allowed": after, **permissions}}],
        "agent/submit": says("ok"),
    }
    ask(tmp_path, script, "--allow", "delete", "hi")
    (change,) = [message["params"] for message in received(tmp_path) if message.get("method") == "permissions/set"]
    assert change == {
        "scope": "session",
        "sessionId": "s-7",
        "denied": ["shell"],
        "allowed": after,
    }
    assert submitted(tmp_path)["sessionId"] == "s-7"


# Failures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [(-31020, "modelError", 1), (-31040, "invalidConfiguration", 2), (-31022, "maxTurnsExceeded", 1)],
)
def test_a_failed_run_is_one_line_with_its_status(tmp_path: Path, code: int, kind: str, status: int) -> None:
    error = {"code": code, "message": "that\nwent wrong\x1b[31m", "data": {"kind": kind}}
    failing = [{"event": {"type": "runCompleted", "stopReason": "error", "usage": {}, "error": error}}]
    done = ask(tmp_path, {"agent/submit": [*failing, {"error": error}]}, "hi")
    assert done.returncode == status
    assert done.stderr.decode() == "agent-sidecar: error: that went wrong\\x1b[31m\n"


def test_an_answer_cut_short_is_shown_and_is_a_failure(tmp_path: Path) -> None:
    cut = [{"event": {"type": "assistantTextDelta", "text": "Once upon"}}, *ended("length")]
    done = ask(tmp_path, {"agent/submit": cut}, "hi")
    assert (done.returncode, done.stdout) == (1, b"Once upon\n")
    assert done.stderr == b"agent-sidecar: error: the answer was cut off at the model's output limit\n"


def test_wrong_configuration_at_the_start_is_status_2(tmp_path: Path) -> None:
    error = {
        "code": -31040,
        "message": "config.toml:3: model: must be a string",
        "data": {"kind": "invalidConfiguration"},
    }
    done = ask(tmp_path, {"initialize": [{"error": error}]}, "hi")
    assert (done.returncode, done.stderr) == (
        2,
        b"agent-sidecar: error: config.toml:3: model: must be a string\n",
    )


def test_a_sidecar_that_refuses_its_flags_is_status_2_in_its_own_words(tmp_path: Path) -> None:
    refusing = [{"stderr": "agent-sidecar: error: no such file: x.toml\n"}, {"exit": 2}]
    done = ask(tmp_path, {"initialize": refusing}, "hi")
    assert (done.returncode, done.stderr) == (2, b"agent-sidecar: error: no such file: x.toml\n")


def test_a_sidecar_that_dies_is_status_1_with_its_last_words(tmp_path: Path) -> None:
    done = ask(tmp_path, {"agent/submit": [{"stderr": "MemoryError\n"}, {"exit": 9}]}, "hi")
    assert done.returncode == 1
    assert done.stderr == b"agent-sidecar: error: the sidecar exited with status 9: MemoryError\n"


def test_a_reader_that_leaves_ends_it_without_a_traceback(tmp_path: Path) -> None:
    script = {"agent/submit": [{"event": {"type": "assistantTextDelta", "text": "x" * 100_000}}, *ended()]}
    with subprocess.Popen(
        cli("ask", "hi", sidecar=scripted(tmp_path, script)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        cwd=tmp_path,
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT_SECS) == 1


def test_an_ascii_stdout_gets_the_answer_written_out(tmp_path: Path) -> None:
    done = ask(tmp_path, {"agent/submit": says("tschüß")}, "hi", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, b"tsch\\xfc\\xdf\n")


def test_the_log_is_shown_only_when_it_is_asked_for(tmp_path: Path) -> None:
    script = {"agent/submit": [{"stderr": "DEBUG something\n"}, *says("ok")]}
    assert ask(tmp_path, script, "hi").stderr == b""
    assert ask(tmp_path, script, "--log-level", "debug", "hi").stderr == b"DEBUG something\n"


def test_nothing_of_the_server_is_imported_and_the_version_needs_no_event_loop() -> None:
    program = """
import sys
from sidecar.cli import main
main(["--version"])
assert "asyncio" not in sys.modules
import sidecar.cli.ask, sidecar.cli.chat, sidecar.cli.demo, sidecar.cli.doctor
parts = {name.split(".")[1] for name in sys.modules if name.startswith("sidecar.")}
print(sorted(parts & {"server", "agent", "tools", "providers", "mcp", "permissions", "app", "config"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, timeout=LIMIT_SECS, check=True
    )
    assert done.stdout.splitlines()[-1] == b"[]"


def test_flags_without_a_command_serve_on_a_pipe() -> None:
    """Source: protocol.md, ground rule 0."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
    body = json.dumps(message).encode()
    frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    done = subprocess.run(
        cli("--model", "a/b"), input=frame, env=environment(), capture_output=True, timeout=LIMIT_SECS
    )
    assert done.returncode == 1, "its host left without a shutdown"
    assert b'"models":["a/b"]' in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes the streams")
def test_streams_that_the_shell_has_closed_are_no_accident(tmp_path: Path) -> None:
    command = [*cli("ask", "hi", sidecar=scripted(tmp_path, {"agent/submit": says("ok")}))]
    shell = ["sh", "-c", '"$@" <&- >&-', "sh", *command]
    done = subprocess.run(shell, env=environment(), capture_output=True, timeout=LIMIT_SECS, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_paths_given_as_flags_hold_wherever_the_sidecar_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flags = build_parser().parse_args(["--config", "a.toml", "ask", "--log-file", "b.log", "--model", "m/x", "hi"])
    assert serve_flags(flags) == [
        *("--config", str(tmp_path / "a.toml")),
        *("--log-file", str(tmp_path / "b.log")),
        *("--model", "m/x"),
    ]


def test_tools_before_and_after_the_command_are_all_loaded() -> None:
    flags = build_parser().parse_args(["--tools", "one:a", "ask", "--tools", "two:b", "--tools", "three:c", "hi"])
    assert serve_flags(flags) == [*("--tools", "one:a"), *("--tools", "two:b"), *("--tools", "three:c")]
