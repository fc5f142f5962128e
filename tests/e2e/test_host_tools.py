"""Tools of the host: registered, offered to the model, run by the host (protocol.md, tools/register)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import RequestFailed, sidecar
from tests.harness.model_server import ScriptedModel, calls, says, stalls

WEATHER = {
    "name": "weather",
    "description": "The weather in a city",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
    "tags": ["outside"],
    "category": "world",
}


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    return {
        "model": "test/m",
        "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
        "builtinTools": False,
        **more,
    }


async def test_a_host_tool_is_called_with_checked_arguments_and_answers_the_model() -> None:
    script = (calls(("weather", {"city": "Oslo"}, "c1"), ("weather", {}, "c2")), says("Rain."))
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        host.answers["tools/execute"] = lambda asked: {"ok": True, "data": {"sky": "rain"}}
        assert await host.request("tools/register", {"tools": [WEATHER]}) == {"registered": ["weather"]}
        result = await host.submit("weather?")
    ((_, executed),) = host.asked
    assert executed["name"] == "weather"
    assert executed["arguments"] == {"city": "Oslo"}
    assert (executed["callId"], executed["runId"], executed["sessionId"]) == (
        "c1",
        result["runId"],
        result["sessionId"],
    )
    told = {m["tool_call_id"]: m["content"] for m in model.requests[1].messages if m["role"] == "tool"}
    assert told["c1"] == '{"sky":"rain"}'
    assert "city" in told["c2"]


async def test_an_error_of_a_host_tool_is_told_to_the_model() -> None:
    script = (calls(("weather", {"city": "Oslo"})), says("I could not see."))
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        host.answers["tools/execute"] = lambda asked: {"ok": False, "error": "no window"}
        await host.request("tools/register", {"tools": [WEATHER]})
        await host.submit("weather?")
    assert "no window" in model.requests[1].messages[-1]["content"]


async def test_a_host_tool_that_takes_too_long_is_withdrawn_and_told_to_the_model() -> None:
    script = (calls(("weather", {"city": "Oslo"}, "c1")), says("It takes too long."))
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        host.answers["tools/execute"] = lambda asked: asyncio.Event().wait()
        await host.request("tools/register", {"tools": [WEATHER]})
        await host.submit("weather?", toolTimeoutSecs=0.2)
        await host.wait_for(lambda: host.withdrawn == ["c1"])
    assert host.kinds("toolExecutionCompleted")[0]["errorKind"] == "timeout"


@pytest.mark.parametrize("senseless", ["ok", {"ok": "true"}, {}, None])
async def test_an_answer_that_makes_no_sense_fails_that_call_alone(senseless: Any) -> None:
    script = (calls(("weather", {"city": "Oslo"})), says("Never mind."))
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        host.answers["tools/execute"] = lambda asked: senseless
        await host.request("tools/register", {"tools": [WEATHER]})
        with host.being_odd():
            result = await host.submit("weather?")
    assert result["message"]["content"] == "Never mind."
    assert host.kinds("toolExecutionCompleted")[0]["isError"]


async def test_tools_join_and_leave_a_running_run_at_its_next_turn() -> None:
    other = {**WEATHER, "name": "tides"}
    slow = stalls(calls(("weather", {"city": "Oslo"})), after=1)
    async with ScriptedModel(slow, says("ok")) as model, sidecar(options(model)) as host:
        host.answers["tools/execute"] = lambda asked: {"ok": True}
        await host.request("tools/register", {"tools": [WEATHER]})
        run = host.send("agent/submit", {"prompt": "go"})
        await model.received(1)
        await host.request("tools/register", {"tools": [other]})
        slow.stall.release()
        await run
        await host.request("tools/unregister", {"names": ["weather", "nobody"]})
    assert [sorted(request.tool_names) for request in model.requests] == [["weather"], ["tides", "weather"]]
    changes = [params for method, params in host.notifications if method == "tools/changed"]
    assert [(c["added"], c["removed"]) for c in changes] == [(["weather"], []), (["tides"], []), ([], ["weather"])]


async def test_a_name_that_is_taken_joins_nothing(tmp_path: Path) -> None:
    async with ScriptedModel() as model, sidecar(options(model, builtinTools=["read_file"])) as host:
        both = [WEATHER, {**WEATHER, "name": "read_file"}]
        with pytest.raises(RequestFailed) as failed:
            await host.request("tools/register", {"tools": both})
        assert (failed.value.code, failed.value.data["path"]) == (-32602, "params.tools[1]")
        assert "built-in" in failed.value.message
        names = [tool["name"] for tool in (await host.request("tools/list"))["tools"]]
        assert names == ["read_file"]
        assert await host.request("tools/unregister", {"names": ["read_file"]}) == {"unregistered": []}


async def test_a_tool_whose_arguments_are_no_object_does_not_join() -> None:
    def with_schema(name: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {**WEATHER, "name": name, "inputSchema": schema}

    async with sidecar({"builtinTools": False}) as host:
        for schema in ({"type": "array"}, {"type": ["string", "null"]}):
            with pytest.raises(RequestFailed) as failed:
                await host.request("tools/register", {"tools": [WEATHER, with_schema("odd", schema)]})
            assert (failed.value.code, failed.value.data["path"]) == (-32602, "params.tools[1]")
            assert 'inputSchema.type must be "object"' in failed.value.message
        tools = [with_schema("nullable", {"type": ["object", "null"]}), with_schema("bare", {})]
        assert await host.request("tools/register", {"tools": tools}) == {"registered": ["nullable", "bare"]}


async def test_tools_are_listed_by_selector_and_page() -> None:
    tools = [{**WEATHER, "name": f"t{n}", "tags": ["even" if n % 2 == 0 else "odd"]} for n in range(5)]
    async with ScriptedModel() as model, sidecar(options(model)) as host:
        await host.request("tools/register", {"tools": tools})
        even = await host.request("tools/list", {"selector": {"tags": ["even"], "exclude": ["t4"]}})
        assert [t["name"] for t in even["tools"]] == ["t0", "t2"]
        assert even["tools"][0]["source"] == {"type": "host"}
        names: list[str] = []
        cursor = None
        while True:
            page = await host.request("tools/list", {"limit": 2, **({"cursor": cursor} if cursor else {})})
            names += [t["name"] for t in page["tools"]]
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        assert names == ["t0", "t1", "t2", "t3", "t4"]
        with pytest.raises(RequestFailed) as failed:
            await host.request("tools/list", {"cursor": "nonsense"})
        assert failed.value.data["path"] == "params.cursor"


async def test_a_submit_offers_only_the_tools_it_selects() -> None:
    tools = [{**WEATHER, "name": "one"}, {**WEATHER, "name": "two"}]
    script = (calls(("two", {"city": "Oslo"})), says("ok"))
    async with ScriptedModel(*script, is_strict=False) as model, sidecar(options(model)) as host:
        await host.request("tools/register", {"tools": tools})
        await host.submit("go", tools={"names": ["one"]}, errorPolicy={"notFound": "tellModel"})
    assert model.requests[0].tool_names == ["one"]
    assert not host.asked, "a tool that was not offered must not run"


async def test_tools_call_shows_progress_of_a_host_tool_in_the_editor_s_bar() -> None:
    async with ScriptedModel() as model, sidecar(options(model)) as host:

        def execute(asked: dict[str, Any]) -> dict[str, Any]:
            host.notify("$/progress", {"token": asked["callId"], "value": {"kind": "report", "message": "half"}})
            return {"ok": True, "data": "done"}

        host.answers["tools/execute"] = execute
        await host.request("tools/register", {"tools": [WEATHER]})
        given = {"name": "weather", "arguments": {"city": "Oslo"}, "workDoneToken": "bar"}
        host.client.progress_reports["bar"] = []
        result = await host.request("tools/call", given)
        assert result["result"] == {"ok": True, "data": "done"}
        assert result["content"] == [{"type": "text", "text": "done"}]
        reports = host.client.progress_reports["bar"]
        assert [getattr(report, "message", None) for report in reports][1:-1] == ["half"]


@pytest.mark.parametrize("answer", [None, 5, [], {"ok": "true"}, {"ok": True, "content": [{"type": "text"}]}])
async def test_an_answer_that_makes_no_sense_fails_the_call_in_words_of_the_protocol(answer: Any) -> None:
    async with sidecar() as host:
        tool = {"name": "odd", "description": "d", "inputSchema": {"type": "object"}}
        await host.request("tools/register", {"tools": [tool]})
        host.answers["tools/execute"] = lambda params: answer
        with pytest.raises(RequestFailed) as failed, host.being_odd():
            await host.request("tools/call", {"name": "odd", "arguments": {}})
    assert failed.value.code == -31002
    assert failed.value.message.startswith("odd failed: the host's answer to tools/execute makes no sense: result")
