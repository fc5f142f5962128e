"""Requests to a server, each with all that its revision asks for on the way to a result.

That is: what a stateless request says of itself, rounds of input, pages that a person has to visit first, and
another session where the server has forgotten the one there was.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from sidecar.mcp.connection import ReplyRefusal, ServerRefusalError
from sidecar.mcp.duties import USER_REJECTED, Duties
from sidecar.mcp.modern import UNSUPPORTED_VERSION
from sidecar.mcp.opening import Opened
from sidecar.mcp.pending import Heard
from sidecar.mcp.progress import OnProgress
from sidecar.mcp.session import COMPLETE, Session, object_or_none
from sidecar.mcp.transport import SessionLostError, needs_authorization
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject

MAX_ROUNDS = 10
"""So often one request may be answered with questions. Own choice, that of the official SDKs."""

FIRST_PAUSE_SECS = 0.05
LONGEST_PAUSE_SECS = 0.25
"""Before a request is sent again for which the server wanted nothing but that. Own choice."""

PAGES_NEEDED = -32042
"""The error of 2025-11-25 for a request that needs a person to visit some pages first."""


class _Request(NamedTuple):
    """What a request is, whatever it is sent with; `send` sends it once."""

    method: str
    params: JsonObject
    send: Callable[[str, JsonObject], Awaitable[JsonObject]]


class Conversation:
    """What is said to one server in one life. `reopen` gives another session for one that was lost.

    `on_renewed` hears of that, for a server that has forgotten a session may have changed altogether.
    """

    def __init__(
        self,
        opened: Opened,
        *,
        server: str,
        duties: Duties,
        reopen: Callable[[Opened], Awaitable[Session]],
        on_renewed: Callable[[], None],
    ) -> None:
        self.life = opened.life
        self.session = opened.session
        self.failure: ToolError | None = None
        self._server = server
        self._duties = duties
        self._reopen = reopen
        self._on_renewed = on_renewed
        self._is_lost = False
        self._renewing = asyncio.Lock()

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        timeout_secs: float | None = None,
        on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """The server's result. `timeout_secs` is for each time that the request is sent.

        Raises as Connection does, and ToolError `mcpError` for a result that makes no sense in its revision. A
        server that wants to know who we are, with nobody there to tell it, ends the life; see `failure`.
        """
        connection = self.life.connection
        send = partial(connection.request, timeout_secs=timeout_secs, on_progress=on_progress, headers=headers)
        request = _Request(method, params, send)
        session = self.session
        if not self._is_lost:
            try:
                return await self._result(session, request)
            except SessionLostError:
                pass
            except ServerRefusalError as refusal:
                if not session.is_modern or refusal.code != UNSUPPORTED_VERSION:
                    raise
            except ToolError as error:
                self._note(error)
                raise
        return await self._result(await self._renewed(session), request)

    async def listen(self, wanted: JsonObject, heard: Heard) -> None:
        """Subscribes to what is `wanted` of a modern server (MCP 2026-07-28, subscriptions), until that ends.

        Returns where the server has ended it, and raises where it broke off.
        """
        params = self.session.stamped({"notifications": wanted})
        try:
            await self.life.connection.request("subscriptions/listen", params, timeout_secs=math.inf, heard=heard)
        except ToolError as error:
            self._note(error)
            raise

    # A result -------------------------------------------------------------------------------------------

    async def _result(self, session: Session, request: _Request) -> JsonObject:
        try:
            result = await request.send(request.method, session.stamped(request.params))
        except ServerRefusalError as refusal:
            if refusal.code != PAGES_NEEDED or session.is_modern or not await self._visited(refusal):
                raise
            result = await request.send(request.method, request.params)
        if session.result_type(result) == COMPLETE:
            return result
        return await self._after_input(session, request, result)

    async def _visited(self, refusal: ServerRefusalError) -> bool:
        return await self._duties.visit_pages((object_or_none(refusal.data) or {}).get("elicitations"))

    async def _after_input(self, session: Session, request: _Request, result: JsonObject) -> JsonObject:
        """Gives the server what it wants to know until it has a result (MCP 2026-07-28, basic/patterns/mrtr).

        What it wants back goes back as it came, and into this request alone.
        """
        pause_secs = FIRST_PAUSE_SECS
        for _ in range(MAX_ROUNDS):
            if (kind := session.result_type(result)) != "input_required":
                raise self._failed(request, f"its result is of a type that this client does not know, {kind!r}")
            more = await self._input(request, result)
            if "inputResponses" not in more:
                await asyncio.sleep(pause_secs)
                pause_secs = min(2 * pause_secs, LONGEST_PAUSE_SECS)
            result = await request.send(request.method, session.stamped({**request.params, **more}))
            if session.result_type(result) == COMPLETE:
                return result
        raise self._failed(request, f"it asked for input more than {MAX_ROUNDS} times")

    async def _input(self, request: _Request, result: JsonObject) -> JsonObject:
        """What a request is sent again with."""
        more: JsonObject = {}
        if (state := result.get("requestState")) is not None:
            more["requestState"] = state
        if questions := object_or_none(result.get("inputRequests")):
            more["inputResponses"] = {
                key: await self._answer(request, question) for key, question in questions.items()
            }
        if not more:
            raise self._failed(request, "it asked for input and did not say for which")
        return more

    async def _answer(self, request: _Request, question: object) -> JsonObject:
        try:
            return await self._duties.fulfil(object_or_none(question) or {})
        except ReplyRefusal as refusal:
            error = self._failed(request, f"it needs an answer that it does not get: {refusal.message}")
            if refusal.code == USER_REJECTED:
                error.action = "tellModel"  # A person's no is no reason to end a run.
            raise error from None

    def _failed(self, request: _Request, reason: str) -> ToolError:
        message = f"server {self._server!r} failed at {request.method}: {reason}"
        return self.life.connection.error("mcpError", message)

    # A session ------------------------------------------------------------------------------------------

    async def _renewed(self, lost: Session) -> Session:
        """Another session for one that was lost: one for all requests that have lost it.

        Where that fails the request fails with it, and the next one tries again: a server may be away for a while.
        """
        async with self._renewing:
            if self.session is lost:
                self._is_lost = True
                try:
                    self.session = await self._reopen(Opened(self.life, lost))
                except ToolError as error:
                    self._note(error)
                    raise
                self._is_lost = False
                self._on_renewed()
            return self.session

    def _note(self, error: ToolError) -> None:
        if needs_authorization(error):
            self.failure = error
            self.life.connection.end("wants to know who we are")
