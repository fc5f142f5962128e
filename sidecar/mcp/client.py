"""A client of one MCP server, from its start to its end."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from sidecar.mcp.config import Server
from sidecar.mcp.connection import Connection, ServerRefusalError
from sidecar.mcp.duties import Duties
from sidecar.mcp.envelope import INVALID_PARAMS
from sidecar.mcp.legacy import OFFERED_REVISION, shake_hands
from sidecar.mcp.life import Life, Start
from sidecar.mcp.listing import list_all
from sidecar.mcp.progress import OnProgress
from sidecar.mcp.results import McpCallResult, McpToolDefinition, read_call_result, read_tools
from sidecar.mcp.session import Session
from sidecar.protocol.errors import ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

TOOLS_MAX_AGE_SECS = 300.0
"""After so long `tools` asks again, for servers that do not say when their tools change. Own choice."""

REFRESH_PAUSE_SECS = 0.1
"""Between two lists that a server's `list_changed` asked for; what comes in between asks for one more."""

MAX_WARNED = 1000
"""Warnings remembered so that none is given twice."""

logger = logging.getLogger("sidecar.mcp")


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
        server: Server,
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        inputs: tuple[str, ...] = (),
        duties: Duties | None = None,
        on_tools: Callable[[tuple[McpToolDefinition, ...]], None] = _nobody_listens,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.server = server
        self._start = Start(
            name=name,
            server=server,
            folder=folder or Path.cwd(),
            environ=os.environ if environ is None else environ,
            inputs=inputs,
        )
        self._duties = duties or Duties.none()
        self._on_tools = on_tools
        self._on_warning = on_warning
        self._warned: set[str] = set()
        self._life: Life | None = None
        self._session: Session | None = None
        self._tools: tuple[McpToolDefinition, ...] | None = None
        self._tools_listed_at = 0.0
        self._listing = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False

    @property
    def session(self) -> Session:
        """What is settled with the server. Raises ToolError `mcpNotInitialized` before `connect`."""
        if self._session is None:
            raise self._not_connected()
        return self._session

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
        if self._life is None or self._life.is_over:
            return None
        return self._life.transport.pid

    async def connect(self) -> None:
        """Starts the server and shakes hands; nothing to do where it runs already.

        Raises ConfigurationError where it cannot be started, ToolError `mcpError` or `mcpTimeout` where it does
        not come up.
        """
        if self._life is not None and not self._life.is_over:
            return
        await self.close()
        self._life = await Life.begin(self._start, replies=self._duties.replies(), on_notification=self._notified)
        try:
            self._session = await shake_hands(
                self._life.connection,
                server=self.name,
                timeout_secs=self._start.server.start_timeout_secs,
                capabilities=self._duties.capabilities(OFFERED_REVISION),
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
        session = self.session
        if "tools" not in session.capabilities:
            return ()
        async with self._listing:
            listed = await list_all(
                self.request,
                "tools/list",
                "tools",
                next_cursor=session.next_cursor,
                server=self.name,
                warn=self._warn,
            )
            self._tools = tuple(read_tools(listed.entries, self._warn))
            self._tools_listed_at = asyncio.get_running_loop().time()
            return self._tools

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        timeout_secs: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> JsonObject:
        """The server's result, whatever the revision asks for on the way there.

        Raises ServerRefusalError where the server answers with an error, else ToolError as `call_tool` does.
        """
        connection = self._connection()
        return await connection.request(method, params, timeout_secs=timeout_secs, on_progress=on_progress)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Tells the server something."""
        self._connection().notify(method, params)

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
        if "tools" not in self.session.capabilities:
            raise self.error("mcpError", f"server {self.name!r} offers no tools")
        params = {"name": name, "arguments": arguments}
        try:
            result = await self.request("tools/call", params, timeout_secs=timeout_secs, on_progress=on_progress)
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
            await self._life.close()
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})
        self._session = None
        self._tools = None

    def kill(self) -> None:
        """Ends the server at once, for when there is no time for `close`."""
        if self._life is not None:
            self._life.transport.kill()

    def _connection(self) -> Connection:
        if self._life is None or self._session is None:
            raise self._not_connected()
        return self._life.connection

    def _not_connected(self) -> ToolError:
        message = f"server {self.name!r} is not connected; connect it first"
        return ToolError("mcpNotInitialized", message, server=self.name)

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
        else:
            self._duties.notified(method, params)

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
