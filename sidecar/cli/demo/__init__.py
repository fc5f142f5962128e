"""`agent-sidecar demo`: a whole run to look at, with a replayed model and everything else real.

A temporary workspace, the built-in file tools, an MCP server of ours as a process, a tool that this host
offers, a call that policy denies and one that asks. Needs no key, no network and no other program.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sidecar_client import ClientError, HostTool

from sidecar.cli import wording
from sidecar.cli.calls import wrapped
from sidecar.cli.host import DONE, FAILED, Spawn, complain, report_failure, report_run, screen_on, sidecar_for
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.person import Person
from sidecar.cli.render import RunView
from sidecar.cli.screen import Screen

JsonObject = dict[str, Any]

PROMPT = "Sum up my notes in summary.md, and tidy away the old draft."

FILES = {
    "tides.md": "# Tides\n\nThe sea comes and goes twice a day.\nHigh water comes again after 12 h 25 min.\n",
    "draft.md": "Something about the moon?\n",
}
"""What is in the workspace."""

HERE = Path(__file__).parent

INTRODUCTION = (
    "The model is replayed from a file, so this needs no key and no network. All else is real: this program has "
    "spawned a sidecar as an editor would, the sidecar has spawned an MCP server, and the tools work in "
)

NEXT = (
    'agent-sidecar ask "..." does this with a model of yours: set OPENAI_API_KEY, or add --model ollama/NAME.',
    "agent-sidecar doctor says what is missing for that.",
    "protocol.md describes what has just gone over the pipe, frame by frame.",
)


def demo(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="agent-sidecar-demo-", ignore_cleanup_errors=True) as folder:
        return asyncio.run(_demo(Path(folder), spawn))


async def _demo(folder: Path, spawn: Spawn) -> int:
    # All of it goes to stdout: here the calls are as much of the answer as the text is.
    screen = screen_on(sys.stdout, sys.stdout)
    workspace = _workspace_in(folder)
    view = Tally(screen, show_totals=False)
    person = Person(view)
    _introduce(screen, workspace)
    with Interrupts().taken() as interrupts:
        try:
            sidecar = sidecar_for(
                _spawn_in(spawn, folder, workspace),
                person,
                approve=person.approve if person.is_there else lambda question: _say_yes(question, view),
                tools=[HostTool.of(editor_selection)],
            )
            async with sidecar:
                policy = {"permissionDenied": "tellModel"}
                run = sidecar.submit(PROMPT, error_policy=policy)
                status = await report_run(run, sidecar, view, interrupts)
        except ClientError as error:
            return report_failure(error)
    return status or _conclude(screen, view, workspace)


def editor_selection() -> JsonObject:
    """What is selected in the editor."""
    return {"path": "tides.md", "text": "12 h 25 min"}


async def _say_yes(question: JsonObject, view: RunView) -> JsonObject:
    """Nobody is there to press a key, and the demo should go on."""
    needs = ", ".join(question.get("permissions") or ())
    view.note(
        f"{question.get('toolName')} needs {needs}: on a terminal you are asked, here the demo says yes", "yellow"
    )
    return {"decision": "allowOnce"}


# Before -------------------------------------------------------------------------------------------------


def _workspace_in(folder: Path) -> Path:
    workspace = folder / "notes"
    workspace.mkdir()
    for name, text in FILES.items():
        (workspace / name).write_text(text, encoding="utf-8")
    return workspace


def _spawn_in(spawn: Spawn, folder: Path, workspace: Path) -> Spawn:
    """The sidecar with the demo's options, and with none of the user's: their servers have no part in this."""
    config = folder / "config.toml"
    config.touch()
    # Nothing but the standard library, which starts quickest without looking for anything else.
    server = {"command": sys.executable, "args": ["-I", "-S", str(HERE / "server.py")]}
    options = {
        "model": "replay/demo",
        "providers": {"replay": {"api": "replay", "file": str(HERE / "script.json")}},
        "mcpServers": {"demo": server},
        "permissions": {
            "allowed": ["read"],
            "denied": ["delete", "shell"],
            "ask": ["write"],
            "rules": [
                {"tool": "move", "decision": "allow"},
                {"tool": "edit_file", "arguments": {"path": "tides.md"}, "decision": "allow"},
            ],
        },
        "store": {"path": ":memory:"},
    }
    return replace(spawn, command=(*spawn.command, "--config", str(config)), cwd=str(workspace), options=options)


def _introduce(screen: Screen, workspace: Path) -> None:
    style = screen.terminal.style
    screen.line(style("Agent Sidecar, shown in one run", "bold"))
    screen.line(style("\n".join(wrapped(f"{INTRODUCTION}{workspace}.", screen.terminal, hanging="")), "dim"))
    screen.line()
    screen.line("\n".join(wrapped(f"> {PROMPT}", screen.terminal)))


# After --------------------------------------------------------------------------------------------------


@dataclass
class Tally(RunView):
    """Shows a run, and keeps count of what was shown."""

    events: int = 0
    turns: int = 0
    calls: int = 0
    denied: set[str] = field(default_factory=set)
    """Call ids, as in the next two."""
    failed: set[str] = field(default_factory=set)
    asked: dict[str, str] = field(default_factory=dict)
    """Question by call id, then the decision."""

    def show(self, notification: JsonObject) -> None:
        """One event."""
        self.events += 1
        match notification["event"]:
            case {"type": "toolExecutionStarted"}:
                self.calls += 1
            case {"type": "turnComplete"}:
                self.turns += 1
            case {"type": "approvalRequested", "requestId": str(request_id), "callId": str(call_id)}:
                self.asked[request_id] = call_id
            case {"type": "toolExecutionCompleted", "isError": True, "callId": str(call_id)} as event:
                is_denied = event.get("errorKind") == "permissionDenied"
                (self.denied if is_denied else self.failed).add(call_id)
        super().show(notification)

    @property
    def summary(self) -> str:
        """One line of what happened."""
        asked = set(self.asked.values())
        allowed = "allowed" if asked - self.denied else "not allowed"
        return ", ".join(
            [
                wording.count(self.turns, "turn"),
                wording.count(self.calls, "call"),
                f"{len(self.denied - asked)} denied by policy",
                f"{len(asked)} asked about and {allowed}",
                wording.count(self.events, "event"),
            ]
        )


def _conclude(screen: Screen, view: Tally, workspace: Path) -> int:
    written = workspace / "summary.md"
    screen.line()
    if written.exists():
        screen.line(screen.terminal.style("summary.md, as it now is:", "dim"))
        screen.line("\n".join(f"  {line}" for line in written.read_text(encoding="utf-8").splitlines()))
        screen.line()
    lines = wrapped(f"demo done: {view.summary}", screen.terminal)
    screen.line("\n".join(screen.terminal.style(line, "bold") for line in lines))
    for tip in NEXT:
        screen.line(screen.terminal.style("\n".join(wrapped(tip, screen.terminal)), "dim"))
    if view.failed:
        complain(f"{wording.count(len(view.failed), 'call')} of the demo failed; see above")
        return FAILED
    return DONE
