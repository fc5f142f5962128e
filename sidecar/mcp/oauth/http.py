"""HTTP as authorization needs it: small JSON answers, every wait and size limited, addresses checked.

httpx's exceptions end here; what leaves is AuthorizationFailure.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import httpx
from attrs import field, frozen

from sidecar.mcp.oauth.addresses import (
    AddressError,
    addresses_of,
    check_url,
    is_loopback,
    may_reach,
    origin_of,
    realm_of,
)
from sidecar.mcp.oauth.failures import AuthorizationFailure, quoted
from sidecar.protocol.errors import ConfigurationError
from sidecar.web.environment import Proxy, proxy_for, trusted_certificates
from sidecar.web.reasons import root_of

ANSWER_LIMIT_SECS = 20.0
"""How long one request may take, from the connection to the end of its answer. Own choice."""

CONNECT_LIMIT_SECS = 5.0
"""How long one address of a host may take to accept a connection, before the next is tried. Own choice."""

MAX_ANSWER_BYTES = 256 * 1024
"""Metadata and tokens are a few KB. Own choice."""

MAX_REDIRECTS = 3

_HTTP_FAILURES = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ssl.SSLError, RuntimeError)
_HEADERS = {"accept": "application/json", "accept-encoding": "identity"}
"""Uncompressed, so that a small answer cannot become a large one."""


@frozen(kw_only=True)
class HttpAnswer:
    """What a server answered. The names of headers are in lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json_object(self) -> dict[str, Any] | None:
        """The body as a JSON object; None where it is none."""
        try:
            decoded = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return decoded if isinstance(decoded, dict) else None


class AuthorizationHttp:
    """HTTP on behalf of the MCP server at `server_url`, which says what part of the network may be asked."""

    def __init__(self, server_url: str, *, limit_secs: float = ANSWER_LIMIT_SECS) -> None:
        self._server_url = server_url
        self._limit_secs = limit_secs
        self._clients: dict[str, tuple[httpx.AsyncClient, Proxy | None]] = {}
        self._server_realms: frozenset[str] | None = None

    async def get(self, url: str, *, is_trusted: bool = False) -> HttpAnswer:
        """A GET; redirects are followed within the origin. Raises AuthorizationFailure.

        `is_trusted` is for what the user wrote: it may be anywhere in the network.
        """
        origin = _origin(url)
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._ask("GET", url, is_trusted=is_trusted)
            target = answer.headers.get("location")
            if answer.status not in (301, 302, 303, 307, 308) or target is None:
                return answer
            url = _resolved(url, target)
            if not url or _origin(url) != origin:
                return answer  # As it came: other machines are not asked because of a redirect.
        raise AuthorizationFailure(f"{url} leads in circles")

    async def post_form(
        self, url: str, form: Mapping[str, str], *, headers: Mapping[str, str], is_trusted: bool = False
    ) -> HttpAnswer:
        """A POST of form fields; no redirect is followed. Raises AuthorizationFailure."""
        sent = {"content-type": "application/x-www-form-urlencoded", **headers}
        return await self._ask("POST", url, body=urlencode(form).encode(), headers=sent, is_trusted=is_trusted)

    async def post_json(self, url: str, value: Any) -> HttpAnswer:
        """A POST of JSON; no redirect is followed. Raises AuthorizationFailure."""
        headers = {"content-type": "application/json"}
        return await self._ask("POST", url, body=json.dumps(value).encode(), headers=headers)

    async def aclose(self) -> None:
        """Closes every connection."""
        clients, self._clients = self._clients, {}
        for client, _ in clients.values():
            await client.aclose()

    async def _ask(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        is_trusted: bool = False,
    ) -> HttpAnswer:
        try:
            check_url(url)
            client, proxy = await self._client(url)
            targets = [httpx.URL(url)] if is_trusted else await self._targets(url, proxy)
            sent = {**_HEADERS, **(headers or {}), "host": targets[0].netloc.decode("ascii")}
            async with asyncio.timeout(self._limit_secs):
                return await _asked(client, method, targets, body=body, headers=sent)
        except AddressError as error:
            raise AuthorizationFailure(f"{quoted(url)} {error}, so it is not asked") from None
        except TimeoutError:
            raise AuthorizationFailure(f"{_place(url)} did not answer within {self._limit_secs:g} s") from None
        except _HTTP_FAILURES as error:
            raise AuthorizationFailure(f"{_place(url)} cannot be reached: {root_of(error)}") from error

    async def _client(self, url: str) -> tuple[httpx.AsyncClient, Proxy | None]:
        origin = origin_of(url)
        if origin not in self._clients:
            proxy = proxy_for(url)
            trust = await asyncio.to_thread(trusted_certificates, url, proxy)  # Reading them takes 0.1 s.
            self._clients[origin] = (_new_client(trust, proxy, self._limit_secs), proxy)
        return self._clients[origin]

    # Where it is ----------------------------------------------------------------------------------------

    async def _targets(self, url: str, proxy: Proxy | None) -> list[httpx.URL]:
        """The URL, and with each address of its host in place of the name, so that nothing is looked up again.

        Raises AddressError for a machine that the MCP server has no business to send us to. Where a proxy is in
        between, names are looked up by it, and only plain addresses can be judged here.
        """
        named = httpx.URL(url)
        if proxy is not None:
            if _is_plain_address(named.host):
                await self._check_one(realm_of(named.host))
            return [named]
        addresses = await addresses_of(url)
        for address in addresses:
            await self._check_one(realm_of(address))
        return [named, *(named.copy_with(host=address) for address in addresses)]

    async def _check_one(self, realm: str) -> None:
        if realm == "global":
            return
        if self._server_realms is None:
            self._server_realms = await self._realms_of_server()
        if not may_reach(self._server_realms, realm):
            raise AddressError("lies in a private network, and the MCP server does not")

    async def _realms_of_server(self) -> frozenset[str]:
        if is_loopback(urlsplit(self._server_url).hostname or ""):
            return frozenset({"loopback"})
        return frozenset(map(realm_of, await addresses_of(self._server_url)))


