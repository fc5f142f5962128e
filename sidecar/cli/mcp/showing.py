"""`mcp list` and `mcp test`: what is configured, and how it does."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence

from sidecar_client import ClientError

from sidecar.cli import wording
from sidecar.cli.host import DONE, FAILED, Spawn, UsageError, report_failure, screen_on
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.mcp.entries import JsonObject, described, gist, shell_line
from sidecar.cli.mcp.starting import Trial, start_servers
from sidecar.cli.mcp.user_file import UserFile
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe, safe_line

COLOURS = {"ready": "green", "stopped": "dim", "needsAuth": "yellow", "failed": "red"}


async def list_servers(flags: argparse.Namespace, spawn: Spawn, file: UserFile) -> int:
    """Shows what is configured; with --status also how each is."""
    screen = screen_on(sys.stdout, sys.stdout)
    trials: Mapping[str, Trial] = {}
    if flags.status and file.servers:
        started = await _started(file.servers, spawn, file, screen, is_silent=flags.json)
        if isinstance(started, int):
            return started
        trials = started
    if flags.json:
        servers = [
            {
                **described(name, entry),
                "file": str(file.path),
                **({"status": trials[name].status, "toolCount": trials[name].tools} if trials else {}),
            }
            for name, entry in file.servers.items()
        ]
        screen.line(json.dumps({"servers": servers}))
        return DONE
    if not file.servers:
        screen.line(f"none in {file.path}; agent-sidecar mcp add or mcp import puts some there")
    else:
        screen.line(screen.terminal.style(safe_line(str(file.path)), "dim"))
    for name, entry in file.servers.items():
        screen.line(_listed(name, entry, trials.get(name), width(file.servers), screen))
    return DONE


def _listed(name: str, entry: object, trial: Trial | None, columns: int, screen: Screen) -> str:
    words = [f"{safe_line(name):{columns}}"]
    if trial is not None:
        words.append(screen.terminal.style(f"{trial.status:9}", COLOURS.get(trial.status, "red")))
    elif isinstance(entry, dict) and entry.get("disabled") is True:
        words.append(screen.terminal.style("disabled", "dim"))
    return "  ".join([*words, safe_line(gist(entry))])


async def try_servers(flags: argparse.Namespace, spawn: Spawn, file: UserFile) -> int:
    """Starts servers and shows how each did; returns 1 when one is not ready."""
    chosen = _chosen(flags.names, file)
    screen = screen_on(sys.stdout, sys.stdout)
    if not chosen:
        raise UsageError(
            f"there are no servers in {file.path}; agent-sidecar mcp add or mcp import puts some there"
        )
    trials = await _started(chosen, spawn, file, screen, is_silent=flags.json)
    if isinstance(trials, int):
        return trials
    is_well = all(trial.is_well for trial in trials.values())
    if flags.json:
        servers = [_as_json(name, trial, file) for name, trial in trials.items()]
        screen.line(json.dumps({"ok": is_well, "servers": servers}))
    else:
        for name, trial in trials.items():
            for line in _result_lines(name, chosen[name], trial, width(chosen), file, screen):
                screen.line(line)
    return DONE if is_well else FAILED


def _chosen(names: Sequence[str], file: UserFile) -> JsonObject:
    for name in names:
        if name not in file.servers:
            known = ", ".join(sorted(file.servers)) or "none"
            raise UsageError(f"{file.path} has no server {name!r}; there are: {known}")
    return {name: entry for name, entry in file.servers.items() if not names or name in names}


async def _started(
    servers: JsonObject, spawn: Spawn, file: UserFile, screen: Screen, *, is_silent: bool
) -> Mapping[str, Trial] | int:
    """How each did, or the exit status where there was no sidecar to start them."""
    with Interrupts().taken():
        try:
            return await start_servers(servers, file.inputs, spawn, None if is_silent else screen)
        except ClientError as error:
            return report_failure(error)


def width(names: Mapping[str, object]) -> int:
    """The columns of the longest name."""
    return max(len(safe_line(name)) for name in names)


def _as_json(name: str, trial: Trial, file: UserFile) -> JsonObject:
    answer: JsonObject = {"name": name, "ok": trial.is_well, "durationMs": round(trial.secs * 1000), **trial.info}
    return {**answer, "fix": _advice(name, trial, file)} if not trial.is_well else answer


def _result_lines(
    name: str, entry: object, trial: Trial, columns: int, file: UserFile, screen: Screen
) -> Sequence[str]:
    style = screen.terminal.style
    subject = f"{safe_line(name):{columns}}"
    spent = wording.duration(trial.secs)
    match trial.status:
        case "ready":
            words = [
                wording.count(trial.tools, "tool"),
                spent,
                f"MCP {safe_line(str(trial.info.get('protocolVersion')))}",
                safe_line(trial.server),
            ]
            return [f"{style('ok  ', 'green')}  {subject}  {', '.join(word for word in words if word)}"]
        case "stopped":
            return [f"{style('off ', 'dim')}  {subject}  is disabled"]
    lines = [f"{style('fail', 'red')}  {subject}  {safe_line(trial.message)} ({spent})"]
    said = [f"      it said: {line}" for line in safe(trial.stderr_tail).splitlines()[-SHOWN_STDERR_LINES:]]
    lines += [*said, f"      next: {safe_line(_advice(name, trial, file))}"]
    if (
        isinstance(entry, dict)
        and trial.kind not in ("invalidConfiguration", "invalidParams")
        and shell_line(entry)
    ):
        lines.append(f"      its command: {safe_line(shell_line(entry))}")
    return lines


SHOWN_STDERR_LINES = 5
"""Of what a server wrote before it failed; --json has more. Own choice."""


def _advice(name: str, trial: Trial, file: UserFile) -> str:
    if trial.status == "needsAuth":
        return "sign in: agent-sidecar chat asks for it where the server is first used"
    match trial.kind:
        case "invalidConfiguration" if "${input:" in trial.message:
            return "run this on a terminal, where it can be asked for"
        case "invalidConfiguration" | "invalidParams":
            return f"mend its entry in {file.path}"
        case "mcpTimeout":
            return (
                f"raise startTimeoutSecs of mcpServers.{name}, or run its command by hand to see what it waits for"
            )
        case "io":
            return "see that it runs there, and that nothing between here and there stops you"
        case _:
            return "run its command by hand, and read what it says"
