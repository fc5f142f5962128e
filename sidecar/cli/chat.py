"""`agent-sidecar chat`: one session, prompt after prompt.

The event loop runs while a run is on and rests while a line is typed, so that Python's own line editing can
have the terminal. Nothing happens in the sidecar meanwhile that could not wait.
"""

import argparse
import asyncio
import contextlib
import importlib
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sidecar_client import ClientError, Sidecar, SidecarExited

from sidecar.cli import wording
from sidecar.cli.ask import submit_params
from sidecar.cli.host import DONE, FAILED, INTERRUPTED, Spawn, open_screen, report_failure, report_run, sidecar_for
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.kept import find_session
from sidecar.cli.models import model_to_use
from sidecar.cli.permissions import session_allowing
from sidecar.cli.person import Person
from sidecar.cli.render import JsonView, RunView, View
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe_line
from sidecar.cli.trust import ask_about_workspace

HELP = """\
/tools          the tools on offer
/servers        the MCP servers and how they are
/model [NAME]   which model answers; with a name: from now on this one
/new            forget the conversation and start another
/quit           leave, as Ctrl-D does; Ctrl-C ends a run"""


def chat(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status."""
    spawn = ask_about_workspace(spawn)
    screen = open_screen()
    view = RunView(screen)
    person = Person(view, allowed=flags.allow)
    with asyncio.Runner() as runner:
        sidecar = sidecar_for(spawn, person)
        try:
            runner.run(sidecar.__aenter__())
        except ClientError as error:
            return report_failure(error)
        if sys.stdin.isatty():
            screen.line(screen.terminal.style("/help lists commands, Ctrl-D leaves", "dim"))
        try:
            conversation = Conversation(flags, sidecar, screen, JsonView(screen) if flags.json else view)
            if flags.session:
                runner.run(conversation.resume(flags.session))
            return _converse(runner, conversation)
        except ClientError as error:
            return report_failure(error)
        finally:
            runner.run(sidecar.aclose())


def _converse(runner: asyncio.Runner, conversation: "Conversation") -> int:
    """Line after line until there are no more. Fails when the sidecar is gone, or no terminal hides a failure."""
    status = DONE
    read_line = line_reader(conversation.screen)
    while (line := read_line()) is not None:
        if not line.strip():
            continue
        if line.strip() == "/quit":
            break
        try:
            status = runner.run(conversation.take(line.strip()))
        except KeyboardInterrupt:
            status = INTERRUPTED
        if conversation.is_over:
            return FAILED
    return DONE if sys.stdin.isatty() else status


def line_reader(screen: Screen) -> Callable[[], str | None]:
    """Reads lines with editing and history where Python has readline; None at the end. Ctrl-C drops a line."""
    if not sys.stdin.isatty():
        return lambda: sys.stdin.readline() or None
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # Importing it is what makes `input` edit; Windows has none.

    def read() -> str | None:
        while True:
            try:
                screen.line()
                return _input("> ")
            except KeyboardInterrupt:
                screen.line("(Ctrl-D leaves)")
            except EOFError:
                screen.line()
                return None

    return read


def _input(prompt: str) -> str:
    """Like `input`, which would write the prompt into an answer that goes to a file."""
    if sys.stdout.isatty():
        return input(prompt)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


@dataclass
class Conversation:
    """What a chat keeps between its lines."""

    flags: argparse.Namespace
    sidecar: Sidecar
    screen: Screen
    view: View
    session_id: str | None = None
    model: str | None = None
    has_looked_for_models: bool = False
    is_over: bool = False
    """The sidecar is gone, so that nothing more can be said."""

    async def resume(self, named: str) -> None:
        """Goes on with a session that is kept. Raises UsageError, ClientError."""
        session_id = await find_session(self.sidecar, named)
        self.session_id = await session_allowing(self.sidecar, self.flags.allow, session_id)

    async def take(self, line: str) -> int:
        """One line: a command or a prompt. Returns an exit status, for input that nobody watches."""
        command, _, rest = line.partition(" ")
        commands: dict[str, Callable[[str], Awaitable[None]]] = {
            "/help": self._help,
            "/tools": self._tools,
            "/servers": self._servers,
            "/model": self._model,
            "/new": self._new,
        }
        try:
            if not command.startswith("/"):
                return await self._submit(line)
            await commands.get(command, self._help)(rest.strip())
        except ClientError as error:
            self.is_over = isinstance(error, SidecarExited)
            return report_failure(error)
        return DONE

    async def _submit(self, prompt: str) -> int:
        if self.session_id is None:
            self.session_id = await session_allowing(self.sidecar, self.flags.allow)
        if self.model is None and not self.has_looked_for_models:
            self.has_looked_for_models = True
            self.model = await model_to_use(self.sidecar)
        params = submit_params(self.flags, self.session_id)
        if self.model is not None:
            params["model"] = self.model
        with Interrupts().taken() as interrupts:
            run = self.sidecar.submit(prompt, **params)
            status = await report_run(run, self.sidecar, self.view, interrupts)
        self.session_id = run.session_id
        self.is_over = self.sidecar.status is not None
        return status

    async def _help(self, _: str) -> None:
        self.screen.line(HELP)

    async def _tools(self, _: str) -> None:
        tools = (await self.sidecar.request("tools/list", {"limit": 1000}))["tools"]
        for tool in tools:
            needs = ", ".join(tool["requiredPermissions"]) or "-"
            text = f"{safe_line(tool['name'])}  [{safe_line(needs)}]  {safe_line(tool['description'])}"
            self.screen.line(self.screen.fitted(text))
        self.screen.line(wording.count(len(tools), "tool"))

    async def _servers(self, _: str) -> None:
        servers = (await self.sidecar.request("mcp/list"))["servers"]
        for server in servers:
            reason = f"  {safe_line(server['error']['message'])}" if server.get("error") else ""
            tools = wording.count(server.get("toolCount", 0), "tool")
            self.screen.line(f"{safe_line(server['name'])}  {server['status']}  {tools}{reason}")
        if not servers:
            self.screen.line("no MCP servers are configured")

    async def _model(self, name: str) -> None:
        if name:
            self.model = name
        said = self.model or self.flags.model
        self.screen.line(f"model: {safe_line(said) if said else 'as configured'}")

    async def _new(self, _: str) -> None:
        self.session_id = None
        self.screen.line("a new conversation")
