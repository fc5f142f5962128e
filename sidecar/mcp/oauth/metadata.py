"""What is known of an authorization server and of the resource that it guards, read from their metadata. Pure."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen

from sidecar.mcp.oauth.addresses import AddressError, check_url, origin_of
from sidecar.mcp.oauth.failures import AuthorizationFailure, quoted


@frozen(kw_only=True)
class ResourceMetadata:
    """A protected resource (RFC 9728, 2)."""

    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    needs_dpop: bool = False


@frozen(kw_only=True)
class ServerMetadata:
    """An authorization server (RFC 8414, 2). What it did not say is None where that means something.

    `is_legacy`: found the way of MCP 2025-03-26, at the MCP server itself; `is_guessed`: not even found.
    """

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    scopes: tuple[str, ...] = ()
    challenge_methods: tuple[str, ...] | None = None
    client_auth_methods: tuple[str, ...] | None = None
    grant_types: tuple[str, ...] | None = None
    dpop_algorithms: tuple[str, ...] = ()
    sends_issuer: bool = False
    takes_metadata_documents: bool = False
    is_legacy: bool = False
    is_guessed: bool = False


def read_resource(document: Mapping[str, Any], server_url: str, *, where: str) -> ResourceMetadata:
    """Raises AuthorizationFailure where the document is about another resource than the MCP server."""
    resource = document.get("resource")
    if not isinstance(resource, str) or not resource:
        raise AuthorizationFailure(f"{where} does not say what `resource` it is about")
    if not is_resource_of(resource, server_url):
        raise AuthorizationFailure(f"{where} is about the resource {quoted(resource)}, which is not this server")
    return ResourceMetadata(
        resource=resource,
        authorization_servers=_texts(document, "authorization_servers") or (),
        scopes=_texts(document, "scopes_supported") or (),
        needs_dpop=document.get("dpop_bound_access_tokens_required") is True,
    )


def is_resource_of(resource: str, server_url: str) -> bool:
    """Whether `resource` names the server at `server_url`: its URL, a final slash or not, or a place above it.

    Above it, because many servers describe their whole origin; RFC 9728, 3.3, would have them be identical.
    """
    try:
        if origin_of(resource) != origin_of(server_url) or urlsplit(resource).fragment:
            return False
    except AddressError:
        return False
    named, ours = urlsplit(resource), urlsplit(server_url)
    if named.query and named.query != ours.query:
        return False
    return f"{ours.path.rstrip('/')}/".startswith(f"{named.path.rstrip('/')}/")


def canonical_resource(server_url: str) -> str:
    """A server's URL as it is named to authorization servers: no fragment, no slash at the end (RFC 8707, 2)."""
    parts = urlsplit(server_url)
    query = f"?{parts.query}" if parts.query else ""
    return f"{origin_of(server_url)}{parts.path.rstrip('/')}{query}"


def resource_metadata_urls(server_url: str) -> tuple[str, ...]:
    """Where a server's metadata may be, in order (MCP 2025-11-25, authorization server location)."""
    origin, path = origin_of(server_url), urlsplit(server_url).path.rstrip("/")
    base = f"{origin}/.well-known/oauth-protected-resource"
    return tuple(dict.fromkeys((f"{base}{path}", base)))


def server_metadata_urls(issuer: str) -> tuple[str, ...]:
    """Where an issuer's metadata may be, in order (MCP 2025-11-25, authorization server metadata discovery)."""
    origin, path = origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
    if not path:
        return (f"{origin}{oauth}", f"{origin}{openid}")
    return (f"{origin}{oauth}{path}", f"{origin}{openid}{path}", f"{origin}{path}{openid}")


def read_server(
    document: Mapping[str, Any], issuer: str, *, where: str, is_legacy: bool = False
) -> ServerMetadata:
    """Raises AuthorizationFailure where the document is another issuer's (RFC 8414, 3.3) or cannot be used."""
    named = document.get("issuer")
    if named != issuer and not (is_legacy and _is_in_origin(named, issuer)):
        raise AuthorizationFailure(
            f"{where} is the metadata of {quoted(named)}, not of {issuer!r}; it is not used"
        )
    token_endpoint = _endpoint(document, "token_endpoint", where)
    if token_endpoint is None:
        raise AuthorizationFailure(f"{where} names no token_endpoint")
    return ServerMetadata(
        issuer=str(named),
        token_endpoint=token_endpoint,
        authorization_endpoint=_endpoint(document, "authorization_endpoint", where),
        registration_endpoint=_endpoint(document, "registration_endpoint", where),
        scopes=_texts(document, "scopes_supported") or (),
        challenge_methods=_texts(document, "code_challenge_methods_supported"),
        client_auth_methods=_texts(document, "token_endpoint_auth_methods_supported"),
        grant_types=_texts(document, "grant_types_supported"),
        dpop_algorithms=_texts(document, "dpop_signing_alg_values_supported") or (),
        sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_documents=document.get("client_id_metadata_document_supported") is True,
        is_legacy=is_legacy,
    )


def default_server(server_url: str) -> ServerMetadata:
    """The endpoints of a server that has no metadata at all (MCP 2025-03-26, fallbacks)."""
    origin = origin_of(server_url)
    return ServerMetadata(
        issuer=origin,
        token_endpoint=f"{origin}/token",
        authorization_endpoint=f"{origin}/authorize",
        registration_endpoint=f"{origin}/register",
        is_legacy=True,
        is_guessed=True,
    )


def _is_in_origin(named: Any, issuer: str) -> bool:
    """Servers of 2025-03-26 call themselves by a path, too; whoever has the origin has its metadata anyway."""
    try:
        return isinstance(named, str) and origin_of(named) == origin_of(issuer)
    except AddressError:
        return False


def _endpoint(document: Mapping[str, Any], name: str, where: str) -> str | None:
    url = document.get(name)
    if url is None:
        return None
    try:
        check_url(url if isinstance(url, str) else "")
    except AddressError as error:
        raise AuthorizationFailure(f"{where}: the {name} {quoted(url)} {error}") from None
    return str(url)


def _texts(document: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """A list of texts; whatever else stands there was not said."""
    values = document.get(name)
    if not isinstance(values, list):
        return None
    return tuple(value for value in values if isinstance(value, str))
