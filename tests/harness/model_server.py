"""A real HTTP server that plays a scripted model: Chat Completions as different servers stream them, or Messages.

    async with ScriptedModel(calls(("read_file", {"path": "a"})), says("It is empty.")) as model:
        ...                                     # something that talks to model.base_url
        assert model.requests[1].messages[-1]["role"] == "tool"

Replies are played in order, one a request; `answer=` takes a function from the request instead. Calls without
an id get `call_<request>_<call>`, both from 1. Every request is checked as the strictest providers do
(`model_strictness`): what they would refuse gets a 400, and leaving the block raises with the reasons. With
`dialect="anthropic"` it is the Messages API, and as strict (`anthropic_strictness`).
"""

import asyncio
import json
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from attrs import define, evolve, field, frozen

from tests.harness import anthropic_dialect, anthropic_strictness
from tests.harness.model_dialects import Answer, Call, DialectName, arguments_text, chunks, completion
from tests.harness.model_strictness import complaints

LIMIT_SECS = 10.0
"""How long anything here waits before it gives up: a test that needs more is stuck."""


@define
class Stall:
    """A place where the server falls silent. Wait for `reached`; `release()` lets it go on."""

    secs: float | None = None
    reached: asyncio.Event = field(factory=asyncio.Event)
    released: asyncio.Event = field(factory=asyncio.Event)

    def release(self) -> None:
        """Ends the silence."""
        self.released.set()


@frozen(kw_only=True)
class Reply:
    """What one request is answered. Made by the functions below."""

    answer: Answer | None = None
    body: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    content_type: str = "text/event-stream"
    is_whole: bool = False
    before: Stall | None = None
    cut_after: int | None = None
    then: tuple[bytes | Stall, ...] = ()
    ending: Literal["complete", "unterminated", "reset"] = "complete"

    @property
    def stall(self) -> Stall:
        """The place where it falls silent."""
        return next(step for step in (self.before, *self.then) if isinstance(step, Stall))


# Replies ------------------------------------------------------------------------------------------------


def says(text: str, **answer: Any) -> Reply:
    """The model answers with text. More fields as in `Answer`: reasoning, finish, usage, piece_characters."""
    return Reply(answer=Answer(text=text, **answer))


def calls(*called: tuple[str, Any] | tuple[str, Any, str], **answer: Any) -> Reply:
    """The model calls tools: `(name, arguments)` or `(name, arguments, call id)`; arguments may be raw text."""
    listed = [Call(name=c[0], arguments=arguments_text(c[1]), call_id=c[2] if len(c) == 3 else "") for c in called]
    return Reply(answer=Answer(calls=tuple(listed), **answer))


