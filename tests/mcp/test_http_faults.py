"""Servers over HTTP that answer what they should not. Every call ends, soon, and the next one works.

Source: own choice; MCP 2025-11-25, basic/transports, for what has to be taken.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from sidecar.mcp.client import Client
from sidecar.protocol.errors import ToolError
from tests.harness.mcp_http_faults import ANSWERS, LARGE, SECRET, SENSE, faulty_server
from tests.mcp.conftest import http_client, words_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOUND_SECS = 5.0
"""For any call; its own limit, in these tests, is 30 s."""


@pytest_asyncio.fixture(params=["legacy", "modern"], scope="module", loop_scope="module")
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with (
        faulty_server(eras=(request.param,), has_stream=False) as server,
        http_client(server, headers={"Authorization": f"Bearer {SECRET}"}) as client,
    ):
        yield client


@pytest.mark.parametrize("kind", [kind for kind in ANSWERS if kind not in LARGE])
async def test_a_call_gets_what_its_answer_holds_or_says_what_was_wrong(client: Client, kind: str) -> None:
    _, wanted = ANSWERS[kind]
    call = asyncio.wait_for(client.call_tool("fault", {"kind": kind}), BOUND_SECS)
    if kind in SENSE:
        assert words_of(await call) == wanted
    else:
        with pytest.raises(ToolError) as caught:
            await call
        assert caught.value.kind == "mcpError"
        assert wanted in caught.value.message
        assert SECRET not in str(caught.value.message) + str(caught.value.data)
    assert words_of(await asyncio.wait_for(client.call_tool("echo", {"text": "next"}), BOUND_SECS)) == "next"


async def test_a_message_that_is_too_large_fails_its_call_alone() -> None:
    async with faulty_server() as server, http_client(server) as client:
        for kind in LARGE:
            with pytest.raises(ToolError) as caught:
                await asyncio.wait_for(client.call_tool("fault", {"kind": kind}), BOUND_SECS)
            assert ANSWERS[kind][1] in caught.value.message
        assert words_of(await client.call_tool("echo", {"text": "next"})) == "next"


async def test_the_status_and_the_wait_of_an_error_are_told_as_data(client: Client) -> None:
    with pytest.raises(ToolError) as caught:
        await client.call_tool("fault", {"kind": "429"})
    assert caught.value.data == {"server": "s", "status": 429, "retryAfterSecs": 7.0}
