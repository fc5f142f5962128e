"""`agent-sidecar audit`: which tools were called, who allowed it, and what came of it."""

import argparse
import asyncio
import json
import re
import sys
import time

from sidecar_client import ClientError, Sidecar

from sidecar.cli import wording
from sidecar.cli.host import DONE, Spawn, UsageError, complain, report_failure, screen_on
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.kept import PAGE, JsonObject, find_session, moment, short_id, store_keeper
from sidecar.cli.terminal import safe_line

UNIT_SECS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}

DECISIONS = {"allow": "allowed", "ask": "asked about", "deny": "denied"}
DECIDERS = {
    "host": "by the person",
    "rule": "by rule",
    "deadline": "as nobody answered",
    "cancel": "by the cancel",
}
MARKS = {"ok": "green", "failed": "yellow", "denied": "red", "cancelled": "yellow", "interrupted": "yellow"}


def audit(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status. Raises UsageError."""
    since_ms = None if flags.since is None else round((time.time() - span_secs(flags.since)) * 1000)
    return asyncio.run(_audit(flags, spawn, since_ms))


async def _audit(flags: argparse.Namespace, spawn: Spawn, since_ms: int | None) -> int:
    screen = screen_on(sys.stdout, sys.stdout)
    with Interrupts().taken():
        try:
            async with store_keeper(spawn, flags.config) as sidecar:
                session_id = await find_session(sidecar, flags.session) if flags.session else None
                asked = {
                    "sessionId": session_id,
                    "runId": flags.run,
                    "toolName": flags.tool,
                    "decision": flags.decision,
                    "sinceMs": since_ms,
                }
                given = {name: value for name, value in asked.items() if value is not None}
                entries = await _entries(sidecar, given, flags.limit)
        except ClientError as error:
            return report_failure(error)
    if flags.json:
        screen.answer(f"{json.dumps({'entries': entries})}\n")
        return DONE
    for entry in reversed(entries):  # The newest stands last, where the terminal's reader looks first.
        outcome = str(entry.get("outcome", "running"))
        screen.line(f"{_line(entry)}  {screen.terminal.style(outcome, MARKS.get(outcome, 'dim'))}{_more(entry)}")
    if not entries:
        complain("nothing was called", is_error=False)
    return DONE


async def _entries(sidecar: Sidecar, asked: JsonObject, limit: int) -> list[JsonObject]:
    entries: list[JsonObject] = []
    cursor: JsonObject = {}
    while len(entries) < limit:
        page = {**asked, **cursor, "limit": min(PAGE, limit - len(entries))}
        answer = await sidecar.request("audit/list", page)
        entries += answer["entries"]
        if "nextCursor" not in answer:
            break
        cursor = {"cursor": answer["nextCursor"]}
    return entries


def _line(entry: JsonObject) -> str:
    decision = DECISIONS.get(str(entry.get("decision")), "not decided on")
    by = DECIDERS.get(str(entry.get("decidedBy")), "")
    rule = f" ({safe_line(str(entry['rule']))})" if entry.get("rule") else ""
    session = f"  {short_id(entry['sessionId'])}" if entry.get("sessionId") else ""
    said = " ".join(filter(None, (decision, by)))
    return f"{moment(entry['timeMs'])}{session}  {safe_line(str(entry['toolName']))}  {said}{rule}"


def _more(entry: JsonObject) -> str:
    kind = f" {safe_line(str(entry['errorKind']))}" if entry.get("errorKind") else ""
    return f"{kind}  {wording.duration(entry['durationMs'] / 1000)}" if "durationMs" in entry else kind


def span_secs(text: str) -> float:
    """`90s`, `30m`, `2h`, `7d`, `4w` in seconds. Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if found is None:
        raise UsageError(f"--since: {text!r} is no span of time; say 30m, 2h or 7d")
    return float(found[1]) * UNIT_SECS[found[2]]
