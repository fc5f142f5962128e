"""All configured servers, side by side: none holds up another."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.client import Client
from sidecar.mcp.config import Server
from sidecar.mcp.duties import Offers
from sidecar.mcp.person_time import PersonTime
from sidecar.mcp.results import McpToolDefinition
from sidecar.mcp.supervised import (
    DEFAULT_RESTART,
    Authorize,
    CheckEntry,
    Listeners,
    Place,
    RestartPolicy,
    SupervisedServer,
)
from sidecar.mcp.verdicts import Verdicts
from sidecar.protocol.errors import ToolError
from sidecar.protocol.messages import ServerInfo
from sidecar.protocol.values import LogLevel

CLOSE_LIMIT_SECS = 2.0
"""How long `aclose` lets servers end by themselves. With what killing takes it stays under 3 s."""

logger = logging.getLogger("sidecar.mcp")


def _log_warning(server: str, warning: str) -> None:
    logger.warning("server %r: %s", server, warning)


async def _nobody_answers(input_id: str) -> str | None:
    """The default of `ask_input`."""
    return None


def _check_nothing(name: str, server: Server) -> None:
    """The default of `check`."""


def _authorize_nothing(name: str, server: Server, person_time: PersonTime) -> Authorization | None:
    """The default of `authorize`."""
    return None


class McpManager:
    """The servers of `mcpServers`, by name.

    `on_status` hears of every change of a server, `on_tools` of its tools: with its client as they come and
    change, with None when it has gone. `on_warning` hears, by server, what was mended or left out. None of these
    may raise or wait. `ask_input` asks a person for an `${input:id}`; an answer is kept. Relative paths in
    entries start at the first folder of `workspace`. `offers` is what is done for servers; `check` raises
    ConfigurationError for an entry that is not to be started. `verdicts` know what servers have turned out to be;
    `authorize` gives the right to use one.
    """

    def __init__(
        self,
        *,
        workspace: tuple[Path, ...] = (),
        on_status: Callable[[ServerInfo], None],
        on_tools: Callable[[str, Client | None, tuple[McpToolDefinition, ...]], None],
        on_warning: Callable[[str, str], None] = _log_warning,
        ask_input: Callable[[str], Awaitable[str | None]] = _nobody_answers,
        offers: Offers = Offers(),  # noqa: B008  it is frozen
        check: CheckEntry = _check_nothing,
        verdicts: Verdicts | None = None,
        authorize: Authorize = _authorize_nothing,
        environ: Mapping[str, str] | None = None,
        restart: RestartPolicy = DEFAULT_RESTART,
    ) -> None:
        self._listeners = Listeners(on_status=on_status, on_tools=on_tools, on_warning=on_warning)
        environ = dict(os.environ if environ is None else environ)
        self._place = Place(
            workspace=workspace,
            environ=environ,
            answers=self._answers,
            offers=offers,
            check=check,
            verdicts=verdicts or Verdicts(),
            authorize=authorize,
        )
        self._ask_input = ask_input
        self._restart = restart
        self._inputs: dict[str, str] = {}
        self._asking = asyncio.Lock()
        self._servers: dict[str, SupervisedServer] = {}
        self._is_closed = False

    def start(self, name: str, raw: Any, *, folder: Path | None = None) -> None:
        """Starts a server from its entry, in place of one of that name; returns at once.

        Whatever is wrong with the entry is reported as its status. Without a workspace relative paths start at
        `folder`, where the entry's file lies.
        """
        self._server(name).start(raw, folder)

    async def connect(self, name: str, raw: Any, *, folder: Path | None = None) -> ServerInfo:
        """Starts a server, and answers when it is ready, has failed or, being disabled, is stopped."""
        server = self._server(name)
        server.start(raw, folder)
        return await server.settled()

    def stop(self, name: str) -> None:
        """Stops a server; returns at once. Raises ToolError `notFound`."""
        self._known(name).stop()

    async def disconnect(self, name: str) -> ServerInfo:
        """Stops a server; `restart` brings it back. Raises ToolError `notFound`."""
        server = self._known(name)
        server.stop()
        return await server.settled()

    async def restart(self, name: str) -> ServerInfo:
        """Stops a server and starts it again from the same entry. Raises ToolError `notFound`."""
        server = self._known(name)
        server.restart()
        return await server.settled()

    def client(self, name: str) -> Client:
        """To ask a server something. Raises ToolError `notFound`, or `mcpNotInitialized` while it is not ready."""
        return self._known(name).client

    async def set_log_level(self, name: str, level: LogLevel) -> ServerInfo:
        """From which level on a server is to tell what it does, until we end. Raises ToolError as requests do."""
        return await self._known(name).set_log_level(level)

    async def watch_resources(self, name: str, uris: Collection[str]) -> ServerInfo:
        """Of which resources a server is to tell that they changed. Raises ToolError as requests do."""
        return await self._known(name).watch_resources(uris)

    def roots_changed(self) -> None:
        """Tells every server that it may see other folders."""
        for server in self._servers.values():
            server.roots_changed()

    def servers(self) -> tuple[ServerInfo, ...]:
        """All servers and how they are."""
        return tuple(server.info for server in self._servers.values())

    async def wait_started(self, timeout_secs: float) -> tuple[str, ...]:
        """Waits until no server is starting any more, at most so long; the names of those that still are."""
        waits = [
            asyncio.create_task(server.settled()) for server in self._servers.values() if not server.is_settled
        ]
        if waits:
            await asyncio.wait(waits, timeout=timeout_secs)
            for wait in waits:
                wait.cancel()
        return tuple(server.name for server in self._servers.values() if not server.is_settled)

    async def aclose(self) -> None:
        """Ends every server with all that it started, whatever they do, within 3 s."""
        self._is_closed = True
        await asyncio.gather(*(server.aclose(CLOSE_LIMIT_SECS) for server in self._servers.values()))

    def _server(self, name: str) -> SupervisedServer:
        self._refuse_after_close(name)
        if name not in self._servers:
            self._servers[name] = SupervisedServer(
                name, place=self._place, listeners=self._listeners, restart=self._restart
            )
        return self._servers[name]

    def _known(self, name: str) -> SupervisedServer:
        self._refuse_after_close(name)
        if name not in self._servers:
            known = ", ".join(sorted(self._servers)) or "none"
            raise ToolError("notFound", f"there is no MCP server {name!r}; known: {known}", server=name)
        return self._servers[name]

    def _refuse_after_close(self, name: str) -> None:
        if self._is_closed:
            raise ToolError(
                "mcpError", f"nothing is done with server {name!r} any more: we are stopping", server=name
            )

    async def _answers(self, input_ids: tuple[str, ...]) -> Mapping[str, str]:
        """What a person gave for these inputs, asked one after the other, each once; less what they declined."""
        for input_id in input_ids:
            if input_id in self._inputs:
                continue  # Whoever has its answers does not wait for a question about something else.
            async with self._asking:
                answer = self._inputs.get(input_id) or await self._ask_input(input_id)
                if answer is not None:
                    self._inputs[input_id] = answer
        return {input_id: self._inputs[input_id] for input_id in input_ids if input_id in self._inputs}
