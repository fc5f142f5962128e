"""Servers of the older HTTP transport. Source: MCP 2024-11-05, basic/transports#http-with-sse; MCP 2026-07-28,
basic/transports/streamable-http#backward-compatibility; limits are our own choice."""

import asyncio
from typing import Any

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import decode_server
from sidecar.protocol.errors import SidecarError, ToolError
from tests.harness.mcp_http_faults import SECRET
from tests.harness.mcp_http_server import McpHttpServer, Play, Seen, Wire
from tests.mcp.conftest import http_client, words_of

BOUND_SECS = 5.0


async def failure(server: McpHttpServer, **fields: Any) -> SidecarError:
    """Why a server cannot be connected."""
    client = Client("s", decode_server("s", server.entry(**fields)))
    with pytest.raises(SidecarError) as caught:
        await asyncio.wait_for(client.connect(), BOUND_SECS)
    await client.close()
    return caught.value


@pytest.mark.parametrize("fields", [{"type": "sse"}, {"type": "http"}], ids=["named", "found out"])
async def test_messages_go_where_the_stream_says_and_answers_come_on_it(fields: Any) -> None:
    async with (
        McpHttpServer(eras=("sse",)) as server,
        http_client(server, headers={"X-Own": "mine"}, **fields) as client,
    ):
        assert client.protocol_version == "2024-11-05"
        assert {tool.name for tool in await client.tools()} >= {"echo", "silent"}
        words = await asyncio.gather(*(client.call_tool("echo", {"text": word}) for word in "abc"))
        assert list(map(words_of, words)) == ["a", "b", "c"]
        with pytest.raises(ToolError, match="did not answer"):
            await client.call_tool("silent", {}, timeout_secs=0.05)
        told = await server.received("notifications/cancelled")
    assert told.path == "/messages?session=secret"
    assert {seen.headers["x-own"] for seen in server.seen} == {"mine"}


async def test_the_end_of_the_stream_is_the_end_of_the_server() -> None:
    async with McpHttpServer(eras=("sse",)) as server, http_client(server) as client:
        calling = asyncio.create_task(client.call_tool("silent", {}))
        await server.received("tools/call")
        server.end_streams()
        with pytest.raises(ToolError) as caught:
            await asyncio.wait_for(calling, BOUND_SECS)
        assert caught.value.message == "server 's' closed its event stream before it answered tools/call"
        assert await asyncio.wait_for(client.wait_ended(), BOUND_SECS) == "closed its event stream"


async def test_a_stream_that_is_lost_is_told_from_one_that_ended() -> None:
    async with McpHttpServer(eras=("sse",)) as server, http_client(server) as client:
        await server.stop()
        ending = await asyncio.wait_for(client.wait_ended(), BOUND_SECS)
        assert ending.startswith("lost its event stream (the connection to server 's' was lost")
        with pytest.raises(ToolError, match="server 's' lost its event stream"):
            await client.call_tool("echo", {})


@pytest.mark.parametrize(
    ("status", "body", "wanted"),
    [
        (500, b"out of luck", "answered tools/call with HTTP 500 Internal Server Error: out of luck"),
        (
            400,
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not so"}}',
            "server 's' refused 'echo': not so",
        ),
    ],
)
async def test_a_message_that_is_not_accepted_fails_its_call(status: int, body: bytes, wanted: str) -> None:
    async def refuse(wire: Wire, seen: Seen) -> None:
        await wire.respond(status, body)

    async with McpHttpServer(eras=("sse",)) as server, http_client(server) as client:
        server.old_post = refuse
        with pytest.raises(ToolError) as caught:
            await asyncio.wait_for(client.call_tool("echo", {"text": "x"}), BOUND_SECS)
    assert wanted in caught.value.message


def stream(*pieces: bytes) -> Play:
    async def play(wire: Wire, seen: Seen) -> None:
        await wire.stream()
        for piece in pieces:
            await wire.write(piece)
        await wire.end()

    return play


async def refused(wire: Wire, seen: Seen) -> None:
    await wire.respond(405)


async def a_page(wire: Wire, seen: Seen) -> None:
    await wire.respond(200, b"<html><p>Hello</p></html>", "text/html")


@pytest.mark.parametrize(
    ("play", "wanted"),
    [
        (
            stream(b"event: endpoint\ndata: http://127.0.0.1:1/messages?token=secret\n\n"),
            "wants messages sent to http://127.0.0.1:1/messages, which is of another origin; tokens must not",
        ),
        (stream(b"event: endpoint\ndata: http://[::\n\n"), "which is of another origin"),
        (
            stream(b"data: hello\n\n"),
            'closed its event stream before it said where messages go, as a server of type "',
        ),
        (refused, 'check mcpServers.s.url; if it speaks Streamable HTTP, write "type": "http" in mcpServers.s'),
        (a_page, "answered its event stream with a web page instead of a message: Hello"),
    ],
)
async def test_a_stream_that_leads_nowhere_is_an_error(play: Play, wanted: str) -> None:
    async with McpHttpServer(eras=("sse",)) as server:
        server.old_get = play
        error = await failure(server)
    assert wanted in error.message


async def test_who_has_no_token_is_told_where_to_write_it() -> None:
    async with McpHttpServer(eras=("sse",), token=SECRET) as server:
        error = await failure(server)
        assert error.data == {"server": "s", "status": 401, "needsAuth": True}
        async with http_client(server, headers={"Authorization": f"Bearer {SECRET}"}) as client:
            assert words_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
