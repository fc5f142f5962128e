"""Which addresses of the web may be asked on a model's word: those that everybody can reach, and no others.

A model can be talked into asking an address inside the network that it runs in, such as a cloud's metadata
service. Names are resolved first, every address is looked at, and the connection goes to one of those.
"""

import asyncio
import ipaddress
import socket

import httpx

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")))
"""Public by their looks, but special (RFC 6890), or a cloud's own service behind a public address (Azure)."""

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""NAT64 (RFC 6052): the last four bytes are an address of the old kind."""


class RefusedAddressError(Exception):
    """An address that is not asked; the message says why."""


class UnknownHostError(RefusedAddressError):
    """A name that leads nowhere, as far as can be seen from here."""


def parsed_url(url: str) -> httpx.URL:
    """The URL without what never leaves: a fragment, and a name and password. Raises RefusedAddressError."""
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise RefusedAddressError(f"{url[:200]!r} is no URL: {error}") from None
    if parsed.scheme not in _DEFAULT_PORTS:
        raise RefusedAddressError(f"{url[:200]!r} is not fetched: only http and https URLs are")
    if not parsed.host:
        raise RefusedAddressError(f"{url[:200]!r} names no host")
    if parsed.userinfo:
        raise RefusedAddressError("a URL with a user name or password in it is not fetched")
    return parsed.copy_with(fragment=None)


def plain_url(url: str) -> str:
    """The one spelling of a URL. Raises RefusedAddressError."""
    return str(parsed_url(url))


async def public_addresses(url: httpx.URL) -> list[str]:
    """The addresses of a URL's host. Raises RefusedAddressError unless all of them are public, and
    UnknownHostError where there are none."""
    port = url.port or _DEFAULT_PORTS[url.scheme]
    try:
        found = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UnknownHostError(f"the host {url.host} is not known: {reason}") from None
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    for address in addresses:
        _refuse_private(url.host, address)
    return addresses


def meanings(address: str) -> list[IpAddress]:
    """What a written address stands for: itself, and those that are packed into it. Raises ValueError."""
    return _meant(ipaddress.ip_address(address.partition("%")[0]))


def is_public(address: IpAddress) -> bool:
    """Whether everybody can reach it, so that it is no secret what is there."""
    return _is_public(address)


def _refuse_private(host: str, address: str) -> None:
    """Raises RefusedAddressError for an address that only some can reach."""
    if not all(_is_public(each) for each in _meant(ipaddress.ip_address(address))):
        raise RefusedAddressError(
            f"{host} is not fetched: its address {address} is not a public one, it may lead into a private network"
        )


def _is_public(address: IpAddress) -> bool:
    is_plain = address.is_global and not address.is_multicast and not address.is_reserved
    return is_plain and not any(address in network for network in _SPECIAL)


def _meant(address: IpAddress) -> list[IpAddress]:
    """The address, and those of the old kind that are packed into it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    packed = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _TRANSLATED:
        packed.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    inner: list[IpAddress] = [each for each in packed if each is not None]
    # What is mapped or translated stands for the packed address alone.
    return inner if address.ipv4_mapped is not None or address in _TRANSLATED else [address, *inner]
