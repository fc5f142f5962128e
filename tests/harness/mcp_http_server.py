"""A real MCP server over HTTP, whose era, manners and faults a test chooses.

    async with McpHttpServer(eras=("legacy",), replies="sse") as server:
        ...                                       # a client of server.entry()
        server.seen[-1].headers                   # what the client sent
        await server.restart()                    # on the same port; its sessions are gone

It speaks Streamable HTTP of the revisions with a handshake ("legacy") and of 2026-07-28 ("modern"), and the older
HTTP+SSE ("sse"). What a tool named `fault` answers is in `mcp_http_faults`.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from attrs import define, field

LIMIT_SECS = 10.0
"""How long anything here waits before it gives up: a test that needs more is stuck."""

ROOT = Path(__file__).resolve().parents[2]
MODERN = "2026-07-28"
_META = "io.modelcontextprotocol/protocolVersion"

Json = dict[str, Any]
Play = Callable[["Wire", "Seen"], Awaitable[None]]


@define(eq=False)
class Seen:
    """A request that came in. `body` is decoded JSON, `headers` have lower-case names."""

    http: str
    path: str
    headers: dict[str, str]
    body: Any
    disconnected: asyncio.Event = field(factory=asyncio.Event)
    """Set when the client goes away before it has the whole answer."""

    @property
    def method(self) -> str | None:
        return self.body.get("method") if isinstance(self.body, dict) else None

    @property
    def id(self) -> Any:
        return self.body.get("id")

    @property
    def params(self) -> Json:
        return dict(self.body.get("params") or {})

    @property
    def meta(self) -> Json:
        return dict(self.params.get("_meta") or {})


class Wire:
    """The answer to one request, as bytes."""

    def __init__(self, writer: asyncio.StreamWriter, seen: Seen) -> None:
        self._writer = writer
        self._seen = seen
        self._is_chunked = False
        self.is_done = False
        self.released = asyncio.Event()

    async def respond(
        self, status: int, body: bytes = b"", content_type: str = "application/json", **headers: str
    ) -> None:
        """A whole answer. Underscores in names of headers stand for hyphens."""
        await self.head(status, content_type if body else "", content_length=str(len(body)), **headers)
        await self.write(body)
        self.is_done = True

    async def json(self, value: Any, status: int = 200, **headers: str) -> None:
        """A whole answer of JSON."""
        await self.respond(status, json.dumps(value).encode(), **headers)

    async def stream(self, **headers: str) -> None:
        """The head of a stream of events."""
        self._is_chunked = True
        await self.head(200, "text/event-stream", transfer_encoding="chunked", **headers)

    async def event(self, message: Any, **fields: Any) -> None:
        """One event with a message, after the lines of `fields`; None for no data."""
        lines = [f"{name}: {value}\n" for name, value in fields.items()]
        data = "" if message is None else json.dumps(message)
        await self.write(f"{''.join(lines)}data: {data}\n\n".encode())

    async def head(self, status: int, content_type: str, **headers: str) -> None:
        """Status and headers."""
        named = {"content-type": content_type} if content_type else {}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in named.items()), "", ""]
        self._writer.write("\r\n".join(lines).encode("latin-1"))
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        """Bytes of the body."""
        if data:
            self._writer.write(b"%x\r\n%s\r\n" % (len(data), data) if self._is_chunked else data)
            await self._writer.drain()
        if self._seen.disconnected.is_set():
            raise ConnectionResetError

    async def end(self) -> None:
        """The end of a stream, as it should be."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        self.is_done = True

    def reset(self) -> None:
        """Resets the connection: a linger time of zero makes closing send RST instead of FIN."""
        connection: socket.socket = self._writer.get_extra_info("socket")
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
        )
        self._writer.transport.abort()
        raise ConnectionResetError


def text(words: str) -> Json:
    """The result of a call that answers with text."""
    return {"content": [{"type": "text", "text": words}]}


