"""A history that grows too long is made smaller (protocol.md, `compacted` and `session/compact`)."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import Host, RequestFailed, sidecar
from tests.harness.model_server import ScriptedModel, SeenRequest, calls, refuses, says, stalls


def options(model: ScriptedModel, **provider: Any) -> dict[str, Any]:
    entry = {"api": "openai-chat", "baseUrl": model.base_url, **provider}
    return {"model": "test/m", "providers": {"test": entry}}


async def talk(host: Host, folder: Path, *, runs: int) -> str:
    """A session in which each run reads a large file."""
    (folder / "big.txt").write_text("word " * 2000)
    session_id = (await host.request("session/create"))["sessionId"]
    for number in range(runs):
        await host.submit(f"question {number}", sessionId=str(session_id))
    return str(session_id)


def reads_then_says(request: SeenRequest) -> Any:
    """Reads the file in every run, answers after it, and sums up when it is asked to."""
    last = request.messages[-1]
    if "Sum up the conversation" in str(last["content"]):
        return says("THE SUMMARY")
    return says("an answer") if last["role"] == "tool" else calls(("read_file", {"path": "big.txt"}))


async def test_near_the_limit_old_results_shrink_and_the_latest_run_stays_whole(tmp_path: Path) -> None:
    async with (
        ScriptedModel(answer=reads_then_says) as model,
        sidecar({**options(model, contextTokens=12_000)}, folders=[tmp_path]) as host,
    ):
        session_id = await talk(host, tmp_path, runs=4)
        messages = (await host.request("session/get", {"sessionId": session_id}))["messages"]
    compacted = host.kinds("compacted")
    assert compacted
    assert all(e["afterTokens"] < e["beforeTokens"] for e in compacted)
    results = [m["content"] for m in messages if m["role"] == "tool"]
    assert "left out" in results[0]
    assert "left out" not in results[-1]
    assert messages[-4]["content"] == "question 3"


async def test_when_that_is_not_enough_old_turns_are_summed_up_by_the_model(tmp_path: Path) -> None:
    async with (
        ScriptedModel(answer=reads_then_says) as model,
        sidecar({**options(model, contextTokens=4_500)}, folders=[tmp_path]) as host,
    ):
        session_id = await talk(host, tmp_path, runs=3)
        messages = (await host.request("session/get", {"sessionId": session_id}))["messages"]
    assert host.kinds("compacted")
    assert messages[0]["role"] == "user"
    assert "THE SUMMARY" in messages[0]["content"]
    assert [m["content"] for m in messages if m["role"] == "user"][-1] == "question 2"
    assert "THE SUMMARY" not in "".join(e["text"] for e in host.kinds("assistantTextDelta"))


async def test_a_rule_sums_up_without_asking_the_model(tmp_path: Path) -> None:
    async with ScriptedModel(answer=reads_then_says) as model:
        rule = {**options(model, contextTokens=4_500), "cycle": {"summary": "rule"}}
        async with sidecar(rule, folders=[tmp_path]) as host:
            session_id = await talk(host, tmp_path, runs=3)
            messages = (await host.request("session/get", {"sessionId": session_id}))["messages"]
        assert len(model.requests) == 6
    assert "question 0" in messages[0]["content"]
    assert "called read_file" in messages[0]["content"]


async def test_a_provider_that_says_the_context_is_too_long_is_asked_again_with_less(tmp_path: Path) -> None:
    too_long = refuses(400, "maximum context length is 100 tokens", code="context_length_exceeded")
    script = iter((says("first"), too_long, says("a summary"), says("second")))
    async with ScriptedModel(answer=lambda request: next(script)) as model, sidecar(options(model)) as host:
        session_id = (await host.submit("tell me " * 500))["sessionId"]
        result = await host.submit("go on", sessionId=session_id)
    assert result["message"]["content"] == "second"
    assert len(host.kinds("compacted")) == 1
    assert "a summary" in model.requests[-1].messages[0]["content"]


async def test_a_context_that_cannot_be_made_smaller_is_an_error_of_its_own() -> None:
    too_long = refuses(400, "maximum context length is 100 tokens", code="context_length_exceeded")
    async with ScriptedModel(too_long) as model, sidecar(options(model)) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("hi")
    assert (failed.value.code, failed.value.data["kind"]) == (-31023, "contextOverflow")


async def test_on_demand_all_but_the_latest_run_is_summed_up_and_the_session_goes_on(tmp_path: Path) -> None:
    async with (
        ScriptedModel(answer=reads_then_says) as model,
        sidecar(options(model), folders=[tmp_path]) as host,
    ):
        session_id = await talk(host, tmp_path, runs=2)
        done = await host.request("session/compact", {"sessionId": session_id})
        assert done["afterTokens"] < done["beforeTokens"]
        messages = (await host.request("session/get", {"sessionId": session_id}))["messages"]
        assert [m["role"] for m in messages] == ["user", "user", "assistant", "tool", "assistant"]
        again = await host.request("session/compact", {"sessionId": session_id})
        assert again["afterTokens"] == again["beforeTokens"] == done["afterTokens"]
        await host.submit("more", sessionId=session_id)


async def test_a_session_is_not_compacted_while_a_run_goes_on() -> None:
    slow = stalls(says("x"), after=0)
    async with ScriptedModel(slow) as model, sidecar(options(model)) as host:
        run = host.send("agent/submit", {"prompt": "go"})
        await model.received(1)
        session_id = host.events[0]["sessionId"]
        with pytest.raises(RequestFailed) as failed:
            await host.request("session/compact", {"sessionId": session_id})
        assert failed.value.code == -31031
        slow.stall.release()
        await run
