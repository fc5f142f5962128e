"""`agent-sidecar doctor`: what is configured, what is missing, what to do; one line each."""

import argparse
import asyncio
import difflib
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sidecar_client import CannotStart, ClientError, Sidecar

from sidecar.cli import checks, wording
from sidecar.cli.checks import Check
from sidecar.cli.host import DONE, FAILED, Spawn, screen_on
from sidecar.cli.interrupts import Interrupts
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe_line
from sidecar.cli.trust import trust_file
from sidecar.config_files.trust import TrustBook

JsonObject = dict[str, Any]

SERVERS_LIMIT_SECS = 60.0
"""For every MCP server to be ready or to have failed. Own choice: a first `npx` downloads for a while."""

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns 1 when something failed."""
    return asyncio.run(_doctor(flags, spawn))


async def _doctor(flags: argparse.Namespace, spawn: Spawn) -> int:
    screen = screen_on(sys.stdout, sys.stdout)
    found: list[Check] = []
    with Interrupts().taken():
        async for check in _all_checks(flags, spawn):
            found.append(check)
            if not flags.json:
                screen.line(_line(check, screen))
    failed = any(check.status == "fail" for check in found)
    if flags.json:
        screen.line(json.dumps({"ok": not failed, "checks": [asdict(check) for check in found]}))
    return FAILED if failed else DONE


async def _all_checks(flags: argparse.Namespace, spawn: Spawn) -> AsyncIterator[Check]:
    for check in checks.versions():
        yield check
    file = Path(flags.config) if flags.config else checks.user_configuration()
    of_file, config = checks.configuration(file, is_given=flags.config is not None)
    for check in (*of_file, *checks.variables(config, os.environ), *checks.folders()):
        yield check
    for check in checks.workspace(Path(spawn.cwd or "."), TrustBook(trust_file())):
        yield check
    async for check in _checks_of_sidecar(spawn):
        yield check


def _line(check: Check, screen: Screen) -> str:
    status = screen.terminal.style(f"{check.status:4}", COLOURS[check.status])
    fix = f"; {safe_line(check.fix)}" if check.fix else ""
    return f"{status}  {check.subject:13}  {safe_line(check.message)}{fix}"


# The sidecar itself -------------------------------------------------------------------------------------


@dataclass
class _Statuses:
    """When each MCP server got ready or failed, in seconds since the start."""

    started: float = field(default_factory=time.monotonic)
    settled: dict[str, float] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, method: str, params: JsonObject) -> None:
        if method == "mcp/statusChanged" and params.get("status") != "starting":
            self.settled.setdefault(str(params.get("name")), time.monotonic() - self.started)
        self.changed.set()


async def _checks_of_sidecar(spawn: Spawn) -> AsyncIterator[Check]:
    statuses = _Statuses()
    sidecar = Sidecar(spawn.options, command=spawn.command, cwd=spawn.cwd, on_notification=statuses.take)
    try:
        async with sidecar:
            spent = wording.duration(time.monotonic() - statuses.started)
            yield Check(status="ok", subject="sidecar", message=f"started in {spent}")
            for check in await _model_checks(sidecar):
                yield check
            for server in await _settled_servers(sidecar, statuses):
                yield _server_check(server, statuses.settled.get(server["name"]))
    except CannotStart as error:
        yield Check(status="fail", subject="sidecar", message=str(error), fix="install agent-sidecar again")
    except ClientError as error:
        yield Check(status="fail", subject="sidecar", message=str(error))


async def _model_checks(sidecar: Sidecar) -> list[Check]:
    chosen = next(iter(sidecar.server.get("models") or ()), None)
    listed = [str(entry["model"]) for entry in (await sidecar.request("models/list", {"limit": 1000}))["models"]]
    if chosen is None:
        return [_no_model(listed)]
    provider = chosen.partition("/")[0]
    offered = [model for model in listed if model.startswith(f"{provider}/")]
    if chosen in offered:
        return [Check(status="ok", subject="model", message=f"{chosen} is offered by its endpoint")]
    if not offered:
        message = f"{chosen}: the endpoint of provider {provider!r} lists no models"
        fix = "see that it runs, and that its address and key are right"
        return [Check(status="fail", subject="model", message=message, fix=fix)]
    return [_not_offered(chosen, offered)]


def _no_model(listed: list[str]) -> Check:
    example = listed[0] if listed else "ollama/qwen3"
    found = f"; within reach: {', '.join(listed[:5])}" if listed else " and none is within reach"
    fix = f"set OPENAI_API_KEY or ANTHROPIC_API_KEY, or `model` in the configuration, or say --model {example}"
    return Check(status="fail", subject="model", message=f"none is chosen{found}", fix=fix)


def _not_offered(chosen: str, offered: list[str]) -> Check:
    near = difflib.get_close_matches(chosen, offered, n=3, cutoff=0.4) or offered[:3]
    message = f"{chosen} is not among the {wording.count(len(offered), 'model')} of its endpoint"
    return Check(status="warn", subject="model", message=message, fix=f"did you mean {', '.join(near)}?")


async def _settled_servers(sidecar: Sidecar, statuses: _Statuses) -> list[JsonObject]:
    """The MCP servers, once none is starting any more or the limit is over."""
    deadline = time.monotonic() + SERVERS_LIMIT_SECS
    while True:
        statuses.changed.clear()
        servers: list[JsonObject] = (await sidecar.request("mcp/list"))["servers"]
        left_secs = deadline - time.monotonic()
        if left_secs <= 0 or not any(server["status"] == "starting" for server in servers):
            return servers
        try:
            async with asyncio.timeout(left_secs):
                await statuses.changed.wait()
        except TimeoutError:
            continue


def _server_check(server: JsonObject, settled_secs: float | None) -> Check:
    subject, name = "mcp server", server["name"]
    spent = f" after {wording.duration(settled_secs)}" if settled_secs is not None else ""
    match server["status"]:
        case "ready":
            tools = wording.count(server.get("toolCount", 0), "tool")
            return Check(status="ok", subject=subject, message=f"{name}: {tools}{spent}")
        case "stopped":
            return Check(status="ok", subject=subject, message=f"{name}: disabled")
        case "starting":
            fix = "raise its startTimeoutSecs, or run its command by hand to see what it waits for"
            return Check(status="fail", subject=subject, message=f"{name}: still starting{spent}", fix=fix)
        case _:
            error = server.get("error") or {}
            said = str(error.get("stderrTail") or "").strip().rpartition("\n")[2]
            message = f"{name}: {error.get('message', server['status'])}" + (f" (it said: {said})" if said else "")
            return Check(
                status="fail", subject=subject, message=message, fix=f"agent-sidecar mcp test {name} says more"
            )
