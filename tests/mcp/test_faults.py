"""Servers that answer what they should not, or die. Every call ends, soon, and the next one works.

Source: own choice; the faults are those that servers in the field were seen to have.
"""

import asyncio
import signal

import pytest

from sidecar.mcp.results import McpCallResult
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import TextBlock, UnknownBlock
from tests.harness.mcp_server import GARBAGE
from tests.mcp.conftest import StartClient

BOUND_SECS = 5.0
"""For a call whose answer is no good; its own limit, in these tests, is 30 s."""

OK = McpCallResult(content=(TextBlock(text="ok"),))

REASONS = {
    "result null": "failed at tools/call: the result in its answer is null instead of an object",
    "result text": "failed at tools/call: the result in its answer is a string instead of an object",
    "result number": "failed at tools/call: the result in its answer is a number instead of an object",
    "neither result nor error": "failed at tools/call: its answer has neither a result nor an error",
    "error text": "refused 'garbage': broken",
    "error code text": "refused 'garbage': broken",
    "error without message": "refused 'garbage': an error without a message",
    "error without id": "refused 'garbage': broken",
    "error with id null": "refused 'garbage': broken",
    "deep": "failed at tools/call: its answer is nested too deeply",
    "pretty": "failed at tools/call: its answer is spread over several lines",
    "python repr": "failed at tools/call: its answer is no JSON",
    "cut off": "failed at tools/call: its answer is no JSON",
    "cut off before id": "failed at tools/call: its answer is no JSON",
    "oversized": "failed at tools/call: its answer is longer than this client takes",
}

RESULTS = {
    "no jsonrpc": OK,
    "float id": OK,
    "text id": OK,
    "error null": OK,
    "batch": OK,
    "two on a line": OK,
    "talk behind it": OK,
    "carriage return": OK,
    "surrogate": McpCallResult(content=(TextBlock(text="half � pair"),)),
    "bad utf-8": McpCallResult(content=(TextBlock(text="bad � byte"),)),
    "nan": McpCallResult(content=(TextBlock(text="ok"),), structured_content={"value": None}),
    "line separators": McpCallResult(content=(TextBlock(text="a\u2028b\u2029c\u0085d"),)),
    "byte by byte": McpCallResult(content=(TextBlock(text="ünï\u2028✓"),)),
    "unknown id first": OK,
    "twice": OK,
    "bad progress": OK,
    "no newline, then exit": OK,
    "content missing": McpCallResult(),
    "content null": McpCallResult(),
    "content text": OK,
    "content of unknown kind": McpCallResult(
        content=(
            UnknownBlock(raw={"type": "hologram", "data": "…"}),
            TextBlock(text='{"type": "text"}'),
            UnknownBlock(raw={"type": "unknown", "value": 7}),
        )
    ),
}


def test_every_kind_of_garbage_is_tested() -> None:
    assert set(GARBAGE) == set(REASONS) | set(RESULTS)


@pytest.mark.parametrize("kind", REASONS)
async def test_an_answer_that_cannot_be_used_fails_its_call_alone(start_client: StartClient, kind: str) -> None:
    client = await start_client()
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(client.call_tool("garbage", {"kind": kind}), BOUND_SECS)
    assert caught.value.kind == "mcpError"
    assert caught.value.message.startswith(f"server 's' {REASONS[kind]}")
    result = await asyncio.wait_for(client.call_tool("echo", {"text": "ok"}), BOUND_SECS)
    assert result == OK


@pytest.mark.parametrize("kind", RESULTS)
async def test_an_odd_answer_is_taken(start_client: StartClient, kind: str) -> None:
    client = await start_client()
    result = await asyncio.wait_for(client.call_tool("garbage", {"kind": kind}), BOUND_SECS)
    assert result == RESULTS[kind]


@pytest.mark.parametrize(
    "options", [("--bom",), ("--banner", "Server 1.0 on stdio"), ("--stderr-flood", "2000000")]
)
async def test_noise_at_the_start_does_no_harm(start_client: StartClient, options: tuple[str, ...]) -> None:
    client = await asyncio.wait_for(start_client(*options), BOUND_SECS)
    assert await client.call_tool("echo", {"text": "ok"}) == OK


@pytest.mark.parametrize(("tool", "words"), [("banner", "after the banner"), ("stderr_flood", "flooded")])
async def test_noise_during_a_call_does_no_harm(start_client: StartClient, tool: str, words: str) -> None:
    client = await start_client()
    result = await asyncio.wait_for(client.call_tool(tool, {}), BOUND_SECS)
    assert result == McpCallResult(content=(TextBlock(text=words),))


@pytest.mark.parametrize(
    ("tool", "arguments", "ending"),
    [
        ("die", {"status": 3}, "exited with status 3"),
        ("die_by_signal", {"signal": int(signal.SIGKILL)}, "was ended by SIGKILL"),
        ("die_by_signal", {"signal": int(signal.SIGSEGV)}, "was ended by SIGSEGV"),
        ("close_stdout", {}, "closed its stdout"),
        ("close_stdin", {}, "closed its stdin"),
    ],
)
async def test_the_end_of_a_server_ends_all_its_calls_at_once(
    start_client: StartClient, tool: str, arguments: dict[str, int], ending: str
) -> None:
    client = await start_client()
    waiting = [asyncio.create_task(client.call_tool("silent", {})) for _ in range(3)]
    waiting.append(asyncio.create_task(client.call_tool(tool, arguments)))
    errors = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), BOUND_SECS)
    for error in errors:
        assert isinstance(error, ToolError)
        assert (error.kind, error.message) == ("mcpError", f"server 's' {ending} before it answered tools/call")
    assert await asyncio.wait_for(client.wait_ended(), BOUND_SECS) == ending


async def test_the_last_words_of_a_server_are_in_the_error(start_client: StartClient) -> None:
    client = await start_client()
    with pytest.raises(ToolError) as caught:
        await client.call_tool("die", {})
    assert caught.value.data == {"server": "s", "stderrTail": "dying words"}


async def test_a_server_that_exits_while_its_child_holds_stdout_has_ended(start_client: StartClient) -> None:
    client = await start_client("--grandchild", "group")
    with pytest.raises(ToolError, match="exited with status 3"):
        await asyncio.wait_for(client.call_tool("die", {}), BOUND_SECS)


async def test_a_server_that_reads_nothing_fails_its_calls_in_time(start_client: StartClient) -> None:
    client = await start_client("--never-read")
    large = {"text": "x" * 3_000_000}
    calls = [client.call_tool("size", large, timeout_secs=0.5) for _ in range(3)]
    errors = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), BOUND_SECS)
    assert [getattr(error, "kind", error) for error in errors] == ["mcpTimeout"] * 3


async def test_large_arguments_and_results_pass(start_client: StartClient) -> None:
    client = await start_client()
    assert await client.call_tool("size", {"text": "é" * 3_000_000}) == McpCallResult(
        content=(TextBlock(text="3000000"),)
    )
    (block,) = (await client.call_tool("huge", {"bytes": 20_000_000})).content
    assert isinstance(block, TextBlock)
    assert len(block.text) == 20_000_000
