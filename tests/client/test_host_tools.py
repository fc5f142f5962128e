"""Python functions as tools of the host.

Source: protocol.md (`tools/register`, `tools/execute`) and clients/python/README.md.
"""

from pathlib import Path
from typing import Any

import pytest
from sidecar_client import (
    HostTool,
    ToolCall,
)

from tests.harness.scripted_host import answers_in, asks, sidecar
from tests.harness.scripted_sidecar import received


def add(left: int, right: int = 1) -> int:
    """Adds two numbers.

    More than the model needs to know.
    """
    return left + right


async def shout(text: str, call: ToolCall) -> str:
    call.progress(1, 2, "half way")
    return text.upper()


def fail() -> None:
    raise ValueError("out of paper")


async def test_a_function_becomes_a_tool_with_a_schema() -> None:
    assert HostTool.of(add).definition() == {
        "name": "add",
        "description": "Adds two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {"left": {"type": "integer"}, "right": {"type": "integer"}},
            "required": ["left"],
            "additionalProperties": False,
        },
        "requiredPermissions": [],
        "requiresApproval": False,
        "tags": [],
    }
    assert "call" not in HostTool.of(shout).input_schema["properties"]


async def test_a_parameter_without_a_schema_is_named() -> None:
    def paint(colour: complex) -> None: ...

    with pytest.raises(TypeError, match=r"tool paint: parameter 'colour'.*pass input_schema"):
        HostTool.of(paint)
    assert HostTool.of(paint, input_schema={"type": "object"}).input_schema == {"type": "object"}


@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("add", {"left": 2}, {"ok": True, "data": 3}),
        ("shout", {"text": "hey"}, {"ok": True, "data": "HEY"}),
        ("fail", {}, {"ok": False, "error": "ValueError: out of paper"}),
        ("gone", {}, {"ok": False, "error": "this host has no tool 'gone'"}),
    ],
)
async def test_a_host_tool_is_run_and_its_failure_told(
    tmp_path: Path, name: str, arguments: dict[str, Any], answer: dict[str, Any]
) -> None:
    params = {"callId": "c-1", "name": name, "arguments": arguments}
    script = {"agent/submit": asks("tools/execute", params)}
    async with sidecar(tmp_path, script, tools=[add, shout, fail]) as host:
        await host.submit("hi").result()
    assert [answer["result"] for answer in answers_in(tmp_path)] == [answer]
    registered = [message for message in received(tmp_path) if message.get("method") == "tools/register"]
    assert [tool["name"] for tool in registered[0]["params"]["tools"]] == ["add", "shout", "fail"]


async def test_a_host_tool_reports_progress_under_its_call_id(tmp_path: Path) -> None:
    params = {"callId": "c-1", "name": "shout", "arguments": {"text": "hey"}}
    async with sidecar(tmp_path, {"agent/submit": asks("tools/execute", params)}, tools=[shout]) as host:
        await host.submit("hi").result()
    (progress,) = [message for message in received(tmp_path) if message.get("method") == "$/progress"]
    value = {"kind": "report", "message": "half way", "percentage": 50}
    assert progress["params"] == {"token": "c-1", "value": value}
