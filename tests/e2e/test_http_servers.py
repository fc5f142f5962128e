"""MCP servers over HTTP through the whole sidecar. Source: protocol.md, MCP servers; own choice.

One sidecar serves the first tests, as it would have to in an editor.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from tests.harness.host import Host, Json, RequestFailed, sidecar
from tests.harness.mcp_http_faults import ANSWERS, LARGE, SECRET, SENSE, faulty_server
from tests.harness.mcp_http_server import McpHttpServer
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, says
from tests.harness.tcp import closed_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOUND_MS = 10_000
"""For one call, whatever its server does; its own limit is 30 s."""

NAMES = ("stateful", "stateless", "old")


class Place:
    """The sidecar and its servers."""

    def __init__(self, host: Host, servers: dict[str, McpHttpServer]) -> None:
        self.host = host
        self.servers = servers


def answer(request: SeenRequest) -> Reply:
    """The model's part: it calls `echo` of each server, once."""
    if any(message["role"] == "assistant" for message in request.messages):
        return says(" ".join(str(m["content"]) for m in request.messages if m["role"] == "tool"))
    return calls(*((f"{name}__echo", {"text": name}) for name in NAMES))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ScriptedModel(answer=answer))
        servers = {
            "stateful": McpHttpServer(replies="sse", token=SECRET),
            "stateless": McpHttpServer(eras=("modern",)),
            "old": McpHttpServer(eras=("sse",)),
            "s": faulty_server(has_stream=False),
        }
        for server in servers.values():
            await stack.enter_async_context(server)
        options = {
            "model": "test/m",
            "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
            "permissions": {"allowed": ["mcp:*"], "ask": []},
            "builtinTools": False,
            "mcpServers": {
                "stateful": servers["stateful"].entry(headers={"Authorization": "Bearer ${env:THE_TOKEN}"}),
                "stateless": {"serverUrl": servers["stateless"].url, "type": "streamable-http"},
                "old": servers["old"].entry(type="http"),
                "s": servers["s"].entry(headers={"X-Key": SECRET}),
                "away": {"url": f"http://127.0.0.1:{closed_port()}/mcp?key={SECRET}"},
                "nowhere": {"url": "mcp.example.com"},
                "closed": servers["stateful"].entry(headers={"Authorization": "Bearer wrong"}),
            },
        }
        host = await stack.enter_async_context(
            sidecar(options, can={"approvals": True}, env={"THE_TOKEN": SECRET})
        )
        yield Place(host, servers)


async def listed(host: Host) -> dict[str, Json]:
    """How each server is."""
    return {server["name"]: server for server in (await host.request("mcp/list"))["servers"]}


def times_ready(host: Host, name: str) -> int:
    """How often a server has become ready."""
    said = [params for method, params in host.notifications if method == "mcp/statusChanged"]
    return sum(params["name"] == name and params["status"] == "ready" for params in said)


async def test_a_run_calls_servers_of_every_transport(place: Place) -> None:
    result = await place.host.submit("go")
    assert result["message"]["content"] == "stateful stateless old"
    servers = await listed(place.host)
    revisions = {name: servers[name]["protocolVersion"] for name in NAMES}
    assert revisions == {"stateful": "2025-11-25", "stateless": "2026-07-28", "old": "2024-11-05"}
    assert {servers[name]["status"] for name in NAMES} == {"ready"}
    assert not any("pid" in servers[name] for name in NAMES)


async def test_one_that_cannot_be_reached_says_why_and_takes_no_other_along(place: Place) -> None:
    servers = await listed(place.host)
    assert {name: servers[name]["status"] for name in ("away", "nowhere", "closed")} == {
        "away": "failed",
        "nowhere": "failed",
        "closed": "needsAuth",
    }
    assert "cannot be reached at http://127.0.0.1:" in servers["away"]["error"]["message"]
    assert servers["nowhere"]["error"] == {
        "kind": "invalidConfiguration",
        "message": "mcpServers.nowhere.url: must be a URL that begins with http:// or https:// and names a host",
    }
    closed = servers["closed"]["error"]["message"]
    assert "with HTTP 401 Unauthorized" in closed
    assert "check the credentials in mcpServers.closed.headers" in closed
    assert SECRET not in str(servers)


async def test_a_server_that_was_restarted_serves_the_next_run(place: Place) -> None:
    for name in NAMES:
        await place.servers[name].restart()
    await place.host.wait_for(lambda: times_ready(place.host, "old") == 2)
    result = await place.host.submit("go")
    assert result["message"]["content"] == "stateful stateless old"


async def test_every_fault_ends_its_call_soon_and_the_next_one_works(place: Place) -> None:
    seen: dict[str, Any] = {}
    for kind in sorted(set(ANSWERS) - set(LARGE)):
        params = {"name": "s__fault", "arguments": {"kind": kind}}
        try:
            outcome = await place.host.request("tools/call", params)
        except RequestFailed as failed:
            seen[kind] = failed.message
            assert SECRET not in failed.message + str(failed.data)
        else:
            seen[kind] = "".join(block["text"] for block in outcome["content"])
            assert outcome["durationMs"] < BOUND_MS
    wrong = {kind: said for kind, said in seen.items() if ANSWERS[kind][1] not in said}
    assert wrong == {}
    assert {kind: seen[kind] for kind in SENSE} == {kind: ANSWERS[kind][1] for kind in SENSE}
    outcome = await place.host.request("tools/call", {"name": "s__echo", "arguments": {"text": "next"}})
    assert outcome["content"][0]["text"] == "next"
