"""How a conversation is opened over HTTP, and what becomes of a server that wants to know who we are.

Source: MCP 2026-07-28, basic/versioning; MCP 2025-11-25, basic/transports#backwards-compatibility; protocol.md,
mcp/list. What is remembered is our own choice.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import Server, decode_server
from sidecar.mcp.person_time import PersonTime
from sidecar.mcp.transport import NeedsAuthorizationError
from sidecar.mcp.verdicts import Verdicts
from sidecar.protocol.errors import ToolError
from tests.harness.mcp_http_server import McpHttpServer, error
from tests.mcp.conftest import http_client, words_of
from tests.mcp.test_manager import managing

BOUND_SECS = 10.0


async def open_and_close(server: McpHttpServer, verdicts: Verdicts | None = None) -> str | None:
    """The revision that client and server settle on."""
    client = Client("s", decode_server("s", server.entry()), verdicts=verdicts)
    try:
        await asyncio.wait_for(client.connect(), BOUND_SECS)
        assert words_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
        return client.protocol_version
    finally:
        await client.close()


def asked(server: McpHttpServer) -> list[str | None]:
    """What came in before the first call, less the streams of the server's own messages."""
    methods = [seen.method or seen.http for seen in server.seen]
    return [method for method in methods[: methods.index("tools/call")] if method != "GET"]


async def test_a_modern_server_is_asked_what_it_is_and_nothing_else() -> None:
    async with McpHttpServer(eras=("modern", "legacy")) as server:
        assert await open_and_close(server) == "2026-07-28"
        assert asked(server)[0] == "server/discover"
        assert server.all("initialize") == []


@pytest.mark.parametrize(
    "on_discover",
    [
        None,
        (400, ""),
        (404, "<html>no such page</html>"),
        (405, ""),
        (400, error(None, -32000, "Bad Request: Server not initialized")),
        (404, error(1, -32601, "Method not found")),
    ],
)
async def test_a_server_that_does_not_know_the_question_is_asked_for_a_handshake(on_discover: Any) -> None:
    async with McpHttpServer(on_discover=on_discover) as server:
        assert await open_and_close(server) == "2025-11-25"
        assert asked(server) == ["server/discover", "initialize", "notifications/initialized"]
        assert "mcp-protocol-version" not in server.all("initialize")[0].headers


@pytest.mark.parametrize("status", [401, 403, 408, 429])
async def test_a_status_that_says_nothing_of_the_era_is_no_reason_for_a_handshake(status: int) -> None:
    async with McpHttpServer(on_discover=(status, "")) as server:
        with pytest.raises(ToolError) as caught:
            await open_and_close(server)
        assert caught.value.data["status"] == status
        assert server.all("initialize") == []


async def test_a_server_that_breaks_down_over_the_question_is_asked_for_a_handshake_this_once() -> None:
    verdicts = Verdicts()
    async with McpHttpServer(on_discover=(500, "")) as server:
        assert await open_and_close(server, verdicts) == "2025-11-25"
        server.eras = ("legacy", "modern")
        assert await open_and_close(server, verdicts) == "2026-07-28"


async def test_a_server_of_the_oldest_transport_is_found_by_its_stream_and_remembered() -> None:
    verdicts = Verdicts()
    async with McpHttpServer(eras=("sse",), revision="2024-11-05") as server:
        client = Client("s", decode_server("s", {"url": server.url}), verdicts=verdicts)
        await asyncio.wait_for(client.connect(), BOUND_SECS)
        assert words_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
        await client.close()
        assert [seen.method or seen.http for seen in server.seen[:4]] == [
            "server/discover",
            "initialize",
            "GET",
            "initialize",
        ]
        server.seen.clear()
        await asyncio.wait_for(client.connect(), BOUND_SECS)
        await client.close()
        assert [seen.method or seen.http for seen in server.seen[:2]] == ["GET", "initialize"]


