"""A client of one MCP server, from its start to its end."""

import asyncio
import functools
import logging
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from attrs import evolve

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import Server
from sidecar.mcp.connection import ServerRefusalError
from sidecar.mcp.conversation import PAGES_NEEDED, Conversation
from sidecar.mcp.duties import Duties
from sidecar.mcp.envelope import INVALID_PARAMS
from sidecar.mcp.life import Life, Start
from sidecar.mcp.modern import HEADER_MISMATCH
from sidecar.mcp.opening import Opened, Opening
from sidecar.mcp.progress import OnProgress
from sidecar.mcp.results import McpCallResult, McpToolDefinition, read_call_result
from sidecar.mcp.session import Session
from sidecar.mcp.subscription import keep_listening, wanted_of
from sidecar.mcp.tool_list import ToolList, has_headers
from sidecar.mcp.verdicts import Verdict, Verdicts
from sidecar.protocol.errors import SidecarError, ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

MAX_WARNED = 1000
"""Warnings remembered so that none is given twice."""

logger = logging.getLogger("sidecar.mcp")


def _nobody_asks() -> None:
    """The default of `on_new_session`."""


def _nobody_listens(tools: tuple[McpToolDefinition, ...]) -> None:
    """The default of `on_tools`."""


class Client:
    """One MCP server of whatever revision.

    `connect` starts the server; whoever called it must `close` in the end. After the server has died, every call
    raises ToolError `mcpError` until `connect` is called again. `on_tools` hears of new lists that the server
    announced, `on_warning` of what was left out or mended; `duties` do what the server asks of us, by default
    nothing. `verdicts` know what servers have turned out to be; `authorization` holds the right to use this one.

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
        verdicts: Verdicts | None = None,
        authorization: Authorization | None = None,
        on_tools: Callable[[tuple[McpToolDefinition, ...]], None] = _nobody_listens,
        on_warning: Callable[[str], None] | None = None,
        on_new_session: Callable[[], None] = _nobody_asks,
    ) -> None:
        self.name = name
        self.server = server
        self._duties = duties or Duties.none()
        self._start = Start(
            name=name,
            server=server,
            folder=folder or Path.cwd(),
            environ=os.environ if environ is None else environ,
            inputs=inputs,
            on_secrets=self._duties.hide,
            authorization=authorization,
        )
        self._verdicts = verdicts or Verdicts()
        self._on_warning = on_warning
        self._on_new_session = on_new_session
        self._warned: set[str] = set()
        self._lives: list[Life] = []
        self._conversation: Conversation | None = None
        self._tools = ToolList(name, on_tools=on_tools, warn=self._warn)
        self._listening: asyncio.Task[None] | None = None

    @property
    def session(self) -> Session:
        """What is settled with the server. Raises ToolError `mcpNotInitialized` before `connect`."""
        return self._talk().session

    @property
    def server_info(self) -> JsonObject | None:
        return self._conversation.session.server_info if self._conversation else None

    @property
    def protocol_version(self) -> str | None:
        return self._conversation.session.protocol_version if self._conversation else None

    @property
    def instructions(self) -> str | None:
        return self._conversation.session.instructions if self._conversation else None

    def calling(self, session_id: str | None, run_id: str | None) -> AbstractContextManager[None]:
        """Inside, what the server asks of a person is on behalf of this run."""
        return self._duties.callers.calling(session_id, run_id)

    @property
    def person_secs(self) -> float:
        """How long the server has waited for a person, in all."""
        return self._paused_secs()

    @property
    def pid(self) -> int | None:
        """The process of a server that runs, where it is one of ours."""
        if self._conversation is None or self._conversation.life.is_over:
            return None
        return self._conversation.life.transport.pid

    @property
    def failure(self) -> ToolError | None:
        """Why the server is of no use though it is there: it wants to know who we are."""
        return self._conversation.failure if self._conversation else None

    async def connect(self) -> None:
        """Starts the server and opens a conversation; nothing to do where there is one.

        Raises ConfigurationError where it cannot be started, ToolError `mcpError` or `mcpTimeout` where it does
        not come up.
        """
        if self._conversation is not None and not self._conversation.life.is_over:
            return
        await self.close()
        opening = self._opening(self.server, self._verdicts.get(self.server))
        try:
            opened = await opening.open()
        except SidecarError:
            self._verdicts.forget(self.server)
            raise
        if opening.is_certain:
            self._verdicts.remember(self.server, opened.verdict)
        self._conversation = Conversation(
            opened,
            server=self.name,
            duties=self._duties,
            reopen=self._reopen,
            on_renewed=self._renewed,
        )
        self._listen(self._conversation, {})

    async def tools(self) -> tuple[McpToolDefinition, ...]:
        """The server's tools, from memory where that is fresh."""
        return await self._tools.get(self._talk())

    async def refresh_tools(self) -> tuple[McpToolDefinition, ...]:
        """The server's tools, asked for now: none from a server that does not offer any."""
        return await self._tools.list(self._talk())

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
        conversation = self._talk()
        if "tools" not in conversation.session.capabilities:
            raise self.error("mcpError", f"server {self.name!r} offers no tools")
        params = {"name": name, "arguments": arguments}
        ask = self._asked_with_headers if has_headers(conversation) else conversation.request
        try:
            return read_call_result(
                await ask("tools/call", params, timeout_secs=timeout_secs, on_progress=on_progress)
            )
        except ServerRefusalError as refusal:
            raise self._refused(name, refusal) from None

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        timeout_secs: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> JsonObject:
        """The server's result, whatever its revision asks for on the way there.

        Raises ServerRefusalError where the server answers with an error, else ToolError as `call_tool` does.
        """
        return await self._talk().request(method, params, timeout_secs=timeout_secs, on_progress=on_progress)

    def say_with_requests(self, name: str, value: Any) -> None:
        """Has every request from now on say this of itself, in its `_meta`; where the revision knows of that."""
        conversation = self._talk()
        conversation.session = conversation.session.saying(name, value)

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        """Tells the server something. Raises ToolError `mcpNotInitialized` before `connect`."""
        self._talk().life.connection.notify(method, params)

    async def listen_to_resources(self, uris: Collection[str]) -> None:
        """Subscribes to changes of these resources, and of the lists as before; for a modern server."""
        conversation = self._talk()
        await self._stop_listening()
        self._listen(conversation, {"resourceSubscriptions": sorted(uris)} if uris else {})
        self._tools_changed()  # What has changed in between was not heard.

    async def wait_ended(self) -> str:
        """Returns once the server has ended: what became of it, as in `exited with status 1`."""
        return "was stopped" if not self._conversation else await self._conversation.life.connection.wait_ended()

    def error(self, kind: ToolErrorKind, message: str) -> ToolError:
        """A failure of this server, with its last words."""
        if self._conversation is None:
            return ToolError(kind, message, server=self.name)
        return self._conversation.life.connection.error(kind, message)

    async def close(self) -> None:
        """Ends the server and all that it started, within 3 s; what still waits fails at once."""
        await self._stop_listening()
        await self._tools.close()
        # All of them: where an opening was broken off, there may be more than the one in use.
        await asyncio.gather(*(life.close() for life in self._lives))
        self._conversation = None
        self._lives.clear()

    def kill(self) -> None:
        """Ends the server at once, for when there is no time for `close`."""
        for life in self._lives:
            life.transport.kill()

    # A life ---------------------------------------------------------------------------------------------

    async def _begin(self, server: Server) -> Life:
        life = await Life.begin(
            evolve(self._start, server=server),
            replies=self._duties.replies(),
            on_notification=self._notified,
            paused_secs=self._paused_secs,
        )
        self._lives.append(life)
        return life

    def _opening(self, server: Server, known: Verdict | None) -> Opening:
        return Opening(
            self.name,
            server,
            begin=self._begin,
            capabilities=self._duties.capabilities,
            known=known,
            paused_secs=self._paused_secs,
        )

    async def _reopen(self, opened: Opened) -> Session:
        return await self._opening(opened.life.server, opened.verdict).open_again(opened.life)

    def _renewed(self) -> None:
        """Another session: the server may have been replaced by one that has other tools, or is of another era."""
        if self._conversation is not None and self._listening is None:
            self._listen(self._conversation, {})
        self._tools_changed()
        self._on_new_session()

    async def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
            self._listening = None

    def _listen(self, conversation: Conversation, more: JsonObject) -> None:
        """Subscribes to changes where the server has to be asked for word of them."""
        if not conversation.session.is_modern:
            return
        wanted = wanted_of(conversation.session.capabilities) | more
        if wanted:
            self._listening = asyncio.create_task(
                keep_listening(
                    lambda heard: conversation.listen(wanted, heard), self._notified, on_gap=self._tools_changed
                )
            )

    def _paused_secs(self) -> float:
        return self._duties.person_time.secs

    def _talk(self) -> Conversation:
        if self._conversation is None:
            message = f"server {self.name!r} is not connected; connect it first"
            raise ToolError("mcpNotInitialized", message, server=self.name)
        return self._conversation

    async def _asked_with_headers(
        self, method: str, params: JsonObject, *, timeout_secs: float | None, on_progress: OnProgress | None
    ) -> JsonObject:
        """The result of a call, tried again where the tool wants other headers than when it was listed."""
        conversation = self._talk()
        ask = functools.partial(
            conversation.request, method, params, timeout_secs=timeout_secs, on_progress=on_progress
        )
        try:
            return await ask(headers=await self._tools.headers(conversation, params))
        except ServerRefusalError as refusal:
            if refusal.code != HEADER_MISMATCH:
                raise
        await self._tools.list(conversation)
        return await ask(headers=await self._tools.headers(conversation, params))

    # Telling --------------------------------------------------------------------------------------------

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
            # What a person did not go to is no reason to end a run.
            action="tellModel" if refusal.code == PAGES_NEEDED else None,
            serverError=answer,
        )

    def _notified(self, method: str, params: JsonObject) -> None:
        if method == "notifications/tools/list_changed":
            self._tools_changed()
        else:
            self._duties.notified(method, params)

    def _tools_changed(self) -> None:
        if self._conversation is not None:  # While it opens nothing is listed that could have changed.
            self._tools.changed(self._conversation)

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
