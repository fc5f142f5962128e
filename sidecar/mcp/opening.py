"""How a conversation is opened with a server of whatever era.

A modern server answers `server/discover`, a legacy one refuses it and wants a handshake. Some legacy servers do
neither: they exit at a request that they do not know, or never answer it. What a server turned out to be is a
verdict (`verdicts.py`), with which the next start asks nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from attrs import evolve

from sidecar.mcp import legacy, modern
from sidecar.mcp.config import HttpServer, Server, path_of
from sidecar.mcp.connection import ServerRefusalError
from sidecar.mcp.life import Life
from sidecar.mcp.limits import within
from sidecar.mcp.modern import UnusableServerError
from sidecar.mcp.session import Session
from sidecar.mcp.transport import HttpStatusError, needs_authorization
from sidecar.mcp.verdicts import Verdict
from sidecar.protocol.errors import ToolError, ToolErrorKind
from sidecar.protocol.values import JsonObject

SILENCE_SECS = 0.5
"""After so long without an answer to `server/discover` the handshake is begun behind it.

Own choice. Most servers take longer than this to start, and nothing is lost by it: a server that finds both in
its pipe answers the first and refuses the second, or the other way round.
"""

_NO_VERDICT = (401, 403, 408, 429)
"""Statuses that say nothing of the era. Those from 500 on may: some servers break over what they do not know."""

_NO_SUCH_POST = (400, 404, 405)
"""What a server of the HTTP+SSE transport may answer to a POST where it expects a GET."""


class Opened(NamedTuple):
    """A server that is ready to be talked to."""

    life: Life
    session: Session

    @property
    def verdict(self) -> Verdict:
        """What to remember of the server."""
        if self.session.is_modern:
            return "modern"
        return "sse" if _is_sse(self.life.server) else "legacy"


class Opening:
    """One attempt to come into conversation with the server `name`.

    `begin` starts it; all that was started is ended again but for the one life that is returned. `known` is the
    verdict of an earlier time, `capabilities` what we declare in a revision. `paused_secs` is how long a
    person has been waited for, which does not count.
    """

    def __init__(
        self,
        name: str,
        server: Server,
        *,
        begin: Callable[[Server], Awaitable[Life]],
        capabilities: Callable[[str], JsonObject],
        known: Verdict | None = None,
        paused_secs: Callable[[], float],
    ) -> None:
        self._name = name
        self._server = server
        self._begin = begin
        self._capabilities = capabilities
        self._known: Verdict | None = "sse" if _is_sse(server) else known
        self.is_certain = True
        """Whether what was found out will hold: false after a failure that may have been one of the moment."""

        self._paused_secs = paused_secs
        self._lives: list[Life] = []
        self._tries: list[asyncio.Task[Opened | None]] = []

    async def open(self) -> Opened:
        """Starts the server and finds out how it wants to be talked to.

        Raises ConfigurationError where it cannot be started, ToolError `mcpTimeout` after its `startTimeoutSecs`,
        `mcpError` where it refuses, ends, or cannot be understood.
        """
        kept: Life | None = None
        try:
            opened = await self._within_limit(self._open())
            kept = opened.life
            return opened
        finally:
            await asyncio.gather(*(life.close() for life in self._lives if life is not kept))

    async def open_again(self, life: Life) -> Session:
        """A new session in the same life, for one that was lost. Raises as `open` does."""
        self._lives.append(life)
        return (await self._within_limit(self._open_again(life))).session

    async def _within_limit(self, opening: Coroutine[Any, Any, Opened]) -> Opened:
        limit_secs = self._server.start_timeout_secs
        try:
            opened = await within(limit_secs, opening, paused_secs=self._paused_secs)
            _take_up(opened)
            return opened
        except TimeoutError:
            raise self._late(limit_secs) from None
        except ServerRefusalError as refusal:
            raise self._error("mcpError", f"server {self._name!r} refused initialize: {refusal.message}") from None
        finally:
            for attempt in self._tries:
                attempt.cancel()
            await asyncio.gather(*self._tries, return_exceptions=True)

    # Ways in --------------------------------------------------------------------------------------------

    async def _open(self) -> Opened:
        if self._known == "sse" and isinstance(self._server, HttpServer):
            try:
                return await self._by_handshake(await self._start(evolve(self._server, type="sse")))
            except ToolError as error:
                if _is_sse(self._server) or needs_authorization(error):
                    raise
            self._known = None  # It has learned another transport since.
        life = await self._start(self._server)
        if self._known == "legacy":
            return await self._by_handshake(life)
        discovering = self._attempt(self._discovered(life))
        await asyncio.wait({discovering}, timeout=self._patience_secs())
        if not discovering.done():
            return await self._first_of(life, discovering)
        try:
            return await discovering or await self._by_handshake(life)
        except ToolError:
            if not life.is_over:
                raise
            return await self._anew()

    async def _open_again(self, life: Life) -> Opened:
        found = None if self._known == "legacy" else await self._discovered(life)
        if found is not None:
            return found
        try:
            return Opened(life, await self._initialized(life))
        except (HttpStatusError, ServerRefusalError):
            if self._known != "legacy" or (found := await self._discovered(life)) is None:
                raise
            return found

    async def _discovered(self, life: Life) -> Opened | None:
        """The way in for a modern server; None for another."""
        try:
            session = await modern.discover(
                life.connection, server=self._name, capabilities=self._capabilities(modern.PREFERRED_REVISION)
            )
        except HttpStatusError as error:
            if error.status in _NO_VERDICT:
                raise
            self.is_certain &= error.status < 500
            return None
        except UnusableServerError:
            raise
        except ToolError:
            # A process that answers something senseless does not know the question; HTTP may have lost the answer.
            if life.is_over or isinstance(life.server, HttpServer):
                raise
            return None
        return None if session is None else Opened(life, session)

    async def _by_handshake(self, life: Life) -> Opened:
        """The way in for a legacy server, and from there to the one for a server that is none after all."""
        try:
            return Opened(life, await self._initialized(life))
        except HttpStatusError as error:
            found = await self._discovered(life) if self._known == "legacy" else None
            if found is not None:
                return found
            if (
                error.status not in _NO_SUCH_POST
                or not isinstance(life.server, HttpServer)
                or _is_sse(life.server)
            ):
                raise
            return await self._over_sse(life.server, error)
        except ServerRefusalError as refusal:
            if self._known is None and refusal.code not in modern.ERRORS:
                raise
            found = await self._discovered(life)
            if found is None:
                raise
            return found

    async def _over_sse(self, server: HttpServer, refusal: HttpStatusError) -> Opened:
        """The way in for a server of 2024-11-05 over HTTP, which takes no POST at its own address."""
        try:
            life = await self._start(evolve(server, type="sse"))
            return Opened(life, await self._initialized(life))
        except ToolError as error:
            if needs_authorization(error):
                raise
            raise refusal from None  # It is the better known way that the user should hear of.

    async def _anew(self) -> Opened:
        """The way in for a server that did not take the question of what it is well."""
        return await self._by_handshake(await self._start(self._server))

    async def _first_of(self, life: Life, discovering: "asyncio.Task[Opened | None]") -> Opened:
        """Asks in both ways at once; after half of the time, or the death of the server, a second process too.

        The first to slow down may be one that still installs itself, so it is not given up for the other.
        """
        anew: asyncio.Task[Opened | None] | None = None
        waiting = {discovering, self._attempt(self._by_handshake(life))}
        now = asyncio.get_running_loop().time
        half = now() + self._server.start_timeout_secs / 2 - SILENCE_SECS
        while waiting:
            limit_secs = None if anew else max(0.0, half - now())
            done, waiting = await asyncio.wait(waiting, timeout=limit_secs, return_when=asyncio.FIRST_COMPLETED)
            for attempt in self._tries:  # In the order of preference.
                if attempt in done and attempt.exception() is None and (opened := attempt.result()) is not None:
                    return opened
            if anew is None and (life.is_over or not done):
                anew = self._attempt(self._anew())
                waiting.add(anew)
        opened = await self._tries[-1]
        assert opened is not None, "only the question what a server is can be left open"
        return opened

    # Parts ----------------------------------------------------------------------------------------------

    async def _start(self, server: Server) -> Life:
        life = await self._begin(server)
        self._lives.append(life)
        return life

    async def _initialized(self, life: Life) -> Session:
        capabilities = self._capabilities(legacy.OFFERED_REVISION)
        return await legacy.initialize(life.connection, server=self._name, capabilities=capabilities)

    def _attempt(self, opening: Coroutine[Any, Any, Opened | None]) -> "asyncio.Task[Opened | None]":
        attempt = asyncio.create_task(opening)
        self._tries.append(attempt)
        return attempt

    def _patience_secs(self) -> float | None:
        """How long to wait for what a server is. Silence over HTTP says nothing of the era."""
        if isinstance(self._server, HttpServer):
            return None
        return SILENCE_SECS if self._known is None else self._server.start_timeout_secs / 2

    def _late(self, limit_secs: float) -> ToolError:
        return self._error(
            "mcpTimeout",
            f"server {self._name!r} did not answer initialize within {limit_secs:g} s; "
            f"raise {path_of(self._name)}.startTimeoutSecs if it needs longer to start",
        )

    def _error(self, kind: ToolErrorKind, message: str) -> ToolError:
        if not self._lives:
            return ToolError(kind, message, server=self._name)
        return self._lives[-1].connection.error(kind, message)


def _take_up(opened: Opened) -> None:
    session, connection = opened.session, opened.life.connection
    connection.speaks(session.protocol_version, is_modern=session.is_modern)
    if not session.is_modern:
        connection.notify("notifications/initialized")


def _is_sse(server: Server) -> bool:
    return isinstance(server, HttpServer) and server.type == "sse"
