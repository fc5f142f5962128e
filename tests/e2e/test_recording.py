"""A run that was recorded is the same run again when it is replayed: events, history, failures and all.

Source: protocol.md, "Options" (`record`, `"replay"`).
"""

import json
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests.harness.anthropic_dialect import thinking, tool_use
from tests.harness.host import Host, RequestFailed, sidecar
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import (
    ScriptedModel,
    breaks_off,
    calls,
    messages_stream,
    refuses,
    says,
)

KEY = "sk-very-secret-1234"
PASSING = ("sessionId", "runId", "durationMs", "createdMs", "updatedMs", "seq")
"""What differs from one run to the next, whatever the model says."""


def options(provider: dict[str, Any]) -> dict[str, Any]:
    permissions = {"allowed": ["read", "write", "mcp:*"], "ask": [], "denied": []}
    servers = {"one": server_entry()}
    return {
        "model": "test/scripted",
        "providers": {"test": provider},
        "permissions": permissions,
        "mcpServers": servers,
    }


def lasting(value: Any) -> Any:
    """A value without what passes."""
    if isinstance(value, list):
        return [lasting(member) for member in value]
    if isinstance(value, dict):
        return {name: lasting(member) for name, member in value.items() if name not in PASSING}
    return value


def settled(events: list[Any]) -> list[Any]:
    """Events as they do not depend on speed: neighbouring deltas as one, calls that ran together by their id."""
    result: list[Any] = []
    for kind, group in groupby(events, key=itemgetter("type")):
        same = list(group)
        if kind.endswith("Delta"):
            result.append({**same[0], "text": "".join(event["text"] for event in same)})
        else:
            result += sorted(same, key=itemgetter("callId")) if kind == "toolExecutionCompleted" else same
    return result


async def whole_story(host: Host) -> tuple[list[Any], Any]:
    """Three submits of one conversation, the second of which fails; the events and the history."""
    result = await host.submit("use your tools")
    ids = {"sessionId": result["sessionId"]}
    with pytest.raises(RequestFailed):
        await host.submit("go on", **ids)
    await host.submit("once more", **ids)
    session = await host.request("session/get", ids)
    return settled([lasting(event) for event in host.kinds()]), lasting(session)


async def test_a_recorded_run_replays_with_the_same_events_and_the_same_history(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    file = tmp_path / "run.json"
    script = (
        refuses(503, "busy", headers={"Retry-After": "0"}),
        calls(
            ("read_file", {"path": "a.txt"}),
            ("one__echo", '{"text": "ciel é'),
            ("one__add", {"a": 2, "b": 3}, "mine"),
            text="I will look. ",
            reasoning="hm, well",
        ),
        calls(("one__echo", {"text": "ciel é 🌍"})),
        says("It says forty-two."),
        breaks_off(says("and another thing"), after=4),
        says("Done.", reasoning="nothing more"),
    )
    live = {"api": "openai-chat", "apiKey": KEY, "record": str(file)}
    async with ScriptedModel(*script, dialect="vllm", api_key=KEY) as model:
        async with sidecar(options({**live, "baseUrl": model.base_url}), folders=[tmp_path]) as host:
            events, history = await whole_story(host)
        assert len(model.requests) == 6
    async with sidecar(options({"api": "replay", "file": str(file)}), folders=[tmp_path]) as host:
        replayed_events, replayed_history = await whole_story(host)
    assert replayed_events == events
    assert replayed_history == history
    kinds = {event["type"] for event in events}
    assert {"retrying", "assistantReasoningDelta", "toolExecutionCompleted", "runCompleted"} <= kinds
    assert KEY not in file.read_text() and "use your tools" not in file.read_text()


async def test_thoughts_that_go_back_are_in_the_history_of_a_replay_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    file = tmp_path / "run.json"
    blocks = [thinking("hm — “é”\n"), tool_use("toolu_1", "read_file", {"path": "a.txt"})]
    script = (messages_stream(*blocks, stop_reason="tool_use"), says("forty-two"))
    async with ScriptedModel(*script, dialect="anthropic") as model:
        live = {"api": "anthropic", "baseUrl": model.base_url, "record": str(file)}
        async with sidecar(options(live), folders=[tmp_path]) as host:
            result = await host.submit("read it")
            history = await host.request("session/get", {"sessionId": result["sessionId"]})
    async with sidecar(options({"file": str(file)}), folders=[tmp_path]) as host:
        result = await host.submit("read it")
        again = await host.request("session/get", {"sessionId": result["sessionId"]})
    assert lasting(again) == lasting(history)
    assert again["messages"][1]["providerExtras"]["data"]["blocks"][0] == blocks[0]
    assert json.loads(file.read_text())["turns"][0]["extras"]["blocks"][0] == blocks[0]
