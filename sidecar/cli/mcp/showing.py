"""`mcp list` and `mcp test`: what is configured, and how it does."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence

from sidecar_client import ClientError

from sidecar.cli import wording
from sidecar.cli.host import DONE, FAILED, Spawn, UsageError, report_failure, screen_on
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.mcp.entries import JsonObject, described, gist, shell_line, url_of
from sidecar.cli.mcp.sources import Source, in_use, inputs_of, sources_of
from sidecar.cli.mcp.starting import Trial, start_servers
from sidecar.cli.mcp.user_file import UserFile
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe, safe_line

COLOURS = {"ready": "green", "stopped": "dim", "needsAuth": "yellow", "failed": "red"}


async def list_servers(flags: argparse.Namespace, spawn: Spawn, file: UserFile) -> int:
    """Shows what is configured; with --status also how each is."""
    screen = screen_on(sys.stdout, sys.stdout)
    sources = sources_of(file, spawn.cwd)
    used = in_use(sources)
    trials: Mapping[str, Trial] = {}
    if flags.status and used:
        started = await _started(used, spawn, sources, screen, is_silent=flags.json)
        if isinstance(started, int):
            return started
        trials = started
    if flags.json:
        screen.line(json.dumps({"servers": list(_listed_as_json(sources, trials))}))
        return DONE
    if not any(source.servers for source in sources):
        screen.line(f"none in {file.path}; agent-sidecar mcp add or mcp import puts some there")
    for source in sources:
        if source.servers:
            why = f"  ({source.obstacle})" if source.obstacle else ""
            screen.line(screen.terminal.style(safe_line(str(source.file)) + why, "dim"))
        for name, entry in source.servers.items():
            trial = trials.get(name) if not source.obstacle and used[name] is entry else None
            screen.line(_listed(name, entry, trial, width(source.servers), screen))
    return DONE


def _listed_as_json(sources: Sequence[Source], trials: Mapping[str, Trial]) -> Iterator[JsonObject]:
    used = in_use(sources)
    for source in sources:
        for name, entry in source.servers.items():
            is_used = not source.obstacle and used[name] is entry
            known = {**described(name, entry), "file": str(source.file), "used": is_used}
            if is_used and name in trials:
                known |= {"status": trials[name].status, "toolCount": trials[name].tools}
            yield known


def _listed(name: str, entry: object, trial: Trial | None, columns: int, screen: Screen) -> str:
    words = [f"{safe_line(name):{columns}}"]
    if trial is not None:
        words.append(screen.terminal.style(f"{trial.status:9}", COLOURS.get(trial.status, "red")))
    elif isinstance(entry, dict) and entry.get("disabled") is True:
        words.append(screen.terminal.style("disabled", "dim"))
    return "  ".join([*words, safe_line(gist(entry))])


async def try_servers(flags: argparse.Namespace, spawn: Spawn, file: UserFile) -> int:
    """Starts servers and shows how each did; returns 1 when one is not ready."""
    sources = sources_of(file, spawn.cwd)
    chosen = _chosen(flags.names, in_use(sources), file)
    screen = screen_on(sys.stdout, sys.stdout)
    if not chosen:
        raise UsageError(
            f"there are no servers in {file.path}; agent-sidecar mcp add or mcp import puts some there"
        )
    trials = await _started(chosen, spawn, sources, screen, is_silent=flags.json)
    if isinstance(trials, int):
        return trials
    is_well = all(trial.is_well for trial in trials.values())
    if flags.json:
        servers = [_as_json(name, trial, sources) for name, trial in trials.items()]
        screen.line(json.dumps({"ok": is_well, "servers": servers}))
    else:
        for name, trial in trials.items():
            for line in _result_lines(name, chosen[name], trial, width(chosen), sources, screen):
                screen.line(line)
    return DONE if is_well else FAILED


def _chosen(names: Sequence[str], used: JsonObject, file: UserFile) -> JsonObject:
    for name in names:
        if name not in used:
            known = ", ".join(sorted(used)) or "none"
            raise UsageError(f"{file.path} has no server {name!r}; there are: {known}")
    return {name: entry for name, entry in used.items() if not names or name in names}


async def _started(
    servers: JsonObject, spawn: Spawn, sources: Sequence[Source], screen: Screen, *, is_silent: bool
) -> Mapping[str, Trial] | int:
    """How each did, or the exit status where there was no sidecar to start them."""
    with Interrupts().taken():
        try:
            return await start_servers(servers, inputs_of(sources), spawn, None if is_silent else screen)
        except ClientError as error:
            return report_failure(error)


def width(names: Mapping[str, object]) -> int:
    """The columns of the longest name."""
    return max(len(safe_line(name)) for name in names)


def _as_json(name: str, trial: Trial, sources: Sequence[Source]) -> JsonObject:
    answer: JsonObject = {"name": name, "ok": trial.is_well, "durationMs": round(trial.secs * 1000), **trial.info}
    return {**answer, "fix": _advice(name, trial, sources)} if not trial.is_well else answer


def _result_lines(
    name: str, entry: object, trial: Trial, columns: int, sources: Sequence[Source], screen: Screen
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
    lines += [*said, f"      next: {safe_line(_advice(name, trial, sources))}"]
    if (
        isinstance(entry, dict)
        and trial.kind not in ("invalidConfiguration", "invalidParams")
        and shell_line(entry)
    ):
        lines.append(f"      its command: {safe_line(shell_line(entry))}")
    return lines


SHOWN_STDERR_LINES = 5
"""Of what a server wrote before it failed; --json has more. Own choice."""


def _advice(name: str, trial: Trial, sources: Sequence[Source]) -> str:
    if trial.status == "needsAuth":
        return "sign in: agent-sidecar chat asks for it where the server is first used"
    match trial.kind:
        case "invalidConfiguration" if "${input:" in trial.message:
            return "run this on a terminal, where it can be asked for"
        case "invalidConfiguration" | "invalidParams":
            file = next(
                source.file for source in reversed(sources) if not source.obstacle and name in source.servers
            )
            return f"mend its entry in {file}"
        case "mcpTimeout":
            return (
                f"raise startTimeoutSecs of mcpServers.{name}, or run its command by hand to see what it waits for"
            )
        case _ if url_of(in_use(sources)[name]):
            return "see that it runs there, and that nothing between here and there stops you"
        case _:
            return "run its command by hand, and read what it says"
