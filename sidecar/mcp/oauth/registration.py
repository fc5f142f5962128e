"""Who the client is to an authorization server, in the order that MCP 2025-11-25 gives (client registration).

Pre-registered, as the user says; by the URL of a metadata document; by registering itself (RFC 7591).
"""

from typing import Any

from sidecar.mcp.oauth.failures import AuthorizationFailure, shown_words
from sidecar.mcp.oauth.http import AuthorizationHttp
from sidecar.mcp.oauth.metadata import ServerMetadata
from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.mcp.oauth.values import ClientIdentity
from sidecar.protocol.errors import ConfigurationError

CLIENT_NAME = "Agent Sidecar"
"""What a person reads on the sign-in page."""

_METHODS = ("none", "client_secret_basic", "client_secret_post")
"""How a client that registers itself may say who it is; without a secret first, since we cannot keep one well."""


def known_client(options: OAuthOptions, server: ServerMetadata) -> ClientIdentity | None:
    """The client that needs no registration; None where it does."""
    if options.client_id is not None:
        return ClientIdentity(client_id=options.client_id, client_secret=options.client_secret)
    if options.client_metadata_url is not None and server.takes_metadata_documents:
        return ClientIdentity(client_id=options.client_metadata_url, auth_method="none")
    return None


async def register(
    http: AuthorizationHttp,
    server: ServerMetadata,
    *,
    redirect_uri: str,
    scopes: tuple[str, ...],
    path: str,
) -> ClientIdentity:
    """Registers a client with the server.

    Raises AuthorizationFailure where the server refuses, ConfigurationError where it registers nobody.
    """
    if server.registration_endpoint is None:
        raise ConfigurationError(
            f"{path}.clientId: the authorization server {server.issuer} registers no clients by itself; "
            "register one there and give its id here",
            path=f"{path}.clientId",
        )
    wanted = {
        "client_name": CLIENT_NAME,
        "application_type": "native",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": _method(server),
        **({"scope": " ".join(scopes)} if scopes else {}),
    }
    answer = await http.post_json(server.registration_endpoint, wanted)
    document = answer.json_object() or {}
    if not answer.is_success and server.is_guessed:
        headers = f"{path.removesuffix('.oauth')}.headers"
        raise AuthorizationFailure(
            "it wants credentials and says nothing of OAuth; if you have a token for it, write it into "
            f'{headers} ({{"Authorization": "Bearer …"}})'
        )
    if not answer.is_success:
        words = [shown_words(document.get(name)) for name in ("error", "error_description")]
        said = ": ".join([f"status {answer.status}", *filter(None, words)])
        raise AuthorizationFailure(
            f"{server.registration_endpoint} did not register this client ({said}); "
            f"register one there and give its id as {path}.clientId"
        )
    return _registered(document, redirect_uri, scopes, server.registration_endpoint)


def _method(server: ServerMetadata) -> str:
    offered = server.client_auth_methods
    if offered is None:
        return "none"
    return next((method for method in _METHODS if method in offered), "none")


def _registered(
    document: dict[str, Any], redirect_uri: str, scopes: tuple[str, ...], where: str
) -> ClientIdentity:
    client_id, secret = document.get("client_id"), document.get("client_secret")
    if not isinstance(client_id, str) or not client_id:
        raise AuthorizationFailure(f"{where} registered this client without a client_id")
    method, ends_at = document.get("token_endpoint_auth_method"), document.get("client_secret_expires_at")
    return ClientIdentity(
        client_id=client_id,
        client_secret=secret if isinstance(secret, str) and secret else None,
        auth_method=method if isinstance(method, str) else None,
        redirect_uri=redirect_uri,
        scopes=scopes,
        secret_ends_at=float(ends_at) if isinstance(ends_at, int | float) and ends_at > 0 else None,
        is_registered=True,
    )
