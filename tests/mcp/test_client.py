"""A client and a real server process. Source: MCP 2025-11-25; limits and leniency are our own choice."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import StdioServer
from sidecar.mcp.results import McpCallResult, McpToolDefinition
from sidecar.mcp.tool_list import REFRESH_PAUSE_SECS
from sidecar.protocol.errors import ConfigurationError, ToolError
from sidecar.protocol.values import TextBlock
from tests.harness.mcp_server import TOOLS
from tests.mcp.conftest import StartClient, new_client

BOUND_SECS = 5.0


def said(text: str, **more: Any) -> McpCallResult:
    return McpCallResult(content=(TextBlock(text=text),), **more)


def text_of(result: McpCallResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextBlock)
    return block.text


async def error_of(client: Client, tool: str, **options: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await client.call_tool(tool, options.pop("arguments", {}), **options)
    return caught.value


# Handshake ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_with_a_handshake_is_spoken(start_client: StartClient, revision: str) -> None:
    client = await start_client("--revision", revision)
    assert client.protocol_version == revision
    assert client.server_info == {"name": "harness", "version": "1"}
    assert await client.call_tool("add", {"a": 2, "b": 3}) == said("5", structured_content={"sum": 5})


async def test_the_handshake_says_who_we_are_and_is_finished(start_client: StartClient) -> None:
    client = await start_client()
    (params,) = json.loads(text_of(await client.call_tool("received", {"method": "initialize"})))
    assert params["protocolVersion"] == "2025-11-25"
    assert params["capabilities"] == {}
    assert params["clientInfo"]["name"] == "agent-sidecar"
    assert json.loads(text_of(await client.call_tool("received", {"method": "notifications/initialized"}))) == [
        None
    ]


async def test_a_revision_that_we_do_not_speak_is_named_with_those_that_we_do() -> None:
    client = new_client("--revision", "2099-01-01")
    with pytest.raises(ToolError) as caught:
        await client.connect()
    assert caught.value.kind == "mcpError"
    assert caught.value.message == (
        "server 's' speaks MCP revision '2099-01-01', and this client 2024-11-05, 2025-03-26, 2025-06-18, "
        "2025-11-25; use another version of the server"
    )
    assert client.pid is None


async def test_messages_before_the_handshake_is_over_are_answered(start_client: StartClient) -> None:
    client = await start_client("--early-messages")
    assert await client.call_tool("echo", {"text": "hi"}) == said("hi")


async def test_a_server_that_does_not_answer_initialize_fails_in_time_with_its_last_words() -> None:
    client = new_client("--never-initialize", "--say", "waiting for a licence", startTimeoutSecs=1)
    with pytest.raises(ToolError) as caught:
        await client.connect()
    assert caught.value.kind == "mcpTimeout"
    assert caught.value.message == (
        "server 's' did not answer initialize within 1 s; raise mcpServers.s.startTimeoutSecs if it needs "
        "longer to start"
    )
    assert caught.value.data == {"server": "s", "stderrTail": "waiting for a licence"}


async def test_a_server_that_exits_at_once_fails_at_once_with_its_last_words() -> None:
    client = new_client("--say", "no such option", "--exit", "2")
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(client.connect(), BOUND_SECS)
    assert caught.value.message == "server 's' exited with status 2 before it answered initialize"
    assert caught.value.data["stderrTail"] == "no such option"


async def test_a_program_that_is_no_server_is_given_up() -> None:
    client = new_client("--junk")
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(client.connect(), BOUND_SECS)
    assert "writes on its stdout what is no MCP message" in caught.value.message
    assert "still no message" in caught.value.data["stderrTail"]


async def test_a_command_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    for command, reason in (("no-such-program", "was not found"), (str(broken), "cannot be started")):
        with pytest.raises(ConfigurationError, match=reason) as caught:
            await Client("s", StdioServer(command=command)).connect()
        assert caught.value.path == "mcpServers.s.command"


async def test_a_client_that_is_not_connected_says_so() -> None:
    error = await error_of(new_client(), "echo")
    assert (error.kind, error.message) == ("mcpNotInitialized", "server 's' is not connected; connect it first")


async def test_a_client_may_be_connected_twice_and_closed_twice(start_client: StartClient) -> None:
    client = await start_client()
    pid = client.pid
    await client.connect()
    assert client.pid == pid
    await client.close()
    await client.close()
    assert (await error_of(client, "echo")).kind == "mcpNotInitialized"
    await client.connect()
    assert await client.call_tool("echo", {"text": "again"}) == said("again")


# Tools --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", [1, 3, 7, 100])
async def test_all_pages_of_tools_are_listed(start_client: StartClient, pages: int) -> None:
    client = await start_client("--pages", str(pages))
    assert [tool.name for tool in await client.tools()] == list(TOOLS)


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        (
            ("--pages", "3", "--cursor", "loop"),
            "the list of tools goes in a circle; it is taken as far as it went",
        ),
        (
            ("--pages", "2", "--cursor", "endless"),
            "the list of tools has more than 1000 pages; the rest is left out",
        ),
        (("--pages", "3", "--cursor", "empty"), None),
    ],
)
async def test_a_list_that_ends_oddly_ends(
    start_client: StartClient, options: tuple[str, ...], warning: str | None
) -> None:
    warnings: list[str] = []
    client = await start_client(*options, on_warning=warnings.append)
    assert [tool.name for tool in await client.tools()] == list(TOOLS)
    assert warnings[:1] == ([] if warning is None else [warning])


async def test_when_a_later_page_is_refused_the_tools_until_there_are_taken(start_client: StartClient) -> None:
    warnings: list[str] = []
    client = await start_client("--pages", "3", "--refuse-page", "2", on_warning=warnings.append)
    names = [tool.name for tool in await client.tools()]
    assert names == list(TOOLS)[: len(names)]
    assert len(names) == 2 * -(-len(TOOLS) // 3)
    assert warnings == ["a page of tools was refused, and those from there on are left out: no such page"]


async def test_when_the_first_page_is_refused_there_are_no_tools(start_client: StartClient) -> None:
    client = await start_client("--refuse-page", "0")
    with pytest.raises(ToolError, match="server 's' refused tools/list: no such page"):
        await client.tools()


async def test_a_bad_tool_takes_no_other_along_and_nothing_is_mended_in_silence(start_client: StartClient) -> None:
    warnings: list[str] = []
    client = await start_client("--broken-tools", on_warning=warnings.append)
    tools = {tool.name: tool for tool in await client.tools()}
    assert tools == {
        "good": McpToolDefinition(
            name="good", input_schema={"type": "object", "properties": {"any": True}, "x-own": [1]}
        ),
        "no_schema": McpToolDefinition(name="no_schema"),
        "null_schema": McpToolDefinition(name="null_schema"),
        "true_schema": McpToolDefinition(name="true_schema"),
        "empty_schema": McpToolDefinition(name="empty_schema"),
        "untyped_schema": McpToolDefinition(
            name="untyped_schema", input_schema={"properties": {"a": {}}, "type": "object"}
        ),
        "nullable_schema": McpToolDefinition(
            name="nullable_schema", input_schema={"type": "object", "required": ["a"]}
        ),
        "text_schema": McpToolDefinition(name="text_schema"),
        "bad_output_schema": McpToolDefinition(name="bad_output_schema"),
        "odd_extras": McpToolDefinition(name="odd_extras"),
    }
    assert "tool 'task_only' is left out: it runs as a task only, which this client does not offer" in warnings
    assert "tool 'good' is listed twice; the second is left out" in warnings
    mended = {name for name in tools for warning in warnings if f"schema of tool {name!r}" in warning}
    assert mended == set(tools) - {"good", "odd_extras"}


async def test_a_server_without_tools_is_not_asked_for_any(start_client: StartClient) -> None:
    client = await start_client("--no-tools")
    assert await client.tools() == ()
    assert (await error_of(client, "echo")).message == "server 's' offers no tools"


async def test_tools_are_remembered_until_the_server_says_that_they_changed(start_client: StartClient) -> None:
    changes: asyncio.Queue[Any] = asyncio.Queue()
    client = await start_client(on_tools=changes.put_nowait)
    before = await client.tools()
    assert await client.tools() is before
    await client.call_tool("change_tools", {"name": "newcomer"})
    after = await asyncio.wait_for(changes.get(), BOUND_SECS)
    assert [tool.name for tool in after] == [*TOOLS, "newcomer"]
    assert await client.tools() == after


async def test_a_storm_of_changes_becomes_few_lists_and_the_last_change_is_seen(start_client: StartClient) -> None:
    changes: asyncio.Queue[Any] = asyncio.Queue()
    client = await start_client(on_tools=changes.put_nowait)
    await client.tools()
    began = time.perf_counter()
    await client.call_tool("change_tools", {"name": "first", "times": 200, "secs": 0.2})
    await client.call_tool("change_tools", {"name": "last", "times": 1})
    async with asyncio.timeout(BOUND_SECS):
        while (await changes.get())[-1].name != "last":
            pass
    lists = json.loads(text_of(await client.call_tool("received", {"method": "tools/list"})))
    assert len(lists) <= 3 + (time.perf_counter() - began) / REFRESH_PAUSE_SECS


# Calls --------------------------------------------------------------------------------------------------


async def test_a_failure_of_the_tool_is_a_result(start_client: StartClient) -> None:
    client = await start_client()
    assert await client.call_tool("fail", {"text": "no disk"}) == said("no disk", is_error=True)


@pytest.mark.parametrize(
    ("code", "kind"), [(-32602, "invalidArguments"), (-32000, "mcpError"), (-32603, "mcpError")]
)
async def test_a_refused_call_says_why(start_client: StartClient, code: int, kind: str) -> None:
    client = await start_client()
    error = await error_of(client, "refused", arguments={"code": code, "message": "not today"})
    assert (error.kind, error.message) == (kind, "server 's' refused 'refused': not today")
    assert error.data == {"tool": "refused", "server": "s", "serverError": {"code": code}}


async def test_calls_run_side_by_side(start_client: StartClient) -> None:
    client = await start_client()
    slow = asyncio.create_task(client.call_tool("slow", {"secs": 0.3}))
    results = await asyncio.gather(*(client.call_tool("echo", {"text": str(number)}) for number in range(100)))
    assert [text_of(result) for result in results] == [str(number) for number in range(100)]
    assert not slow.done()
    assert await slow == said("slept")


async def test_progress_is_told_while_the_call_runs(start_client: StartClient) -> None:
    client = await start_client()
    heard: list[Any] = []

    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    assert await client.call_tool("slow", {"secs": 0.04}, on_progress=on_progress) == said("slept")
    assert heard == [(step, 4, f"step {step}") for step in (1, 2, 3, 4)]


async def test_no_report_of_many_is_lost(start_client: StartClient) -> None:
    client = await start_client()
    heard: list[float | None] = []

    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        heard.append(done)
        await asyncio.sleep(0)

    await client.call_tool("chatter", {"reports": 5000}, on_progress=on_progress)
    assert heard == list(range(1, 5001))


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_the_server_is_told_of_a_call_that_nobody_waits_for(
    start_client: StartClient, is_cancelled: bool
) -> None:
    client = await start_client()
    if is_cancelled:
        call = asyncio.create_task(client.call_tool("slow", {"secs": 30}))
        await client.call_tool("echo", {})  # By then the slow call is at the server.
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    else:
        error = await error_of(client, "slow", arguments={"secs": 30}, timeout_secs=0.1)
        assert (error.kind, error.message) == ("mcpTimeout", "server 's' did not answer tools/call within 0.1 s")
    cancelled = json.loads(text_of(await client.call_tool("received", {"method": "notifications/cancelled"})))
    assert [sorted(params) for params in cancelled] == [["reason", "requestId"]]


async def test_the_limit_of_a_call_is_that_of_its_server_when_none_is_given(start_client: StartClient) -> None:
    client = await start_client(timeoutSecs=0.2)
    error = await error_of(client, "silent")
    assert error.message == "server 's' did not answer tools/call within 0.2 s; raise mcpServers.s.timeoutSecs"


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("ping", {"jsonrpc": "2.0", "id": "q", "result": {}}),
        (
            "roots/list",
            {
                "jsonrpc": "2.0",
                "id": "q",
                "error": {"code": -32601, "message": "roots/list is not offered by this client"},
            },
        ),
    ],
)
async def test_what_the_server_asks_is_answered(start_client: StartClient, method: str, reply: Any) -> None:
    client = await start_client()
    assert json.loads(text_of(await client.call_tool("ask_client", {"method": method, "id": "q"}))) == reply


async def test_the_server_sees_the_environment_that_was_chosen_and_runs_in_its_folder(
    start_client: StartClient, tmp_path: Any
) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": "/home/ada", "OPENAI_API_KEY": "secret", "EXTRA": "1"}
    client = await start_client(
        env={"TOKEN": "t0k", "PORT": 3000}, inheritEnv=["EXTRA"], cwd=str(tmp_path), environ=environ
    )
    seen = json.loads(text_of(await client.call_tool("environment", {})))
    assert seen["cwd"] == str(tmp_path)
    ours = {
        name: value for name, value in seen["environ"].items() if name not in ("AGENT_SIDECAR_TREE", "LC_CTYPE")
    }
    assert ours == {"PATH": environ["PATH"], "HOME": "/home/ada", "TOKEN": "t0k", "PORT": "3000", "EXTRA": "1"}


async def test_last_words_do_not_give_away_secrets() -> None:
    client = new_client(
        "--say", "login with s3cr3t-t0k3n failed", "--exit", "1", env={"API_TOKEN": "s3cr3t-t0k3n"}
    )
    with pytest.raises(ToolError) as caught:
        await client.connect()
    assert caught.value.data["stderrTail"] == "login with *** failed"
