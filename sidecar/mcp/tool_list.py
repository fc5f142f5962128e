"""The tools of one server: listed, remembered while they are fresh, and listed again when they have changed."""

import asyncio
from collections.abc import Callable, Mapping

from sidecar.mcp.config import HttpServer
from sidecar.mcp.conversation import Conversation
from sidecar.mcp.header_params import HeaderParam, HeaderParamError, header_params, param_headers
from sidecar.mcp.listing import list_all
from sidecar.mcp.results import McpToolDefinition, Warn, read_tools
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

MAX_AGE_SECS = 300.0
"""After so long a list is asked for again where a server has no say in that. Own choice."""

LONGEST_AGE_SECS = 24 * 3600.0
"""The most that a server may ask for. Own choice."""

REFRESH_PAUSE_SECS = 0.1
"""Between two lists that a server's `list_changed` asked for; what comes in between asks for one more."""

Tools = tuple[McpToolDefinition, ...]


class ToolList:
    """The tools of the server `name`. `on_tools` hears of lists that the server has announced."""

    def __init__(self, name: str, *, on_tools: Callable[[Tools], None], warn: Warn) -> None:
        self._name = name
        self._on_tools = on_tools
        self._warn = warn
        self._tools: Tools | None = None
        self._mirrored: dict[str, tuple[HeaderParam, ...]] = {}
        self._stale_at = 0.0
        self._listing = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self._must_refresh = False

    async def get(self, conversation: Conversation) -> Tools:
        """The tools, from memory where that is fresh."""
        if self._tools is None or asyncio.get_running_loop().time() >= self._stale_at:
            return await self.list(conversation)
        return self._tools

    async def list(self, conversation: Conversation) -> Tools:
        """The tools, asked for now: none from a server that does not offer any."""
        if "tools" not in conversation.session.capabilities:
            return ()
        async with self._listing:
            session = conversation.session
            listed = await list_all(
                conversation.request,
                "tools/list",
                "tools",
                next_cursor=session.next_cursor,
                server=self._name,
                warn=self._warn,
            )
            tools = tuple(read_tools(listed.entries, self._warn))
            self._tools = self._usable(tools) if has_headers(conversation) else tools
            age_secs = session.age_limit_secs(listed.max_age_secs, unsaid_secs=MAX_AGE_SECS)
            self._stale_at = asyncio.get_running_loop().time() + min(age_secs, LONGEST_AGE_SECS)
            return self._tools

    async def headers(self, conversation: Conversation, call: JsonObject) -> Mapping[str, str]:
        """What of the params of a call goes into headers, where there are some."""
        if self._tools is None:
            await self.list(conversation)
        return param_headers(self._mirrored.get(call["name"], ()), call["arguments"])

    def changed(self, conversation: Conversation) -> None:
        """Lists the tools again, soon: one list runs, at most one waits."""
        self._stale_at = 0.0
        self._must_refresh = True
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.create_task(self._refresh(conversation))

    async def close(self) -> None:
        """Forgets everything."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing})
        self._tools = None
        self._mirrored = {}

    async def _refresh(self, conversation: Conversation) -> None:
        while self._must_refresh:
            self._must_refresh = False
            try:
                self._on_tools(await self.list(conversation))
            except ToolError as error:
                self._warn(f"its changed tools could not be listed: {error}")
                return
            await asyncio.sleep(REFRESH_PAUSE_SECS)

    def _usable(self, tools: Tools) -> Tools:
        """The tools less those that must not be called over HTTP; keeps what is to be mirrored of the others."""
        self._mirrored = {}
        for tool in tools:
            try:
                self._mirrored[tool.name] = header_params(tool.input_schema)
            except HeaderParamError as error:
                self._warn(f"tool {tool.name!r} is left out: {error}")
        return tuple(tool for tool in tools if tool.name in self._mirrored)


def has_headers(conversation: Conversation) -> bool:
    """Whether some parameters of tools travel as headers too."""
    return conversation.session.is_modern and isinstance(conversation.life.server, HttpServer)