def result(request_id: Any, value: Any) -> Json:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(request_id: Any, code: int, message: str, **more: Any) -> Json:
    """The refusal of a request."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message, **more}}


def tool(name: str, **properties: Any) -> Json:
    """The entry of a tool."""
    return {"name": name, "description": name, "inputSchema": {"type": "object", "properties": properties}}


TOOLS = [tool(name) for name in ("echo", "fault", "silent", "slow", "huge", "ask", "change")]
MIRRORED = tool("mirrored", region={"type": "string", "x-mcp-header": "Region"})
MALFORMED = tool("malformed", region={"type": "string", "x-mcp-header": "no name"})


class McpHttpServer:
    """The server, as an async context manager. See the module.

    `replies` says how requests are answered. `on_discover` answers `server/discover` where only "legacy" is
    spoken: a status and a body. `lost_status` is what a session that is not known gets. With `token`, requests
    need it. `faults` are the kinds of answers of the tool `fault`. `routes` are paths that stand for others.
    `capabilities` are what it offers beside tools.

    A test may change on the way: `tools`; `rests`, what is sent after an event id; `rewrites`, paths that stand
    for `/mcp` with a header; `keeps_sessions`; `may_initialize`, without which the end of the handshake is not
    accepted; `on_delete`, which `refuses` or `is silent`; `old_get` and
    `old_post`, what the older transport answers instead.
    """

    def __init__(
        self,
        *,
        eras: Sequence[Literal["legacy", "modern", "sse"]] = ("legacy",),
        revision: str = "2025-11-25",
        replies: Literal["json", "sse"] = "json",
        has_sessions: bool = True,
        has_stream: bool = True,
        on_discover: tuple[int, Any] | None = None,
        lost_status: Literal[400, 404] = 404,
        token: str | None = None,
        faults: dict[str, Play] | None = None,
        tools: Sequence[Json] = (*TOOLS, MIRRORED),
        routes: Mapping[str, str] = {},
        capabilities: Json = {},  # noqa: B006  read only
    ) -> None:
        self.seen: list[Seen] = []
        self.connections = 0
        self.sessions: set[str] = set()
        self.tools = list(tools)
        self.rests: dict[str, Play] = {}
        self.streams: set[Wire] = set()
        self.eras = eras
        self.port = 0
        self.rewrites: dict[str, str] = {}
        self.keeps_sessions = True
        self.may_initialize = asyncio.Event()
        self.may_initialize.set()
        self.on_delete = ""
        self.old_get: Play | None = None
        self.old_post: Play | None = None
        self._revision = revision
        self._replies = replies
        self._has_sessions = has_sessions
        self._has_stream = has_stream
        self._on_discover = on_discover
        self._lost_status = lost_status
        self._token = token
        self._faults = faults or {}
        self._routes = routes
        self._capabilities = {"tools": {"listChanged": True}, **capabilities}
        self._numbers = itertools.count(1)
        self._serving: set[asyncio.Task[None]] = set()
        self._news = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def entry(self, **fields: Any) -> Json:
        """The entry of `mcpServers` for it."""
        kind = {"type": "sse"} if self.eras == ("sse",) else {}
        return {"url": self.url, **kind, **fields}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listens, on the port that it had before."""

        def accepted() -> asyncio.StreamReaderProtocol:
            return asyncio.StreamReaderProtocol(_Reader(), self._accept)

        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(accepted, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Drops every connection, forgets all sessions and listens no more."""
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        self.sessions.clear()
        self.streams.clear()

    async def restart(self) -> None:
        """Stops and starts again."""
        await self.stop()
        await self.start()

    async def until(self, is_so: Callable[[], Any]) -> Any:
        """Waits until something that came in makes it so."""
        async with asyncio.timeout(LIMIT_SECS), self._news:
            return await self._news.wait_for(is_so)

    async def received(self, method: str, count: int = 1) -> Seen:
        """Waits for the `count`-th message of a method; for `GET` and `DELETE` for such a request."""
        await self.until(lambda: len(self.all(method)) >= count)
        return self.all(method)[count - 1]

    def all(self, method: str) -> list[Seen]:
        """The messages of a method so far, or the requests with that of HTTP."""
        return [seen for seen in self.seen if method in (seen.method, seen.http)]

    async def push(self, message: Json, **fields: Any) -> None:
        """Sends a message of the server's own on every open stream."""
        await self.until(lambda: self.streams)
        for wire in self.streams:
            await wire.event(message, **fields)

    def end_streams(self) -> None:
        """Ends every open stream, as a server may at any time."""
        for wire in self.streams:
            wire.released.set()

    # Connections ----------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert isinstance(reader, _Reader)
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        task.add_done_callback(lambda task: writer.transport.abort())

    async def _serve(self, reader: "_Reader", writer: asyncio.StreamWriter) -> None:
        try:
            while (seen := await _read_request(reader)) is not None:
                wire = Wire(writer, seen)
                watch = asyncio.create_task(_watch(reader, seen))
                try:
                    await self._note(seen)
                    await self._answer(wire, seen)
                finally:
                    watch.cancel()
                    self.streams.discard(wire)
                if not wire.is_done:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client went away; `disconnected` tells the test.
        finally:
            await self._told()

    async def _note(self, seen: Seen) -> None:
        seen.path = self._routes.get(seen.path, seen.path)
        if (header := self.rewrites.get(seen.path)) is not None:
            seen.path = "/mcp"
            seen.headers[header] = "yes"
        self.seen.append(seen)
        await self._told()

    async def _told(self) -> None:
        async with self._news:
            self._news.notify_all()

    # Answers --------------------------------------------------------------------------------------------

    async def _answer(self, wire: Wire, seen: Seen) -> None:
        if self._token is not None and seen.headers.get("authorization") != f"Bearer {self._token}":
            await wire.respond(401, b'{"error":"invalid_token"}', www_authenticate="Bearer")
        elif "sse" in self.eras and (seen.http == "GET" or seen.path.startswith("/messages")):
            await self._answer_old(wire, seen)
        elif seen.path != "/mcp":
            await wire.respond(404, b"no such page", "text/plain")
        elif seen.http == "POST" and isinstance(seen.body, dict):
            await self._answer_post(wire, seen)
        elif "legacy" in self.eras and seen.http in ("GET", "DELETE"):
            await self._answer_session(wire, seen)
        else:
            await wire.respond(405)

    async def _answer_post(self, wire: Wire, seen: Seen) -> None:
        if _META in seen.meta:
            await self._answer_modern(wire, seen)
        elif "legacy" not in self.eras:
            await wire.respond(404 if "sse" in self.eras else 400)
        elif seen.method == "initialize":
            await self._begin(wire, seen)
        elif self._has_sessions and seen.headers.get("mcp-session-id") not in self.sessions:
            await self._refuse_session(wire)
        elif seen.id is None or seen.method is None:
            if seen.method == "notifications/initialized":
                await self.may_initialize.wait()
            await wire.respond(202)
        else:
            await self._answer_request(wire, seen)

    async def _begin(self, wire: Wire, seen: Seen) -> None:
        headers = {}
        if self._has_sessions:
            session = f"secret-session-{next(self._numbers)}"
            if self.keeps_sessions:
                self.sessions.add(session)
            headers["mcp_session_id"] = session
        value = {
            "protocolVersion": self._revision,
            "capabilities": self._capabilities,
            "serverInfo": {"name": "harness", "version": "1"},
        }
        await self._reply(wire, result(seen.id, value), **headers)

    async def _refuse_session(self, wire: Wire) -> None:
        if self._lost_status == 404:
            await wire.json(error(None, -32001, "Session not found"), 404)
        else:
            await wire.json(error(None, -32000, "Bad Request: No valid session ID provided"), 400)

    async def _answer_session(self, wire: Wire, seen: Seen) -> None:
        """GET: its own messages, or the rest of a stream; DELETE: the end of a session."""
        session = seen.headers.get("mcp-session-id")
        if self._has_sessions and session not in self.sessions:
            await wire.respond(404)
        elif seen.http == "DELETE":
            self.sessions.discard(session or "")
            if self.on_delete == "is silent":
                await seen.disconnected.wait()
            await wire.respond(405 if self.on_delete == "refuses" else 200)
        elif rest := self.rests.pop(seen.headers.get("last-event-id", ""), None):
            await rest(wire, seen)
        elif not self._has_stream:
            await wire.respond(405)
        else:
            await wire.stream()
            await self._keep_open(wire, seen)

    async def _keep_open(self, wire: Wire, seen: Seen) -> None:
        """Until the client goes away, or the test ends the streams."""
        self.streams.add(wire)
        await self._told()
        await _either(seen.disconnected, wire.released)
        if not seen.disconnected.is_set():
            await wire.end()

    async def _answer_modern(self, wire: Wire, seen: Seen) -> None:
        if "modern" not in self.eras:
            if seen.method == "server/discover" and self._on_discover is not None:
                status, body = self._on_discover
                await wire.respond(status, body.encode()) if isinstance(body, str) else await wire.json(
                    body, status
                )
            elif "sse" in self.eras:
                await wire.respond(405)
            else:
                await wire.json(error(seen.id, -32601, "Method not found"))
        elif (reason := _mismatch(seen, self.tools)) is not None:
            await wire.json(error(seen.id, -32020, f"Header mismatch: {reason}"), 400)
        elif seen.meta[_META] != MODERN:
            data = {"supported": [MODERN], "requested": seen.meta[_META]}
            await wire.json(error(seen.id, -32022, "Unsupported protocol version", data=data), 400)
        else:
            await self._answer_request(wire, seen)

    async def _answer_request(self, wire: Wire, seen: Seen) -> None:
        match seen.method:
            case "server/discover":
                value = {"supportedVersions": [MODERN], "capabilities": {"tools": {"listChanged": True}}}
                await self._reply(wire, result(seen.id, {"resultType": "complete", **value}))
            case "tools/list":
                await self._reply(wire, result(seen.id, {"tools": self.tools}))
            case "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe":
                await self._reply(wire, result(seen.id, {}))
            case "subscriptions/listen":
                await self._listen(wire, seen)
            case "tools/call":
                await self._call(wire, seen)
            case _:
                status = 404 if _META in seen.meta else 200
                await wire.json(error(seen.id, -32601, "Method not found"), status)

    async def _listen(self, wire: Wire, seen: Seen) -> None:
        await wire.stream()
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": seen.id}}
        await wire.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": meta})
        await self._keep_open(wire, seen)

    async def _reply(self, wire: Wire, message: Json, **headers: str) -> None:
        if self._replies == "json":
            await wire.json(message, **headers)
            return
        await wire.stream(**headers)
        await wire.event(message)
        await wire.end()

    async def _call(self, wire: Wire, seen: Seen) -> None:
        arguments = seen.params.get("arguments") or {}
        match seen.params.get("name"):
            case "fault":
                await self._faults[arguments["kind"]](wire, seen)
            case "silent":
                await seen.disconnected.wait()
            case "slow":
                await self._slow(wire, seen)
            case "huge":
                await self._reply(wire, result(seen.id, text("x" * arguments["bytes"])))
            case "ask":
                await self._ask(wire, seen)
            case "change":
                self.tools.append(tool(arguments["name"]))
                await self._reply(wire, result(seen.id, text("changed")))
            case _:
                await self._reply(wire, result(seen.id, text(str(arguments.get("text", "")))))

    async def _slow(self, wire: Wire, seen: Seen) -> None:
        """Reports progress, then is silent until the client goes or a message cancels it."""
        await wire.stream()
        params = {"progressToken": seen.meta.get("progressToken"), "progress": 1}
        await wire.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await seen.disconnected.wait()

    async def _ask(self, wire: Wire, seen: Seen) -> None:
        """Asks the client something on the stream of the call, and tells what it answered."""
        await wire.stream()
        await wire.event({"jsonrpc": "2.0", "id": "from-server", "method": "ping"})
        reply = await self.until(lambda: next((s for s in self.seen if s.body and s.id == "from-server"), None))
        await wire.event(result(seen.id, text(json.dumps(reply.body["result"]))))
        await wire.end()

    async def _answer_old(self, wire: Wire, seen: Seen) -> None:
        """HTTP+SSE of 2024-11-05."""
        instead = self.old_get if seen.http == "GET" else self.old_post
        if instead is not None:
            await instead(wire, seen)
        elif seen.http == "GET":
            await wire.stream()
            await wire.write(b"event: endpoint\ndata: /messages?session=secret\n\n")
            await self._keep_open(wire, seen)
        else:
            await self._take_old(wire, seen)

    async def _take_old(self, wire: Wire, seen: Seen) -> None:
        await wire.respond(202, b"Accepted", "text/plain")
        value: Json | None = None
        match seen.method:
            case "initialize":
                info = {"name": "harness", "version": "1"}
                value = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                value = {"tools": self.tools}
            case "tools/call" if seen.params["name"] == "echo":
                value = text(seen.params["arguments"]["text"])
        if value is not None:
            await self.push(result(seen.id, value))


def _mismatch(seen: Seen, tools: Sequence[Json]) -> str | None:
    """Why the headers of a modern request do not fit its body (MCP 2026-07-28, Server Validation)."""
    wanted = {"mcp-protocol-version": seen.meta[_META], "mcp-method": seen.method}
    wanted["mcp-name"] = seen.params.get("name") or seen.params.get("uri")
    arguments = seen.params.get("arguments") or {}
    for each in tools:
        if each["name"] == seen.params.get("name"):
            for name, schema in each["inputSchema"]["properties"].items():
                if "x-mcp-header" in schema:
                    value = arguments.get(name)
                    wanted[f"mcp-param-{schema['x-mcp-header'].lower()}"] = None if value is None else str(value)
    return next((name for name, value in wanted.items() if seen.headers.get(name) != value), None)


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


class _Reader(asyncio.StreamReader):
    """A reader that tells when its stream has ended, without taking anything from it."""

    def __init__(self) -> None:
        super().__init__(limit=2**20)
        self.ended = asyncio.Event()

    def feed_eof(self) -> None:
        super().feed_eof()
        self.ended.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.ended.set()


async def _watch(reader: _Reader, seen: Seen) -> None:
    await reader.ended.wait()
    seen.disconnected.set()


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    """The next request of a connection; None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    http, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(http=http, path=path, headers=headers, body=json.loads(body) if body else None)


# A process of its own -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def server_process(replies: str) -> AsyncIterator[str]:
    """Such a server in a process of its own, for tests that measure; its URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.harness.mcp_http_server", replies, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield (await asyncio.wait_for(process.stdout.readline(), LIMIT_SECS)).decode().strip()
    finally:
        process.kill()
        await process.wait()


async def main(replies: Literal["json", "sse"]) -> None:
    """Serves until it is killed; writes its URL."""
    async with McpHttpServer(replies=replies) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))  # type: ignore[arg-type]
