"""`agent-sidecar ask`: one prompt, one run."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TextIO

from sidecar_client import ClientError, SubmitParams

from sidecar.cli.host import Spawn, UsageError, open_screen, report_failure, report_run, sidecar_for
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.kept import find_session
from sidecar.cli.models import model_to_use
from sidecar.cli.permissions import session_allowing
from sidecar.cli.person import Person
from sidecar.cli.render import JsonView, RunView
from sidecar.cli.trust import ask_about_workspace


def ask(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status. Raises UsageError when there is nothing to ask."""
    prompt = prompt_of(flags.prompt, sys.stdin)
    return asyncio.run(_ask(prompt, flags, ask_about_workspace(spawn)))


async def _ask(prompt: str, flags: argparse.Namespace, spawn: Spawn) -> int:
    screen = open_screen()
    view = RunView(screen)
    person = Person(view, allowed=flags.allow)
    with Interrupts().taken() as interrupts:
        try:
            async with sidecar_for(spawn, person) as sidecar:
                session_id = await find_session(sidecar, flags.session) if flags.session else None
                session_id = await session_allowing(sidecar, flags.allow, session_id)
                params = submit_params(flags, session_id)
                if model := await model_to_use(sidecar):
                    params["model"] = model
                run = sidecar.submit(prompt, **params)
                return await report_run(run, sidecar, JsonView(screen) if flags.json else view, interrupts)
        except ClientError as error:
            return report_failure(error)


def submit_params(flags: argparse.Namespace, session_id: str | None) -> SubmitParams:
    """What the flags of `ask` and `chat` say about a submit."""
    params: SubmitParams = {}
    if flags.system is not None:
        params["system"] = flags.system
    if flags.max_turns is not None:
        params["max_turns"] = flags.max_turns
    if session_id is not None:
        params["session_id"] = session_id
    return params


def prompt_of(words: Sequence[str], source: TextIO) -> str:
    """The words of the command line, `-` replaced by all of `source`; without words, `source` alone."""
    if not words and source.isatty():
        raise UsageError('nothing to ask: say `agent-sidecar ask "..."`, or pipe the prompt in')
    parts = [_read_all(source) if word == "-" else word for word in words or ["-"]]
    prompt = "\n\n".join(parts) if "-" in words else " ".join(parts)
    if not prompt.strip():
        raise UsageError("nothing to ask: the prompt is empty")
    return prompt


def _read_all(source: TextIO) -> str:
    buffer = getattr(source, "buffer", None)
    return source.read() if buffer is None else buffer.read().decode("utf-8", "replace")
