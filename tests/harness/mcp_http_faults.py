"""What servers over HTTP were seen to answer to a call, and what its caller then gets.

A table for tests of the client and of the whole sidecar; `mcp_http_server` shows each fault, as what its tool
`fault` answers. The rule behind it: a call ends soon, with its result where that is clear, else with an error that
says what was wrong and what to do; and the next call works.
"""

import asyncio
import gzip
import json
from typing import Any

from tests.harness.mcp_http_server import Json, McpHttpServer, Play, Seen, Wire, error, result, text

SECRET = "secret-token-1"
"""The token that the tests give a server. No error may show it."""


def answer(seen: Seen, words: str = "ok") -> Json:
    """The answer that a call should get."""
    return result(seen.id, text(words))


def raw(body: bytes, content_type: str = "application/json", status: int = 200, **headers: str) -> Play:
    """These bytes, with the id in place of ID."""

    async def play(wire: Wire, seen: Seen) -> None:
        await wire.respond(status, body.replace(b"ID", str(seen.id).encode()), content_type, **headers)

    return play


def streamed(*pieces: bytes, is_ended: bool = True) -> Play:
    """A stream of these bytes, with the answer in place of OK and its id in place of ID."""

    async def play(wire: Wire, seen: Seen) -> None:
        await wire.stream()
        for piece in pieces:
            ok = json.dumps(answer(seen)).encode()
            await wire.write(piece.replace(b"OK", ok).replace(b"ID", str(seen.id).encode()))
        if is_ended:
            await wire.end()
        else:
            await seen.disconnected.wait()

    return play


OK = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"ok"}]}}'


async def byte_by_byte(wire: Wire, seen: Seen) -> None:
    await wire.stream()
    message = json.dumps(answer(seen, "ünï\u2028✓"), ensure_ascii=False)
    for byte in f"data: {message}\n\n".encode():
        await wire.write(bytes((byte,)))
    await wire.end()


async def slow_body(wire: Wire, seen: Seen) -> None:
    """A body of JSON in pieces, each after the loop has done other things."""
    body = json.dumps(answer(seen)).encode()
    await wire.head(200, "application/json", content_length=str(len(body)))
    for start in range(0, len(body), 7):
        await wire.write(body[start : start + 7])
        await asyncio.sleep(0)
    wire.is_done = True


async def compressed(wire: Wire, seen: Seen) -> None:
    await wire.respond(200, gzip.compress(json.dumps(answer(seen)).encode()), content_encoding="gzip")


async def oversized(wire: Wire, seen: Seen) -> None:
    """A stream with one event of 65 MiB."""
    await wire.stream()
    await wire.write(b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % seen.id)
    for _ in range(65):
        await wire.write(b"x" * 1024 * 1024)
    await wire.write(b'"}]}}\n\n')
    await wire.end()


async def endless(wire: Wire, seen: Seen) -> None:
    """A body of JSON that does not end."""
    await wire.head(200, "application/json")
    await wire.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":"' % seen.id)
    while True:
        await wire.write(b"x" * 1024 * 1024)


async def cut_off(wire: Wire, seen: Seen) -> None:
    """Half of a body, and then the connection is gone."""
    await wire.head(200, "application/json", content_length="1000")
    await wire.write(b'{"jsonrpc":"2.0"')


async def reset_at_once(wire: Wire, seen: Seen) -> None:
    wire.reset()


async def reset_stream(wire: Wire, seen: Seen) -> None:
    await wire.stream()
    await wire.write(b": hello\n\n")
    wire.reset()


async def null_id(wire: Wire, seen: Seen) -> None:
    await wire.json(error(None, -32000, "no such weather"), 400)


async def elsewhere(wire: Wire, seen: Seen) -> None:
    await wire.respond(307, location="http://localhost:1/mcp?token=x")


async def in_circles(wire: Wire, seen: Seen) -> None:
    await wire.respond(307, location="/mcp")


async def moved(wire: Wire, seen: Seen) -> None:
    await wire.respond(302, location="/other")


PAGE = b"<!DOCTYPE html><html><head><style>x{}</style></head><body><h1>502 Bad&nbsp;Gateway</h1></body></html>"
ECHO = f'{{"error":{{"message":"bad token {SECRET}"}}}}'.encode()