def raw(*pieces: bytes | str, content_type: str = "text/event-stream", headers: Mapping[str, str] = {}) -> Reply:
    """These bytes, each piece in an HTTP chunk of its own."""
    body = tuple(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    return Reply(body=body, content_type=content_type, headers=headers)


def events(*data: Any, done: bool = True) -> Reply:
    """A stream of events whose data is given as values, closed by `[DONE]`."""
    return raw(*map(event, data), *(["data: [DONE]\n\n"] if done else []))


def refuses(
    status: int, message: str = "refused", *, headers: Mapping[str, str] = {}, body: Any = None, **error: Any
) -> Reply:
    """An HTTP error with OpenAI's error object, or any other `body` (a string is sent as it is)."""
    shown = {"error": {"message": message, "type": None, "code": None, **error}} if body is None else body
    text = shown if isinstance(shown, str) else json.dumps(shown)
    return Reply(status=status, body=(text.encode(),), headers=headers, content_type="application/json")


def messages_stream(*blocks: dict[str, Any], **fields: Any) -> Reply:
    """A stream of the Messages API from whole blocks; more fields as in `anthropic_dialect.stream`."""
    return typed_events(*anthropic_dialect.stream(*blocks, **fields))


def typed_events(*data: dict[str, Any]) -> Reply:
    """A stream of events that are named for their `type`, as the Messages API sends them."""
    return raw(*(event(value, name=value["type"]) for value in data))


def anthropic_error(status: int, kind: str, message: str, *, headers: Mapping[str, str] = {}) -> Reply:
    """An HTTP error with the error object of the Messages API."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return refuses(status, body=body, headers=headers)


def whole(reply: Reply) -> Reply:
    """The same answer as one JSON object, from a server that does not stream."""
    return evolve(reply, is_whole=True, content_type="application/json")


def stalls(reply: Reply, *, after: int = 1, secs: float | None = None) -> Reply:
    """Falls silent after so many events: for `secs`, or until `reply.stall.release()`, then sends the rest."""
    return evolve(reply, cut_after=after, then=(Stall(secs),))


def never_begins(reply: Reply, *, secs: float | None = None) -> Reply:
    """Takes the request and is silent before it even sends a status."""
    return evolve(reply, before=Stall(secs))


def trickles(reply: Reply, piece: bytes, *, after: int = 1, every_secs: float = 0.05, times: int = 60) -> Reply:
    """Sends nothing but this piece, again and again, before it goes on."""
    return evolve(reply, cut_after=after, then=(piece, Stall(every_secs)) * times)


def breaks_off(reply: Reply, *, after: int = 1) -> Reply:
    """Ends half-way, as if that were all."""
    return evolve(reply, cut_after=after, ending="complete", then=(b"",))


def disconnects(reply: Reply, *, after: int = 1) -> Reply:
    """Closes the connection half-way, so that HTTP itself is incomplete."""
    return evolve(reply, cut_after=after, ending="unterminated", then=(b"",))


def resets(reply: Reply, *, after: int = 1) -> Reply:
    """Resets the connection half-way."""
    return evolve(reply, cut_after=after, ending="reset", then=(b"",))


def fails(reply: Reply, error: Any, *, after: int = 1) -> Reply:
    """Sends an error object half-way, after a 200 status."""
    return evolve(reply, cut_after=after, then=(event({"error": error}),))


def event(data: Any, *, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def delta(finish_reason: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one delta, for `events`."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish_reason}]}


# The server ---------------------------------------------------------------------------------------------


@define(eq=False)
class SeenRequest:
    """A request that came in. `body` is decoded JSON, `headers` have lower-case names."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    disconnected: asyncio.Event = field(factory=asyncio.Event)
    """Set when the client goes away before it has the whole answer."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])

    @property
    def tool_names(self) -> list[str]:
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools", [])]


class ScriptedModel:
    """The server, as an async context manager. See the module.

    `requests` are the chat requests so far, `faults` why some were refused, `connections` how many TCP
    connections were made. `chunk_bytes` cuts streams into HTTP chunks of that size. With `api_key`, requests
    without it get a 401. `model_pages` are lists of models by path and query. `is_strict=False` leaves faults to
    the test.
    """

    def __init__(
        self,
        *replies: Reply,
        answer: Callable[[SeenRequest], Reply] | None = None,
        dialect: DialectName | Literal["anthropic"] = "openai",
        models: Sequence[Any] = ("scripted",),
        model_pages: Mapping[str, Any] = {},
        api_key: str | None = None,
        chunk_bytes: int | None = None,
        is_strict: bool = True,
    ) -> None:
        self.requests: list[SeenRequest] = []
        self.faults: list[str] = []
        self.connections = 0
        self.base_url = ""
        self._replies = iter(replies)
        self._answer = answer
        self._dialect = dialect
        self._models = models
        self._model_pages = model_pages
        self._api_key = api_key
        self._chunk_bytes = chunk_bytes
        self._is_strict = is_strict
        self._serving: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()
        if self._is_strict and self.faults and error is None:
            raise AssertionError("a strict provider would refuse: " + "; ".join(self.faults))

    async def received(self, count: int = 1) -> SeenRequest:
        """Waits until there are that many chat requests; returns the last of them."""
        async with asyncio.timeout(LIMIT_SECS), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    # Connections ----------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                reply = await self._reply_to(request)
                watch = asyncio.create_task(_watch(reader, request))
                try:
                    await self._play(reply, request, writer)
                finally:
                    watch.cancel()
                    await asyncio.gather(watch, return_exceptions=True)
                if reply.ending != "complete":
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client went away; `disconnected` tells the test.
        except Exception as error:  # noqa: BLE001  a request that this server cannot read must not vanish
            self.faults.append(f"the scripted model failed: {error!r}")
        finally:
            await _close(writer)

    async def _reply_to(self, request: SeenRequest) -> Reply:
        if not self._is_authorized(request):
            if self._dialect == "anthropic":
                return anthropic_error(401, "authentication_error", "invalid x-api-key")
            return refuses(401, "Incorrect API key provided", code="invalid_api_key")
        if request.path in self._model_pages:
            return refuses(200, body=self._model_pages[request.path])
        if request.method == "GET" and request.path.partition("?")[0] == "/v1/models":
            entries = [
                {"id": model, "object": "model"} if isinstance(model, str) else model for model in self._models
            ]
            return refuses(200, body={"object": "list", "data": entries})
        if request.method != "POST" or request.path != self._path:
            return refuses(404, f"no route {request.method} {request.path}")
        async with self._arrived:
            self.requests.append(request)
            self._arrived.notify_all()
        return self._chat_reply(request)

    @property
    def _path(self) -> str:
        return "/v1/messages" if self._dialect == "anthropic" else "/v1/chat/completions"

    def _is_authorized(self, request: SeenRequest) -> bool:
        if self._dialect == "anthropic":
            return self._api_key in (None, request.headers.get("x-api-key"))
        return self._api_key is None or request.headers.get("authorization") == f"Bearer {self._api_key}"

    def _complaints(self, request: SeenRequest) -> list[str]:
        if self._dialect == "anthropic":
            return anthropic_strictness.complaints(request.body, request.headers)
        return complaints(request.body)

    def _chat_reply(self, request: SeenRequest) -> Reply:
        reasons = self._complaints(request)
        reply = self._answer(request) if self._answer is not None else next(self._replies, None)
        if reply is None:
            reasons.append(f"the script has no reply for request {len(self.requests)}")
        if reasons or reply is None:
            self.faults += reasons
            return refuses(400, "; ".join(reasons), type="invalid_request_error")
        return reply

    # Playing a reply ------------------------------------------------------------------------------------

    async def _play(self, reply: Reply, request: SeenRequest, writer: asyncio.StreamWriter) -> None:
        if reply.before is not None:
            await _silence(reply.before, request)
        pieces = list(self._pieces(reply, request))
        writer.write(_head(reply))
        cut = len(pieces) if reply.cut_after is None else reply.cut_after
        steps: list[bytes | Stall] = [*pieces[:cut], *reply.then]
        if any(isinstance(step, Stall) for step in reply.then):
            steps += pieces[cut:]
        for step in steps:
            if isinstance(step, Stall):
                await _silence(step, request)
            else:
                await self._send(step, writer)
        _end(reply, writer)
        await writer.drain()

    def _pieces(self, reply: Reply, request: SeenRequest) -> Iterator[bytes]:
        if reply.answer is None:
            yield from reply.body
            return
        answer, body = _numbered(reply.answer, len(self.requests)), request.body
        if self._dialect == "anthropic":
            yield from _message_pieces(answer, body, is_whole=reply.is_whole)
            return
        if reply.is_whole or not body.get("stream"):
            yield json.dumps(completion(answer, model=body["model"])).encode()
            return
        with_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        for chunk in chunks(answer, dialect=self._dialect, model=body["model"], with_usage=with_usage):
            yield event(chunk)
        yield b"data: [DONE]\n\n"

    async def _send(self, piece: bytes, writer: asyncio.StreamWriter) -> None:
        size = self._chunk_bytes or max(1, len(piece))
        for start in range(0, len(piece), size):
            part = piece[start : start + size]
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()


def _message_pieces(answer: Answer, body: dict[str, Any], *, is_whole: bool) -> Iterator[bytes]:
    if is_whole or not body.get("stream"):
        yield json.dumps(anthropic_dialect.message(answer, model=body["model"])).encode()
        return
    for value in anthropic_dialect.answer_stream(answer, model=body["model"]):
        yield event(value, name=value["type"])


async def _read_request(reader: asyncio.StreamReader) -> SeenRequest | None:
    """The next request of a connection; None when the client has closed it."""
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return SeenRequest(method=method, path=path, headers=headers, body=json.loads(body) if body else None)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(1):
            await writer.wait_closed()
    except (TimeoutError, ConnectionError):
        writer.transport.abort()  # The client does not read what still waits to be sent.


async def _watch(reader: asyncio.StreamReader, request: SeenRequest) -> None:
    try:
        gone = not await reader.read(1)
    except ConnectionError:
        gone = True
    if gone:
        request.disconnected.set()


async def _silence(stall: Stall, request: SeenRequest) -> None:
    stall.reached.set()
    waits = [asyncio.create_task(stall.released.wait()), asyncio.create_task(request.disconnected.wait())]
    try:
        await asyncio.wait(waits, timeout=stall.secs, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    if request.disconnected.is_set():
        raise ConnectionResetError


def _numbered(answer: Answer, request_number: int) -> Answer:
    ids = (call.call_id or f"call_{request_number}_{n}" for n, call in enumerate(answer.calls, 1))
    return evolve(answer, calls=tuple(evolve(c, call_id=i) for c, i in zip(answer.calls, ids, strict=True)))


def _head(reply: Reply) -> bytes:
    headers = {"content-type": reply.content_type, "transfer-encoding": "chunked", **reply.headers}
    lines = [
        f"HTTP/1.1 {reply.status} Scripted",
        *(f"{name}: {value}" for name, value in headers.items() if value),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _end(reply: Reply, writer: asyncio.StreamWriter) -> None:
    if reply.ending == "complete":
        writer.write(b"0\r\n\r\n")
    elif reply.ending == "reset":
        # A linger time of zero makes closing send RST instead of FIN.
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
        )
        writer.transport.abort()
