"""Finds out who gives tokens for an MCP server, from its challenge to the authorization server's metadata."""

import logging

from attrs import frozen

from sidecar.mcp.oauth.addresses import AddressError, check_url, origin_of
from sidecar.mcp.oauth.challenge import Challenge
from sidecar.mcp.oauth.failures import AuthorizationFailure, quoted
from sidecar.mcp.oauth.http import AuthorizationHttp, HttpAnswer
from sidecar.mcp.oauth.metadata import (
    ResourceMetadata,
    ServerMetadata,
    default_server,
    read_resource,
    read_server,
    resource_metadata_urls,
    server_metadata_urls,
)

MAX_AUTHORIZATION_SERVERS = 5
"""Of a resource that names many, so many are tried. Own choice."""

logger = logging.getLogger("sidecar.mcp")


@frozen(kw_only=True)
class Guarded:
    """Who gives tokens, and for what. `resource` is None for servers older than MCP 2025-06-18."""

    server: ServerMetadata
    resource: ResourceMetadata | None


async def discover(http: AuthorizationHttp, server_url: str, challenge: Challenge) -> Guarded:
    """Raises AuthorizationFailure where what is found must not be used, or cannot be."""
    resource = await _find_resource(http, server_url, challenge.resource_metadata)
    if resource is None or not resource.authorization_servers:
        return Guarded(server=await _legacy_server(http, server_url), resource=resource)
    tried = resource.authorization_servers[:MAX_AUTHORIZATION_SERVERS]
    for issuer in tried:
        if (server := await find_server(http, issuer)) is not None:
            return Guarded(server=server, resource=resource)
    raise AuthorizationFailure(
        f"no metadata was found of the authorization server {' or '.join(map(quoted, tried))}"
    )


async def find_server(http: AuthorizationHttp, issuer: str, *, is_trusted: bool = False) -> ServerMetadata | None:
    """The metadata of one issuer; None where there is none. Raises AuthorizationFailure."""
    try:
        check_url(issuer)
    except AddressError as error:
        raise AuthorizationFailure(f"the authorization server {quoted(issuer)} {error}") from None
    for url in server_metadata_urls(issuer):
        answer = await http.get(url, is_trusted=is_trusted)
        document = _document(answer)
        if document is not None:
            return read_server(document, issuer, where=url)
    return None


async def _find_resource(
    http: AuthorizationHttp, server_url: str, announced: str | None
) -> ResourceMetadata | None:
    urls = resource_metadata_urls(server_url)
    for url in dict.fromkeys((announced, *urls) if announced else urls):
        document = _document(await http.get(url))
        if document is not None:
            return read_resource(document, server_url, where=url)
        if url == announced:
            logger.info("a server announces its metadata where there is none; the well-known places are tried")
    return None


async def _legacy_server(http: AuthorizationHttp, server_url: str) -> ServerMetadata:
    """As MCP 2025-03-26 has it: metadata at the server's own origin, else endpoints by their usual names."""
    origin = origin_of(server_url)
    for url in server_metadata_urls(origin):
        document = _document(await http.get(url))
        if document is not None:
            return read_server(document, origin, where=url, is_legacy=True)
    return default_server(server_url)


def _document(answer: HttpAnswer) -> dict[str, object] | None:
    """What was found; None where there is nothing. Raises AuthorizationFailure where that cannot be told.

    A web page counts as nothing: many servers answer one to whatever they do not know. So does a redirect to
    elsewhere, for which `AuthorizationHttp.get` does not go.
    """
    if answer.status >= 500 or answer.status in (408, 429):
        raise AuthorizationFailure(f"{answer.url} answered with status {answer.status}")
    if not answer.is_success or "text/html" in answer.headers.get("content-type", ""):
        return None
    document = answer.json_object()
    if document is None:
        raise AuthorizationFailure(f"{answer.url} is no JSON object")
    return document
