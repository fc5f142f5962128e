"""One configured server over its whole life: started, watched, restarted, stopped.

One task owns the server. Whoever wants something of it leaves an order; the newest order counts, and one life of
the server has ended before the next begins.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from attrs import evolve, frozen

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.client import Client
from sidecar.mcp.config import (
    Server,
    decode_server,
    expand_server,
    ignored_settings,
    path_of,
    texts_of,
)
from sidecar.mcp.duties import Duties, Offers
from sidecar.mcp.features import all_offers, offers, set_log_level, tell_roots_changed, watch_resources
from sidecar.mcp.limits import within
from sidecar.mcp.person_time import PersonTime
from sidecar.mcp.placeholders import Surroundings, input_ids
from sidecar.mcp.results import McpToolDefinition
from sidecar.mcp.transport import may_come, needs_authorization
from sidecar.mcp.verdicts import Verdicts
from sidecar.protocol.errors import SidecarError, ToolError
from sidecar.protocol.messages import ServerFailure, ServerInfo, ServerStatus
from sidecar.protocol.values import LogLevel

_LAST_WAIT_SECS = 0.25

logger = logging.getLogger("sidecar.mcp")


@frozen(kw_only=True, eq=False)
class RestartPolicy:
    """When a server that died is started again: at most `tries` times within `window_secs`.

    Each wait is twice the one before, less a random part of up to a half, so that servers which died together do
    not come back together. Own choice.
    """

    tries: int = 5
    window_secs: float = 300.0
    first_delay_secs: float = 0.5
    longest_delay_secs: float = 30.0

    def delay_secs(self, deaths: int) -> float:
        """How long to wait after the last of `deaths` deaths in the window."""
        longest = min(self.longest_delay_secs, self.first_delay_secs * 2.0 ** (deaths - 1))
        return longest * random.uniform(0.5, 1.0)


DEFAULT_RESTART = RestartPolicy()

CheckEntry = Callable[[str, Server], None]

Authorize = Callable[[str, Server, PersonTime], Authorization | None]
"""The right to use a server, where its entry asks for one; it counts the time in which a person signs in."""


@frozen(kw_only=True, eq=False)
class Listeners:
    """Who hears of servers. None of them may raise or wait."""

    on_status: Callable[[ServerInfo], None]
    on_tools: Callable[[str, Client | None, tuple[McpToolDefinition, ...]], None]
    on_warning: Callable[[str, str], None]


@frozen(kw_only=True, eq=False)
class Place:
    """What every server of one process shares: where it runs, who answers `${input:id}`, what is done for it.

    `check` raises ConfigurationError for what is wrong with an entry that MCP does not know of. `authorize` gives
    the right to use a server that wants to know who we are.
    """

    workspace: tuple[Path, ...]
    environ: Mapping[str, str]
    answers: Callable[[tuple[str, ...]], Awaitable[Mapping[str, str]]]
    offers: Offers
    check: CheckEntry
    verdicts: Verdicts
    authorize: Authorize


class _Order(NamedTuple):
    """What the server is to be: running from the entry `raw`, or stopped. `folder` is that of its file."""

    raw: Any
    folder: Path | None
    is_stop: bool = False


class SupervisedServer:
    """The server `name`. It does nothing until the first order, and ends with `aclose`."""

    def __init__(self, name: str, *, place: Place, listeners: Listeners, restart: RestartPolicy) -> None:
        self.name = name
        self.info = ServerInfo(name=name, status="stopped")
        self._place = place
        self._listeners = listeners
        self._restart = restart
        self._order: _Order | None = None
        self._ordered = asyncio.Event()
        self._settled = asyncio.Event()
        self._deaths: deque[float] = deque()
        self._client: Client | None = None
        self._authorization: Authorization | None = None
        self._duties = Duties(name, place.offers)
        self._has_tools = False
        self._watched: set[str] = set()
        self._watching = asyncio.Lock()
        self._wishing: set[asyncio.Task[None]] = set()
        self._life: asyncio.Task[None] | None = None
        self._owner = asyncio.create_task(self._own())

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    @property
    def client(self) -> Client:
        """To ask the server something. Raises ToolError `mcpNotInitialized` while it is not ready."""
        if self._client is None or self.info.status != "ready":
            message = f"server {self.name!r} is not ready ({self.info.status}); see mcp/list, or mcp/restart it"
            raise ToolError("mcpNotInitialized", message, server=self.name)
        return self._client

    def start(self, raw: Any, folder: Path | None) -> None:
        """Runs the server from the entry `raw`, in place of whatever ran before."""
        self._give(_Order(raw, folder))

    def restart(self) -> None:
        """Runs the server again from the entry it last had."""
        if self._order is not None:
            self._give(_Order(self._order.raw, self._order.folder))

    def stop(self) -> None:
        """Ends the server; its entry stays, for `restart`."""
        if self._order is not None:
            self._give(_Order(self._order.raw, self._order.folder, is_stop=True))

    async def settled(self) -> ServerInfo:
        """How the server is once the newest order was carried out: ready, stopped, or of no use as it is."""
        await self._settled.wait()
        return self.info

    async def set_log_level(self, level: LogLevel) -> ServerInfo:
        """From which level on the server is to tell what it does, now and after a restart."""
        await set_log_level(self.client, level)
        self._duties.log_level = level
        return self.info

    async def watch_resources(self, uris: Collection[str]) -> ServerInfo:
        """Of which resources the server is to tell that they changed, now and after a restart."""
        client = self.client
        async with self._watching:
            await watch_resources(client, uris, self._watched)
            self._duties.wanted_resources = frozenset(uris)
        return self.info

    def roots_changed(self) -> None:
        """Tells a server that runs that it may see other folders."""
        if self.info.status == "ready" and self._client is not None and self._place.offers.roots is not None:
            tell_roots_changed(self._client)

    async def aclose(self, limit_secs: float) -> None:
        """Ends the server, after `limit_secs` by force."""
        self._duties.close()
        self.stop()
        settling = asyncio.create_task(self._settled.wait())
        if not (await asyncio.wait({settling}, timeout=limit_secs))[0] and self._client is not None:
            logger.warning("server %r did not end in time and is killed", self.name)
            self._client.kill()
            await asyncio.wait({settling}, timeout=_LAST_WAIT_SECS)
        tasks = {task for task in (settling, self._life, self._owner) if task is not None}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_LAST_WAIT_SECS)
        self._settled.set()

    # The owner ------------------------------------------------------------------------------------------

    def _give(self, order: _Order) -> None:
        self._order = order
        self._deaths.clear()
        self._settled.clear()
        self._ordered.set()
        if self._life is not None:
            self._life.cancel()

    async def _own(self) -> None:
        while True:
            await self._ordered.wait()
            self._ordered.clear()
            assert self._order is not None, "word of an order comes with one"
            self._life = asyncio.create_task(self._live(self._order))
            await asyncio.wait({self._life})
            await self._end_client()  # Where one order followed another so fast that its end was not awaited.
            if not self._ordered.is_set():
                self._settled.set()

    async def _live(self, order: _Order) -> None:
        """Carries out one order, until it is done or another one cancels this."""
        try:
            if order.is_stop:
                self._publish("stopped")
            else:
                await self._start_and_watch(order)
        except SidecarError as error:
            self._publish("needsAuth" if needs_authorization(error) else "failed", error=_failure(error))
        except Exception:  # The owner: a mistake of ours must not leave a server without a status.
            logger.exception("server %r could not be looked after", self.name)
            self._publish(
                "failed", error=ServerFailure(kind="internalError", message="see the log for what broke")
            )

    async def _start_and_watch(self, order: _Order) -> None:
        server = decode_server(self.name, order.raw)
        self._place.check(self.name, server)
        for setting in ignored_settings(order.raw):
            self._warn(f"{path_of(self.name)}.{setting} is ignored; what runs unasked is said in `permissions`")
        if server.disabled:
            self._publish("stopped")
            return
        delay_secs: float | None = 0.0
        was_up = False
        while delay_secs is not None:
            await asyncio.sleep(delay_secs)
            try:
                delay_secs, was_up = await self._run(server, order.folder), True
            except SidecarError as error:
                if not (was_up or may_come(error)):
                    raise
                delay_secs = self._died(error)
            if not was_up:  # Nobody waits for a server that was never there.
                self._settled.set()

    async def _run(self, server: Server, folder: Path | None) -> float | None:
        """One process of the server. Raises SidecarError where it does not come up.

        Returns after its death: how many seconds to wait before the next, or None for no next.
        """
        self._publish("starting")
        expanded, inputs = await self._expanded(server)
        self._authorization = self._place.authorize(self.name, expanded, self._duties.person_time)
        self._client = client = self._new_client(expanded, folder, inputs)
        try:
            await client.connect()
            person_time = self._duties.person_time
            tools = within(
                server.start_timeout_secs, self._first_tools(client), paused_secs=lambda: person_time.secs
            )
            self._tools_listed(await tools)
            self._settled.set()
            ending = await client.wait_ended()
            return self._died(client.failure or client.error("mcpError", f"server {self.name!r} {ending}"))
        except TimeoutError:
            message = f"server {self.name!r} did not list its tools within {server.start_timeout_secs:g} s"
            raise client.error("mcpTimeout", f"{message}; raise {path_of(self.name)}.startTimeoutSecs") from None
        finally:
            self._tools_gone()
            await self._end_client()

    async def _first_tools(self, client: Client) -> tuple[McpToolDefinition, ...]:
        await self._keep_wishes(client)
        return await client.tools()

    def _session_renewed(self) -> None:
        if self._client is not None:
            task = asyncio.create_task(self._keep_wishes(self._client))
            self._wishing.add(task)
            task.add_done_callback(self._wishing.discard)

    async def _keep_wishes(self, client: Client) -> None:
        """Asks a server that has begun anew for what the host wanted of the one before."""
        try:
            if self._duties.log_level is not None and offers(client, "logging"):
                await set_log_level(client, self._duties.log_level)
            async with self._watching:
                self._watched.clear()
                if self._duties.wanted_resources:
                    await watch_resources(client, self._duties.wanted_resources, self._watched)
        except ToolError as error:
            self._warn(error.message)

    def _died(self, death: SidecarError) -> float | None:
        """Reports a death, and says how long to wait before the next try; None where there have been too many."""
        if needs_authorization(death):
            self._publish("needsAuth", error=_failure(death))
            return None
        now = asyncio.get_running_loop().time()
        self._deaths.append(now)
        while self._deaths[0] < now - self._restart.window_secs:
            self._deaths.popleft()
        deaths = len(self._deaths)
        if deaths > self._restart.tries:
            delay_secs, outlook = None, f"after {deaths} ends in a short time it stays down until it is restarted"
        else:
            self._settled.clear()
            delay_secs = self._restart.delay_secs(deaths)
            outlook = f"it is started again in {delay_secs:.1f} s"
        failure = _failure(death)
        self._publish("failed", error=evolve(failure, message=f"{failure.message}; {outlook}"))
        return delay_secs

    async def _expanded(self, server: Server) -> tuple[Server, tuple[str, ...]]:
        """The entry without placeholders, and what a person gave for them."""
        place = self._place
        answers = await place.answers(input_ids(texts_of(server)))
        surroundings = Surroundings(
            workspace=str(place.workspace[0]) if place.workspace else None,
            home=place.environ.get("HOME") or place.environ.get("USERPROFILE"),
            environ=place.environ,
            inputs=answers,
        )
        return expand_server(server, surroundings, path=path_of(self.name)), tuple(answers.values())

    async def _end_client(self) -> None:
        for task in self._wishing:
            task.cancel()
        await asyncio.gather(*self._wishing, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
        if self._authorization is not None:
            authorization, self._authorization = self._authorization, None
            await authorization.aclose()

    def _new_client(self, server: Server, folder: Path | None, inputs: tuple[str, ...]) -> Client:
        place = self._place
        return Client(
            self.name,
            server,
            folder=place.workspace[0] if place.workspace else folder,
            environ=place.environ,
            inputs=inputs,
            duties=self._duties,
            verdicts=place.verdicts,
            authorization=self._authorization,
            on_tools=self._tools_listed,
            on_warning=self._warn,
            on_new_session=self._session_renewed,
        )

    # Telling --------------------------------------------------------------------------------------------

    def _tools_listed(self, tools: tuple[McpToolDefinition, ...]) -> None:
        client = self._client
        assert client is not None, "tools come from a client"
        self._has_tools = True
        self._listeners.on_tools(self.name, client, tools)
        self._publish(
            "ready",
            protocol_version=client.protocol_version,
            server_info=client.server_info,
            offers=all_offers(client),
            tool_count=len(tools),
            pid=client.pid,
        )

    def _tools_gone(self) -> None:
        if self._has_tools:
            self._has_tools = False
            self._listeners.on_tools(self.name, None, ())

    def _publish(self, status: ServerStatus, **details: Any) -> None:
        info = ServerInfo(name=self.name, status=status, **details)
        if info != self.info:
            self.info = info
            self._listeners.on_status(info)

    def _warn(self, warning: str) -> None:
        self._listeners.on_warning(self.name, warning)


def _failure(error: SidecarError) -> ServerFailure:
    return ServerFailure(kind=error.kind, message=error.message, stderr_tail=error.data.get("stderrTail"))
