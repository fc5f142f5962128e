"""The official MCP servers, as npm and PyPI bring them, through the whole sidecar."""

import sys
from pathlib import Path
from typing import Any

from tests.harness.host import sidecar
from tests.harness.model_server import ScriptedModel, calls, says
from tests.harness.npm import NpmServers, npm_servers

__all__ = ["npm_servers"]

TIME = {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}


def options(model: ScriptedModel, servers: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": "test/m",
        "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
        "permissions": {"allowed": ["read", "mcp:*"], "ask": []},
        "mcpServers": servers,
        "cycle": {"serverWaitSecs": 30},
        "builtinTools": False,
    }


async def test_three_official_servers_serve_one_run(npm_servers: NpmServers, tmp_path: Path) -> None:
    (tmp_path / "hello.txt").write_text("hello from disk")
    servers = {
        "files": npm_servers.entry("@modelcontextprotocol/server-filesystem", str(tmp_path)),
        "all": npm_servers.entry("@modelcontextprotocol/server-everything"),
        "time": TIME,
    }
    script = (
        calls(
            ("files__read_text_file", {"path": str(tmp_path / "hello.txt")}, "c1"),
            ("all__echo", {"message": "hi"}, "c2"),
            ("all__get-sum", {"a": 2, "b": 3}, "c3"),
            (
                "time__convert_time",
                {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                "c4",
            ),
        ),
        says("All four answered."),
    )
    async with ScriptedModel(*script) as model, sidecar(options(model, servers), folders=[tmp_path]) as host:
        result = await host.submit("go")
        listed = (await host.request("mcp/list"))["servers"]
    assert result["message"]["content"] == "All four answered."
    assert {s["name"]: s["status"] for s in listed} == {"all": "ready", "files": "ready", "time": "ready"}
    outputs = {e["callId"]: (e["isError"], str(e["output"])) for e in host.kinds("toolExecutionCompleted")}
    assert not any(is_error for is_error, _ in outputs.values()), outputs
    assert "hello from disk" in outputs["c1"][1]
    assert "hi" in outputs["c2"][1]
    assert "5" in outputs["c3"][1]
    assert "21:00" in outputs["c4"][1]


async def test_a_long_operation_of_a_real_server_reports_its_progress(npm_servers: NpmServers) -> None:
    servers = {"all": npm_servers.entry("@modelcontextprotocol/server-everything")}
    script = (calls(("all__trigger-long-running-operation", {"duration": 1, "steps": 4})), says("done"))
    async with ScriptedModel(*script) as model, sidecar(options(model, servers)) as host:
        await host.submit("go")
    assert [e["done"] for e in host.kinds("toolExecutionProgress")][-1] == 4
    assert not host.kinds("toolExecutionCompleted")[0]["isError"]
