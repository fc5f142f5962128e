"""What is kept of a sign-in: tokens, and the client that they were given to."""

import time
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from sidecar.mcp.oauth.failures import AuthorizationFailure

RENEWAL_MARGIN_SECS = 30.0
"""So long before its end a token is renewed, but not before half of its time: a request takes time, too. Own
choice."""

ASSUMED_SECRET_METHOD = "client_secret_basic"
"""What a server takes that does not say (RFC 8414, 2)."""


@frozen(kw_only=True)
class ClientIdentity:
    """Who we are to an authorization server. `auth_method` is None where the server's metadata is to decide.

    `redirect_uri` is the one that was registered; None where any loopback address will do. `scopes` are those
    that were registered; empty where that is left open.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    auth_method: str | None = None
    redirect_uri: str | None = None
    scopes: tuple[str, ...] = ()
    secret_ends_at: float | None = None
    is_registered: bool = False

    @property
    def has_ended(self) -> bool:
        return self.secret_ends_at is not None and self.secret_ends_at <= time.time()

    def suits(self, redirect_uri: str, scopes: tuple[str, ...]) -> bool:
        """Whether a sign-in that comes back there may ask for these scopes without another registration."""
        may_come_back = self.redirect_uri in (None, redirect_uri)
        return may_come_back and (not self.scopes or set(scopes) <= set(self.scopes))


@frozen(kw_only=True)
class Tokens:
    """What a token endpoint gave. `scopes` are those that were asked for and those that were granted.

    `renew_at` is in seconds since 1970, None where the server did not say when they end. `dpop_key_pem` is the
    private key that they are bound to (RFC 9449).
    """

    access_token: str = field(repr=False)
    is_dpop: bool = False
    refresh_token: str | None = field(default=None, repr=False)
    renew_at: float | None = None
    scopes: tuple[str, ...] = ()
    dpop_key_pem: str | None = field(default=None, repr=False)

    @property
    def are_due(self) -> bool:
        """Whether they have ended, or are about to."""
        return self.renew_at is not None and self.renew_at <= time.time()


def read_tokens(document: Mapping[str, Any], *, endpoint: str, scopes: tuple[str, ...]) -> Tokens:
    """The answer of a token endpoint (RFC 6749, 5.1). Raises AuthorizationFailure where it holds no token."""
    token = document.get("access_token")
    if not isinstance(token, str) or not token or any(not "!" <= character <= "~" for character in token):
        raise AuthorizationFailure(f"{endpoint} answered without an access_token that can be sent")
    refresh, granted = document.get("refresh_token"), document.get("scope")
    kind = str(document.get("token_type") or "bearer").lower()
    if kind not in ("bearer", "dpop"):
        raise AuthorizationFailure(f"{endpoint} gave a token of the kind {kind[:40]!r}, which is not supported")
    named = granted.split() if isinstance(granted, str) else ()
    return Tokens(
        access_token=token,
        is_dpop=kind == "dpop",
        refresh_token=refresh if isinstance(refresh, str) and refresh else None,
        renew_at=_renewal(document.get("expires_in")),
        scopes=tuple(dict.fromkeys((*scopes, *named))),
    )


def _renewal(expires_in: Any) -> float | None:
    """Some servers write the number as a text. What is no number was not said."""
    try:
        seconds = float(expires_in)
    except (TypeError, ValueError):
        return None
    if not 0 <= seconds < 1e10:
        return None
    return time.time() + max(seconds - RENEWAL_MARGIN_SECS, seconds / 2)
