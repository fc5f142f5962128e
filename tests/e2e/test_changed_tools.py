"""A tool that an MCP server changes after it was allowed is asked about again (protocol.md, Security)."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import Host, sidecar
from tests.harness.mcp_server import server_entry


def options(store: Path, *server: str) -> dict[str, Any]:
    return {"mcpServers": {"s": server_entry(*server)}, "store": {"path": str(store)}}


def is_ready(host: Host) -> bool:
    return any(name == "mcp/statusChanged" and told["status"] == "ready" for name, told in host.notifications)


async def call(host: Host, tool: str) -> None:
    await host.wait_for(lambda: is_ready(host))
    await host.request("tools/call", {"name": f"s__{tool}", "arguments": {}})


def always(asked: Any) -> dict[str, str]:
    return {"decision": "allowAlways"}


@pytest.mark.parametrize(("changes", "asked_again"), [((), []), (("--describe", "echo"), ["s__echo"])])
async def test_what_was_allowed_of_a_changed_tool_is_asked_about_again(
    tmp_path: Path, changes: tuple[str, ...], asked_again: list[str]
) -> None:
    store = tmp_path / "store.sqlite3"
    answers = {"agent/requestApproval": always}
    async with sidecar(options(store), folders=[tmp_path], answers=answers) as host:
        await call(host, "echo")
        await call(host, "pid")
        await call(host, "echo")
    assert [question["toolName"] for _, question in host.asked] == ["s__echo", "s__pid"]
    async with sidecar(options(store, *changes), folders=[tmp_path], answers=answers) as host:
        await call(host, "echo")
        await call(host, "pid")
    assert [question["toolName"] for _, question in host.asked] == asked_again
