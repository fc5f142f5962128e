"""An authorization server and the MCP server that it guards, running for each test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.harness.oauth_client import Browser, Caller, caller
from tests.harness.oauth_server import AuthorizationServer, GuardedServer

OpenCaller = Callable[..., Awaitable[Caller]]


@pytest.fixture
def browser() -> Browser:
    """A person who signs in at once."""
    return Browser()


@pytest.fixture
async def issuer() -> AsyncIterator[AuthorizationServer]:
    """An authorization server with everything right."""
    async with AuthorizationServer() as server:
        yield server


@pytest.fixture
async def guarded(issuer: AuthorizationServer) -> AsyncIterator[GuardedServer]:
    """An MCP server that the issuer guards."""
    async with GuardedServer(issuer) as server:
        yield server


@pytest.fixture
async def open_caller(guarded: GuardedServer, browser: Browser, tmp_path: Path) -> AsyncIterator[OpenCaller]:
    """Opens callers of the guarded server, by default with the browser; the test's end closes them."""
    async with AsyncExitStack() as stack:

        async def start(server: GuardedServer = guarded, **options: Any) -> Caller:
            options.setdefault("show_page", browser.show_page)
            return await stack.enter_async_context(caller(server, tmp_path, **options))

        yield start