ANSWERS: dict[str, tuple[Play, str]] = {
    # Odd but clear: the words of the result.
    "json": (raw(OK), "ok"),
    "json with a charset": (raw(OK, "Application/JSON; charset=UTF-8"), "ok"),
    "json without a type": (raw(OK, "text/plain"), "ok"),
    "json over several lines": (raw(b'{\n"jsonrpc":"2.0",\n"id":ID,"result":{"content":"ok"}\n}\n'), "ok"),
    "json array": (raw(b"[" + OK + b"]"), "ok"),
    "byte order mark": (raw(b"\xef\xbb\xbf" + OK), "ok"),
    "text id": (raw(OK.replace(b"ID", b'"ID"')), "ok"),
    "compressed": (compressed, "ok"),
    "slow body": (slow_body, "ok"),
    "stream": (streamed(b"event: message\ndata: OK\n\n"), "ok"),
    "stream with CRLF": (streamed(b"event: message\r\ndata: OK\r\n\r\n"), "ok"),
    "stream with several lines": (
        streamed(b'data: {"jsonrpc":"2.0",\ndata: "id":ID,\ndata: "result":{"content":"ok"}}\n\n'),
        "ok",
    ),
    "stream with comments and other events": (
        streamed(b": ping\n\nevent: ping\ndata: now\n\nid: 1\nretry: 5\ndata:\n\ndata: OK\n\n"),
        "ok",
    ),
    "stream byte by byte": (byte_by_byte, "ünï\u2028✓"),
    "stream left open": (streamed(b"data: OK\n\n", is_ended=False), "ok"),
    "stream with talk": (streamed(b"data: starting\n\ndata: OK\n\n"), "ok"),
    # Without sense: what the error says.
    "wrong id": (raw(OK.replace(b"ID", b"99999")), "sent no answer to tools/call in what it sent for it"),
    "null id": (raw(OK.replace(b"ID", b"null")), "failed at tools/call: its answer has no usable id"),
    "no id": (raw(b'{"jsonrpc":"2.0","result":{}}'), "failed at tools/call: its answer has no usable id"),
    "empty object": (raw(b"{}"), "sent no answer to tools/call in what it sent for it"),
    "json cut off": (raw(OK[:50]), "failed at tools/call: its answer is no JSON"),
    "result null": (raw(b'{"jsonrpc":"2.0","id":ID,"result":null}'), "failed at tools/call: the result in its"),
    "nothing": (raw(b""), "answered tools/call with HTTP 200 and nothing else"),
    "accepted": (raw(b"", status=202), "answered tools/call with HTTP 202 and nothing else"),
    "web page": (
        raw(PAGE, "text/html; charset=utf-8"),
        "answered tools/call with a web page instead of a message: 502 Bad Gateway; check that mcpServers.s.url",
    ),
    "web page in disguise": (raw(PAGE), "answered tools/call with a web page instead of a message"),
    "plain text": (
        raw(b"it\nworks", "text/plain"),
        "answered tools/call with text/plain instead of a message: it w",
    ),
    "stream ends": (streamed(b": hello\n\n"), "ended before its answer to tools/call; whether it was carried out"),
    "stream without its last empty line": (streamed(b"data: OK\n"), "ended before its answer to tools/call"),
    "stream of nothing": (streamed(), "ended before its answer to tools/call"),
    "stream is reset": (
        reset_stream,
        "ended before its answer to tools/call (the connection to server 's' was lost",
    ),
    "oversized event": (oversized, "failed at tools/call: its answer is longer than this client takes"),
    "endless body": (endless, "failed at tools/call: its answer is longer than this client takes"),
    "body cut off": (cut_off, "the connection to server 's' was lost at tools/call"),
    "reset": (reset_at_once, "the connection to server 's' was lost at tools/call"),
    "400": (raw(b"no", "text/plain", 400), "answered tools/call with HTTP 400 Bad Request: no"),
    "400 with an error": (null_id, "refused 'fault': no such weather"),
    "403": (raw(ECHO, status=403), "answered tools/call with HTTP 403 Forbidden: bad token ***; check what the"),
    "429": (
        raw(b'{"detail":"slow down"}', status=429, retry_after="7"),
        "HTTP 429 Too Many Requests: slow down; it asks to wait 7 s (Retry-After); try again later",
    ),
    "500 with an error": (
        raw(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"out of luck"}}', status=500),
        "answered tools/call with HTTP 500 Internal Server Error: out of luck",
    ),
    "503 with a page": (raw(PAGE, "text/html", 503), "HTTP 503 Service Unavailable: 502 Bad Gateway"),
    "599": (raw(b"", status=599), "answered tools/call with HTTP 599"),
    "redirect to another origin": (
        elsewhere,
        "redirects to http://localhost:1/mcp (HTTP 307), which is not followed",
    ),
    "redirect in circles": (in_circles, "redirects more than 5 times; check mcpServers.s.url"),
    "redirect that loses the method": (moved, "/other (HTTP 302), which is not followed"),
}
"""By kind: how a call is answered, and the words of its result, or what is in the message of its error."""

SENSE = tuple(ANSWERS)[: tuple(ANSWERS).index("wrong id")]
"""The kinds that have a result."""


LARGE = ("oversized event", "endless body")
"""The kinds that take a second, for tests that need not show them again."""


def faulty_server(**options: Any) -> McpHttpServer:
    """A server with all of them."""
    return McpHttpServer(faults={kind: play for kind, (play, _) in ANSWERS.items()}, **options)
