"""`run_command`: a program or a shell command in the workspace, ended with everything that it started."""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from pathlib import Path

from sidecar.mcp.environment import child_environment, find_program
from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.builtin.file_tool import parameters
from sidecar.tools.builtin.running_command import RunningCommand
from sidecar.tools.threads import in_thread
from sidecar.tools.workspace import Place, Workspace, became_another

DEFAULT_TIMEOUT_SECS = 120
MAX_TIMEOUT_SECS = 1800

MAX_SHOWN_BYTES = 256 * 1024
"""How much of the output is shown as it comes. Own choice: a person reads no more than that."""


class RunCommand(BaseTool):
    """Result: `exitCode` (absent when ended by us), `output`, `durationMs`, `timedOut`.

    Stdout and stderr come as one, in the order they were written. The command sees the variables that MCP
    servers see, and no input. Denied unless permissions say otherwise.
    """

    name = "run_command"
    description = (
        "Runs a program in the workspace and gives its exit code and output. Give either command, a list of "
        "the program and its arguments, or shell, a line for the system's shell. There is no input to it; what "
        "it leaves running is ended with it."
    )
    kind = "code"
    category = "commands"
    parameters = parameters(
        "",
        command={
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "The program and its arguments, each as it is: no shell reads them",
        },
        shell={
            "type": "string",
            "minLength": 1,
            "description": "A command line for the shell (sh, on Windows cmd)",
        },
        cwd={"type": "string", "description": "The folder to run it in. Default: the first workspace folder"},
        timeoutSecs={
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MAX_TIMEOUT_SECS,
            "description": f"When to end it. Default {DEFAULT_TIMEOUT_SECS}",
        },
    )
    required_permissions = (Permission.SHELL,)
    remembered_arguments = ("command", "shell", "cwd")
    timeout_secs = MAX_TIMEOUT_SECS + 10.0

    async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
        """Rules see a list of arguments as one line, quoted as a shell would need it."""
        place = await in_thread(_folder, args, workspace)
        command = args.get("command")
        line = {"command": shlex.join(map(str, command))} if isinstance(command, list) else {}
        return {**args, **line, "cwd": place.shown}

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        if ("command" in args) == ("shell" in args):
            return ToolResult.error("give either command or shell")
        place = await in_thread(_folder, args, ctx.workspace)
        if ctx.rule_arguments is not None and ctx.rule_arguments["cwd"] != place.shown:
            raise became_another(place.shown)
        if not place.path.is_dir():
            return ToolResult.error(f"{place.shown} is not a folder")
        environ = child_environment(os.environ, inherit=(), own={})
        command = _shell_command(args["shell"]) if "shell" in args else list(args["command"])
        program = find_program(command[0], environ=environ, folder=place.path)
        if program is None:
            return ToolResult.error(f"the program {command[0]!r} was not found")
        return _run([program, *command[1:]], place, environ, float(args.get("timeoutSecs", DEFAULT_TIMEOUT_SECS)))


def _folder(args: JsonObject, workspace: tuple[Path, ...]) -> Place:
    cwd = args.get("cwd")
    return Workspace(workspace).place(cwd if isinstance(cwd, str) else ".")


def _shell_command(line: str) -> list[str]:
    if os.name == "nt":
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c", line]
    return ["/bin/sh", "-c", line]


async def _run(
    command: list[str], place: Place, environ: dict[str, str], limit_secs: float
) -> AsyncIterator[str | ToolResult]:
    """The output as it comes, then the result."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        running = await RunningCommand.start(command, folder=place.path, environ=environ)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield ToolResult.error(f"{command[0]} cannot be started: {reason}")
        return
    try:
        shown_bytes = 0
        async for piece in running.output_until(began + limit_secs):
            shown_bytes += len(piece)
            if shown_bytes <= MAX_SHOWN_BYTES:
                yield piece
        exit_code = running.exit_code
    finally:
        await running.end()
    duration_ms = round((loop.time() - began) * 1000)
    yield _result(exit_code, running.kept_output(), duration_ms, limit_secs)


def _result(exit_code: int | None, output: str, duration_ms: int, limit_secs: float) -> ToolResult:
    data = {
        **({} if exit_code is None else {"exitCode": exit_code}),
        "output": output,
        "durationMs": duration_ms,
        "timedOut": exit_code is None,
    }
    if exit_code is None:
        outcome = f"ended by us after {limit_secs:g} s; raise timeoutSecs if it needs longer"
    else:
        outcome = f"exit code {exit_code}"
    return ToolResult.success(data, content=(TextBlock(text=f"{output.rstrip()}\n[{outcome}]".lstrip()),))
