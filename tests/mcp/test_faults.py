"""Servers that answer what they should not, or die. Every call ends, soon, and the next one works.

Source: own choice; the faults are those that servers in the field were seen to have, as `mcp_faults` lists them.
"""

import asyncio
from pathlib import Path

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.results import McpCallResult
from sidecar.protocol.errors import ToolError
from tests.harness.mcp_faults import ANSWERS, ENDINGS, OK, STARTS, Ending, Start, text
from tests.harness.mcp_server import GARBAGE
from tests.harness.processes import living
from tests.mcp.conftest import StartClient, connected, new_client

BOUND_SECS = 5.0
"""For a call whose answer is no good; its own limit, in these tests, is 30 s."""

PREFIX = "server 's' "


async def outcome(client: Client, tool: str, **arguments: object) -> McpCallResult | str:
    """A call's result, or the message of its error without the server's name."""
    try:
        return await asyncio.wait_for(client.call_tool(tool, arguments), BOUND_SECS)
    except ToolError as error:
        assert error.kind == "mcpError"
        return error.message.removeprefix(PREFIX)
    except TimeoutError:
        return "hangs"


def as_expected(got: McpCallResult | str, expected: McpCallResult | str) -> McpCallResult | str:
    """What was expected, where an error begins like that."""
    is_error = isinstance(got, str) and isinstance(expected, str)
    return expected if is_error and got.startswith(expected) else got


def test_every_kind_of_garbage_is_tested() -> None:
    assert set(GARBAGE) == set(ANSWERS)


async def test_an_odd_answer_is_taken_and_a_broken_one_fails_its_call_alone(start_client: StartClient) -> None:
    client = await start_client()
    pid = client.pid
    for kind, expected in ANSWERS.items():
        if kind == "no newline, then exit":
            continue
        got = await outcome(client, "garbage", kind=kind)
        assert as_expected(got, expected) == expected, kind
        assert await outcome(client, "echo", text=kind) == text(kind)
    assert client.pid == pid


async def test_a_last_line_without_an_end_is_taken(start_client: StartClient) -> None:
    client = await start_client()
    assert await outcome(client, "garbage", kind="no newline, then exit") == OK
    assert await asyncio.wait_for(client.wait_ended(), BOUND_SECS) == "exited with status 0"


async def test_broken_answers_among_many_calls_fail_those_that_they_name(start_client: StartClient) -> None:
    client = await start_client()
    kinds = [kind for kind in ANSWERS if kind not in NAMELESS]
    broken = asyncio.gather(*(outcome(client, "garbage", kind=kind) for kind in kinds))
    good = asyncio.gather(*(outcome(client, "echo", text=str(number)) for number in range(100)))
    assert await good == [text(str(number)) for number in range(100)]
    expected = [ANSWERS[kind] for kind in kinds]
    assert list(map(as_expected, await broken, expected)) == expected


NAMELESS = ("no newline, then exit", "oversized", "error without id", "error with id null", "id true")
NAMELESS += ("cut off before id",)
"""Answers that do not say whose they are, one that takes long, and one that ends the server."""


async def test_an_answer_that_may_be_anybodys_costs_one_call_its_own_limit(start_client: StartClient) -> None:
    client = await start_client(timeoutSecs=0.5)
    slow = asyncio.create_task(client.call_tool("slow", {"secs": 0.3}))
    with pytest.raises(ToolError) as caught:
        await client.call_tool("garbage", {"kind": "cut off before id"})
    assert caught.value.kind == "mcpTimeout"
    assert await slow == text("slept")


async def test_a_server_starts_however_oddly_or_fails_in_time(tmp_path: Path) -> None:
    async def started(name: str, start: Start) -> str | None:
        options = (*start.options, "--pids", str(tmp_path / name))
        client = new_client(*options, on_warning=lambda warning: None, **start.fields)
        try:
            await client.connect()
            await client.tools()
            assert await outcome(client, "echo", text="ok") == OK
            return None
        except ToolError as error:
            return error.message.removeprefix(PREFIX)
        finally:
            await client.close()

    async with asyncio.timeout(3 * BOUND_SECS):
        got = dict(zip(STARTS, await asyncio.gather(*map(started, STARTS, STARTS.values())), strict=True))
    expected = {name: start.error for name, start in STARTS.items()}
    assert {name: error and error[: len(expected[name] or error)] for name, error in got.items()} == expected
    assert living(started_in(tmp_path)) == set()


def started_in(folder: Path) -> set[int]:
    """The processes that wrote themselves down there; one that is ended early may not have."""
    return {int(pid) for pids in folder.iterdir() for pid in pids.read_text().split()}


@pytest.mark.parametrize(("tool", "words"), [("banner", "after the banner"), ("stderr_flood", "flooded")])
async def test_noise_during_a_call_does_no_harm(start_client: StartClient, tool: str, words: str) -> None:
    client = await start_client()
    assert await outcome(client, tool) == text(words)


async def test_content_without_the_structure_that_was_promised_is_not_lost(start_client: StartClient) -> None:
    client = await start_client()
    assert (await client.call_tool("unstructured", {})).content == OK.content


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
async def test_the_end_of_a_server_ends_all_its_calls_at_once(ending: Ending, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with connected("--pids", str(pids)) as client:
        waiting = [outcome(client, "silent") for _ in range(3)]
        said = await asyncio.gather(*waiting, outcome(client, ending.tool, **ending.arguments))
        assert said == [f"{ending.said} before it answered tools/call"] * 4
        assert await asyncio.wait_for(client.wait_ended(), BOUND_SECS) == ending.said
    assert living(map(int, pids.read_text().split())) == set()


async def test_the_last_words_of_a_server_are_in_the_error(start_client: StartClient) -> None:
    client = await start_client()
    with pytest.raises(ToolError) as caught:
        await client.call_tool("die", {})
    assert caught.value.data == {"server": "s", "stderrTail": "dying words"}


async def test_a_server_that_exits_while_its_child_holds_stdout_has_ended(start_client: StartClient) -> None:
    client = await start_client("--grandchild", "group")
    assert await outcome(client, "die") == "exited with status 3 before it answered tools/call"


async def test_a_server_that_reads_nothing_fails_its_calls_in_time(start_client: StartClient) -> None:
    client = await start_client("--never-read")
    large = {"text": "x" * 3_000_000}
    calls = [client.call_tool("size", large, timeout_secs=0.5) for _ in range(3)]
    errors = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), BOUND_SECS)
    assert [getattr(error, "kind", error) for error in errors] == ["mcpTimeout"] * 3


async def test_large_arguments_and_results_pass(start_client: StartClient) -> None:
    client = await start_client()
    assert await outcome(client, "size", text="é" * 3_000_000) == text("3000000")
    assert await outcome(client, "huge", bytes=20_000_000) == text("x" * 20_000_000)
