"""A run from submit to answer: order of events, history, errors, limits (protocol.md, Lifecycle and Events)."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import RequestFailed, sidecar
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import ScriptedModel, breaks_off, calls, events, fails, refuses, says

OPEN = {"allowed": ["read", "write", "mcp:*"], "ask": [], "denied": []}
"""Permissions under which nothing is asked, for tests that are about other things."""


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    """Options that reach the scripted model under the name `test/scripted`."""
    provider = {"api": "openai-chat", "baseUrl": model.base_url}
    return {"model": "test/scripted", "providers": {"test": provider}, "permissions": OPEN, **more}


async def test_a_prompt_is_answered_and_every_step_is_streamed() -> None:
    async with ScriptedModel(says("Hello there.", piece_characters=3)) as model, sidecar(options(model)) as host:
        result = await host.submit("hi", runId="mine")
    assert result["stopReason"] == "stop"
    assert result["runId"] == "mine"
    assert result["message"] == {"role": "assistant", "content": "Hello there."}
    assert result["turns"] == 1
    assert host.types() == ["runStarted", "assistantTextDelta", "turnComplete", "runCompleted"]
    assert [e["seq"] for e in host.events] == list(range(len(host.events)))
    assert "".join(e["text"] for e in host.kinds("assistantTextDelta")) == "Hello there."
    assert {e["runId"] for e in host.events} == {"mine"}


async def test_three_turns_with_parallel_calls_to_two_servers(tmp_path: Path) -> None:
    script = (
        calls(("one__echo", {"text": "a"}, "c1"), ("two__echo", {"text": "b"}, "c2")),
        calls(("two__add", {"a": 2, "b": 3}, "c3")),
        says("a, b and 5", piece_characters=100),
    )
    servers = {"one": server_entry(), "two": server_entry()}
    async with ScriptedModel(*script) as model, sidecar(options(model, mcpServers=servers)) as host:
        result = await host.submit("go")
        session = await host.request("session/get", {"sessionId": result["sessionId"]})

    def started(call_id: str, name: str, given: Any) -> dict[str, Any]:
        return {"type": "toolExecutionStarted", "callId": call_id, "toolName": name, "input": given}

    def completed(call_id: str, name: str, output: str) -> dict[str, Any]:
        return {
            "type": "toolExecutionCompleted",
            "callId": call_id,
            "toolName": name,
            "output": output,
            "isError": False,
            "truncated": False,
        }

    seen = [{k: v for k, v in e.items() if k not in ("durationMs", "usage")} for e in host.kinds()]
    first_results = sorted(seen[4:6], key=lambda e: str(e["callId"]))
    assert [*seen[:4], *first_results, *seen[6:]] == [
        {"type": "runStarted", "model": "test/scripted", "prompt": "go"},
        started("c1", "one__echo", {"text": "a"}),
        started("c2", "two__echo", {"text": "b"}),
        {"type": "turnComplete", "turn": 1, "reason": "toolCalls"},
        completed("c1", "one__echo", "a"),
        completed("c2", "two__echo", "b"),
        started("c3", "two__add", {"a": 2, "b": 3}),
        {"type": "turnComplete", "turn": 2, "reason": "toolCalls"},
        completed("c3", "two__add", "5"),
        {"type": "assistantTextDelta", "text": "a, b and 5"},
        {"type": "turnComplete", "turn": 3, "reason": "stop"},
        {"type": "runCompleted", "stopReason": "stop"},
    ]
    call = lambda i, n, a: {"callId": i, "toolName": n, "input": a}  # noqa: E731
    assert session["messages"] == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "",
            "toolCalls": [call("c1", "one__echo", {"text": "a"}), call("c2", "two__echo", {"text": "b"})],
        },
        {"role": "tool", "content": "a", "callId": "c1", "toolName": "one__echo"},
        {"role": "tool", "content": "b", "callId": "c2", "toolName": "two__echo"},
        {"role": "assistant", "content": "", "toolCalls": [call("c3", "two__add", {"a": 2, "b": 3})]},
        {"role": "tool", "content": "5", "callId": "c3", "toolName": "two__add"},
        {"role": "assistant", "content": "a, b and 5"},
    ]
    assert session["runs"] == [{"runId": result["runId"], "status": "completed", "stopReason": "stop"}]


@pytest.mark.parametrize("dialect", ["openai", "ollama", "vllm", "llamacpp"])
async def test_the_loop_runs_on_every_server_s_way_of_streaming(dialect: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    script = (calls(("read_file", {"path": "a.txt"})), says("It says forty-two."))
    async with (
        ScriptedModel(*script, dialect=dialect) as model,
        sidecar(options(model), folders=[tmp_path]) as host,
    ):
        result = await host.submit("read a.txt")
    assert result["message"]["content"] == "It says forty-two."
    (done,) = host.kinds("toolExecutionCompleted")
    assert not done["isError"]
    assert "forty-two" in str(model.requests[1].messages[-1])


async def test_max_turns_ends_the_run_with_an_error_and_a_valid_history() -> None:
    again = [calls(("list_directory", {"path": str(n)})) for n in range(3)]
    policy = {"notFound": "tellModel", "io": "tellModel", "permissionDenied": "tellModel"}
    async with ScriptedModel(*again, says("next")) as model, sidecar(options(model)) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("go", maxTurns=3, errorPolicy=policy)
        assert failed.value.code == -31022
        assert failed.value.data["kind"] == "maxTurnsExceeded"
        assert failed.value.data["turns"] == 3
        assert host.kinds()[-1]["type"] == "runCompleted"
        assert host.kinds()[-1]["error"]["code"] == -31022
        # The strict model server accepts what the history holds.
        await host.submit("go on", sessionId=failed.value.data["sessionId"])


async def test_a_model_error_is_the_answer_and_says_who_failed() -> None:
    async with ScriptedModel(refuses(401, "bad key")) as model, sidecar(options(model)) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("hi")
    assert failed.value.code == -31020
    assert failed.value.data["kind"] == "modelError"
    assert failed.value.data["provider"] == "test"
    assert failed.value.data["status"] == 401
    assert host.types() == ["runStarted", "runCompleted"]


async def test_a_refusal_that_may_pass_is_tried_again_after_the_time_the_provider_asks_for() -> None:
    script = (refuses(429, "slow down", headers={"Retry-After": "0"}), refuses(503, "busy"), says("here"))
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        result = await host.submit("hi")
    assert result["message"]["content"] == "here"
    assert [(e["attempt"], e["delayMs"] > 0) for e in host.kinds("retrying")] == [(1, False), (2, True)]


async def test_a_wait_longer_than_the_limit_is_not_sat_out() -> None:
    script = (refuses(429, "come back tomorrow", headers={"Retry-After": "86400"}),)
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("hi")
    assert failed.value.data["retryable"] is True
    assert failed.value.data["retryAfterSecs"] == 86400
    assert not host.kinds("retrying")


async def test_a_stream_that_breaks_off_is_not_played_twice_and_what_came_is_kept() -> None:
    broken = breaks_off(says("one two three four", piece_characters=4), after=3)
    async with ScriptedModel(broken, says("ok")) as model, sidecar(options(model)) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("hi")
        shown = "".join(e["text"] for e in host.kinds("assistantTextDelta"))
        session = await host.request("session/get", {"sessionId": failed.value.data["sessionId"]})
        assert shown
        assert session["messages"][-1] == {"role": "assistant", "content": shown}
        await host.submit("go on", sessionId=session["sessionId"])
    assert not host.kinds("retrying")


async def test_an_error_object_inside_a_stream_ends_the_run() -> None:
    broken = fails(says("text"), {"code": 500, "message": "no grammar fits"}, after=2)
    async with ScriptedModel(broken) as model, sidecar(options(model)) as host:
        with pytest.raises(RequestFailed, match="no grammar fits"):
            await host.submit("hi", maxTurns=1)


async def test_reasoning_is_streamed_apart_from_the_text() -> None:
    reply = says("4", reasoning="two and two")
    async with ScriptedModel(reply, dialect="llamacpp") as model, sidecar(options(model)) as host:
        result = await host.submit("2+2")
    assert "".join(e["text"] for e in host.kinds("assistantReasoningDelta")) == "two and two"
    assert (result["message"]["content"], result["message"]["reasoning"]) == ("4", "two and two")


async def test_usage_is_counted_by_turn_and_by_run(tmp_path: Path) -> None:
    script = (calls(("list_directory", {"path": "."})), says("done"))
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        result = await host.submit("go")
    turns = [e["usage"] for e in host.kinds("turnComplete")]
    assert len(turns) == 2
    assert result["usage"]["totalTokens"] == sum(t["totalTokens"] for t in turns) > 0
    assert turns[1]["toolResultTokens"] > 0
    assert turns[0]["toolDefinitionTokens"] > 0


async def test_invalid_arguments_are_told_to_the_model_and_the_loop_goes_on(tmp_path: Path) -> None:
    script = (
        calls(("read_file", {}), ("read_file", '{"path": "a.'), ("read_file", {"path": 5})),
        says("sorry"),
    )
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        result = await host.submit("go")
    done = host.kinds("toolExecutionCompleted")
    assert [e["errorKind"] for e in done] == ["invalidArguments"] * 3
    assert result["message"]["content"] == "sorry"
    told = [m["content"] for m in model.requests[1].messages if m["role"] == "tool"]
    assert any("path" in text for text in told)


async def test_a_call_cut_off_by_the_output_limit_is_not_run_and_leaves_the_history() -> None:
    script = (calls(("read_file", '{"path": "a.'), finish="length"), says("again"))
    async with ScriptedModel(*script) as model, sidecar(options(model)) as host:
        result = await host.submit("go")
        assert result["stopReason"] == "length"
        assert [e["code"] for e in host.kinds("warning")] == ["callCutOff"]
        assert not host.kinds("toolExecutionStarted")
        session = await host.request("session/get", {"sessionId": result["sessionId"]})
        assert [m["role"] for m in session["messages"]] == ["user"]
        await host.submit("again", sessionId=result["sessionId"])


async def test_a_tool_that_is_not_there_ends_the_run_by_default_and_is_told_by_policy(tmp_path: Path) -> None:
    script = (calls(("read_fil", {"path": "a"})), calls(("read_fil", {"path": "a"})), says("I see"))
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("go")
        assert failed.value.code == -31001
        assert "read_file" in failed.value.message
        result = await host.submit(
            "go", sessionId=failed.value.data["sessionId"], errorPolicy={"notFound": "tellModel"}
        )
    assert result["message"]["content"] == "I see"


async def test_a_name_with_control_tokens_is_taken_for_the_tool_it_means(tmp_path: Path) -> None:
    script = (calls(("functions.list_directory<|channel|>", {"path": "."})), says("ok"))
    async with (
        ScriptedModel(*script, is_strict=False) as model,
        sidecar(options(model), folders=[tmp_path]) as host,
    ):
        await host.submit("go")
    assert [e["code"] for e in host.kinds("warning")] == ["toolNameCleaned"]
    assert host.kinds("toolExecutionCompleted")[0]["toolName"] == "list_directory"


async def test_the_same_call_again_and_again_is_noted_and_then_ends_the_run(tmp_path: Path) -> None:
    same = [calls(("list_directory", {"path": "."})) for _ in range(5)]
    async with ScriptedModel(*same) as model, sidecar(options(model), folders=[tmp_path]) as host:
        with pytest.raises(RequestFailed) as failed:
            await host.submit("go")
    assert failed.value.data["kind"] == "repeatedToolCalls"
    notes = ["times in a row" in str(e["output"]) for e in host.kinds("toolExecutionCompleted")]
    assert notes == [False, False, True, True, True]


async def test_what_counts_is_whether_the_answer_holds_calls_not_its_finish_reason(tmp_path: Path) -> None:
    script = (calls(("list_directory", {"path": "."}), finish="stop"), says("done", finish="tool_calls"))
    async with ScriptedModel(*script) as model, sidecar(options(model), folders=[tmp_path]) as host:
        result = await host.submit("go")
    assert (result["message"]["content"], result["stopReason"], result["turns"]) == ("done", "stop", 2)


async def test_a_large_result_is_cut_for_the_model_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("line\n" * 10_000)
    script = (calls(("read_file", {"path": "big.txt"})), says("long"))
    cycle = {"maxToolResultBytes": 2000}
    async with ScriptedModel(*script) as model, sidecar(options(model, cycle=cycle), folders=[tmp_path]) as host:
        await host.submit("go")
    (done,) = host.kinds("toolExecutionCompleted")
    assert done["truncated"]
    assert done["originalBytes"] > 50_000
    assert len(done["output"].encode()) <= 2000
    assert model.requests[1].messages[-1]["content"] == done["output"]


async def test_one_submit_makes_as_many_model_requests_as_it_has_turns() -> None:
    async with ScriptedModel(says("a")) as model, sidecar(options(model)) as host:
        await host.submit("hi")
        assert len(model.requests) == 1


async def test_a_session_is_busy_while_a_run_goes_on_and_sessions_run_side_by_side() -> None:
    from tests.harness.model_server import stalls

    slow = stalls(says("slow answer", piece_characters=2), after=2)
    script = iter((slow, says("other"), says("then")))
    async with ScriptedModel(answer=lambda request: next(script)) as model, sidecar(options(model)) as host:
        first = host.send("agent/submit", {"prompt": "go", "runId": "r1"})
        started = await host.wait_for_event("runStarted")
        assert started["model"] == "test/scripted"
        session_id = host.events[0]["sessionId"]
        await model.received(1)
        with pytest.raises(RequestFailed) as failed:
            await host.submit("too", sessionId=session_id)
        assert (failed.value.code, failed.value.data["runId"]) == (-31031, "r1")
        assert (await host.submit("elsewhere"))["message"]["content"] == "other"
        slow.stall.release()
        assert (await first)["message"]["content"] == "slow answer"
        assert (await host.submit("again", sessionId=session_id))["message"]["content"] == "then"


async def test_without_waiting_the_ids_come_at_once_and_the_events_later() -> None:
    async with ScriptedModel(says("done")) as model, sidecar(options(model)) as host:
        result = await host.submit("go", wait=False)
        assert set(result) == {"sessionId", "runId"}
        await host.wait_for_event("runCompleted", stopReason="stop")


async def test_steering_joins_before_the_next_turn(tmp_path: Path) -> None:
    from tests.harness.model_server import stalls

    slow = stalls(calls(("list_directory", {"path": "."})), after=1)
    async with ScriptedModel(slow, says("ok")) as model, sidecar(options(model), folders=[tmp_path]) as host:
        run = host.send("agent/submit", {"prompt": "go", "runId": "r1"})
        await model.received(1)
        assert await host.request("agent/steer", {"runId": "r1", "prompt": "hurry"}) == {"accepted": True}
        slow.stall.release()
        await run
        assert await host.request("agent/steer", {"runId": "r1", "prompt": "late"}) == {"accepted": False}
        with pytest.raises(RequestFailed) as failed:
            await host.request("agent/steer", {"runId": "none", "prompt": "x"})
    assert failed.value.code == -31032
    assert model.requests[1].messages[-1] == {"role": "user", "content": "hurry"}


async def test_events_can_be_read_again_after_a_gap() -> None:
    async with ScriptedModel(says("Hello")) as model, sidecar(options(model)) as host:
        result = await host.submit("hi")
        ids = {"sessionId": result["sessionId"], "runId": result["runId"]}
        again = await host.request("session/events", ids)
        later = await host.request("session/events", {**ids, "afterSeq": 1})
    assert again["events"] == host.events
    assert later["events"] == host.events[2:]


async def test_a_stream_of_bare_events_without_done_or_usage_is_enough() -> None:
    bare = events(
        {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]},
        done=False,
    )
    async with ScriptedModel(bare) as model, sidecar(options(model)) as host:
        assert (await host.submit("hi"))["message"]["content"] == "ok"


BAD_SUBMITS = [
    ({}, "params.prompt"),
    ({"prompt": 5}, "params.prompt"),
    ({"prompt": ""}, "params.prompt"),
    ({"prompt": "x", "messages": [{"role": "user", "content": "y"}]}, "params.messages"),
    ({"messages": []}, "params.messages"),
    ({"messages": [{"role": "robot", "content": "y"}]}, "params.messages[0].role"),
    ({"prompt": "x", "maxTurns": 0}, "params.maxTurns"),
    ({"prompt": "x", "maxTurns": "3"}, "params.maxTurns"),
    ({"prompt": "x", "wait": "false"}, "params.wait"),
    ({"prompt": "x", "toolTimeoutSecs": -1}, "params.toolTimeoutSecs"),
    ({"prompt": "x", "errorPolicy": {"notFond": "stop"}}, "params.errorPolicy.notFond"),
    ({"prompt": "x", "errorPolicy": {"notFound": "ignore"}}, "params.errorPolicy.notFound"),
    ({"prompt": "x", "tools": {"sources": ["moon"]}}, "params.tools.sources[0]"),
]


async def test_params_that_do_not_fit_are_refused_by_their_path() -> None:
    async with ScriptedModel() as model, sidecar(options(model)) as host:
        for params, path in BAD_SUBMITS:
            with pytest.raises(RequestFailed) as failed:
                await host.request("agent/submit", params)
            assert (failed.value.code, failed.value.data["path"]) == (-32602, path)
        with pytest.raises(RequestFailed) as failed:
            await host.submit("x", sessionId="none")
        assert failed.value.code == -31030
        with pytest.raises(RequestFailed) as failed:
            await host.submit("x", model="nowhere/x")
        assert failed.value.code == -31040
    assert not host.events
