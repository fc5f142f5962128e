"""A client of our own server process, ended with its test."""

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import decode_server
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
