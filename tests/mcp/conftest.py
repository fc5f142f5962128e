"""A client of our own server process, ended with its test."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import decode_server
from sidecar.mcp.results import McpCallResult
from sidecar.protocol.values import TextBlock
from tests.harness.mcp_http_server import McpHttpServer
from tests.harness.mcp_server import server_entry


class StartClient(Protocol):
    """Starts a client whose server behaves as `options` say, and connects it."""

    async def __call__(self, *options: str, on_tools: Callable[[Any], None] = ..., **fields: Any) -> Client: ...


def new_client(*options: str, **fields: Any) -> Client:
    """A client of our server, not yet connected. `fields` are those of the entry, and the client's callbacks."""
    callbacks = {name: fields.pop(name) for name in ("on_tools", "on_warning", "environ") if name in fields}
    return Client("s", decode_server("s", server_entry(*options, **fields)), **callbacks)


@pytest.fixture
async def start_client() -> AsyncIterator[StartClient]:
    async with AsyncExitStack() as stack:

        async def start(*options: str, **fields: Any) -> Client:
            client = new_client(*options, **fields)
            stack.push_async_callback(client.close)
            await client.connect()
            return client

        yield start


@contextlib.asynccontextmanager
async def connected(*options: str, **fields: Any) -> AsyncIterator[Client]:
    """The same for a test that closes its client itself."""
    client = new_client(*options, **fields)
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def http_client(server: McpHttpServer | str, **fields: Any) -> AsyncIterator[Client]:
    """A connected client of our server over HTTP, or of the one at a URL.

    `fields` are those of the entry, and the client's callbacks.
    """
    callbacks = {name: fields.pop(name) for name in ("on_tools", "on_warning", "duties") if name in fields}
    entry = {"url": server, **fields} if isinstance(server, str) else server.entry(**fields)
    client = Client("s", decode_server("s", entry), **callbacks)
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


def words_of(result: McpCallResult) -> str:
    """The text of a result."""
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))
