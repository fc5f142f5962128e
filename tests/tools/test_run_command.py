"""`run_command` with real processes. Source: protocol.md, "Built-in tools"; the limits are our own choice."""

import asyncio
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import AgentEvent, ToolExecutionProgress
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import ToolInvocation
from sidecar.tools.base import CancellationToken
from sidecar.tools.builtin.run_command import RunCommand
from sidecar.tools.registry import InvocationScope, ToolRegistry
from tests.harness.processes import living, still_there_after

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")

OPEN = PermissionConfig(allowed=(), denied=(), ask=())
PYTHON = [sys.executable, "-c"]


class Shell:
    """A workspace folder, a registry with the tool, and what was reported of its calls."""

    def __init__(self, folder: Path, checker: PermissionChecker) -> None:
        self.folder = folder
        self.registry = ToolRegistry(permissions=checker)
        self.registry.register(RunCommand())
        self.events: list[AgentEvent] = []
        self.cancellation = CancellationToken()

    async def invoke(self, **args: Any) -> ToolInvocation:
        async def emit(event: AgentEvent) -> None:
            self.events.append(event)

        scope = InvocationScope(workspace=(self.folder,), emit=emit, cancellation=self.cancellation)
        return await self.registry.invoke("run_command", args, scope)

    async def run(self, **args: Any) -> Any:
        made = await self.invoke(**args)
        assert made.result is not None
        return made.result.data if made.result.ok else made.result.error


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "sub").mkdir()
    return Shell(tmp_path, PermissionChecker(OPEN))


async def test_output_and_exit_code_are_given(shell: Shell) -> None:
    script = "import sys; print('out'); sys.stdout.flush(); print('err', file=sys.stderr); sys.exit(3)"
    data = await shell.run(command=[*PYTHON, script])
    assert data.pop("durationMs") >= 0
    assert data == {"exitCode": 3, "output": "out\nerr\n", "timedOut": False}


async def test_a_model_sees_the_output_and_the_exit_code(shell: Shell) -> None:
    made = await shell.invoke(shell="echo hello; false")
    assert made.content == "hello\n[exit code 1]"


async def test_a_list_of_arguments_meets_no_shell(shell: Shell) -> None:
    data = await shell.run(command=["echo", "$HOME; rm -rf *", "a b"])
    assert data["output"] == "$HOME; rm -rf * a b\n"


async def test_it_runs_in_the_folder_that_is_named(shell: Shell) -> None:
    assert (await shell.run(shell="pwd", cwd="sub"))["output"] == f"{shell.folder / 'sub'}\n"
    assert (await shell.run(shell="pwd"))["output"] == f"{shell.folder}\n"


async def test_there_is_no_input_to_wait_for(shell: Shell) -> None:
    async with asyncio.timeout(10):
        assert (await shell.run(command=["cat"]))["exitCode"] == 0


async def test_output_comes_as_it_is_written(shell: Shell) -> None:
    running = asyncio.create_task(shell.run(shell="echo first; while [ ! -e go ]; do :; done; echo last"))
    async with asyncio.timeout(10):
        while not any("first" in str(event) for event in shell.events):
            await asyncio.wait({running}, timeout=0.01)
        (shell.folder / "go").touch()
        assert (await running)["output"] == "first\nlast\n"
    parts = [event.partial for event in shell.events if isinstance(event, ToolExecutionProgress)]
    assert "".join(part for part in parts if isinstance(part, str)) == "first\nlast\n"


async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(shell: Shell) -> None:
    data = await shell.run(shell="echo begun; (trap '' TERM; sleep 600) & echo $! > pid; wait", timeoutSecs=0.5)
    assert (data["output"], data["timedOut"]) == ("begun\n", True)
    assert "exitCode" not in data
    assert not still_there_after([int((shell.folder / "pid").read_text())], 5)


async def test_what_a_command_leaves_running_is_ended_and_not_waited_for(shell: Shell) -> None:
    async with asyncio.timeout(10):
        data = await shell.run(shell="sleep 600 & echo $! > pid; echo done")
    assert (data["output"], data["exitCode"]) == ("done\n", 0)
    assert not still_there_after([int((shell.folder / "pid").read_text())], 5)


async def test_a_cancelled_call_ends_the_command(shell: Shell) -> None:
    running = asyncio.create_task(shell.run(shell="echo $$ > pid.new; mv pid.new pid; sleep 600"))
    async with asyncio.timeout(10):
        while not (shell.folder / "pid").exists():
            await asyncio.wait({running}, timeout=0.01)
        pid = int((shell.folder / "pid").read_text())
        assert living([pid])
        running.cancel()
        await asyncio.wait({running})
    assert not still_there_after([pid], 5)


async def test_of_very_much_output_the_beginning_and_the_end_stay(shell: Shell) -> None:
    script = "import sys; print('head'); sys.stdout.write('x' * 30_000_000); print(); print('tail')"
    async with asyncio.timeout(30):
        data = await shell.run(command=[*PYTHON, script])
    assert data["output"].startswith("head\nxxx")
    assert data["output"].endswith("xxx\ntail\n")
    assert "bytes left out" in data["output"]
    assert len(data["output"]) < 1_200_000


async def test_it_is_not_shown_our_secrets(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert "sk-secret" not in (await shell.run(shell="env"))["output"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({}, "give either command or shell"),
        ({"command": ["ls"], "shell": "ls"}, "give either command or shell"),
        ({"command": ["no-such-program"]}, "the program 'no-such-program' was not found"),
        ({"command": ["ls"], "cwd": "missing"}, "missing is not a folder"),
        ({"command": ["echo", "a\0b"]}, "cannot be started: embedded null byte"),
    ],
)
async def test_what_cannot_be_run_is_told_to_the_model(shell: Shell, args: Any, error: str) -> None:
    assert str(await shell.run(**args)).endswith(error)


async def test_it_is_denied_unless_permissions_say_otherwise(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="shell"):
        await Shell(tmp_path, PermissionChecker()).invoke(command=["ls"])


@pytest.mark.parametrize(
    ("args", "is_allowed"),
    [
        ({"command": ["git", "status", "-s"]}, True),
        ({"command": ["git", "status;rm"]}, False),
        ({"shell": "git status"}, False),
        ({"command": ["git", "push"]}, False),
    ],
)
async def test_rules_see_a_command_as_one_line(tmp_path: Path, args: Any, is_allowed: bool) -> None:
    rule = PermissionRule(tool="run_command", decision="allow", arguments={"command": "git status *"})
    config = PermissionConfig(denied=(), ask=("shell",))
    checker = PermissionChecker(config, (rule,))
    tool = RunCommand()
    seen = await tool.rule_arguments(args, (tmp_path,))
    decision = checker.check("run_command", tool.required_permissions, arguments=seen)
    assert (decision.decision == "allow") is is_allowed, shlex.join(map(str, args.values()))
