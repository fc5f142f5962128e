"""The authorization code grant: a person signs in with a browser (OAuth 2.1, 4.1, with PKCE and RFC 9207)."""

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from attrs import frozen

from sidecar.mcp.oauth.failures import AuthorizationFailure, PersonNeeded, SignInDeclined, shown_words
from sidecar.mcp.oauth.listener import Listener, read_parameters
from sidecar.mcp.oauth.metadata import ServerMetadata
from sidecar.mcp.oauth.pages import PageAnswer, ShowPage
from sidecar.mcp.oauth.values import ClientIdentity

SIGN_IN_LIMIT_SECS = 300.0
"""How long a person may take. Own choice."""


WITHDRAWAL_LIMIT_SECS = 1.0
"""How long it may take to take a question back."""


@frozen(kw_only=True)
class AuthorizationRequest:
    """What is asked on the sign-in page, and what its answer is checked against."""

    server: ServerMetadata
    client: ClientIdentity
    redirect_uri: str
    scopes: tuple[str, ...]
    resource: str | None
    state: str
    verifier: str

    @property
    def url(self) -> str:
        """The address of the sign-in page."""
        digest = hashlib.sha256(self.verifier.encode("ascii")).digest()
        fields = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **({"scope": " ".join(self.scopes)} if self.scopes else {}),
            **({"resource": self.resource} if self.resource is not None else {}),
            # OpenID Connect gives no refresh token without (core, 11).
            **({"prompt": "consent"} if "offline_access" in self.scopes else {}),
        }
        endpoint = self.server.authorization_endpoint or ""
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(fields)}"

    def code_of(self, parameters: Mapping[str, str]) -> str:
        """The code that the browser brought. Raises AuthorizationFailure for whatever is not the right answer.

        An answer of somebody else (state, issuer) is not shown, not even its error (RFC 9207, 2.4).
        """
        state = parameters.get("state", "")
        if not hmac.compare_digest(state.encode(), self.state.encode()):
            raise AuthorizationFailure("the sign-in came back with a state that is not ours; it is not used")
        issuer = parameters.get("iss")
        if issuer is None and self.server.sends_issuer:
            raise AuthorizationFailure(
                "the sign-in came back without the issuer that was announced; it is not used"
            )
        if issuer is not None and issuer != self.server.issuer:
            raise AuthorizationFailure("the sign-in came back from another issuer; it is not used")
        if "error" in parameters:
            words = [shown_words(parameters.get(name)) for name in ("error", "error_description")]
            raise SignInDeclined(f"the sign-in was refused: {': '.join(filter(None, words))}")
        if not parameters.get("code"):
            raise AuthorizationFailure("the sign-in came back without a code")
        return parameters["code"]

    def code_form(self, code: str) -> dict[str, str]:
        """What the token endpoint is sent for a code."""
        return {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
            **({"resource": self.resource} if self.resource is not None else {}),
        }


def new_request(
    server: ServerMetadata,
    client: ClientIdentity,
    *,
    redirect_uri: str,
    scopes: tuple[str, ...],
    resource: str | None,
) -> AuthorizationRequest:
    """A request with a state and a verifier of its own. Raises AuthorizationFailure without S256 at the server."""
    check_challenge_methods(server)
    return AuthorizationRequest(
        server=server,
        client=client,
        redirect_uri=redirect_uri,
        scopes=scopes,
        resource=resource,
        state=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
    )


def check_challenge_methods(server: ServerMetadata) -> None:
    """Raises AuthorizationFailure where a person cannot sign in safely (MCP 2025-11-25, code protection).

    Servers of 2025-03-26 did not have to say that they know S256.
    """
    if server.authorization_endpoint is None:
        raise AuthorizationFailure(f"{server.issuer} names no authorization_endpoint, so nobody can sign in")
    methods = server.challenge_methods
    if (methods is None and not server.is_legacy) or (methods is not None and "S256" not in methods):
        raise AuthorizationFailure(
            f"{server.issuer} does not say that it supports PKCE with S256 (code_challenge_methods_supported); "
            "signing in there is not safe"
        )


async def visit_page(
    server_name: str, url: str, listener: Listener, show_page: ShowPage, *, limit_secs: float = SIGN_IN_LIMIT_SECS
) -> Mapping[str, str]:
    """Has a person visit the page; the parameters that it led back with.

    Raises SignInDeclined, and PersonNeeded where nobody is there and after `limit_secs`.
    """
    visiting = asyncio.create_task(listener.visit())
    asking = asyncio.ensure_future(show_page(server_name, url))
    try:
        async with asyncio.timeout(limit_secs):
            await asyncio.wait({visiting, asking}, return_when=asyncio.FIRST_COMPLETED)
            if not visiting.done() and (parameters := _brought(asking.result())):
                return parameters
            return await visiting
    except TimeoutError:
        raise PersonNeeded(f"nobody finished the sign-in within {limit_secs:g} s") from None
    finally:
        visiting.cancel()
        asking.cancel()
        done, _ = await asyncio.wait({visiting, asking}, timeout=WITHDRAWAL_LIMIT_SECS)
        _ = [task.cancelled() or task.exception() for task in done]  # What went wrong there is no news any more.


def _brought(answer: PageAnswer) -> Mapping[str, str] | None:
    """The parameters of the address that a host gave; None where it gave none that a sign-in leads to."""
    if answer.outcome == "nobody":
        raise PersonNeeded("somebody has to sign in, and this host cannot show the sign-in page")
    if answer.outcome == "declined":
        raise SignInDeclined("the sign-in was declined")
    try:
        parameters = read_parameters(urlsplit(answer.address or "").query)
    except ValueError:
        return None
    return parameters if "state" in parameters else None