async def test_a_server_that_is_none_is_named_by_its_answer_to_the_handshake() -> None:
    async with McpHttpServer(eras=()) as server:
        with pytest.raises(ToolError) as caught:
            await open_and_close(server)
        assert caught.value.data["status"] == 400
        assert "initialize" in caught.value.message


async def test_what_a_server_is_gets_found_out_once_and_again_when_it_has_changed() -> None:
    verdicts = Verdicts()
    async with McpHttpServer() as server:
        await open_and_close(server, verdicts)
        server.seen.clear()
        await open_and_close(server, verdicts)
        assert asked(server) == ["initialize", "notifications/initialized"]
        server.eras = ("modern",)
        assert await open_and_close(server, verdicts) == "2026-07-28"
        server.eras = ("legacy",)
        assert await open_and_close(server, verdicts) == "2025-11-25"
        verdicts.remember(decode_server("s", server.entry()), "sse")
        assert await open_and_close(server, verdicts) == "2025-11-25"
        assert verdicts.get(decode_server("s", server.entry())) == "legacy"


async def test_a_modern_server_tells_of_changes_on_the_stream_of_a_subscription_and_again_after_that_broke() -> (
    None
):
    changes: asyncio.Queue[Any] = asyncio.Queue()
    async with McpHttpServer(eras=("modern",)) as server, http_client(server, on_tools=changes.put_nowait):
        for time in (1, 2):
            listen = await server.received("subscriptions/listen", time)
            assert listen.params["notifications"] == {"toolsListChanged": True}
            meta = {"io.modelcontextprotocol/subscriptionId": listen.id}
            change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}
            await server.push(change)
            assert await asyncio.wait_for(changes.get(), BOUND_SECS)
            server.end_streams()
    assert server.all("GET") == []


async def test_a_server_that_was_replaced_by_a_modern_one_is_talked_to_in_its_era() -> None:
    async with McpHttpServer() as server, http_client(server) as client:
        assert words_of(await client.call_tool("echo", {"text": "old"})) == "old"
        server.eras = ("modern", "sse")  # The second answers what belongs to a session as if that were lost.
        assert words_of(await client.call_tool("echo", {"text": "new"})) == "new"
        assert client.protocol_version == "2026-07-28"
        await server.received("subscriptions/listen")


async def test_a_server_that_is_away_while_its_session_is_lost_is_used_again_when_it_is_back() -> None:
    async with McpHttpServer() as server, http_client(server) as client:
        server.sessions.clear()
        server.eras = ("sse",)
        with pytest.raises(ToolError, match="HTTP 404"):
            await client.call_tool("echo", {})
        server.eras = ("legacy",)
        assert words_of(await client.call_tool("echo", {"text": "back"})) == "back"


# Who we are ---------------------------------------------------------------------------------------------


class Key:
    """A right to use a server that comes and goes."""

    def __init__(self) -> None:
        self.token: str | None = None
        self.closed = 0

    async def headers(self, method: str, url: str) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    async def challenged(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        raise NeedsAuthorizationError("sign in first", server="s")

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_server_that_needs_a_person_says_so_until_it_is_started_again_with_one() -> None:
    key = Key()

    def authorize(name: str, server: Server, person_time: PersonTime) -> Key:
        return key

    async with McpHttpServer(token="good") as server, managing(authorize=authorize) as servers:
        info = await asyncio.wait_for(servers.manager.connect("s", server.entry()), BOUND_SECS)
        assert (info.status, info.error and info.error.message) == ("needsAuth", "sign in first")
        assert server.all("initialize") == []
        key.token = "good"
        info = await asyncio.wait_for(servers.manager.restart("s"), BOUND_SECS)
        assert (info.status, info.protocol_version, info.pid) == ("ready", "2025-11-25", None)
        key.token = "old"
        with pytest.raises(ToolError, match="sign in first"):
            await servers.call("s", "echo")
        await servers.until(lambda: servers.statuses[-1].status == "needsAuth")
        assert servers.clients["s"] is None
        key.token = "good"
        assert (await asyncio.wait_for(servers.manager.restart("s"), BOUND_SECS)).status == "ready"
        assert key.closed == 2
