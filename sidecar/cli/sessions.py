"""`agent-sidecar sessions`: which conversations are kept; shows, exports and deletes one."""

import argparse
import asyncio
import itertools
import json
import sys

from sidecar_client import ClientError, Sidecar

from sidecar.cli import wording
from sidecar.cli.host import DONE, FAILED, Spawn, UsageError, complain, report_failure, screen_on
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.kept import JsonObject, all_sessions, find_session, moment, short_id, store_keeper
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe, safe_line


def sessions(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status. Raises UsageError."""
    if flags.action != "list" and flags.id is None:
        raise UsageError(f"say which: agent-sidecar sessions {flags.action} ID")
    return asyncio.run(_sessions(flags, spawn))


async def _sessions(flags: argparse.Namespace, spawn: Spawn) -> int:
    screen = screen_on(sys.stdout, sys.stdout)
    with Interrupts().taken():
        try:
            async with store_keeper(spawn, flags.config) as sidecar:
                if flags.action == "list":
                    return await _list(sidecar, flags, screen)
                session_id = await find_session(sidecar, flags.id)
                if flags.action == "delete":
                    return await _delete(sidecar, session_id)
                return await _write(sidecar, session_id, flags, screen)
        except ClientError as error:
            return report_failure(error)


async def _list(sidecar: Sidecar, flags: argparse.Namespace, screen: Screen) -> int:
    listed = all_sessions(sidecar)
    found = [entry async for entry in listed]
    shown = list(itertools.islice(found, flags.limit))
    if flags.json:
        screen.answer(f"{json.dumps({'sessions': shown})}\n")
        return DONE
    for entry in shown:
        screen.line(screen.fitted(_line(entry)))
    if not found:
        complain("no sessions are kept", is_error=False)
    elif len(shown) < len(found):
        complain(f"{len(found) - len(shown)} more; --limit shows them", is_error=False)
    return DONE


def _line(entry: JsonObject) -> str:
    messages = wording.count(entry["messageCount"], "message")
    title = safe_line(str(entry.get("title") or ""))
    return f"{short_id(entry['sessionId'])}  {moment(entry['updatedMs'])}  {messages:>12}  {title}".rstrip()


async def _write(sidecar: Sidecar, session_id: str, flags: argparse.Namespace, screen: Screen) -> int:
    """Shows a session to people, or writes it as a document for a file."""
    chosen = flags.format or ("json" if flags.json else "markdown")
    answer = await sidecar.request("session/export", {"sessionId": session_id, "format": chosen})
    text = str(answer["text"])
    if sys.stdout.isatty() or flags.action == "show":
        text = safe(text)
    screen.answer(text)
    return DONE


async def _delete(sidecar: Sidecar, session_id: str) -> int:
    answer = await sidecar.request("session/delete", {"sessionId": session_id})
    complain(f"{session_id} is {'deleted' if answer['deleted'] else 'gone already'}", is_error=False)
    return DONE if answer["deleted"] else FAILED
