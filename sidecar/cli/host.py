"""The command line as a host: spawns a sidecar as an editor would, shows a run, interrupts it, ends.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted.
"""

import asyncio
import io
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from sidecar_client import ClientError, HostTool, RequestFailed, Run, Sidecar, SidecarExited

from sidecar.cli.interrupts import Interrupts
from sidecar.cli.person import Person
from sidecar.cli.render import View
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe_line, terminal_of

JsonObject = dict[str, Any]

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

PROGRAM = "agent-sidecar"

COMMAND = (sys.executable, "-P", "-m", "sidecar", "serve")
"""The sidecar of this very installation. `-P`: the folder it works in is not looked at for Python modules."""

TICK_SECS = 0.1

USERS_MISTAKES = ("invalidConfiguration", "invalidParams")
"""Kinds of errors that people mend by changing what they wrote."""

CUT_SHORT = {
    "length": "the answer was cut off at the model's output limit",
    "contentFilter": "the answer was cut off by the provider's content filter",
}
"""Ends of a run that are no errors to the sidecar, and still leave no whole answer."""


class UsageError(Exception):
    """What was typed cannot be meant."""


@dataclass(frozen=True, kw_only=True)
class Spawn:
    """How to start a sidecar: the command with its flags, the folder it works in, its options."""

    command: Sequence[str] = COMMAND
    cwd: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    shows_log: bool = False
    """Whether what it writes to stderr goes to ours."""


def open_screen() -> Screen:
    """The answer on stdout, everything else on stderr."""
    return screen_on(sys.stdout, sys.stderr)


def screen_on(answers: TextIO, notes: TextIO) -> Screen:
    """A screen on these streams; what their encoding cannot show is written out, not an error."""
    for stream in (answers, notes):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    return Screen(answers, notes, terminal_of(answers, notes))


def sidecar_for(
    spawn: Spawn,
    person: Person,
    *,
    approve: Callable[[JsonObject], Any] | None = None,
    tools: Sequence[HostTool] = (),
) -> Sidecar:
    """A sidecar whose questions `person` answers, to be entered with `async with`. `approve` decides instead."""
    screen = person.view.screen

    def show_log(line: str) -> None:
        screen.line(screen.terminal.style(safe_line(line), "dim"))

    return Sidecar(
        spawn.options,
        command=spawn.command,
        cwd=spawn.cwd,
        on_approval=approve or person.approve,
        on_input=person.give_input if person.is_there else None,
        tools=tools,
        on_stderr=show_log if spawn.shows_log else None,
    )


async def show_run(run: Run, view: View) -> JsonObject:
    """Shows a run to its end, and returns its result. Raises ClientError as `Run.result` does."""
    view.begin()
    try:
        async with _ticking(view):
            async for notification in run.notifications():
                view.show(notification)
            return await run.result()
    finally:
        view.end()


@asynccontextmanager
async def _ticking(view: View) -> AsyncIterator[None]:
    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK_SECS)
            view.tick()

    ticking = asyncio.get_running_loop().create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.wait([ticking])


async def report_run(run: Run, sidecar: Sidecar, view: View, interrupts: Interrupts) -> int:
    """Shows a run; returns the exit status, having said on stderr what went wrong."""
    try:
        with interrupts.of(run, sidecar):
            result = await show_run(run, view)
    except ClientError as error:
        if interrupts.happened:
            complain("interrupted", is_error=False)
            return INTERRUPTED
        return report_failure(error)
    if cut := CUT_SHORT.get(str(result.get("stopReason"))):
        complain(cut)
        return FAILED
    return DONE


def report_failure(error: ClientError) -> int:
    """Says what went wrong, and returns the exit status for it."""
    message = str(error)
    if isinstance(error, SidecarExited):
        # The sidecar's own last words begin as ours do.
        message = message.rpartition(f"{PROGRAM}: error: ")[2]
    complain(message)
    is_users = (isinstance(error, RequestFailed) and error.kind in USERS_MISTAKES) or (
        isinstance(error, SidecarExited) and error.status == WRONG_USAGE
    )
    return WRONG_USAGE if is_users else FAILED


def complain(message: str, *, is_error: bool = True) -> None:
    """One line on stderr."""
    sys.stderr.write(f"{PROGRAM}: {'error: ' if is_error else ''}{safe_line(message)}\n")
