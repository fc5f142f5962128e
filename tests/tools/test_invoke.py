"""One call through the registry: the order of its steps, its limits, its end however it ends.

Source: protocol.md, "tools/call", "Tool errors" and "Decided cases"; the one second of grace is our own choice.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ToolExecutionProgress, Warned
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import JsonObject, TextBlock, ToolCall, ToolInvocation, ToolResult
from sidecar.tools.base import CancellationToken, ToolContext, ToolOutput
from sidecar.tools.registry import InvocationScope, ToolRegistry
from tests.harness.tools import Body, Made, Witness, answering, echo

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def registry_of(*tools: Made, permissions: PermissionChecker | None = None) -> ToolRegistry:
    registry = ToolRegistry(permissions=permissions)
    registry.register_all(tools)
    return registry


async def failure(registry: ToolRegistry, name: str, args: Any, scope: InvocationScope | None = None) -> ToolError:
    with pytest.raises(ToolError) as failed:
        await registry.invoke(name, args, scope)
    return failed.value


# The record ---------------------------------------------------------------------------------------------


async def test_a_call_leaves_a_complete_record() -> None:
    before = time.time_ns() // 1_000_000
    made = await registry_of(Made("echo", echo)).invoke("echo", {"a": [1, None]}, call_id="call-7")
    assert made == ToolInvocation(
        call_id="call-7",
        tool_name="echo",
        input={"a": [1, None]},
        result=ToolResult.success({"a": [1, None]}),
        content='{"a":[1,null]}',
        started_ms=made.started_ms,
        duration_ms=made.duration_ms,
    )
    assert before <= made.started_ms <= time.time_ns() // 1_000_000


async def test_whoever_records_hears_of_each_call_that_is_over_however_it_ended() -> None:
    heard: list[tuple[str, JsonObject, ToolInvocation | None]] = []

    async def hang(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        running.set()
        await asyncio.Event().wait()

    running = asyncio.Event()
    registry = registry_of(Made("echo", echo), Made("picky", echo, TEXT), Made("hang", hang))
    scope = InvocationScope(record=lambda call, made: heard.append((call.tool_name, call.input, made)))
    made = await registry.invoke("echo", {"a": 1}, scope)
    await failure(registry, "picky", {"text": 1}, scope)
    await failure(registry, "nothing", {"b": 2}, scope)
    task = asyncio.create_task(registry.invoke("hang", {}, scope))
    await running.wait()
    task.cancel()
    await asyncio.wait([task])
    assert heard[0] == ("echo", {"a": 1}, made)
    assert heard[-1] == ("hang", {}, None)
    failed = [(name, call.error.kind) for name, _, call in heard if call is not None and call.error is not None]
    assert failed == [("picky", "invalidArguments"), ("nothing", "notFound")]


async def test_calls_without_an_id_get_one_each() -> None:
    registry = registry_of(Made("echo", echo))
    ids = {(await registry.invoke("echo", {})).call_id for _ in range(3)}
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("given", "result", "content"),
    [
        ("plain text", ToolResult.success("plain text"), "plain text"),
        (None, ToolResult.success(None), "null"),
        ({"a": "é"}, ToolResult.success({"a": "é"}), '{"a":"é"}'),
        (ToolResult.error("no such city"), ToolResult.error("no such city"), "error: no such city"),
        (
            ToolResult.error_with_data("bad field", {"field": "path"}),
            ToolResult.error_with_data("bad field", {"field": "path"}),
            'error: bad field\n{"field":"path"}',
        ),
        (
            ToolResult.success(1, content=(TextBlock(text="one"),)),
            ToolResult.success(1, content=(TextBlock(text="one"),)),
            "one",
        ),
        ("half \ud83d", ToolResult.success("half \ufffd"), "half \ufffd"),
        ("pair \ud83d\ude00", ToolResult.success("pair 😀"), "pair 😀"),
    ],
)
async def test_what_a_tool_gives_back_is_a_result_and_a_text(given: Any, result: ToolResult, content: str) -> None:
    made = await registry_of(Made("tool", answering(given))).invoke("tool", {})
    assert (made.result, made.error, made.content) == (result, None, content)
    assert made.is_error is not result.ok


@pytest.mark.parametrize("data", [object(), {1, 2}, float("nan"), {"a": b"bytes"}, {("a",): 1}])
async def test_what_is_no_json_is_a_failure_of_the_tool(data: Any) -> None:
    error = await failure(registry_of(Made("tool", answering(data))), "tool", {})
    assert error.kind == "executionFailed"
    assert error.message.startswith("the tool's result cannot be written as JSON: ")
    assert error.data == {"tool": "tool"}


# Arguments ----------------------------------------------------------------------------------------------


async def test_arguments_that_do_not_fit_are_refused_before_anything_else_happens() -> None:
    ran: list[JsonObject] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        ran.append(args)

    tool = Made("say", body, TEXT, requires_approval=True)
    witness = Witness()
    error = await failure(registry_of(tool), "say", {"text": 3, "x": 1}, witness.scope())
    assert error.kind == "invalidArguments"
    assert error.message == "invalid arguments for say: text must be a string, not 3"
    assert error.data == {"tool": "say", "faults": [{"path": "text", "reason": "must be a string, not 3"}]}
    assert (ran, witness.questions, witness.events) == ([], [], [])


async def test_an_object_that_comes_as_a_json_string_is_taken_with_a_warning() -> None:
    witness = Witness()
    made = await registry_of(Made("echo", echo, TEXT)).invoke("echo", '{"text": "hi"}', witness.scope())
    assert made.input == {"text": "hi"}
    assert witness.events == [
        Warned(
            code="argumentsUnquoted",
            message="the arguments of echo came as a JSON string and were read as the object in it",
        )
    ]


@pytest.mark.parametrize("sent", [None, "", [], {}])
async def test_arguments_that_were_never_sent_are_an_empty_object(sent: Any) -> None:
    assert (await registry_of(Made("echo", echo)).invoke("echo", sent)).input == {}


@pytest.mark.parametrize("sent", ["hello", '"hi"', "[1]", 3, [1], '"{}"'])
async def test_arguments_that_are_no_object_are_refused(sent: Any) -> None:
    error = await failure(registry_of(Made("echo", echo)), "echo", sent)
    assert error.kind == "invalidArguments"
    assert error.message.startswith("the arguments must be a JSON object, not ")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 3},
        {"type": "object", "properties": {"text": {"$ref": "https://example.invalid/schema.json"}}},
        {"$ref": "#"},
        {"properties": {"text": {"pattern": "("}}},
        {"properties": 3},
    ],
)
async def test_a_broken_schema_lets_its_tool_run_with_a_warning(schema: JsonObject) -> None:
    witness = Witness()
    registry = registry_of(Made("echo", echo, schema))
    for _ in range(2):
        assert (await registry.invoke("echo", {"text": "hi"}, witness.scope())).input == {"text": "hi"}
    assert [event.code for event in witness.events if isinstance(event, Warned)] == ["schemaBroken"] * 2


async def test_a_schema_of_an_older_draft_is_read_as_that_draft() -> None:
    pair = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}},
    }
    registry = registry_of(Made("echo", echo, pair))
    await registry.invoke("echo", {"pair": ["a", 1]})
    error = await failure(registry, "echo", {"pair": ["a", "b"]})
    assert error.message == 'invalid arguments for echo: pair[1] must be a number, not "b"'


# Failures -----------------------------------------------------------------------------------------------


async def test_a_tool_that_is_not_there_is_not_found() -> None:
    registry = registry_of(Made("read_file", echo))
    assert (await failure(registry, "readfile", {})).kind == "notFound"
    (made,) = await registry.invoke_all([ToolCall(call_id="c", tool_name="readfile", input={"path": "a"})])
    assert (made.call_id, made.tool_name, made.input) == ("c", "readfile", {"path": "a"})
    assert made.content == "error: there is no tool 'readfile'; did you mean 'read_file'?"


async def test_what_a_tool_raises_is_told_by_type_and_message_without_a_traceback() -> None:
    error = await failure(registry_of(Made("tool", answering(KeyError("city")))), "tool", {})
    assert (error.kind, error.message, error.data) == (
        "executionFailed",
        "tool failed: KeyError: 'city'",
        {"tool": "tool"},
    )


@pytest.mark.parametrize(
    "raised", [SystemExit(3), StopIteration(), asyncio.CancelledError(), TimeoutError("slow")]
)
async def test_no_exception_of_a_tool_ends_more_than_its_call(raised: BaseException) -> None:
    error = await failure(registry_of(Made("tool", answering(raised))), "tool", {})
    assert error.kind == "executionFailed"


async def test_a_tool_error_keeps_its_kind_and_learns_its_tool() -> None:
    registry = registry_of(Made("tool", answering(ToolError("io", "disk full", path="/a"))))
    error = await failure(registry, "tool", {})
    assert (error.kind, error.message, error.data) == ("io", "disk full", {"path": "/a", "tool": "tool"})


@pytest.mark.parametrize(("idempotent", "tries"), [(True, 2), (False, 1)])
async def test_after_a_server_timed_out_an_idempotent_tool_is_tried_once_more(
    idempotent: bool, tries: int
) -> None:
    tried: list[int] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        tried.append(1)
        raise ToolError("mcpTimeout", "no answer")

    error = await failure(registry_of(Made("tool", body, idempotent=idempotent)), "tool", {})
    assert (error.kind, len(tried)) == ("mcpTimeout", tries)


async def test_the_second_try_may_succeed() -> None:
    answers: list[Any] = [ToolError("mcpTimeout", "no answer"), "late but there"]

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return await answering(answers.pop(0))(args, ctx)

    made = await registry_of(Made("tool", body, idempotent=True)).invoke("tool", {})
    assert made.content == "late but there"


# Permission ---------------------------------------------------------------------------------------------


async def test_a_denied_tool_never_runs_and_the_error_names_the_rule() -> None:
    ran: list[int] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        ran.append(1)

    witness = Witness()
    registry = registry_of(Made("wipe", body, required_permissions=("read", "delete")))
    error = await failure(registry, "wipe", {}, witness.scope())
    assert (error.kind, error.action, ran, witness.questions) == ("permissionDenied", None, [], [])
    assert error.message == (
        'wipe is not permitted: permissions.denied: "delete"; change that entry of the permissions to allow it'
    )
    assert error.data == {"tool": "wipe", "permission": "delete", "rule": 'permissions.denied: "delete"'}
    assert witness.decisions == [("wipe", "deny", None)]


async def test_the_scope_s_permissions_decide_where_it_brings_any() -> None:
    open_to_all = PermissionChecker(PermissionConfig(allowed=(), denied=(), ask=()))
    closed = PermissionChecker(PermissionConfig(denied=("delete",), ask=()))
    tool = Made("wipe", echo, required_permissions=("delete",))
    assert (await registry_of(tool, permissions=open_to_all).invoke("wipe", {})).result is not None
    scope = InvocationScope(permissions=closed)
    assert (
        await failure(registry_of(tool, permissions=open_to_all), "wipe", {}, scope)
    ).kind == "permissionDenied"


async def test_decide_says_what_invoke_would_do() -> None:
    registry = registry_of(Made("write", echo, required_permissions=("write",)), Made("free", echo))
    assert (await registry.decide("write", {})).rule == 'permissions.ask: "write"'
    assert (await registry.decide("free", None)).decision == "allow"
    with pytest.raises(ToolError, match="there is no tool 'fre'; did you mean 'free'"):
        await registry.decide("fre", {})


async def test_rules_see_arguments_as_the_tool_spells_them_and_it_may_refuse_some() -> None:
    class Folder(Made):
        async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
            if args["path"].startswith("/etc"):
                raise ToolError("permissionDenied", "/etc is outside the workspace", path="/etc")
            return {**args, "path": args["path"].removeprefix(f"{workspace[0]}/")}

    rule = PermissionRule(tool="write", decision="deny", arguments={"path": "secret"})
    checker = PermissionChecker(PermissionConfig(rules=(rule,)))
    registry = registry_of(Folder("write", echo), permissions=checker)
    scope = InvocationScope(workspace=(Path("/project"),))
    assert (await registry.invoke("write", {"path": "/project/open"}, scope)).input == {"path": "/project/open"}
    assert (await failure(registry, "write", {"path": "/project/secret"}, scope)).data["rule"] == (
        "rule 1: write path=secret"
    )
    assert (await failure(registry, "write", {"path": "/etc/x"}, scope)).data == {"path": "/etc", "tool": "write"}
    decision = await registry.decide("write", {"path": "/etc/x"}, scope)
    assert (decision.decision, decision.rule) == ("deny", "/etc is outside the workspace")


async def test_arguments_that_cannot_be_looked_at_in_time_are_a_timeout() -> None:
    class Hanging(Made):
        async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
            await asyncio.Event().wait()
            return args

    error = await failure(registry_of(Hanging("tool", echo)), "tool", {}, InvocationScope(timeout_secs=0.02))
    assert (error.kind, error.data) == ("timeout", {"tool": "tool", "timeoutSecs": 0.02})


# Limits -------------------------------------------------------------------------------------------------


def waiting_for(event: asyncio.Event) -> Body:
    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        await event.wait()
        return "done"

    return body


async def test_a_tool_that_takes_too_long_is_cancelled_and_its_token_too() -> None:
    ended: list[str] = []
    tokens: list[CancellationToken] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        tokens.append(ctx.cancellation)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    scope = InvocationScope(timeout_secs=0.05)
    error = await failure(registry_of(Made("slow", body)), "slow", {}, scope)
    assert (error.kind, error.message) == ("timeout", "slow did not end within 0.05 s and was cancelled")
    assert error.data == {"tool": "slow", "timeoutSecs": 0.05}
    assert (ended, tokens[0].reason, scope.cancellation.cancelled) == (["cleaned up"], "timeout", False)


async def test_a_tool_s_own_limit_wins() -> None:
    event = asyncio.Event()
    quick = Made("quick", waiting_for(event), timeout_secs=0.02)
    assert (await failure(registry_of(quick), "quick", {})).data["timeoutSecs"] == 0.02
    patient = Made("patient", waiting_for(event), timeout_secs=30.0)
    call = asyncio.create_task(registry_of(patient).invoke("patient", {}, InvocationScope(timeout_secs=0.001)))
    done, _ = await asyncio.wait({call}, timeout=0.1)
    event.set()
    assert not done
    assert (await call).content == "done"


async def test_time_that_a_person_takes_to_answer_does_not_count() -> None:
    async def ask_slowly(call: ToolCall, prompt: str, schema: JsonObject | None) -> Any:
        await asyncio.wait([asyncio.create_task(asyncio.Event().wait())], timeout=0.3)
        return "at last"

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return await ctx.ask("well?")

    scope = InvocationScope(timeout_secs=0.1, ask=ask_slowly)
    assert (await registry_of(Made("asks", body)).invoke("asks", {}, scope)).content == "at last"


async def test_a_tool_that_swallows_its_cancellation_holds_nobody_up() -> None:
    release = asyncio.Event()
    over: list[str] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                await ctx.progress(1, 2, "still here")
        over.append("over")

    witness = Witness()
    registry = registry_of(Made("stubborn", body))
    began = time.monotonic()
    try:
        error = await failure(registry, "stubborn", {}, witness.scope(timeout_secs=0.01))
        assert error.kind == "timeout"
        assert time.monotonic() - began < 2
        assert witness.events == []
    finally:
        release.set()
        await registry.aclose()
    assert over == ["over"]


async def test_closing_the_registry_ends_what_was_given_up() -> None:
    cancelled = 0
    gone = asyncio.Event()

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        nonlocal cancelled
        try:
            while cancelled < 2:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled += 1
        finally:
            gone.set()

    registry = registry_of(Made("stubborn", body))
    await failure(registry, "stubborn", {}, InvocationScope(timeout_secs=0.01))
    assert not gone.is_set()
    await registry.aclose()
    assert gone.is_set()


async def test_cancelling_the_call_cancels_the_tool_and_is_passed_on() -> None:
    running = asyncio.Event()
    ended: list[str | None] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(ctx.cancellation.reason)

    registry = registry_of(Made("tool", body))
    call = asyncio.create_task(registry.invoke("tool", {}))
    await running.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended == ["cancelled"]
    assert registry.find("tool").stats.failures == 1


async def test_cancelling_the_scope_is_seen_by_its_tools() -> None:
    scope = InvocationScope()
    started = asyncio.Event()

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        started.set()
        return await ctx.cancellation.wait()

    call = asyncio.create_task(registry_of(Made("tool", body)).invoke("tool", {}, scope))
    await started.wait()
    scope.cancellation.cancel("enough")
    assert (await call).content == "enough"


@pytest.mark.parametrize("limit", [100, 1000])
async def test_a_long_result_is_cut_for_the_model_and_says_so(limit: int) -> None:
    data = "x" * 5000
    made = await registry_of(Made("tool", answering(data))).invoke(
        "tool", {}, InvocationScope(max_result_bytes=limit)
    )
    assert made.result == ToolResult.success(data)
    assert isinstance(made.content, str)
    assert len(made.content.encode()) <= limit
    assert (made.truncated, made.original_bytes) == (True, 5000)
    assert "5000 bytes in all" in made.content


async def test_a_long_error_is_cut_too() -> None:
    registry = registry_of(Made("tool", answering(RuntimeError("x" * 5000))))
    (made,) = await registry.invoke_all([("tool", {})], InvocationScope(max_result_bytes=500))
    assert isinstance(made.content, str)
    assert len(made.content) <= 500
    assert made.truncated


# Streams and context ------------------------------------------------------------------------------------


def streaming(*parts: Any) -> Body:
    async def stream() -> AsyncIterator[Any]:
        for part in parts:
            yield part

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return stream()

    return body


@pytest.mark.parametrize(
    ("parts", "result"),
    [
        (["a", "b", "c"], ToolResult.success("abc")),
        ([1, {"two": 2}], ToolResult.success([1, {"two": 2}])),
        (["a", ToolResult.success("final")], ToolResult.success("final")),
        (["a", ToolResult.error("no")], ToolResult.error("no")),
        ([], ToolResult.success([])),
    ],
)
async def test_every_part_of_a_stream_is_progress_and_the_whole_is_the_result(
    parts: list[Any], result: Any
) -> None:
    witness = Witness()
    made = await registry_of(Made("tool", streaming(*parts))).invoke("tool", {}, witness.scope(), call_id="c")
    assert made.result == result
    shown = [part.data if isinstance(part, ToolResult) else part for part in parts]
    assert witness.events == [ToolExecutionProgress(call_id="c", partial=part) for part in shown]


async def test_a_stream_is_closed_when_its_call_times_out() -> None:
    closed = asyncio.Event()

    async def stream() -> AsyncIterator[str]:
        try:
            yield "first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return stream()

    error = await failure(registry_of(Made("tool", body)), "tool", {}, InvocationScope(timeout_secs=0.05))
    assert error.kind == "timeout"
    assert closed.is_set()


async def test_a_tool_is_told_where_its_call_comes_from() -> None:
    seen: list[ToolContext] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        seen.append(ctx)
        ctx.shared_state["count"] = ctx.shared_state.get("count", 0) + 1
        await ctx.progress(1, 3, "one of three")

    witness = Witness()
    scope = witness.scope(trace_id="t", workspace=(Path("/project"),))
    registry = registry_of(Made("tool", body))
    await registry.invoke("tool", {}, scope, call_id="c1")
    await registry.invoke("tool", {}, scope, call_id="c2")
    assert [(c.call_id, c.session_id, c.run_id, c.trace_id, c.workspace) for c in seen] == [
        (call_id, "ses-1", "run-1", "t", (Path("/project"),)) for call_id in ("c1", "c2")
    ]
    assert scope.shared_state == {"count": 2}
    assert witness.events[0] == ToolExecutionProgress(call_id="c1", done=1, total=3, message="one of three")


async def test_a_tool_can_run_another_with_its_own_permission_and_under_its_own_id() -> None:
    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return [(await ctx.invoke("inner", {"n": 1})).data, (await ctx.invoke("inner", {"n": 2})).data]

    async def inner(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        await ctx.progress(message=f"inner {args['n']}")
        return args["n"] * 10

    registry = registry_of(Made("outer", body), Made("inner", inner, required_permissions=("write",)))
    witness = Witness()
    made = await registry.invoke("outer", {}, witness.scope(), call_id="c")
    assert made.result == ToolResult.success([10, 20])
    assert [question.tool_name for question in witness.questions] == ["inner", "inner"]
    progress = [event for event in witness.events if isinstance(event, ToolExecutionProgress)]
    assert [(event.call_id, event.message) for event in progress] == [("c", "inner 1"), ("c", "inner 2")]
    assert (await failure(registry, "outer", {})).kind == "permissionDenied"


# Many calls ---------------------------------------------------------------------------------------------


async def test_calls_run_at_once_and_are_answered_in_their_order() -> None:
    meet = asyncio.Barrier(3)

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        await meet.wait()
        return args["n"]

    done: list[str] = []

    async def on_done(invocation: ToolInvocation) -> None:
        done.append(invocation.call_id)

    calls: list[ToolCall | tuple[str, JsonObject]] = [
        ToolCall(call_id="a", tool_name="tool", input={"n": 1}),
        ("missing", {}),
        ToolCall(call_id="b", tool_name="tool", input={"n": 2}),
        ("tool", {"n": 3}),
    ]
    made = await registry_of(Made("tool", body)).invoke_all(calls, on_done=on_done)
    assert [invocation.content for invocation in made] == ["1", "error: there is no tool 'missing'", "2", "3"]
    assert [made[0].call_id, made[2].call_id] == ["a", "b"]
    assert set(done) == {invocation.call_id for invocation in made}


async def test_each_call_has_its_own_limit() -> None:
    registry = registry_of(Made("slow", waiting_for(asyncio.Event()), timeout_secs=0.02), Made("echo", echo))
    made = await registry.invoke_all([("slow", {}), ("echo", {}), ("slow", {})])
    assert [invocation.error.kind if invocation.error else None for invocation in made] == [
        "timeout",
        None,
        "timeout",
    ]


async def test_cancelling_many_calls_cancels_each() -> None:
    meet = asyncio.Barrier(4)
    ended: list[int] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        await meet.wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(args["n"])

    registry = registry_of(Made("tool", body))
    calls = asyncio.create_task(registry.invoke_all([("tool", {"n": n}) for n in range(3)]))
    await meet.wait()
    calls.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls
    assert sorted(ended) == [0, 1, 2]


async def test_an_error_of_the_listener_is_the_caller_s() -> None:
    async def on_done(invocation: ToolInvocation) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await registry_of(Made("echo", echo)).invoke_all([("echo", {}), ("echo", {})], on_done=on_done)


def test_a_tool_runs_on_the_thread_of_its_caller_s_loop() -> None:
    threads: list[int] = []

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        threads.append(threading.get_ident())

    asyncio.run(registry_of(Made("tool", body)).invoke("tool", {}))
    assert threads == [threading.get_ident()]
