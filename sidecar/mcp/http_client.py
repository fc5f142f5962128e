"""What an entry with a URL says, checked, and the HTTP client made from it."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx

from sidecar import __version__
from sidecar.mcp.config import HttpServer
from sidecar.protocol.errors import ConfigurationError
from sidecar.web.environment import Proxy, trusted_certificates

CONNECT_LIMIT_SECS = 10.0
"""How long a connection may take to come about. Own choice."""

KEEP_ALIVE_SECS = 4.0
"""Idle connections are not used after this: Node and uvicorn close theirs after five seconds, and a request that
crosses such an end on the wire is lost."""

_SHORTEST_SECRET = 6
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def resolved(base: str, reference: str) -> str:
    """A URL that a server wrote, taken from where it stands; empty where it is none."""
    try:
        return urljoin(base, reference.strip())
    except ValueError:
        return ""


def is_same_origin(one: str, other: str) -> bool:
    """Whether two URLs have the same scheme, host and port (RFC 6454)."""
    return _origin(one) == _origin(other) is not None


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def new_client(url: str, headers: Mapping[str, str], proxy: Proxy | None) -> httpx.AsyncClient:
    """A client with these headers on every request; connects to nothing yet.

    Raises ConfigurationError for a proxy or certificates that cannot be used. Reading those takes 0.1 s.
    """
    all_headers = httpx.Headers({"user-agent": f"agent-sidecar/{__version__}"})
    all_headers.update(dict(headers))
    timeout = httpx.Timeout(connect=CONNECT_LIMIT_SECS, read=None, write=None, pool=None)
    try:
        return httpx.AsyncClient(
            headers=all_headers,
            timeout=timeout,  # Of waiting for answers the limits are those of the requests.
            limits=httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_SECS),
            verify=trusted_certificates(url, proxy),
            proxy=proxy.address if proxy else None,
            trust_env=False,  # Read here, so that a variable that this URL does not need cannot be in the way.
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        variable = proxy.variable if proxy else "HTTP_PROXY"
        wanted = "it must be a URL that begins with http://, https://, socks5:// or socks5h://"
        reason = "SOCKS proxies need the package 'socksio'" if isinstance(error, ImportError) else wanted
        raise ConfigurationError(
            f"the proxy in the environment variable {variable} cannot be used ({reason}): "
            f"correct or unset it, or add {urlsplit(url).hostname} to NO_PROXY",
            path=variable,
        ) from error


def checked_url(url: str, path: str) -> str:
    """The URL without its fragment. Raises ConfigurationError, which does not repeat it: it may hold a secret."""
    origin = _origin(url)
    if origin is None or origin[0] not in ("http", "https") or not url.isprintable() or " " in url:
        raise ConfigurationError(
            f"{path}: must be a URL that begins with http:// or https:// and names a host", path=path
        )
    return urlsplit(url)._replace(fragment="").geturl()


def check_headers(headers: Mapping[str, str], path: str) -> None:
    """Raises ConfigurationError for a header that HTTP cannot carry, without its value."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ConfigurationError(f"{path}: {name!r} is no name of a header", path=path)
        if not _HEADER_VALUE.fullmatch(value):
            raise ConfigurationError(
                f"{path}.{name}: a header holds printable ASCII only, in one line", path=f"{path}.{name}"
            )


def secrets_in(server: HttpServer, more: tuple[str, ...]) -> tuple[str, ...]:
    """What of an entry no error may show: its headers, with and without a scheme, and what its URL carries."""
    parts = urlsplit(server.url)
    values = {
        *more,
        *server.headers.values(),
        parts.password or "",
        *(value for _, value in parse_qsl(parts.query)),
    }
    values |= {value.partition(" ")[2] for value in values}
    return tuple(sorted((value for value in values if len(value) >= _SHORTEST_SECRET), key=len, reverse=True))
