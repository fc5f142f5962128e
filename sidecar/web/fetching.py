"""One GET of a public page: nothing private is reached, nothing endless is read."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import httpx
from attrs import frozen

from sidecar.protocol.errors import ConfigurationError
from sidecar.web.addresses import UnknownHostError, parsed_url, public_addresses
from sidecar.web.environment import Proxy, proxy_for, trusted_certificates

MAX_BYTES = 5 * 1024 * 1024
"""Of a larger body the beginning is taken. Own choice."""

MAX_REDIRECTS = 10
"""As browsers have about twice as many (own choice)."""

_PRIVATE_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp")

_HEADERS = {
    "user-agent": "agent-sidecar",
    "accept": "text/html, text/plain, application/json, text/*;q=0.9, */*;q=0.5",
}
_FAILURES = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ssl.SSLError, OSError, ValueError)


AddressesOf = Callable[[httpx.URL], Awaitable[list[str]]]


class FetchError(Exception):
    """The page could not be had; the message says why."""


@frozen(kw_only=True, eq=False)
class Page:
    """What came. `redirect` is where the host of `url` sends whoever asks, to another host."""

    url: str
    status: int
    media_type: str
    charset: str | None
    body: bytes
    is_cut: bool = False
    redirect: str | None = None


async def fetch(url: str, *, limit_secs: float, addresses_of: AddressesOf = public_addresses) -> Page:
    """The page at a URL, redirects within its host followed. Raises FetchError and RefusedAddressError.

    `addresses_of` gives the addresses of a URL's host that may be asked, and refuses all others.
    """
    parsed = parsed_url(url)
    try:
        async with asyncio.timeout(limit_secs):
            return await _followed(parsed, addresses_of)
    except TimeoutError:
        raise FetchError(f"{parsed} did not answer in full within {limit_secs:g} s") from None
    except ConfigurationError as error:
        raise FetchError(error.message) from None
    except _FAILURES as error:
        raise FetchError(f"{parsed} cannot be fetched: {str(error) or type(error).__name__}") from None


async def _followed(url: httpx.URL, addresses_of: AddressesOf) -> Page:
    for _ in range(MAX_REDIRECTS + 1):
        page = await _fetched(url, addresses_of)
        if page.redirect is None:
            return page
        target = parsed_url(page.redirect)
        if target.host != url.host:
            return page
        url = target
    raise FetchError(f"{url} redirects more than {MAX_REDIRECTS} times")


async def _fetched(url: httpx.URL, addresses_of: AddressesOf) -> Page:
    """One request, of the first address that takes the connection."""
    proxy = proxy_for(str(url))
    trust = await asyncio.to_thread(trusted_certificates, str(url), proxy)
    async with httpx.AsyncClient(
        verify=trust, proxy=proxy.address if proxy else None, trust_env=False, headers=_HEADERS, timeout=None
    ) as client:
        targets = await _targets(url, proxy, addresses_of)
        for place, target in enumerate(targets):
            request = client.build_request(
                "GET", target, headers={"host": url.netloc.decode("ascii")}, extensions={"sni_hostname": url.host}
            )
            try:
                response = await client.send(request, stream=True)
            except httpx.ConnectError:
                if place + 1 == len(targets):
                    raise
                continue
            try:
                return await _read(url, response)
            finally:
                await response.aclose()
    raise FetchError(f"{url} has no address")


async def _targets(url: httpx.URL, proxy: Proxy | None, addresses_of: AddressesOf) -> list[httpx.URL]:
    """The URL with each of its host's addresses in the place of the name, so that nothing is resolved again."""
    if proxy is None:
        return [url.copy_with(host=address) for address in await addresses_of(url)]
    try:
        await addresses_of(url)
    except UnknownHostError:  # Perhaps the proxy alone can find it; a name of a private network says so itself.
        if "." not in url.host or url.host.endswith(_PRIVATE_NAMES):
            raise
    return [url]


async def _read(url: httpx.URL, response: httpx.Response) -> Page:
    redirect = None
    if response.has_redirect_location:
        redirect = str(url.join(response.headers["location"]))
    body, is_cut = b"", False
    if redirect is None:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_BYTES:
                body, is_cut = body[:MAX_BYTES], True
                break
    return Page(
        url=str(url),
        status=response.status_code,
        media_type=str(response.headers.get("content-type", "")).partition(";")[0].strip().lower(),
        charset=response.charset_encoding,
        body=body,
        is_cut=is_cut,
        redirect=redirect,
    )