async def _asked(
    client: httpx.AsyncClient,
    method: str,
    targets: Sequence[httpx.URL],
    *,
    body: bytes | None,
    headers: Mapping[str, str],
) -> HttpAnswer:
    """What the first of the addresses behind the URL answers that takes a connection."""
    named, *addresses = targets
    for tries_left, target in zip(reversed(range(len(addresses) or 1)), addresses or [named], strict=True):
        request = client.build_request(
            method, target, content=body, headers=dict(headers), extensions={"sni_hostname": named.host}
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if tries_left == 0:
                raise
            continue
        try:
            return await _read(response, str(named))
        finally:
            await response.aclose()
    raise AssertionError("there is at least one target")


def _new_client(trust: ssl.SSLContext, proxy: Proxy | None, limit_secs: float) -> httpx.AsyncClient:
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(limit_secs, connect=CONNECT_LIMIT_SECS),
            verify=trust,
            proxy=proxy.address if proxy else None,
            trust_env=False,  # Read in web/environment, so that a variable that is not needed is not in the way.
        )
    except (ValueError, ImportError, httpx.InvalidURL):
        variable = proxy.variable if proxy else "HTTP_PROXY"
        raise ConfigurationError(
            f"the proxy in the environment variable {variable} cannot be used: correct or unset it", path=variable
        ) from None


async def _read(response: httpx.Response, url: str) -> HttpAnswer:
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise AuthorizationFailure(f"{_place(url)} answered more than {MAX_ANSWER_BYTES // 1024} KB")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(url=url, status=response.status_code, headers=headers, body=bytes(body))


def _origin(url: str) -> str:
    try:
        return origin_of(url)
    except AddressError as error:
        raise AuthorizationFailure(f"{quoted(url)} {error}, so it is not asked") from None


def _resolved(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return ""


def _is_plain_address(host: str) -> bool:
    try:
        realm_of(host)
    except ValueError:
        return False
    return True


def _place(url: str) -> str:
    """A URL without its query, which may hold what nobody else should see."""
    return url.partition("?")[0]
