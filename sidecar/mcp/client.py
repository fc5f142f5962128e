"""A client of one MCP server, from its start to its end."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from sidecar.mcp.config import StdioServer, path_of, plan_launch
from sidecar.mcp.connection import Connection, ServerRefusalError
from sidecar.mcp.envelope import INVALID_PARAMS
from sidecar.mcp.legacy import Session, shake_hands
from sidecar.mcp.listing import list_tools
from sidecar.mcp.process import ServerProcess
from sidecar.mcp.progress import OnProgress
from sidecar.mcp.results import McpCallResult, McpToolDefinition, read_call_result
from sidecar.mcp.tail import Tail
from sidecar.protocol.errors import ConfigurationError, ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

TOOLS_MAX_AGE_SECS = 300.0
"""After so long `tools` asks again, for servers that do not say when their tools change. Own choice."""

REFRESH_PAUSE_SECS = 0.1
"""Between two lists that a server's `list_changed` asked for; what comes in between asks for one more."""

MAX_WARNED = 1000
"""Warnings remembered so that none is given twice."""

logger = logging.getLogger("sidecar.mcp")


class _Life(NamedTuple):
    """What exists between `connect` and the server's end."""

    process: ServerProcess
    connection: Connection
    reading: "asyncio.Task[None]"


def _nobody_listens(tools: tuple[McpToolDefinition, ...]) -> None:
    """The default of `on_tools`."""


