"""Tools of real MCP server processes in the registry: names, permissions, results, changes.

Source: protocol.md, "Tool names" and `mcpServers.*.permissions`; MCP 2025-11-25, server/tools.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sidecar.mcp.config import decode_server
from sidecar.mcp.results import McpToolDefinition
from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ToolExecutionProgress
from sidecar.protocol.messages import ToolsChangedParams
from sidecar.protocol.values import ToolResult, ToolSource
from sidecar.tools.mcp_tools import McpClient, McpTool, sync_server_tools
from sidecar.tools.registry import InvocationScope, ToolRegistry
from tests.harness.mcp_server import server_entry
from tests.harness.tools import Made, Witness, echo

OPEN = PermissionChecker(PermissionConfig(allowed=(), denied=(), ask=()))


@asynccontextmanager
async def client_of(name: str = "box", *options: str) -> AsyncIterator[McpClient]:
    client = McpClient(name, decode_server(name, server_entry(*options)))
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def box() -> AsyncIterator[ToolRegistry]:
    """A registry that holds the tools of a running server."""
    registry = ToolRegistry(permissions=OPEN)
    async with client_of() as client:
        assert sync_server_tools(registry, "box", client, await client.tools()) == []
        yield registry


def defined(name: str, **more: Any) -> McpToolDefinition:
    return McpToolDefinition(name=name, **more)


def idle(name: str = "box") -> McpClient:
    """A client that is not connected: enough to register tools."""
    return McpClient(name, decode_server(name, server_entry()))


# Running them -------------------------------------------------------------------------------------------


async def test_a_server_s_tools_are_called_after_it_and_run_in_it() -> None:
    async with box() as registry:
        assert {"box__echo", "box__add", "box__slow"} <= set(registry.list_tools())
        entry = registry.find("box__echo")
        assert (entry.source, entry.tool.kind) == (ToolSource(type="mcp", server="box"), "mcp")
        made = await registry.invoke("box__echo", {"text": "hi"})
        assert (made.result is not None and made.result.data, made.content) == ("hi", "hi")


async def test_structured_content_is_the_data_and_the_text_is_what_a_model_sees() -> None:
    async with box() as registry:
        made = await registry.invoke("box__add", {"a": 2, "b": 3})
        assert made.result is not None
        assert (made.result.data, made.content) == ({"sum": 5}, "5")


async def test_a_failure_of_the_tool_is_a_result_for_the_model() -> None:
    async with box() as registry:
        made = await registry.invoke("box__fail", {"text": "no such table"})
        assert made.result == ToolResult.error("no such table")
        assert (made.content, made.is_error, made.error) == ("error: no such table", True, None)


@pytest.mark.parametrize(
    ("kind", "content"), [("nan", "ok"), ("content missing", "null"), ("surrogate", "half \ufffd pair")]
)
async def test_odd_answers_are_results_all_the_same(kind: str, content: str) -> None:
    async with box() as registry:
        made = await registry.invoke("box__garbage", {"kind": kind})
        assert made.content == content
        assert made.is_error is False


async def test_progress_of_the_server_is_progress_of_the_call() -> None:
    witness = Witness()
    async with box() as registry:
        await registry.invoke(
            "box__slow", {"secs": 0.02, "steps": 2}, witness.scope(permissions=OPEN), call_id="c"
        )
    assert witness.events == [
        ToolExecutionProgress(call_id="c", done=1, total=2, message="step 1"),
        ToolExecutionProgress(call_id="c", done=2, total=2, message="step 2"),
    ]


async def test_a_call_that_times_out_is_cancelled_at_the_server() -> None:
    async with box() as registry:
        with pytest.raises(ToolError) as failed:
            await registry.invoke("box__silent", {}, InvocationScope(timeout_secs=0.2))
        assert failed.value.kind == "timeout"
        cancelled = await registry.invoke("box__received", {"method": "notifications/cancelled"})
        assert '"requestId"' in str(cancelled.content)


async def test_the_death_of_the_server_is_an_error_of_the_call() -> None:
    async with box() as registry:
        with pytest.raises(ToolError) as failed:
            await registry.invoke("box__die", {})
        assert failed.value.kind == "mcpError"
        assert failed.value.data["tool"] == "box__die"
        assert failed.value.data["server"] == "box"


async def test_a_python_user_registers_what_a_client_gives() -> None:
    registry = ToolRegistry(permissions=OPEN)
    async with client_of("own") as client:
        assert [tool.name for tool in await client.list_tools()][:2] == ["echo", "add"]
        registry.register_all(await client.into_tools())
        assert (await registry.invoke("own__echo", {"text": "hi"})).content == "hi"


# Permissions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "configured", "needed"),
    [
        (None, None, ("mcp:box",)),
        ({"readOnlyHint": True}, None, ("read",)),
        ({"readOnlyHint": False}, None, ("mcp:box",)),
        ({"readOnlyHint": "yes"}, None, ("mcp:box",)),
        ({"readOnlyHint": True}, {"*": ["shell"]}, ("shell",)),
        (None, {"other": ["shell"], "to*": ["read", "network"], "*": ["delete"]}, ("read", "network")),
        (None, {"tool": []}, ()),
    ],
)
def test_what_a_tool_needs_is_configured_or_read_or_its_server(
    annotations: Any, configured: Any, needed: tuple[str, ...]
) -> None:
    registry = ToolRegistry()
    sync_server_tools(registry, "box", idle(), [defined("tool", annotations=annotations)], configured)
    assert registry.find("box__tool").tool.required_permissions == needed


async def test_by_default_somebody_is_asked_about_a_server_s_tool() -> None:
    registry = ToolRegistry()
    sync_server_tools(registry, "box", idle(), [defined("tool")])
    decision = await registry.decide("box__tool", {})
    assert (decision.decision, decision.rule) == ("ask", 'permissions.ask: "mcp:*"')


def test_a_permission_that_does_not_exist_leaves_its_tool_out() -> None:
    registry = ToolRegistry()
    (warning,) = sync_server_tools(registry, "box", idle(), [defined("a"), defined("b")], {"b": ["reed"]})
    assert warning.startswith("tool 'b' of MCP server 'box' is left out: unknown permission 'reed'")
    assert registry.list_tools() == ["box__a"]


@pytest.mark.parametrize(
    ("annotations", "idempotent"),
    [
        (None, False),
        ({"idempotentHint": True}, True),
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": 1}, False),
    ],
)
def test_a_tool_is_tried_again_only_where_its_server_says_that_this_is_harmless(
    annotations: Any, idempotent: bool
) -> None:
    assert McpTool(idle(), defined("a", annotations=annotations)).idempotent is idempotent


# Keeping up ---------------------------------------------------------------------------------------------


def test_the_registry_follows_a_server_s_list_in_one_change() -> None:
    registry = ToolRegistry()
    heard: list[ToolsChangedParams] = []
    registry.subscribe(heard.append)
    first, second = idle(), idle()
    sync_server_tools(registry, "box", first, [defined("a"), defined("b"), defined("c")])
    sync_server_tools(registry, "box", second, [defined("b"), defined("c", description="new"), defined("d")])
    sync_server_tools(registry, "box", second, [defined("b"), defined("c", description="new"), defined("d")])
    assert heard == [
        ToolsChangedParams(added=("box__a", "box__b", "box__c"), removed=(), changed=()),
        ToolsChangedParams(added=("box__d",), removed=("box__a",), changed=("box__c",)),
    ]
    tool = registry.find("box__b").tool
    assert isinstance(tool, McpTool)
    assert tool.client is second


def test_the_tools_of_a_server_that_is_gone_are_gone_and_others_stay() -> None:
    registry = ToolRegistry()
    registry.register(Made("box__mine", echo))
    sync_server_tools(registry, "box", idle(), [defined("a")])
    sync_server_tools(registry, "bag", idle("bag"), [defined("a")])
    assert sync_server_tools(registry, "box", None, ()) == []
    assert registry.list_tools() == ["bag__a", "box__mine"]


def test_a_name_that_is_taken_leaves_that_tool_out_and_says_who_has_it() -> None:
    registry = ToolRegistry()
    registry.register(Made("box__a", echo))
    (warning,) = sync_server_tools(registry, "box", idle(), [defined("a"), defined("b")])
    assert warning == ("tool 'a' of MCP server 'box' is left out: its name 'box__a' is taken by a Python tool")
    assert registry.list_tools() == ["box__a", "box__b"]


def test_names_that_no_tool_may_have_are_changed_with_a_warning_and_still_run_by_their_own() -> None:
    registry = ToolRegistry()
    warnings = sync_server_tools(
        registry, "my box", idle("my box"), [defined("a b"), defined("a_b"), defined("x" * 200)]
    )
    assert warnings[0] == "tool 'a b' of MCP server 'my box' is called my_box__a_b"
    assert warnings[1] == (
        "tool 'a_b' of MCP server 'my box' is left out: its name 'my_box__a_b' is taken by the MCP server 'my box'"
    )
    assert "a name has 1 to 128 printable characters" in warnings[2]
    tool = registry.find("my_box__a_b").tool
    assert isinstance(tool, McpTool)
    assert tool.definition.name == "a b"


async def test_a_call_that_runs_while_its_tool_leaves_ends_as_it_would_have() -> None:
    async with box() as registry:
        started = asyncio.Event()

        async def emit(event: Any) -> None:
            started.set()

        call = asyncio.create_task(
            registry.invoke("box__slow", {"secs": 0.1, "steps": 2}, InvocationScope(emit=emit))
        )
        await started.wait()
        sync_server_tools(registry, "box", None, ())
        assert (await call).content == "slept"
