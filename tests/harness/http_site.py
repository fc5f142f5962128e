"""A small real HTTP/1.1 server on asyncio, for servers in tests that are made of a few routes."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen


@frozen(kw_only=True)
class Request:
    """One request as it came. The names of headers are in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes = b""

    @property
    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@frozen
class Response:
    """What is answered: a dict or list as JSON, a text as it is. `after` is waited for; `raw` is sent instead."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(factory=dict)
    after: asyncio.Event | None = None
    raw: bytes | None = None


Handler = Callable[[Request], Awaitable[Response] | Response]


class HttpSite:
    """Serves `routes` on a free port of 127.0.0.1 and keeps every request. An async context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.routes: dict[tuple[str, str], Handler] = {}
        self.requests: list[Request] = []
        self.origin = ""
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        scheme = "http" if self._tls is None else "https"
        self.origin = f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def paths(self, method: str | None = None) -> list[str]:
        """The paths that were asked for, in order."""
        return [request.path for request in self.requests if method in (None, request.method)]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            request = await _read(reader)
            self.requests.append(request)
            handler = self.routes.get((request.method, request.path), _not_there)
            answered = handler(request)
            response = answered if isinstance(answered, Response) else await answered
            if response.after is not None:
                await response.after.wait()
            writer.write(_written(response) if response.raw is None else response.raw)
            await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method=method, path=parts.path, query=query, headers=headers, body=body)


def _not_there(request: Request) -> Response:
    return Response(404, "nothing here")


def _written(response: Response) -> bytes:
    body, kind = response.body, "text/plain"
    if isinstance(body, dict | list):
        body, kind = json.dumps(body), "application/json"
    body = body.encode() if isinstance(body, str) else body
    headers = {"content-type": kind, "content-length": str(len(body)), "connection": "close", **response.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {response.status} X\r\n{lines}\r\n".encode() + body