class Client:
    """Tools of one MCP server.

    `connect` starts the server; whoever called it must `close` in the end. After the server has died, every call
    raises ToolError `mcpError` until `connect` is called again. `on_tools` hears of new lists that the server
    announced, `on_warning` of what was left out or mended.

    Relative paths in `server` start at `folder`, by default the current one. Placeholders in it are not expanded.
    """

    def __init__(
        self,
        name: str,
        server: StdioServer,
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        inputs: tuple[str, ...] = (),
        on_tools: Callable[[tuple[McpToolDefinition, ...]], None] = _nobody_listens,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.server = server
        self._folder = folder
        self._environ = os.environ if environ is None else environ
        self._inputs = inputs
        self._on_tools = on_tools
        self._on_warning = on_warning
        self._warned: set[str] = set()
        self._life: _Life | None = None
        self._session: Session | None = None
        self._tools: tuple[McpToolDefinition, ...] | None = None
        self._tools_listed_at = 0.0
        self._listing = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False

    @property
    def server_info(self) -> JsonObject | None:
        return self._session.server_info if self._session else None

    @property
    def protocol_version(self) -> str | None:
        return self._session.protocol_version if self._session else None

    @property
    def instructions(self) -> str | None:
        return self._session.instructions if self._session else None

    @property
    def pid(self) -> int | None:
        """The process of a server that runs."""
        if self._life is None or self._life.connection.ending is not None:
            return None
        return self._life.process.pid

    async def connect(self) -> None:
        """Starts the server and shakes hands; nothing to do where it runs already.

        Raises ConfigurationError where it cannot be started, ToolError `mcpError` or `mcpTimeout` where it does
        not come up.
        """
        if self._life is not None and self._life.connection.ending is None:
            return
        await self.close()
        self._life = await self._start()
        try:
            self._session = await shake_hands(
                self._life.connection, server=self.name, timeout_secs=self.server.start_timeout_secs
            )
        except BaseException:
            await self.close()
            raise

    async def tools(self) -> tuple[McpToolDefinition, ...]:
        """The server's tools, from memory where that is fresh."""
        age_secs = asyncio.get_running_loop().time() - self._tools_listed_at
        if self._tools is None or age_secs > TOOLS_MAX_AGE_SECS:
            return await self.refresh_tools()
        return self._tools

    async def refresh_tools(self) -> tuple[McpToolDefinition, ...]:
        """The server's tools, asked for now: none from a server that does not offer any."""
        connection, session = self._connected()
        if "tools" not in session.capabilities:
            return ()
        async with self._listing:
            self._tools = await list_tools(connection, server=self.name, warn=self._warn)
            self._tools_listed_at = asyncio.get_running_loop().time()
            return self._tools

    async def call_tool(
        self,
        name: str,
        arguments: JsonObject,
        *,
        timeout_secs: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> McpCallResult:
        """Runs a tool. Its own failures are results, with `is_error`.

        Raises ToolError: `mcpTimeout` (default limit: the server's `timeoutSecs`; progress does not extend it),
        `mcpError` where the server dies or breaks the protocol, `mcpNotInitialized` before `connect`,
        `invalidArguments` where the server says so. A cancelled call is cancelled at the server too.
        """
        connection, session = self._connected()
        if "tools" not in session.capabilities:
            raise connection.error("mcpError", f"server {self.name!r} offers no tools")
        params = {"name": name, "arguments": arguments}
        try:
            result = await connection.request(
                "tools/call", params, timeout_secs=timeout_secs, on_progress=on_progress
            )
        except ServerRefusalError as refusal:
            raise self._refused(name, refusal) from None
        return read_call_result(result)

    async def wait_ended(self) -> str:
        """Returns once the server has ended: what became of it, as in `exited with status 1`."""
        return "was stopped" if self._life is None else await self._life.connection.wait_ended()

    def error(self, kind: ToolErrorKind, message: str) -> ToolError:
        """A failure of this server, with its last words."""
        if self._life is None:
            return ToolError(kind, message, server=self.name)
        return self._life.connection.error(kind, message)

    async def close(self) -> None:
        """Ends the server and all that it started, within 3 s; what still waits fails at once."""
        if self._life is not None:
            self._life.connection.end("was stopped")
            await self._life.process.close()
            await asyncio.wait({self._life.reading})
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})
        self._session = None
        self._tools = None

    def kill(self) -> None:
        """Ends the server at once, for when there is no time for `close`."""
        if self._life is not None:
            self._life.process.kill()

    async def _start(self) -> _Life:
        path = path_of(self.name)
        launch = plan_launch(
            self.server, path=path, environ=self._environ, folder=self._folder or Path.cwd(), inputs=self._inputs
        )
        tail = Tail(launch.secrets)
        try:
            process = await ServerProcess.start(launch, tail)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            message = f"{path}.command: {self.server.command!r} cannot be started: {reason}"
            raise ConfigurationError(message, path=f"{path}.command") from None
        connection = Connection(
            process,
            server=self.name,
            timeout_secs=self.server.timeout_secs,
            tail=tail,
            replies={},
            on_notification=self._notified,
        )
        reading = asyncio.create_task(_read_to_the_end(connection, process))
        return _Life(process, connection, reading)

    def _connected(self) -> tuple[Connection, Session]:
        if self._life is None or self._session is None:
            raise ToolError(
                "mcpNotInitialized", f"server {self.name!r} is not connected; connect it first", server=self.name
            )
        return self._life.connection, self._session

    def _refused(self, tool: str, refusal: ServerRefusalError) -> ToolError:
        kind: ToolErrorKind = "invalidArguments" if refusal.code == INVALID_PARAMS else "mcpError"
        answer = {
            key: value for key, value in (("code", refusal.code), ("data", refusal.data)) if value is not None
        }
        return ToolError(
            kind,
            f"server {self.name!r} refused {tool!r}: {refusal.message}",
            tool=tool,
            server=self.name,
            serverError=answer,
        )

    def _notified(self, method: str, params: JsonObject) -> None:
        if method == "notifications/tools/list_changed" and self._session is not None:
            self._must_refresh = True
            if self._refreshing is None or self._refreshing.done():
                self._refreshing = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        """Lists the tools again as long as there was a change since; one list runs, at most one waits."""
        while self._must_refresh:
            self._must_refresh = False
            try:
                self._on_tools(await self.refresh_tools())
            except ToolError as error:
                self._warn(f"its changed tools could not be listed: {error}")
                return
            await asyncio.sleep(REFRESH_PAUSE_SECS)

    def _warn(self, warning: str) -> None:
        if warning in self._warned:
            return
        if len(self._warned) == MAX_WARNED:
            self._warned.clear()
        self._warned.add(warning)
        if self._on_warning is None:
            logger.warning("server %r: %s", self.name, warning)
        else:
            self._on_warning(warning)


async def _read_to_the_end(connection: Connection, process: ServerProcess) -> None:
    try:
        await connection.read()
    finally:
        # Also a server that died by itself may have left something running.
        await process.close()
