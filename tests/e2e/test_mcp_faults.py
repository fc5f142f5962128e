"""What a host sees of MCP servers that do wrong: answers within their bounds, and everything else goes on.

Source: own choice; the faults are those that servers in the field were seen to have, as `mcp_faults` lists them.
One sidecar serves all of these tests, as it would have to in an editor.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sidecar.mcp.results import McpCallResult
from sidecar.protocol.values import TextBlock
from tests.harness.host import Host, Json, sidecar
from tests.harness.mcp_faults import ANSWERS, ENDINGS, STARTS
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, says
from tests.harness.processes import living

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOUND_MS = 10_000
"""For one call, whatever its server does; its own limit is 30 s."""

KINDS = [kind for kind in ANSWERS if kind != "no newline, then exit"]
MORTALS = {f"mortal{number}": ending for number, ending in enumerate(ENDINGS.values())}
STARTERS = {name.replace(" ", "_"): start for name, start in STARTS.items()}

Planned = list[tuple[str, Json]]

PLANS: dict[str, list[Planned]] = {
    "garbage": [[("odd__garbage", {"kind": kind}), ("good__echo", {"text": kind})] for kind in KINDS],
    "work": [[("good__echo", {"text": str(number)})] for number in range(20)],
    "endings": [
        [
            *((f"{name}__silent", {}) for name in MORTALS),
            *((f"{name}__{ending.tool}", ending.arguments) for name, ending in MORTALS.items()),
            ("good__slow", {"secs": 0.5}),
        ]
    ],
    "after the endings": [[(f"{name}__echo", {"text": "again"}) for name in MORTALS]],
    "large": [[("good__huge", {"bytes": 20_000_000}), ("good__echo", {"text": "small"})]],
}
"""By prompt: what the model calls, turn by turn."""


def answer(request: SeenRequest) -> Reply:
    """The model's part."""
    prompt = next(message["content"] for message in request.messages if message["role"] == "user")
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return calls(*PLANS[prompt][turn]) if turn < len(PLANS[prompt]) else says("I have seen it all.")


def servers(pids: Path) -> dict[str, Json]:
    """One server that is good, and those that are not. Each writes down who it started."""

    def entry(*options: str, **fields: Any) -> Json:
        return server_entry("--pids", str(pids), *options, **fields)

    return {
        "good": entry(),
        "odd": entry(),
        # What a server has started keeps its pipes open, so one that only closes its own has none.
        **{
            name: entry(*(("--grandchild", "group") if ending.tool.startswith("die") else ()))
            for name, ending in MORTALS.items()
        },
        **{name: entry(*start.options, **start.fields) for name, start in STARTERS.items()},
        "never": entry("--never-initialize"),
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Host]:
    pids = tmp_path_factory.mktemp("faults") / "pids"
    async with ScriptedModel(answer=answer) as model:
        options = {
            "model": "test/m",
            "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
            "permissions": {"allowed": ["mcp:*"], "ask": []},
            "builtinTools": False,
            "mcpServers": servers(pids),
            "cycle": {"maxTurns": 100, "serverWaitSecs": 0.2, "errorPolicy": {"mcpError": "tellModel"}},
        }
        async with sidecar(options) as host:
            await host.wait_for(lambda: settled(host) >= set(servers(pids)) - {"never"})
            yield host
    assert living(map(int, pids.read_text().split())) == set(), "nothing outlives the sidecar"


def statuses(host: Host) -> dict[str, Json]:
    """How each server was last said to be."""
    return {params["name"]: params for method, params in host.notifications if method == "mcp/statusChanged"}


def settled(host: Host) -> set[str]:
    return {name for name, info in statuses(host).items() if info["status"] in ("ready", "failed")}


async def outcomes(host: Host, prompt: str) -> list[Json]:
    """Runs a prompt to its end; what came of its calls, in the order in which the model made them."""
    names = sorted({name for turn in PLANS[prompt] for name, _ in turn})
    result = await host.submit(prompt, tools={"names": names})
    assert result["message"]["content"] == "I have seen it all."
    events = [e["event"] for e in host.events if e["runId"] == result["runId"]]
    ended = {e["callId"]: e for e in events if e["type"] == "toolExecutionCompleted"}
    assert max(e["durationMs"] for e in ended.values()) < BOUND_MS
    return [ended[e["callId"]] for e in events if e["type"] == "toolExecutionStarted"]


def shown(outcome: Json) -> str:
    """The words of a result."""
    output = outcome["output"]
    return output if isinstance(output, str) else "".join(block.get("text", "") for block in output)


def is_as_listed(outcome: Json, expected: McpCallResult | str) -> bool:
    if isinstance(expected, str):
        return outcome.get("errorKind") == "mcpError" and shown(outcome).startswith(
            f"error: server 'odd' {expected}"
        )
    words = "".join(block.text for block in expected.content if isinstance(block, TextBlock))
    return not outcome["isError"] and (outcome["truncated"] or words in shown(outcome))


async def test_no_answer_breaks_more_than_its_call_while_another_run_goes_on(host: Host) -> None:
    broken, work = await asyncio.gather(outcomes(host, "garbage"), outcomes(host, "work"))
    pairs = list(zip(KINDS, broken[::2], broken[1::2], strict=True))
    wrong = {kind: odd for kind, odd, _ in pairs if not is_as_listed(odd, ANSWERS[kind])}
    assert wrong == {}
    assert [shown(good) for _, _, good in pairs] == KINDS
    assert [shown(result) for result in work] == [str(number) for number in range(20)]
    assert "never" not in settled(host), "a server that never answers was there all the time"


async def test_servers_that_end_fail_their_calls_at_once_and_come_back(host: Host) -> None:
    before = {name: statuses(host)[name]["pid"] for name in MORTALS}
    *failed, slow = await outcomes(host, "endings")
    said = [(outcome["errorKind"], shown(outcome)) for outcome in failed]
    assert said == 2 * [
        ("mcpError", f"error: server {name!r} {ending.said} before it answered tools/call")
        for name, ending in MORTALS.items()
    ]
    assert shown(slow) == "slept"
    await host.wait_for(lambda: all(is_ready_again(host, name, pid) for name, pid in before.items()))
    assert [shown(outcome) for outcome in await outcomes(host, "after the endings")] == ["again"] * len(MORTALS)


def is_ready_again(host: Host, name: str, pid_before: int) -> bool:
    info = statuses(host)[name]
    return info["status"] == "ready" and info["pid"] != pid_before


async def test_every_start_ends_well_or_with_its_reason(host: Host) -> None:
    listed = {info["name"]: info for info in (await host.request("mcp/list"))["servers"]}
    for name, start in STARTERS.items():
        if start.error is None:
            assert listed[name]["status"] == "ready", listed[name]
        else:
            assert listed[name]["status"] == "failed"
            assert f"server {name!r} {start.error}" in listed[name]["error"]["message"]
    assert listed["never"]["status"] == "starting"


async def test_a_huge_result_reaches_the_model_cut_and_other_requests_are_answered_meanwhile(host: Host) -> None:
    running = asyncio.create_task(outcomes(host, "large"))
    waits: list[float] = []
    while not (await asyncio.wait({running}, timeout=0.01))[0]:
        began = asyncio.get_running_loop().time()
        await host.request("mcp/list")
        waits.append(asyncio.get_running_loop().time() - began)
    huge, small = running.result()
    assert (huge["isError"], huge["truncated"], huge["originalBytes"]) == (False, True, 20_000_000)
    assert shown(small) == "small"
    assert max(waits) < 2.0
