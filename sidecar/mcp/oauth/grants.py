"""The grants that need no person: client credentials, a workload's JWT, an exchanged ID token."""

import asyncio
from pathlib import Path

from sidecar.mcp.oauth.discovery import find_server
from sidecar.mcp.oauth.failures import AuthorizationFailure
from sidecar.mcp.oauth.http import AuthorizationHttp
from sidecar.mcp.oauth.metadata import ServerMetadata
from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.mcp.oauth.token_endpoint import Nonces, TokenEndpoint
from sidecar.mcp.oauth.values import ClientIdentity
from sidecar.protocol.errors import ConfigurationError

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"

MAX_JWT_BYTES = 64 * 1024


async def unattended_form(
    options: OAuthOptions,
    http: AuthorizationHttp,
    server: ServerMetadata,
    *,
    resource: str,
    scopes: tuple[str, ...],
    path: str,
) -> dict[str, str]:
    """What the token endpoint is sent for the grant of the options. Raises AuthorizationFailure and
    ConfigurationError."""
    match options.grant:
        case "client_credentials":
            form = {"grant_type": "client_credentials"}
        case "jwt_bearer":
            assertion = await _text(options.assertion, options.assertion_file, f"{path}.assertionFile")
            form = {"grant_type": JWT_BEARER, "assertion": assertion}
        case _:
            assertion = await _exchanged(options, http, server, resource=resource, scopes=scopes, path=path)
            form = {"grant_type": JWT_BEARER, "assertion": assertion}
    return {**form, "resource": resource, **({"scope": " ".join(scopes)} if scopes else {})}


async def _exchanged(
    options: OAuthOptions,
    http: AuthorizationHttp,
    server: ServerMetadata,
    *,
    resource: str,
    scopes: tuple[str, ...],
    path: str,
) -> str:
    """The identity provider's word for this one server (MCP enterprise-managed authorization; RFC 8693)."""
    provider = await _identity_provider(options, http, path)
    endpoint = TokenEndpoint(
        http=http,
        server=provider,
        client=ClientIdentity(client_id=options.idp_client_id or "", client_secret=options.idp_client_secret),
        options=OAuthOptions(),
        path=path,
        nonces=Nonces(),
        is_trusted=True,
    )
    answer = await endpoint.ask(
        {
            "grant_type": TOKEN_EXCHANGE,
            "requested_token_type": ID_JAG,
            "audience": server.issuer,
            "resource": resource,
            "subject_token": await _text(options.id_token, options.id_token_file, f"{path}.idTokenFile"),
            "subject_token_type": ID_TOKEN,
            **({"scope": " ".join(scopes)} if scopes else {}),
        }
    )
    grant = answer.get("access_token")
    if answer.get("issued_token_type") != ID_JAG or not isinstance(grant, str):
        raise AuthorizationFailure(f"{provider.token_endpoint} did not exchange the ID token for an ID-JAG")
    return grant


async def _identity_provider(options: OAuthOptions, http: AuthorizationHttp, path: str) -> ServerMetadata:
    if options.idp_token_endpoint is not None:
        issuer = options.idp_issuer or options.idp_token_endpoint
        return ServerMetadata(issuer=issuer, token_endpoint=options.idp_token_endpoint)
    assert options.idp_issuer is not None, "check_options has seen to that"
    found = await find_server(http, options.idp_issuer, is_trusted=True)
    if found is None:
        raise ConfigurationError(
            f"{path}.idpIssuer: no metadata was found of {options.idp_issuer!r}; give an idpTokenEndpoint",
            path=f"{path}.idpIssuer",
        )
    return found


async def _text(text: str | None, file: str | None, path: str) -> str:
    """A JWT as it is given, or from its file, which others renew."""
    if text is not None:
        return text.strip()
    try:
        return (await asyncio.to_thread(_read, Path(file or ""))).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigurationError(f"{path}: {file!r} cannot be read: {reason}", path=path) from None


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(MAX_JWT_BYTES).decode("ascii")
