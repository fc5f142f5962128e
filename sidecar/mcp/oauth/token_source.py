"""Tokens for one MCP server: those that were kept, renewed ones, new ones, and who gives them."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from attrs import evolve, field, frozen

from sidecar.mcp.oauth.attempts import Attempts
from sidecar.mcp.oauth.challenge import Challenge
from sidecar.mcp.oauth.discovery import Guarded, discover
from sidecar.mcp.oauth.failures import AuthorizationFailure, PersonNeeded, TokenRefused
from sidecar.mcp.oauth.grants import unattended_form
from sidecar.mcp.oauth.http import AuthorizationHttp
from sidecar.mcp.oauth.keeping import Place
from sidecar.mcp.oauth.listener import Listener, configured_redirect, listening
from sidecar.mcp.oauth.metadata import canonical_resource
from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.mcp.oauth.pages import ShowPage
from sidecar.mcp.oauth.registration import known_client, register
from sidecar.mcp.oauth.scopes import scopes_to_ask
from sidecar.mcp.oauth.sign_in import (
    AuthorizationRequest,
    check_challenge_methods,
    new_request,
    visit_page,
)
from sidecar.mcp.oauth.signing import DpopKey, kept_key, new_key
from sidecar.mcp.oauth.store import TokenStore
from sidecar.mcp.oauth.token_endpoint import Nonces, TokenEndpoint
from sidecar.mcp.oauth.values import ClientIdentity, Tokens, read_tokens

SEASONED_SECS = 20.0
"""A server that does not accept new tokens says so within one request. Own choice."""

PASSING_CODES = ("temporarily_unavailable", "server_error")
"""Refusals that may be none the next time (RFC 6749, 4.1.2.1)."""

logger = logging.getLogger("sidecar.mcp")


@frozen(kw_only=True, eq=False)
class Grant:
    """What we may do at the moment, and who gave it."""

    guarded: Guarded
    client: ClientIdentity
    tokens: Tokens
    dpop: DpopKey | None
    since: float = field(factory=time.monotonic)

    @property
    def issuer(self) -> str:
        return self.guarded.server.issuer

    @property
    def is_seasoned(self) -> bool:
        """Whether it is there so long that the server must have been content with it."""
        return time.monotonic() - self.since > SEASONED_SECS


class DpopWish(NamedTuple):
    """What a refusal says of DPoP: that it would be taken, that nothing else would."""

    is_offered: bool
    is_only: bool


@frozen(kw_only=True, eq=False)
class Person:
    """Who signs in. `waited_for` is entered as long as a person is asked."""

    show_page: ShowPage
    waited_for: Callable[[], AbstractContextManager[None]]
    limit_secs: float


class TokenSource:
    """Gets tokens for the MCP server `name` at `url`. One thing at a time: whoever uses it sees to that.

    Everything here raises AuthorizationFailure, and ConfigurationError where the options are in the way.
    """

    def __init__(self, name: str, url: str, options: OAuthOptions, store: TokenStore, person: Person) -> None:
        self.grant: Grant | None = None
        self.nonces = Nonces()
        self._name = name
        self._path = f"mcpServers.{name}.oauth"
        self._url = url
        self._options = options
        self._store = store
        self._person = person
        self._http = AuthorizationHttp(url)
        self._attempts = Attempts()
        self._refused: tuple[dict[str, str], TokenRefused] | None = None
        self._uses_since_renewal: int | None = None

    def note_use(self) -> None:
        """Told of each request that is sent with the tokens."""
        if self._uses_since_renewal is not None:
            self._uses_since_renewal += 1

    @property
    def is_renewal_due(self) -> bool:
        """Whether the tokens are about to end, and others can be had without a person."""
        tokens = self.grant.tokens if self.grant is not None else None
        return (
            tokens is not None and tokens.are_due and (not self._is_attended or tokens.refresh_token is not None)
        )

    async def renew(self) -> None:
        """New tokens for those that are about to end, without a person; else the old ones stay as they are."""
        grant = self.grant
        if grant is None or not self.is_renewal_due:
            return
        if not self._is_attended:
            await self._unattended(grant.guarded, scopes=grant.tokens.scopes, dpop=grant.dpop)
        elif not await self._refresh(grant):
            self.grant = evolve(grant, tokens=evolve(grant.tokens, refresh_token=None))

    async def obtain(self, challenge: Challenge, *, is_step_up: bool, dpop_wish: DpopWish) -> None:
        """From a refusal to a grant that the server may accept."""
        guarded = await discover(self._http, self._url, challenge)
        if self.grant is not None and self.grant.issuer != guarded.server.issuer:
            self.grant = None  # Another issuer's tokens and clients are nothing to this one.
        may_be_kept = self._is_attended and (self.grant is None or not is_step_up)
        if may_be_kept and await self._take_up_kept(guarded):
            return
        had = self.grant.tokens.scopes if self.grant is not None else ()
        scopes = scopes_to_ask(self._options, guarded, challenge, had=had)
        needs_dpop = dpop_wish.is_only or (guarded.resource is not None and guarded.resource.needs_dpop)
        dpop = await self._dpop_key(guarded, is_needed=needs_dpop, is_offered=dpop_wish.is_offered)
        if not self._is_attended and self.grant is not None and self.grant.is_seasoned:
            self._attempts = Attempts()  # Tokens that were good for a while and have ended; nobody is bothered.
        self._attempts.begin(scopes)
        if not self._is_attended:
            await self._unattended(guarded, scopes=scopes, dpop=dpop)
        else:
            try:
                await self._sign_in(guarded, scopes=scopes, dpop=dpop)
            except PersonNeeded as refusal:
                self._attempts.declined(scopes, refusal)
                raise
        if needs_dpop and self.grant is not None and self.grant.dpop is None:
            self.grant = None
            raise AuthorizationFailure(f"{guarded.server.issuer} gave a token that is bound to no key (DPoP)")

    async def aclose(self) -> None:
        """Lets go of connections."""
        await self._http.aclose()

    @property
    def _is_attended(self) -> bool:
        return self._options.grant == "authorization_code"

    # Tokens that are there ------------------------------------------------------------------------------

    async def _take_up_kept(self, guarded: Guarded) -> bool:
        """Takes up a sign-in of before; whether there was one that may still be good."""
        client = await self._client_of(guarded)
        if client is None:
            return False
        kept = await self._store.tokens(self._place(guarded, client))
        used = self.grant.tokens if self.grant is not None else None
        is_news = kept is not None and (used is None or used.access_token != kept.access_token)
        tokens = kept if is_news else used
        if tokens is None:
            return False
        grant = await _taken_up(guarded, client, tokens)
        if is_news and not tokens.are_due:
            self.grant = grant
            return True
        if tokens.refresh_token is None or self._is_renewal_vain:
            return False
        return await self._refresh(grant)

    @property
    def _is_renewal_vain(self) -> bool:
        """Whether renewed tokens were refused as soon as they were used: others of their kind will be, too."""
        uses = self._uses_since_renewal
        return self.grant is not None and not self.grant.is_seasoned and uses is not None and uses <= 1

    async def _refresh(self, grant: Grant) -> bool:
        """Renews tokens without a person; false where the server wants one (RFC 6749, 6)."""
        place = self._place(grant.guarded, grant.client)
        async with self._store.refreshing(place):
            kept = await self._store.tokens(place)
            if kept is not None and kept.access_token != grant.tokens.access_token:
                grant = await _taken_up(grant.guarded, grant.client, kept)  # Another sidecar was here.
                if not kept.are_due:
                    self.grant = grant
                    return True
            if grant.tokens.refresh_token is None:
                return False
            form = {"grant_type": "refresh_token", "refresh_token": grant.tokens.refresh_token}
            form |= _resource_field(grant.guarded)
            try:
                answer = await self._endpoint(grant.guarded, grant.client).ask(form, dpop=grant.dpop)
            except TokenRefused as refusal:
                if refusal.code in PASSING_CODES:
                    raise
                logger.info("a refresh token of server %r is not good any more: %s", self._name, refusal.code)
                await self._store.keep_tokens(place, None)
                return False
            await self._receive(grant.guarded, grant.client, answer, old=grant.tokens, dpop=grant.dpop)
            self._uses_since_renewal = 0
            return True

    # New tokens -----------------------------------------------------------------------------------------

    async def _sign_in(self, guarded: Guarded, *, scopes: tuple[str, ...], dpop: DpopKey | None) -> None:
        check_challenge_methods(guarded.server)
        client = await self._client_of(guarded)
        try:
            async with listening(self._options, preferred_uri=client.redirect_uri if client else None) as listener:
                if client is None or not client.suits(listener.redirect_uri, scopes):
                    client = await self._register(guarded, listener.redirect_uri, scopes)
                request = new_request(
                    guarded.server,
                    client,
                    redirect_uri=listener.redirect_uri,
                    scopes=scopes,
                    resource=_resource(guarded),
                )
                code = await self._visit(request, listener)
            answer = await self._endpoint(guarded, client).ask(request.code_form(code), dpop=dpop)
            await self._receive(guarded, client, answer, scopes=scopes, dpop=dpop)
            self._uses_since_renewal = None
        except OSError as error:
            where = configured_redirect(self._options) or "127.0.0.1"
            raise AuthorizationFailure(f"the browser cannot come back to {where}: {error.strerror}") from None
        except AuthorizationFailure:
            if client is not None and client.is_registered:
                # It may be that the server has forgotten this client, which it only tells the browser.
                await self._store.keep_client(guarded.server.issuer, self._resource_of(guarded), None)
            raise

    async def _visit(self, request: AuthorizationRequest, listener: Listener) -> str:
        person = self._person
        with person.waited_for():
            parameters = await visit_page(
                self._name, request.url, listener, person.show_page, limit_secs=person.limit_secs
            )
        return request.code_of(parameters)

    async def _client_of(self, guarded: Guarded) -> ClientIdentity | None:
        known = known_client(self._options, guarded.server)
        return known or await self._store.client(guarded.server.issuer, self._resource_of(guarded))

    async def _register(self, guarded: Guarded, redirect_uri: str, scopes: tuple[str, ...]) -> ClientIdentity:
        client = await register(
            self._http, guarded.server, redirect_uri=redirect_uri, scopes=scopes, path=self._path
        )
        await self._store.keep_client(guarded.server.issuer, self._resource_of(guarded), client)
        return client

    async def _unattended(self, guarded: Guarded, *, scopes: tuple[str, ...], dpop: DpopKey | None) -> None:
        """Tokens by a grant that needs no person. What was refused once is not tried again."""
        options = self._options
        client = ClientIdentity(client_id=options.client_id or "", client_secret=options.client_secret)
        resource = self._resource_of(guarded)
        form = await unattended_form(
            options, self._http, guarded.server, resource=resource, scopes=scopes, path=self._path
        )
        if self._refused is not None and self._refused[0] == form:
            raise self._refused[1]
        try:
            answer = await self._endpoint(guarded, client).ask(form, dpop=dpop)
        except TokenRefused as refusal:
            if refusal.code not in PASSING_CODES:
                self._refused = (form, refusal)
            raise
        await self._receive(guarded, client, answer, scopes=scopes, dpop=dpop)

    async def _receive(
        self,
        guarded: Guarded,
        client: ClientIdentity,
        answer: Mapping[str, Any],
        *,
        scopes: tuple[str, ...] = (),
        old: Tokens | None = None,
        dpop: DpopKey | None,
    ) -> None:
        """Takes up what a token endpoint gave. A refresh that brings no refresh token leaves the old one good."""
        endpoint = guarded.server.token_endpoint
        tokens = read_tokens(answer, endpoint=endpoint, scopes=old.scopes if old is not None else scopes)
        if tokens.refresh_token is None and old is not None:
            tokens = evolve(tokens, refresh_token=old.refresh_token)
        if tokens.is_dpop and dpop is None:
            raise AuthorizationFailure(f"{endpoint} gave a token that is bound to a key (DPoP), unasked")
        if tokens.is_dpop and dpop is not None:
            tokens = evolve(tokens, dpop_key_pem=dpop.pem)
        self.grant = Grant(guarded=guarded, client=client, tokens=tokens, dpop=dpop if tokens.is_dpop else None)
        if self._is_attended:
            await self._store.keep_tokens(self._place(guarded, client), tokens)

    async def _dpop_key(self, guarded: Guarded, *, is_needed: bool, is_offered: bool) -> DpopKey | None:
        """The key that tokens shall be bound to, where the resource wants that (RFC 9449); None where not."""
        if self.grant is not None and self.grant.dpop is not None:
            return self.grant.dpop
        algorithms = guarded.server.dpop_algorithms
        if not is_needed and not (is_offered and algorithms):
            return None
        key = await new_key(algorithms or ("ES256",))
        if key is None and is_needed:
            raise AuthorizationFailure(
                f"{guarded.server.issuer} takes no DPoP proof that we can sign, only {' '.join(algorithms)[:80]}"
            )
        return key

    def _endpoint(self, guarded: Guarded, client: ClientIdentity) -> TokenEndpoint:
        return TokenEndpoint(
            http=self._http,
            server=guarded.server,
            client=client,
            options=self._options,
            path=self._path,
            nonces=self.nonces,
        )

    def _place(self, guarded: Guarded, client: ClientIdentity) -> Place:
        resource = self._resource_of(guarded)
        return Place(issuer=guarded.server.issuer, resource=resource, client_id=client.client_id)

    def _resource_of(self, guarded: Guarded) -> str:
        return _resource(guarded) or canonical_resource(self._url)


def _resource(guarded: Guarded) -> str | None:
    """How the server is named to its authorization server; servers of before 2025-06-18 were not named."""
    return guarded.resource.resource if guarded.resource is not None else None


def _resource_field(guarded: Guarded) -> dict[str, str]:
    resource = _resource(guarded)
    return {} if resource is None else {"resource": resource}


async def _taken_up(guarded: Guarded, client: ClientIdentity, tokens: Tokens) -> Grant:
    dpop = await kept_key(tokens.dpop_key_pem) if tokens.is_dpop and tokens.dpop_key_pem is not None else None
    return Grant(guarded=guarded, client=client, tokens=tokens, dpop=dpop)
