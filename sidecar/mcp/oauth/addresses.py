"""Which addresses of the network may be asked while a server's authorization is looked for.

What a server's metadata names is not to be trusted: a server out on the Internet must not make us ask machines
of the network that we are in. Source: MCP security best practices, on server-side request forgery.
"""

import asyncio
import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from sidecar.mcp.oauth.options import LOOPBACK_HOSTS
from sidecar.web.addresses import IpAddress, is_public, meanings

RESOLVE_LIMIT_SECS = 10.0


class AddressError(ValueError):
    """An address that is not asked; the message says why, as the end of a sentence about it."""


def origin_of(url: str) -> str:
    """Scheme, host and port, in the one way to write them."""
    parts = _split(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def check_url(url: str) -> None:
    """Raises AddressError unless it is https, or http on this machine, with nothing in it that hides the host."""
    parts = _split(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AddressError("is no https URL")
    if parts.username is not None or parts.password is not None:
        raise AddressError("holds a user name")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise AddressError("is plain http, which is for this machine alone")


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine."""
    try:
        return host in LOOPBACK_HOSTS or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.endswith(".localhost")


_REALMS = ("global", "private", "loopback", "linkLocal", "none")
"""Whose addresses there are, from the outside in; `none` is for what is no machine's."""

_REACHES: dict[str, frozenset[str]] = {
    "global": frozenset({"global"}),
    "private": frozenset({"global", "private"}),
    "loopback": frozenset({"global", "private", "loopback"}),
    "linkLocal": frozenset({"global", "linkLocal"}),
}
"""Where the metadata of a server may send us, by where the server itself is. Own choice."""


def realm_of(address: str) -> str:
    """One of _REALMS; of an address that has others packed into it the innermost. Raises ValueError."""
    return max((_realm(meant) for meant in meanings(address)), key=_REALMS.index)


def may_reach(server_realms: frozenset[str], realm: str) -> bool:
    """Whether a server in `server_realms` may make us ask an address in `realm`."""
    return realm == "global" or any(realm in _REACHES.get(known, ()) for known in server_realms)


async def addresses_of(url: str) -> tuple[str, ...]:
    """The addresses of a URL's host. Raises AddressError where it has none."""
    parts = _split(url)
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    try:
        async with asyncio.timeout(RESOLVE_LIMIT_SECS):
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        raise AddressError("has a host that cannot be looked up") from None
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _realm(address: IpAddress) -> str:
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "linkLocal"
    if address.is_unspecified or address.is_multicast:
        return "none"
    return "global" if is_public(address) else "private"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise AddressError("is no URL") from None
    if any(character <= " " or character == "\\" for character in url):
        raise AddressError("is no URL")
    return parts
