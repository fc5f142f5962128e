"""Official MCP servers, from PyPI and npm, as their users run them. Source: what those servers document."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from sidecar.mcp.client import Client
from sidecar.mcp.config import decode_server
from sidecar.mcp.results import McpCallResult
from sidecar.protocol.values import ImageBlock, ResourceBlock, TextBlock
from tests.harness.npm import NpmServers, npm_servers

__all__ = ["npm_servers"]


@asynccontextmanager
async def running(entry: dict[str, Any]) -> AsyncIterator[Client]:
    client = Client("real", decode_server("real", entry))
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


def text_of(result: McpCallResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))


async def test_the_time_server_tells_the_time() -> None:
    async with running({"command": "mcp-server-time", "env": {"PATH": scripts()}}) as client:
        assert {tool.name for tool in await client.tools()} == {"get_current_time", "convert_time"}
        result = await client.call_tool("get_current_time", {"timezone": "Europe/Berlin"})
        assert json.loads(text_of(result))["timezone"] == "Europe/Berlin"
        failed = await client.call_tool("get_current_time", {"timezone": "Nowhere/Never"})
        assert failed.is_error


async def test_the_filesystem_server_reads_and_writes_where_it_may(
    npm_servers: NpmServers, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("from disk")
    entry = npm_servers.entry("@modelcontextprotocol/server-filesystem", str(tmp_path))
    async with running(entry) as client:
        tools = {tool.name: tool for tool in await client.tools()}
        assert tools["read_text_file"].annotations is not None
        assert tools["read_text_file"].annotations["readOnlyHint"] is True
        read = await client.call_tool("read_text_file", {"path": str(tmp_path / "in.txt")})
        assert text_of(read) == "from disk"
        await client.call_tool("write_file", {"path": str(tmp_path / "out.txt"), "content": "ünï"})
        assert (tmp_path / "out.txt").read_text() == "ünï"
        outside = await client.call_tool("read_text_file", {"path": "/etc/hostname"})
        assert outside.is_error


async def test_the_everything_server_shows_every_kind_of_content(npm_servers: NpmServers) -> None:
    heard: list[tuple[float | None, float | None]] = []

    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        heard.append((done, total))

    async with running(npm_servers.entry("@modelcontextprotocol/server-everything", "stdio")) as client:
        names = {tool.name for tool in await client.tools()}
        assert {"echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"} <= names
        assert text_of(await client.call_tool("echo", {"message": "hi"})) == "Echo: hi"
        image = await client.call_tool("get-tiny-image", {})
        assert any(isinstance(block, ImageBlock) for block in image.content)
        resource = await client.call_tool("get-resource-reference", {"resourceType": "Text", "resourceId": 1})
        assert any(isinstance(block, ResourceBlock) for block in resource.content)
        structured = await client.call_tool("get-structured-content", {"location": "New York"})
        assert set(structured.structured_content) >= {"temperature", "conditions"}
        await client.call_tool(
            "trigger-long-running-operation", {"duration": 0.2, "steps": 4}, on_progress=on_progress
        )
        assert heard == [(step, 4) for step in (1, 2, 3, 4)]


EVERYTHING = "@modelcontextprotocol/server-everything"


async def test_the_everything_server_is_reached_over_http_also_after_a_restart(npm_servers: NpmServers) -> None:
    """It answers 400 where the specification wants 404 for a session that it does not know."""
    heard: list[tuple[float | None, float | None]] = []

    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        heard.append((done, total))

    async with AsyncExitStack() as stack:
        async with npm_servers.listening(EVERYTHING, "streamableHttp") as port:
            client = await stack.enter_async_context(running({"url": f"http://127.0.0.1:{port}/mcp"}))
            assert "echo" in {tool.name for tool in await client.tools()}
            arguments = {"duration": 0.2, "steps": 4}
            await client.call_tool("trigger-long-running-operation", arguments, on_progress=on_progress)
            assert heard == [(step, 4) for step in (1, 2, 3, 4)]
        async with npm_servers.listening(EVERYTHING, "streamableHttp", port=port):
            assert text_of(await client.call_tool("echo", {"message": "hi"})) == "Echo: hi"


async def test_the_everything_server_is_reached_over_the_older_http_transport(npm_servers: NpmServers) -> None:
    async with (
        npm_servers.listening(EVERYTHING, "sse") as port,
        running({"url": f"http://127.0.0.1:{port}/sse"}) as client,
    ):
        assert text_of(await client.call_tool("echo", {"message": "hi"})) == "Echo: hi"


def scripts() -> str:
    """Where the programs of the environment lie that runs the tests."""
    import sys

    return str(Path(sys.executable).parent)
