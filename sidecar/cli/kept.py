"""Looking into the store from the command line: a sidecar that starts no servers, and sessions by short ids."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from sidecar_client import Sidecar

from sidecar.cli import checks
from sidecar.cli.host import Spawn, UsageError
from sidecar.cli.terminal import safe_line

JsonObject = dict[str, Any]

PAGE = 1000

SHORT_ID_CHARACTERS = 12
"""What lists show of an id: enough to be the only one among thousands. Own choice."""


@asynccontextmanager
async def store_keeper(spawn: Spawn, config: str | None) -> AsyncIterator[Sidecar]:
    """A sidecar that is asked for what is kept, and for nothing else. Raises ClientError."""
    file = Path(config) if config is not None else checks.user_configuration()
    _, configured = checks.configuration(file, is_given=config is not None)
    servers = configured.get("mcpServers")
    idle = {name: {"disabled": True} for name in servers} if isinstance(servers, dict) else {}
    calm = replace(spawn, options={**spawn.options, "mcpServers": idle})
    async with Sidecar(calm.options, command=calm.command, cwd=calm.cwd) as sidecar:
        yield sidecar


async def find_session(sidecar: Sidecar, named: str) -> str:
    """The whole id of the one session whose id begins so. Raises UsageError."""
    found = [entry["sessionId"] async for entry in all_sessions(sidecar) if entry["sessionId"].startswith(named)]
    if named in found:
        return named
    if len(found) != 1:
        how_many = "no session" if not found else f"{len(found)} sessions"
        raise UsageError(f"there is {how_many} whose id begins with {named!r}; see `agent-sidecar sessions`")
    return str(found[0])


async def all_sessions(sidecar: Sidecar) -> AsyncIterator[JsonObject]:
    """Every session, the last touched first."""
    cursor: JsonObject = {}
    while True:
        answer = await sidecar.request("session/list", {"limit": PAGE, **cursor})
        for entry in answer["sessions"]:
            yield entry
        if "nextCursor" not in answer:
            return
        cursor = {"cursor": answer["nextCursor"]}


def short_id(session_id: str) -> str:
    """What lists show of an id."""
    return safe_line(session_id)[:SHORT_ID_CHARACTERS]


def moment(time_ms: int) -> str:
    """A time as people here write it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1000))
