"""Models that the host lends (protocol.md, `model/complete` and `model/delta`)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import FULL, Host, RequestFailed, sidecar

LENDS = {**FULL, "hostModel": True}


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}, "finishReason": "stop", **more}


async def test_the_host_s_model_drives_the_whole_loop(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    call = {"callId": "c1", "toolName": "read_file", "input": {"path": "a.txt"}}
    answers = iter(({"message": {"role": "assistant", "content": "", "toolCalls": [call]}}, says("It says 42.")))
    async with sidecar({"model": "host/editor-large"}, can=LENDS, folders=[tmp_path]) as host:
        host.answers["model/complete"] = lambda asked: next(answers)
        result = await host.submit("read it", system="be brief")
    assert result["message"]["content"] == "It says 42."
    first, second = (params for _, params in host.asked)
    assert (first["model"], first["system"]) == ("editor-large", "be brief")
    assert first["messages"] == [{"role": "user", "content": "read it"}]
    assert "read_file" in [tool["name"] for tool in first["tools"]]
    assert second["messages"][-1]["role"] == "tool"
    assert "forty-two" in second["messages"][-1]["content"]
    assert host.types()[-3:] == ["assistantTextDelta", "turnComplete", "runCompleted"]


async def test_text_that_comes_before_the_answer_is_streamed_and_not_said_twice() -> None:
    async with sidecar({"model": "host/m"}, can=LENDS) as host:

        def answer(asked: dict[str, Any]) -> dict[str, Any]:
            for text in ("Hel", "lo"):
                host.notify("model/delta", {"requestId": asked["requestId"], "text": text})
            host.notify("model/delta", {"requestId": "another", "text": "not mine"})
            with host.being_odd():
                host.notify("model/delta", {"text": 5})
            return says("Hello there", usage={"inputTokens": 3, "outputTokens": 2, "totalTokens": 5})

        host.answers["model/complete"] = answer
        result = await host.submit("hi")
    assert "".join(e["text"] for e in host.kinds("assistantTextDelta")) == "Hello there"
    assert result["message"]["content"] == "Hello there"
    assert result["usage"]["totalTokens"] == 5


async def test_cancelling_the_run_withdraws_the_request() -> None:
    async with sidecar({"model": "host/m"}, can=LENDS) as host:
        host.answers["model/complete"] = lambda asked: asyncio.Event().wait()
        run = host.send("agent/submit", {"prompt": "go", "runId": "r"})
        await host.wait_for(lambda: host.asked)
        await host.request("agent/cancel", {"runId": "r"})
        with pytest.raises(RequestFailed) as failed:
            await run
        await host.wait_for(lambda: host.withdrawn == [host.asked[0][1]["requestId"]])
    assert failed.value.code == -32800


async def fails(host: Host) -> RequestFailed:
    with pytest.raises(RequestFailed) as failed:
        await host.submit("hi")
    return failed.value


@pytest.mark.parametrize("senseless", [None, "text", {"message": "hi"}, {"message": {"role": "assistant"}}])
async def test_an_answer_that_makes_no_sense_is_a_model_error(senseless: Any) -> None:
    async with sidecar({"model": "host/m"}, can=LENDS) as host:
        host.answers["model/complete"] = lambda asked: senseless
        with host.being_odd():
            error = await fails(host)
    assert (error.code, error.data["provider"]) == (-31020, "host")


async def test_a_host_that_is_silent_too_long_is_a_model_timeout() -> None:
    providers = {"editor": {"api": "host", "idleTimeoutSecs": 0.2}}
    options = {"model": "editor/m", "providers": providers, "cycle": {"maxRetries": 0}}
    async with sidecar(options, can=LENDS) as host:
        host.answers["model/complete"] = lambda asked: asyncio.Event().wait()
        error = await fails(host)
        await host.wait_for(lambda: host.withdrawn)
    assert (error.code, error.data["kind"]) == (-31021, "modelTimeout")


async def test_a_host_without_models_is_not_asked() -> None:
    async with sidecar({"model": "host/m"}) as host:
        error = await fails(host)
        assert not host.asked
    assert error.code == -31020
    assert "hostModel" in error.message
