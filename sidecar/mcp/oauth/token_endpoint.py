"""Requests to a token endpoint: how the client says who it is, what is sent, what an error means."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote_plus

from attrs import frozen

from sidecar.mcp.oauth.addresses import origin_of
from sidecar.mcp.oauth.failures import AuthorizationFailure, TokenRefused, shown_words
from sidecar.mcp.oauth.http import AuthorizationHttp, HttpAnswer
from sidecar.mcp.oauth.metadata import ServerMetadata
from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.mcp.oauth.signing import DpopKey, client_assertion
from sidecar.mcp.oauth.values import ASSUMED_SECRET_METHOD, ClientIdentity

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
SECRET_METHODS = ("client_secret_basic", "client_secret_post")


class Nonces:
    """The newest DPoP nonce of each origin (RFC 9449, 8.2)."""

    def __init__(self) -> None:
        self._by_origin: dict[str, str] = {}

    def of(self, url: str) -> str | None:
        """What the server at `url` wants to see in the next proof."""
        return self._by_origin.get(origin_of(url))

    def learn(self, url: str, headers: Mapping[str, str]) -> bool:
        """Keeps the nonce of an answer, whose headers are in lower case; whether it is a new one."""
        nonce = headers.get("dpop-nonce")
        if not nonce or nonce == self.of(url):
            return False
        self._by_origin[origin_of(url)] = nonce
        return True


@frozen(kw_only=True, eq=False)
class TokenEndpoint:
    """The token endpoint of one authorization server, as one client sees it. `path` is that of the options."""

    http: AuthorizationHttp
    server: ServerMetadata
    client: ClientIdentity
    options: OAuthOptions
    path: str
    nonces: Nonces
    is_trusted: bool = False

    async def ask(self, form: Mapping[str, str], *, dpop: DpopKey | None = None) -> dict[str, object]:
        """The answer to a grant. Raises TokenRefused, AuthorizationFailure and ConfigurationError."""
        url = self.server.token_endpoint
        answer = await self._post(form, dpop)
        if self.nonces.learn(url, answer.headers) and dpop is not None and _wants_nonce(answer):
            answer = await self._post(form, dpop)
            self.nonces.learn(url, answer.headers)
        return _granted(answer)

    async def _post(self, form: Mapping[str, str], dpop: DpopKey | None) -> HttpAnswer:
        url = self.server.token_endpoint
        more, headers = await asyncio.to_thread(self._authentication)  # Signing loads 150 ms of library.
        if dpop is not None:
            headers["dpop"] = await asyncio.to_thread(dpop.proof, "POST", url, nonce=self.nonces.of(url))
        return await self.http.post_form(url, {**form, **more}, headers=headers, is_trusted=self.is_trusted)

    def _authentication(self) -> tuple[dict[str, str], dict[str, str]]:
        """Fields and headers that say who the client is (RFC 6749, 2.3.1; RFC 7523, 2.2)."""
        client = self.client
        secret = client.client_secret or ""
        match auth_method(client, self.server, has_key=self.options.private_key_pem is not None):
            case "private_key_jwt":
                signed = client_assertion(self.options, client.client_id, self.server.issuer, path=self.path)
                return {
                    "client_id": client.client_id,
                    "client_assertion_type": ASSERTION_TYPE,
                    "client_assertion": signed,
                }, {}
            case "client_secret_basic":
                pair = f"{quote_plus(client.client_id)}:{quote_plus(secret)}"
                return {}, {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
            case "client_secret_post":
                return {"client_id": client.client_id, "client_secret": secret}, {}
            case _:
                # A workload needs no name of its own: its JWT says who it is.
                return ({"client_id": client.client_id} if client.client_id else {}), {}


def auth_method(client: ClientIdentity, server: ServerMetadata, *, has_key: bool) -> str:
    """How the client says who it is: as registered, else as the server takes it and the client can."""
    offered = server.client_auth_methods
    if client.client_secret is None:
        return "private_key_jwt" if has_key and client.auth_method in (None, "private_key_jwt") else "none"
    if client.auth_method in (*SECRET_METHODS, "none"):
        return str(client.auth_method)
    if offered is None:
        return ASSUMED_SECRET_METHOD
    if has_key and "private_key_jwt" in offered:
        return "private_key_jwt"
    return next((method for method in SECRET_METHODS if method in offered), "none")


def _wants_nonce(answer: HttpAnswer) -> bool:
    document = answer.json_object()
    return document is not None and document.get("error") == "use_dpop_nonce"


def _granted(answer: HttpAnswer) -> dict[str, object]:
    """What was given; some servers report errors with status 200."""
    document = answer.json_object()
    code = shown_words(document.get("error")) if document is not None else ""
    if code and document is not None:
        raise TokenRefused(answer.url, code, shown_words(document.get("error_description")))
    if not answer.is_success:
        raise AuthorizationFailure(f"{answer.url} answered with status {answer.status}")
    if document is None:
        raise AuthorizationFailure(f"{answer.url} did not answer with a JSON object")
    return document
