"""Starting servers for a look at them: in a sidecar of their own, spawned as an editor spawns it."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sidecar_client import RequestFailed, Sidecar

from sidecar.cli.host import Spawn
from sidecar.cli.person import Person
from sidecar.cli.render import RunView
from sidecar.cli.screen import Screen

JsonObject = dict[str, Any]

LONGEST_START_SECS = 900.0
"""The last resort. The sidecar ends each start at the server's own limit, and each question at its deadline."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """How a start went. `info` is the server as in `mcp/list`."""

    info: JsonObject
    secs: float

    @property
    def status(self) -> str:
        return str(self.info.get("status", "failed"))

    @property
    def is_well(self) -> bool:
        """It is ready, or is not meant to be."""
        return self.status in ("ready", "stopped")

    @property
    def tools(self) -> int:
        return int(self.info.get("toolCount", 0))

    @property
    def server(self) -> str:
        """What the server calls itself."""
        said = self.info.get("serverInfo")
        return f"{said.get('name', '')} {said.get('version', '')}".strip() if isinstance(said, dict) else ""

    @property
    def message(self) -> str:
        return str(self._error.get("message", self.status))

    @property
    def kind(self) -> str:
        return str(self._error.get("kind", ""))

    @property
    def stderr_tail(self) -> str:
        return str(self._error.get("stderrTail") or "")

    @property
    def _error(self) -> JsonObject:
        error = self.info.get("error")
        return error if isinstance(error, dict) else {}


async def start_servers(
    servers: Mapping[str, Any], inputs: Sequence[JsonObject], spawn: Spawn, screen: Screen | None
) -> dict[str, Trial]:
    """Starts these servers side by side and nothing else; how each did. Raises ClientError.

    What they want to know is asked at the terminal, where there is a `screen` for it.
    """
    person = Person(RunView(screen)) if screen is not None else None
    asks = person is not None and person.is_there
    sidecar = Sidecar(
        {"inputs": list(inputs), "builtinTools": False, "trustWorkspace": False},
        # The last --config counts: one that says nothing, so that no other server is started.
        command=(*spawn.command, "--config", os.devnull),
        cwd=spawn.cwd,
        on_input=person.give_input if person is not None and asks else None,
    )
    async with sidecar:
        trials = await asyncio.gather(*(_start(sidecar, name, entry) for name, entry in servers.items()))
    return dict(zip(servers, trials, strict=True))


async def _start(sidecar: Sidecar, name: str, entry: Any) -> Trial:
    started = time.monotonic()
    try:
        info: JsonObject = await sidecar.request(
            "mcp/connect", {"name": name, "config": entry}, limit_secs=LONGEST_START_SECS
        )
    except RequestFailed as error:
        info = {"name": name, "status": "failed", "error": {"kind": error.kind, "message": str(error)}}
    return Trial(info=info, secs=time.monotonic() - started)
