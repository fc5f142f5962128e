"""The authorization of one MCP server: the headers of its requests, and what to do when it does not let us in."""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from sidecar.mcp.config import HttpServer, path_of
from sidecar.mcp.oauth.addresses import origin_of
from sidecar.mcp.oauth.challenge import read_challenges, token_challenge
from sidecar.mcp.oauth.failures import AuthorizationFailure, PersonNeeded
from sidecar.mcp.oauth.options import OAuthOptions, check_options, read_options
from sidecar.mcp.oauth.pages import ShowPage
from sidecar.mcp.oauth.sign_in import SIGN_IN_LIMIT_SECS
from sidecar.mcp.oauth.store import TokenStore, shared_store
from sidecar.mcp.oauth.token_source import DpopWish, Person, TokenSource
from sidecar.mcp.transport import NeedsAuthorizationError
from sidecar.protocol.errors import ToolError

CLOSE_LIMIT_SECS = 1.0
"""How long a sign-in may take to be broken off. Everything of ours must end within 3 s."""

MAX_BODY_BYTES = 16 * 1024
"""Of a refusal's body so much is looked at."""

logger = logging.getLogger("sidecar.mcp")


class _Sent(NamedTuple):
    """What the last request of this task was sent with, so that many refusals of one token renew it once."""

    owner: object
    token: str | None
    nonce: str | None


_sent: ContextVar[_Sent | None] = ContextVar("_sent", default=None)


class OAuthAuthorization:
    """The right to use the MCP server `name` at `url`: gets tokens, keeps them, renews them.

    `show_page` has a person visit the sign-in page; `waited_for` is entered as long as one is waited for, at most
    `sign_in_limit_secs`. Whoever makes one must `aclose` it. Raises ConfigurationError for options that are wrong.
    """

    def __init__(
        self,
        name: str,
        url: str,
        options: OAuthOptions,
        *,
        store: TokenStore,
        show_page: ShowPage,
        waited_for: Callable[[], AbstractContextManager[None]] = nullcontext,
        sign_in_limit_secs: float = SIGN_IN_LIMIT_SECS,
    ) -> None:
        check_options(options, f"mcpServers.{name}.oauth")
        self._name = name
        self._url = url
        person = Person(show_page=show_page, waited_for=waited_for, limit_secs=sign_in_limit_secs)
        self._source = TokenSource(name, url, options, store, person)
        self._work: asyncio.Task[None] | None = None

    async def headers(self, method: str, url: str) -> dict[str, str]:
        """What a request needs to be let in; nothing as long as the server has not asked for anything.

        A token that has ended is renewed first. Tokens go to the server's own origin alone.
        """
        if origin_of(url) != origin_of(self._url):
            return {}
        grant = self._source.grant
        if self._source.is_renewal_due:
            try:
                await self._join(self._source.renew)
            except ToolError as error:
                logger.info("a token of server %r could not be renewed early: %s", self._name, error)
            grant = self._source.grant
        nonce = self._source.nonces.of(url)
        _sent.set(_Sent(self, grant.tokens.access_token if grant else None, nonce))
        if grant is None:
            return {}
        self._source.note_use()
        token = grant.tokens.access_token
        if grant.dpop is None:
            return {"authorization": f"Bearer {token}"}
        return {
            "authorization": f"DPoP {token}",
            "dpop": grant.dpop.proof(method, url, nonce=nonce, access_token=token),
        }

    async def challenged(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Told that a request was not let in; whether it is worth trying again, with new `headers`.

        Raises NeedsAuthorizationError where only a person could go on, ToolError `mcpError` and
        ConfigurationError. When the caller is cancelled, a sign-in goes on: the next request finds its tokens.
        """
        headers = {name.lower(): value for name, value in headers.items()}
        challenge = token_challenge(headers)
        sent, grant = _sent.get(), self._source.grant
        sent = sent if sent is not None and sent.owner is self else None
        if grant is not None and grant.dpop is not None:
            self._source.nonces.learn(self._url, headers)
            if challenge.error == "use_dpop_nonce":
                return sent is not None and sent.nonce != self._source.nonces.of(self._url)
        is_step_up = status == 403 and "insufficient_scope" in (challenge.error, _error_in(body))
        if status != 401 and not is_step_up:
            return False
        if sent is not None and grant is not None and sent.token != grant.tokens.access_token:
            return True  # Another request was refused, too, and has brought new tokens already.
        named = _schemes(headers)
        if named and not named & {"bearer", "dpop"}:
            return False  # It wants a password or the like, which no token replaces.
        wish = DpopWish("dpop" in named, "dpop" in named and "bearer" not in named)
        is_more = is_step_up and grant is not None
        await self._join(
            lambda: self._source.obtain(challenge, is_step_up=is_step_up, dpop_wish=wish), is_more=is_more
        )
        return True

    async def aclose(self) -> None:
        """Ends whatever is going on, and lets go of connections."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait({self._work}, timeout=CLOSE_LIMIT_SECS)
        await self._source.aclose()

    async def _join(self, make: Callable[[], Coroutine[Any, Any, None]], *, is_more: bool = False) -> None:
        """Waits for the work that is going on, or begins it. It outlives its callers, and ends with `aclose`."""
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._reported(make(), is_more=is_more))
            self._work.add_done_callback(_look_at)
        await asyncio.shield(self._work)

    async def _reported(self, work: Coroutine[Any, Any, None], *, is_more: bool) -> None:
        """`is_more`: it is about more rights than there are, without which all else goes on."""
        try:
            await work
        except PersonNeeded as need:
            if is_more:
                message = f"server {self._name!r} wants more rights for this, which it was not given: {need}"
                raise ToolError("mcpError", message, server=self._name, action="tellModel") from None
            raise NeedsAuthorizationError(
                f"server {self._name!r} needs a sign-in: {need}; restart it from a host that can show the page "
                f"(the sign-in is kept), or give mcpServers.{self._name}.oauth a grantType that needs no person",
                server=self._name,
            ) from None
        except AuthorizationFailure as failure:
            message = f"server {self._name!r} does not let us in: {failure}"
            raise ToolError("mcpError", message, server=self._name) from None


def open_authorization(
    name: str,
    server: HttpServer,
    *,
    file: Path,
    show_page: ShowPage,
    waited_for: Callable[[], AbstractContextManager[None]],
    limit_secs: float,
) -> OAuthAuthorization:
    """The right to use the server of an entry, with the store of this process. Raises ConfigurationError."""
    return OAuthAuthorization(
        name,
        server.url,
        read_options(server.oauth, f"{path_of(name)}.oauth"),
        store=shared_store(file),
        show_page=show_page,
        waited_for=waited_for,
        sign_in_limit_secs=limit_secs,
    )


def _schemes(headers: Mapping[str, str]) -> frozenset[str]:
    return frozenset(challenge.scheme for challenge in read_challenges(headers.get("www-authenticate", "")))


def _error_in(body: bytes) -> str | None:
    """OAuth's error in a body, for servers that say it there alone."""
    if b"insufficient_scope" not in body[:MAX_BODY_BYTES]:
        return None
    try:
        decoded = json.loads(body[:MAX_BODY_BYTES])
    except (ValueError, RecursionError):
        return None
    error = decoded.get("error") if isinstance(decoded, dict) else None
    return error if isinstance(error, str) else None


def _look_at(work: "asyncio.Task[None]") -> None:
    """Work whose callers have all gone may fail with nobody to hear of it; that is no mistake."""
    if not work.cancelled():
        work.exception()
