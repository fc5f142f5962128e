"""Where the browser comes back to after a sign-in: one page on this machine (RFC 8252, 7.3)."""

import asyncio
import contextlib
import html
from collections.abc import AsyncIterator, Mapping
from urllib.parse import parse_qs, urlsplit

from sidecar.mcp.oauth.options import OAuthOptions

HOST = "127.0.0.1"
PATH = "/callback"

MAX_REQUEST_BYTES = 16 * 1024
"""A code and a state are short. Own choice."""

REQUEST_LIMIT_SECS = 5.0
"""How long a browser may take to send one request. Own choice."""

MAX_VISITORS = 16
"""Connections at one time; browsers open a few ahead. Own choice."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark; max-width: 30em; margin: 20vh auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{text}</p>
</body>
</html>
"""
_HEADERS = (
    "Content-Type: text/html; charset=utf-8\r\n"
    "Cache-Control: no-store\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
    "Connection: close\r\n"
)


class Listener:
    """Waits for one visit of the browser at `redirect_uri`. Made by `listening`, which ends it."""

    def __init__(self, redirect_uri: str, path: str) -> None:
        self.redirect_uri = redirect_uri
        self._path = path
        self._visitors = 0
        self._visit: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def visit(self) -> Mapping[str, str]:
        """The parameters that the browser brought."""
        return await asyncio.shield(self._visit)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection, whatever it sends."""
        self._visitors += 1
        try:
            if self._visitors <= MAX_VISITORS:
                async with asyncio.timeout(REQUEST_LIMIT_SECS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._answer(head))
                    await writer.drain()
        except (TimeoutError, ConnectionError, EOFError, asyncio.LimitOverrunError, ValueError):
            pass  # Not a browser, or one that has thought better of it. ValueError is for what is no address.
        finally:
            self._visitors -= 1
            writer.close()

    def _answer(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if parts.path != self._path:
            return _page("404 Not Found", "Nothing here", "This address serves one sign-in alone.")
        if method != "GET":
            return _page("405 Method Not Allowed", "Not understood", "This address is for a browser.")
        parameters = read_parameters(parts.query)
        if self._visit.done():
            return _page("409 Conflict", "Already done", "This sign-in has come back before.")
        self._visit.set_result(parameters)
        if "code" in parameters:
            return _page("200 OK", "Almost done", "You can close this page and go back to your editor.")
        text = "The server did not let you in. Your editor says what it can about it."
        return _page("200 OK", "The sign-in was not completed", text)


@contextlib.asynccontextmanager
async def listening(options: OAuthOptions, *, preferred_uri: str | None = None) -> AsyncIterator[Listener]:
    """Listens on 127.0.0.1 as long as the context lasts.

    At the address that the options name; else at `preferred_uri`, where that is free; else on any port. Raises
    OSError where the address of the options is taken.
    """
    wanted = configured_redirect(options)
    listener, server = None, None
    if wanted is None and preferred_uri is not None:
        with contextlib.suppress(OSError):
            listener, server = await _open(preferred_uri)
    if listener is None or server is None:
        listener, server = await _open(wanted or f"http://{HOST}:0{PATH}")
    try:
        yield listener
    finally:
        server.close()


def configured_redirect(options: OAuthOptions) -> str | None:
    """The address that the user says is registered."""
    if options.redirect_uri is not None:
        return options.redirect_uri
    return None if options.callback_port is None else f"http://localhost:{options.callback_port}{PATH}"


def read_parameters(query: str) -> dict[str, str]:
    """The parameters of a redirect. One that is there twice is left out: none of the two can be believed."""
    found = parse_qs(query, keep_blank_values=True, max_num_fields=100)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


async def _open(uri: str) -> tuple[Listener, asyncio.Server]:
    parts = urlsplit(uri)
    hosts = [HOST, "::1"] if parts.hostname == "localhost" else [parts.hostname or HOST]
    listener: Listener | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert listener is not None, "nobody connects before the port is known"
        await listener.serve(reader, writer)

    try:
        server = await asyncio.start_server(serve, hosts, parts.port or 0, limit=MAX_REQUEST_BYTES)
    except OSError:
        if len(hosts) == 1:
            raise
        server = await asyncio.start_server(serve, HOST, parts.port or 0, limit=MAX_REQUEST_BYTES)  # No IPv6.
    port = server.sockets[0].getsockname()[1]
    listener = Listener(uri if parts.port else f"http://{HOST}:{port}{parts.path}", parts.path or "/")
    return listener, server


def _page(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=html.escape(title), text=html.escape(text)).encode()
    return f"HTTP/1.1 {status}\r\n{_HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body
