"""Requests to a server of the revision without a handshake: input, subscriptions, results that grow old.

Source: MCP 2026-07-28, basic/patterns/mrtr, basic/patterns/subscriptions, server/utilities/caching and pagination;
limits and pauses are our own choice.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import decode_server
from sidecar.mcp.duties import Duties, Offers
from sidecar.mcp.elicitation import InputAnswer, InputQuestion
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import TextBlock
from tests.harness.mcp_modern_server import TOOLS, modern_entry

BOUND_SECS = 10.0


async def _blue(server: str, question: InputQuestion) -> InputAnswer:
    return InputAnswer("accept", {"colour": "blue"})


def duties() -> Duties:
    return Duties("s", Offers(roots=lambda: (Path("/project"),), elicit=_blue))


@contextlib.asynccontextmanager
async def connected(*options: str, **callbacks: Any) -> AsyncIterator[Client]:
    entry = modern_entry(*options, **callbacks.pop("fields", {}))
    client = Client("s", decode_server("s", entry), **{"duties": duties(), **callbacks})
    await asyncio.wait_for(client.connect(), BOUND_SECS)
    try:
        yield client
    finally:
        await client.close()


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    (block,) = (await asyncio.wait_for(client.call_tool(tool, arguments), BOUND_SECS)).content
    assert isinstance(block, TextBlock)
    return json.loads(block.text)


async def requests_received(client: Client, method: str) -> list[Any]:
    return await told(client, "received", method=method)


async def until_listened(client: Client, times: int) -> None:
    """Waits until the server has been asked for a subscription so often."""
    async with asyncio.timeout(BOUND_SECS):
        while len(await requests_received(client, "subscriptions/listen")) < times:
            pass


async def failure(client: Client, tool: str, **arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(client.call_tool(tool, arguments), BOUND_SECS)
    return caught.value


# Input --------------------------------------------------------------------------------------------------


async def test_what_a_server_needs_for_a_result_is_given_and_its_state_goes_back_as_it_came() -> None:
    async with connected() as client:
        assert await told(client, "with_state") == {
            "same": True,
            "a": {"action": "accept", "content": {"colour": "blue"}},
            "b": {"roots": [{"uri": "file:///project", "name": "project"}]},
        }
        first, second = (
            message
            for message in await requests_received(client, "tools/call")
            if message["params"]["name"] == "with_state"
        )
        assert first["id"] != second["id"]
        assert first["params"]["_meta"] == second["params"]["_meta"]


async def test_no_other_request_hears_of_a_state_or_of_answers() -> None:
    async with connected() as client:
        await asyncio.gather(told(client, "with_state"), told(client, "show"))
        shown = await told(client, "show")
        assert set(shown) == {"name", "arguments", "_meta"}
        requests = await requests_received(client, "tools/call")
        with_state = [request for request in requests if "requestState" in request["params"]]
        assert [request["params"]["name"] for request in with_state] == ["with_state"]


async def test_a_server_without_a_state_gets_none() -> None:
    async with connected() as client:
        assert await told(client, "without_state") == {
            "has state": False,
            "q": {"action": "accept", "content": {"colour": "blue"}},
        }


async def test_a_server_may_want_nothing_but_to_be_asked_again() -> None:
    async with connected() as client:
        assert await told(client, "state_only", rounds=10) == {"rounds": 10, "has answers": False}


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("state_only", {"rounds": 11}, "it asked for input more than 10 times"),
        ("nothing_asked", {}, "it asked for input and did not say for which"),
        (
            "asks_for_the_impossible",
            {},
            "it needs an answer that it does not get: moon/land is not offered by this client",
        ),
        ("of_unknown_type", {}, "its result is of a type that this client does not know, 'task'"),
    ],
)
async def test_a_result_that_leads_nowhere_fails_its_call_alone(
    tool: str, arguments: dict[str, Any], reason: str
) -> None:
    async with connected() as client:
        error = await failure(client, tool, **arguments)
        assert (error.kind, error.message) == ("mcpError", f"server 's' failed at tools/call: {reason}")
        assert (await client.call_tool("echo", {"text": "ok"})).content == (TextBlock(text="ok"),)


async def test_a_result_that_does_not_say_what_it_is_is_complete() -> None:
    async with connected() as client:
        assert (await client.call_tool("of_no_type", {})).content == (TextBlock(text="no type"),)


async def test_a_call_that_is_cancelled_while_a_person_is_asked_is_not_sent_again() -> None:
    asked = asyncio.Event()

    async def never(server: str, question: InputQuestion) -> InputAnswer:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with connected(duties=Duties("s", Offers(elicit=never))) as client:
        call = asyncio.create_task(client.call_tool("without_state", {}))
        await asyncio.wait_for(asked.wait(), BOUND_SECS)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        calls = await requests_received(client, "tools/call")
        assert [request["params"]["name"] for request in calls] == ["without_state", "received"]


# Subscriptions ------------------------------------------------------------------------------------------


async def test_a_modern_server_is_asked_for_word_of_the_changes_that_it_can_tell_of() -> None:
    changes: asyncio.Queue[Any] = asyncio.Queue()
    async with connected("--ttl-ms", "60000", on_tools=changes.put_nowait) as client:
        await client.tools()
        await until_listened(client, 1)
        (listen,) = await requests_received(client, "subscriptions/listen")
        assert listen["params"]["notifications"] == {"toolsListChanged": True, "promptsListChanged": True}
        await client.call_tool("change_tools", {})
        after = await asyncio.wait_for(changes.get(), BOUND_SECS)
        assert [tool.name for tool in after] == [*TOOLS, f"extra_{len(TOOLS)}"]
        assert await client.tools() is after


async def test_word_of_a_change_under_another_subscription_is_for_nobody() -> None:
    changes: asyncio.Queue[Any] = asyncio.Queue()
    async with connected(on_tools=changes.put_nowait) as client:
        await until_listened(client, 1)
        for other in (999, "x", True):
            await client.call_tool("change_tools", {"other": other})
        assert await requests_received(client, "tools/list") == []
        assert changes.empty()


@pytest.mark.parametrize("end", ["end", "cancel"])
async def test_a_subscription_that_has_ended_is_asked_for_again_and_what_was_missed_is_found(end: str) -> None:
    changes: asyncio.Queue[Any] = asyncio.Queue()
    async with connected("--listen", end, on_tools=changes.put_nowait) as client:
        await until_listened(client, 2)
        assert [tool.name for tool in await asyncio.wait_for(changes.get(), BOUND_SECS)] == [*TOOLS]
        first, second = await requests_received(client, "subscriptions/listen")
        assert first["id"] != second["id"]
        await client.call_tool("change_tools", {})
        assert len(await asyncio.wait_for(changes.get(), BOUND_SECS)) == len(TOOLS) + 1


async def test_a_server_that_refuses_a_subscription_is_asked_once_and_works() -> None:
    async with connected("--listen", "refuse") as client:
        await until_listened(client, 1)
        assert (await client.call_tool("echo", {"text": "ok"})).content == (TextBlock(text="ok"),)
        assert len(await requests_received(client, "subscriptions/listen")) == 1


async def test_an_answer_that_cannot_be_read_is_that_of_the_call_and_not_of_the_subscription() -> None:
    async with connected() as client:
        await until_listened(client, 1)
        error = await failure(client, "garbled")
        assert error.message.startswith("server 's' failed at tools/call: its answer is no JSON")
        assert len(await requests_received(client, "subscriptions/listen")) == 1


# Results that grow old ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("ttl_ms", "lists"), [("60000", 1), ("0", 3), ("-5", 3), (None, 3)])
async def test_tools_are_remembered_as_long_as_the_server_says(ttl_ms: str | None, lists: int) -> None:
    options = () if ttl_ms is None else ("--ttl-ms", ttl_ms)
    async with connected(*options) as client:
        for _ in range(3):
            assert [tool.name for tool in await client.tools()] == [*TOOLS]
        assert len(await requests_received(client, "tools/list")) == lists


async def test_an_empty_cursor_leads_to_another_page() -> None:
    async with connected("--cursor", "empty") as client:
        assert [tool.name for tool in await client.tools()] == [*TOOLS]
        first, second = await requests_received(client, "tools/list")
        assert ("cursor" in first["params"], second["params"]["cursor"]) == (False, "")


async def test_an_empty_cursor_that_leads_to_itself_ends_the_list() -> None:
    warnings: list[str] = []
    async with connected("--cursor", "loop", on_warning=warnings.append) as client:
        assert [tool.name for tool in await client.tools()] == [*TOOLS]
    assert "the list of tools goes in a circle; it is taken as far as it went" in warnings


# What no server of this revision does -------------------------------------------------------------------


async def test_a_request_of_the_server_is_not_answered() -> None:
    async with connected() as client:
        await client.call_tool("asks_on_its_own", {})
        received = await told(client, "received")
        assert [message for message in received if "method" not in message] == []


async def test_a_server_that_no_longer_takes_the_revision_is_asked_again_what_it_is() -> None:
    async with connected() as client:
        assert (await client.call_tool("forget_revision", {})).content == (TextBlock(text="asked again"),)
        assert len(await requests_received(client, "server/discover")) == 2
