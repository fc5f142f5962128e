"""What the three design documents ask for, each point by a test that uses the embedding API alone.

Source: the acceptance lists of design v1 (19 points) and design v2 (20 points, of which the first 19 are those of
v1), the requirements of both, and the chapter on the tool trait. Where a point speaks of Rust's tools, its test
asks for the same of Python's.
"""

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import sidecar
from sidecar import (
    ApprovalAnswer,
    ApprovalQuestion,
    BaseTool,
    CycleConfig,
    InvocationScope,
    McpClient,
    Permission,
    PermissionChecker,
    PermissionConfig,
    SidecarError,
    StdioServer,
    ToolContext,
    ToolDefinition,
    ToolError,
    ToolInvocation,
    ToolRegistry,
    ToolResult,
    tool,
)
from tests.harness.embedding import Heard, talk
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import calls, says

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

EVERYTHING_ALLOWED = PermissionChecker(PermissionConfig(allowed=(), denied=(), ask=()))


class Weather(BaseTool):
    """A tool as somebody writes one by hand: four members and nothing else."""

    name = "get_weather"
    description = "Tells the weather of a city."
    parameters = CITY

    async def execute(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        return {"city": args["city"], "celsius": 22}


class Recorded(BaseTool):
    """A tool that keeps count of its runs."""

    def __init__(self, name: str, answer: Any = "done", **members: Any) -> None:
        self.name = name
        self.description = f"does {name}"
        self.parameters = {"type": "object"}
        self.answer = answer
        self.ran = 0
        vars(self).update(members)

    async def execute(self, args: dict[str, Any], ctx: ToolContext) -> Any:
        self.ran += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def registry_of(*tools: BaseTool, permissions: PermissionChecker | None = None) -> ToolRegistry:
    registry = ToolRegistry(permissions=permissions)
    registry.register_all(tools)
    return registry


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False)


# The acceptance lists -----------------------------------------------------------------------------------


@pytest.mark.timeout(120)
def test_01_a_program_over_the_whole_api_type_checks(tmp_path: Path) -> None:
    """Designs v1 and v2, point 1: it compiles. Python's compiler for this is a strict type checker."""
    program = tmp_path / "program.py"
    names = "".join(f"    {name},\n" for name in sidecar.EXPORTS)
    uses = """
class Weather(BaseTool):
    name = "get_weather"
    description = "Tells the weather."
    parameters: dict[str, Any] = {"type": "object"}

    async def execute(self, args: dict[str, Any], ctx: ToolContext) -> ToolOutput:
        await ctx.progress(1, 2)
        return ToolResult.error("no") if ctx.cancellation.cancelled else ToolResult.success({"celsius": 22})

@tool(permissions=["read"])
async def look(at: str, ctx: ToolContext) -> str:
    return at

async def main(provider: Provider) -> str | None:
    registry = ToolRegistry(permissions=PermissionChecker(PermissionConfig(denied=("shell",))))
    registry.register_all([Weather(), look, ApprovalRequired(look)])
    cycle = LlmCycle(provider, model="m", config=CycleConfig(max_turns=3))
    async for event in cycle.submit_stream_with_tools("go", registry):
        match event:
            case AssistantTextDelta(text=text) | ToolExecutionCompleted(output=str(text)):
                assert text
    try:
        result: RunResult = await cycle.submit("more")
    except ToolError as error:
        return error.tool
    return str(result.message.content)
"""
    program.write_text(f"from typing import Any\n\nfrom sidecar import (\n{names})\n{uses}")
    done = run_python("-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(program))
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr


def test_02_nothing_warns() -> None:
    """Designs v1 and v2, point 2: no warnings. The tidy test runs the linters; this one asks Python itself."""
    done = run_python("-W", "error", "-X", "dev", "-c", "from sidecar import *")
    assert (done.returncode, done.stderr) == (0, "")


def test_03_each_concern_has_its_module() -> None:
    """Designs v1 and v2, point 3: where base, registry, permission, MCP client and error are."""
    assert {
        name: sidecar.EXPORTS[name]
        for name in ("BaseTool", "ToolRegistry", "PermissionChecker", "McpClient", "ToolError")
    } == {
        "BaseTool": "sidecar.tools.base",
        "ToolRegistry": "sidecar.tools.registry",
        "PermissionChecker": "sidecar.permissions.checker",
        "McpClient": "sidecar.tools.mcp_tools",
        "ToolError": "sidecar.protocol.errors",
    }


async def test_04_a_tool_is_made_of_name_description_parameters_and_execute() -> None:
    """Designs v1 and v2, point 4: somebody's own tool works with these four."""
    weather = Weather()
    assert (weather.name, weather.description, weather.parameters) == (
        "get_weather",
        "Tells the weather of a city.",
        CITY,
    )
    assert await weather.execute({"city": "Bergen"}, ToolContext()) == {"city": "Bergen", "celsius": 22}
    assert inspect.iscoroutinefunction(BaseTool.execute)
    assert BaseTool.__abstractmethods__ == {"execute"}
    made = await registry_of(weather).invoke("get_weather", {"city": "Bergen"})
    assert made.result == ToolResult.success({"city": "Bergen", "celsius": 22})


async def test_05_tools_are_registered_found_listed_and_unregistered() -> None:
    """Designs v1 and v2, point 5, and the requirement that of three tools each is found by its name and runs."""
    registry = registry_of(Recorded("one", 1), Recorded("two", 2), Recorded("three", 3))
    assert registry.list_tools() == ["one", "three", "two"]
    for name, answer in (("one", 1), ("two", 2), ("three", 3)):
        entry = registry.get(name)
        assert entry is not None and entry.tool.name == name
        assert (await registry.invoke(name, {})).result == ToolResult.success(answer)
    gone = registry.unregister("two")
    assert gone is not None and gone.tool.name == "two"
    assert registry.get("two") is None and registry.unregister("two") is None
    assert registry.list_tools() == ["one", "three"]
    with pytest.raises(ToolError, match="there is no tool 'two'") as failed:
        await registry.invoke("two", {})
    assert failed.value.kind == "notFound"
    with pytest.raises(ToolError, match="'one' is taken"):
        registry.register(Recorded("one"))


def test_06_definitions_are_what_a_model_is_told() -> None:
    """Designs v1 and v2, point 6."""
    definition = ToolDefinition(name="get_weather", description="Tells the weather of a city.", parameters=CITY)
    assert registry_of(Weather()).definitions() == (definition,)
    assert ToolRegistry().definitions() == ()


async def test_07_permission_is_checked_before_a_tool_runs() -> None:
    """Designs v1 and v2, point 7, and the requirement that a blocked call is a structured error, never silence."""
    wipe = Recorded("wipe", required_permissions=(Permission.DELETE,))
    with pytest.raises(ToolError) as denied:
        await registry_of(wipe).invoke("wipe", {"path": "/"})
    assert (denied.value.kind, denied.value.tool, wipe.ran) == ("permissionDenied", "wipe", 0)
    assert denied.value.data == {"tool": "wipe", "permission": "delete", "rule": 'permissions.denied: "delete"'}
    await registry_of(wipe, permissions=EVERYTHING_ALLOWED).invoke("wipe", {"path": "/"})
    assert wipe.ran == 1


async def test_08_calls_run_in_parallel_and_are_answered_in_their_order() -> None:
    """Designs v1 and v2, point 8: each of three calls ends only when all three have begun."""
    together = asyncio.Barrier(3)

    @tool
    async def meet(who: str) -> str:
        await together.wait()
        return f"{who} was there"

    async with asyncio.timeout(5):
        made = await registry_of(meet).invoke_all([("meet", {"who": who}) for who in "abc"])
    assert [invocation.content for invocation in made] == ["a was there", "b was there", "c was there"]
    assert all(isinstance(invocation, ToolInvocation) for invocation in made)


@pytest.mark.parametrize(
    ("permission", "allowed", "denied", "allow_unspecified", "decision"),
    [
        ("shell", (), ("shell",), True, "deny"),
        ("shell", ("shell",), ("shell",), True, "deny"),
        ("read", ("read",), ("shell",), False, "allow"),
        ("write", ("read",), ("shell",), True, "deny"),
        ("write", (), ("shell",), True, "allow"),
        ("write", (), ("shell",), False, "deny"),
        ("acme:pay", ("acme:pay",), (), False, "allow"),
        ("acme:pay", ("read",), (), True, "deny"),
        ("acme:pay", ("acme:*",), ("acme:pay",), True, "deny"),
    ],
)
def test_09_permissions_are_decided_by_black_list_white_list_and_default(
    permission: str, allowed: tuple[str, ...], denied: tuple[str, ...], allow_unspecified: bool, decision: str
) -> None:
    """Designs v1 and v2, point 9: denied, else allowed, else denied by a white list, else the default."""
    config = PermissionConfig(allowed=allowed, denied=denied, ask=(), allow_unspecified=allow_unspecified)
    assert PermissionChecker(config).check("t", (Permission(permission),)).decision == decision


def test_09_the_default_permissions_are_those_of_the_designs() -> None:
    """Designs v1 and v2, the permission configuration and its defaults."""
    config = PermissionConfig()
    assert (config.allowed, config.denied) == (("read", "network"), ("delete", "shell"))
    assert config.allow_unspecified
    words = (Permission.READ, Permission.WRITE, Permission.DELETE, Permission.NETWORK, Permission.SHELL)
    assert (*words, Permission.FILESYSTEM) == ("read", "write", "delete", "network", "shell", "filesystem")


async def test_10_calls_of_the_model_are_run_and_told_until_it_calls_no_more() -> None:
    """Designs v1 and v2, point 10, and the requirement of two rounds or more."""
    script = calls(("get_weather", {"city": "Bergen"})), calls(("get_weather", {"city": "Oslo"})), says("Warm.")
    async with talk(*script) as spoken:
        result = await spoken.cycle.submit_with_tools("How warm is it?", registry_of(Weather()))
        assert [request.tool_names for request in spoken.model.requests] == [["get_weather"]] * 3
        assert spoken.results(3) == ['{"city":"Bergen","celsius":22}', '{"city":"Oslo","celsius":22}']
    assert (result.message.content, result.stop_reason, result.turns) == ("Warm.", "stop", 3)


async def test_11_a_model_that_never_ends_is_ended_by_max_turns() -> None:
    """Designs v1 and v2, point 11: at the limit, which is 10 by default, the run ends with an error."""
    assert CycleConfig().max_turns == 10
    endless = [calls(("get_weather", {"city": str(number)})) for number in range(3)]
    async with talk(*endless, config=CycleConfig(max_turns=3)) as spoken:
        with pytest.raises(SidecarError, match="took 3 turns without an end") as failed:
            await spoken.cycle.submit_with_tools("go", registry_of(Weather()))
        assert len(spoken.model.requests) == 3
    assert failed.value.kind == "maxTurnsExceeded"
    assert failed.value.data == {"maxTurns": 3, "turns": 3}


async def test_12_a_streamed_run_tells_when_a_tool_has_ended() -> None:
    """Designs v1 and v2, point 12, in the order that both draw."""
    script = calls(("get_weather", {"city": "Bergen"}, "call_1"), text="Let me see. "), says("22 degrees.")
    async with talk(*script) as spoken:
        stream = spoken.cycle.submit_stream_with_tools("How warm?", registry_of(Weather()))
        events: list[Any] = [event async for event in stream]
    told = [event for event in events if event.type not in ("runStarted", "runCompleted")]
    words = [event.text if event.type == "assistantTextDelta" else event.type for event in told]
    assert "|".join(words).replace("|", "") == (
        "Let me see. toolExecutionStartedturnCompletetoolExecutionCompleted22 degrees.turnComplete"
    )
    (started,) = (event for event in told if event.type == "toolExecutionStarted")
    (completed,) = (event for event in told if event.type == "toolExecutionCompleted")
    assert (started.tool_name, started.input, started.call_id) == ("get_weather", {"city": "Bergen"}, "call_1")
    assert (completed.tool_name, completed.call_id, completed.is_error) == ("get_weather", "call_1", False)
    assert completed.output == '{"city":"Bergen","celsius":22}'
    assert [event.reason for event in told if event.type == "turnComplete"] == ["toolCalls", "stop"]


async def test_13_tool_messages_are_in_the_history_where_they_belong() -> None:
    """Designs v1 and v2, point 13, and the requirement that the whole trace of a run can be seen."""
    script = calls(("get_weather", {"city": "Bergen"}, "c1"), ("get_weather", {}, "c2")), says("Warm.")
    async with talk(*script) as spoken:
        await spoken.cycle.submit_with_tools("How warm?", registry_of(Weather()))
        user, asked, first, second, answer = spoken.cycle.messages()
    assert (user.role, user.content, answer.role, answer.content) == ("user", "How warm?", "assistant", "Warm.")
    assert [(call.call_id, call.tool_name, call.input) for call in asked.tool_calls or ()] == [
        ("c1", "get_weather", {"city": "Bergen"}),
        ("c2", "get_weather", {}),
    ]
    assert (first.role, first.call_id, first.tool_name, first.is_error) == ("tool", "c1", "get_weather", None)
    assert first.content == '{"city":"Bergen","celsius":22}'
    assert (second.role, second.call_id, second.is_error) == ("tool", "c2", True)
    assert second.content == "error: invalid arguments for get_weather: city is required"


def mcp_client(*options: str, **fields: Any) -> McpClient:
    entry = server_entry(*options)
    return McpClient("demo", StdioServer(command=entry["command"], args=tuple(entry["args"]), **fields))


async def test_14_a_client_shakes_hands_with_an_mcp_server() -> None:
    """Designs v1 and v2, point 14: the server runs as a child process, and ends with `close`."""
    client = mcp_client()
    with pytest.raises(ToolError) as early:
        await client.list_tools()
    assert early.value.kind == "mcpNotInitialized"
    await client.connect()
    try:
        assert client.pid is not None
        assert client.protocol_version is not None and client.protocol_version >= "2025-03-26"
        assert client.server_info is not None and client.server_info["name"]
    finally:
        await client.close()
    assert client.pid is None


async def test_15_and_16_a_client_lists_and_calls_the_tools_of_its_server() -> None:
    """Designs v1 and v2, points 15 and 16."""
    client = mcp_client()
    await client.connect()
    try:
        listed = {definition.name: definition for definition in await client.list_tools()}
        assert {"echo", "add"} <= set(listed)
        assert listed["echo"].input_schema["type"] == "object"
        answer = await client.call_tool("add", {"a": 2, "b": 3})
        assert (answer.is_error, answer.structured_content) == (False, {"sum": 5})
        assert await client.refresh_tools() == await client.list_tools()
    finally:
        await client.close()


async def test_17_tools_of_a_server_join_a_registry_and_serve_the_loop_like_any_other() -> None:
    """Designs v1 and v2, point 17, and the requirement that the loop cannot tell them apart."""
    client = mcp_client()
    await client.connect()
    try:
        registry = registry_of(Weather(), permissions=EVERYTHING_ALLOWED)
        registry.register_all(await client.into_tools())
        assert all(isinstance(entry.tool, BaseTool) for entry in registry.entries())
        script = calls(("demo__echo", {"text": "hi"}), ("get_weather", {"city": "Bergen"})), says("Both.")
        async with talk(*script) as spoken:
            await spoken.cycle.submit_with_tools("go", registry)
            assert spoken.results(2) == ["hi", '{"city":"Bergen","celsius":22}']
    finally:
        await client.close()


def public_members() -> list[tuple[str, Any]]:
    found = []
    for name in sidecar.EXPORTS:
        value = getattr(sidecar, name)
        for member, function in inspect.getmembers(value, inspect.isroutine) if inspect.isclass(value) else ():
            of_ours = str(getattr(function, "__module__", "")).startswith("sidecar")
            if of_ours and not member.startswith("_"):
                found.append((f"{name}.{member}", function))
    return found


@pytest.mark.parametrize(("name", "function"), public_members(), ids=[name for name, _ in public_members()])
def test_18_every_public_function_is_documented(name: str, function: Any) -> None:
    """Designs v1 and v2, point 18; that every name has a docstring is in the test of the exports."""
    assert inspect.getdoc(function), f"{name} has no docstring"


def test_19_every_point_has_a_test() -> None:
    """Designs v1 and v2, point 19: the tests pass, and each point of the lists is one of them."""
    module = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    tests = [node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    points = {int(number) for name in tests for number in re.findall(r"(?:test|and)_(\d\d)", name)}
    assert points == set(range(1, 21))


async def test_20_a_tool_learns_its_surroundings_from_a_context_that_can_grow() -> None:
    """Design v2, point 20: session, trace and cancellation reach the second argument of `execute`.

    New fields can join without touching a tool: a context is made by keyword, and every field has a default.
    """
    seen: list[ToolContext] = []

    class Watcher(Recorded):
        async def execute(self, args: dict[str, Any], ctx: ToolContext) -> Any:
            seen.append(ctx)

    scope = InvocationScope(
        session_id="s", run_id="r", trace_id="t", shared_state={"k": 1}, workspace=(Path("/w"),)
    )
    await registry_of(Watcher("watch")).invoke("watch", {}, scope, call_id="c")
    (ctx,) = seen
    assert (ctx.session_id, ctx.run_id, ctx.trace_id, ctx.call_id) == ("s", "r", "t", "c")
    assert (ctx.shared_state, ctx.workspace, ctx.cancellation.cancelled) == ({"k": 1}, (Path("/w"),), False)
    scope.cancellation.cancel("enough")
    assert await ctx.cancellation.wait() == "enough"
    assert list(inspect.signature(BaseTool.execute).parameters) == ["self", "args", "ctx"]
    fields = inspect.signature(ToolContext).parameters.values()
    assert all(f.kind is f.KEYWORD_ONLY and f.default is not f.empty for f in fields)


# The requirements ---------------------------------------------------------------------------------------


async def test_whatever_a_tool_raises_is_a_tool_error() -> None:
    """Designs v1 and v2, requirements: errors of tools are structured, and none brings the process down."""
    broken = Recorded("broken", answer=KeyError("x"))
    with pytest.raises(ToolError, match="broken failed: KeyError: 'x'") as failed:
        await registry_of(broken).invoke("broken", {})
    assert (failed.value.kind, failed.value.is_recoverable) == ("executionFailed", True)
    leaving = Recorded("leaving", answer=SystemExit(3))
    with pytest.raises(ToolError, match="leaving failed: SystemExit: 3"):
        await registry_of(leaving).invoke("leaving", {})


async def test_an_mcp_server_has_thirty_seconds_or_as_many_as_it_is_given() -> None:
    """Designs v1 and v2, requirements: the limit of a request to a server."""
    assert StdioServer(command="x").timeout_secs == 30
    client = mcp_client(timeout_secs=0.2)
    await client.connect()
    try:
        with pytest.raises(ToolError) as failed:
            await client.call_tool("silent", {})
        assert failed.value.kind == "mcpTimeout"
    finally:
        await client.close()


async def test_a_tool_has_sixty_seconds_or_as_many_as_it_is_given() -> None:
    """Design v2, `invoke_all`: each call under its own limit, so that one cannot hold up the loop."""
    assert (CycleConfig().tool_timeout_secs, InvocationScope().timeout_secs) == (60, 60)

    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    registry = registry_of(hang, Weather())
    both = [("hang", {}), ("get_weather", {"city": "x"})]
    hung, told = await registry.invoke_all(both, InvocationScope(timeout_secs=0.05))
    assert hung.error is not None and (hung.error.kind, hung.error.is_recoverable) == ("timeout", True)
    assert told.result is not None and told.result.ok


async def test_a_large_result_is_cut_and_marked_for_the_model() -> None:
    """Design v2, requirements: what a result may take of the context has a limit, and tokens are counted."""
    long = Recorded("long", "x" * 10_000)
    heard = Heard()
    script = calls(("long", {})), says("Much.")
    async with talk(*script, config=CycleConfig(max_tool_result_bytes=1000)) as spoken:
        result = await spoken.cycle.submit_with_tools("go", registry_of(long), heard.scope())
        (shown,) = spoken.results(2)
    assert len(shown) <= 1000 and "cut here: 10000 bytes in all" in shown
    (completed,) = heard.of("toolExecutionCompleted")
    assert (completed.truncated, completed.original_bytes, completed.output) == (True, 10_000, shown)
    assert result.usage.tool_result_tokens == 250
    assert result.usage.tool_definition_tokens and result.usage.input_tokens == 22


# The chapter on the tool trait --------------------------------------------------------------------------


def test_a_tool_needs_no_approval_and_is_of_no_kind_unless_it_says_so() -> None:
    """Tool trait: the defaults, and the kinds there are."""
    assert (Weather().requires_approval, Weather().kind) == (False, "unknown")
    kinds = get_args(inspect.get_annotations(BaseTool)["kind"])
    assert set(kinds) == {"web", "file", "code", "function", "custom", "mcp", "openapi", "unknown"}


def test_a_registered_tool_is_found_as_what_it_is() -> None:
    """Tool trait: from the entry in a registry back to the concrete class."""
    weather = Weather()
    entry = registry_of(weather).get("get_weather")
    assert entry is not None and isinstance(entry.tool, Weather) and entry.tool is weather


@pytest.mark.parametrize(
    ("result", "ok", "data", "error", "shown"),
    [
        (
            ToolResult.success({"path": "a", "bytes": 3}),
            True,
            {"path": "a", "bytes": 3},
            None,
            '{"path":"a","bytes":3}',
        ),
        (ToolResult.success(), True, None, None, "null"),
        (ToolResult.error("File not found: a"), False, None, "File not found: a", "error: File not found: a"),
        (
            ToolResult.error_with_data("Validation failed", {"field": "path"}),
            False,
            {"field": "path"},
            "Validation failed",
            'error: Validation failed\n{"field":"path"}',
        ),
    ],
    ids=["success", "nothing", "error", "error with data"],
)
async def test_a_result_is_a_success_or_an_error_with_or_without_data(
    result: ToolResult, ok: bool, data: Any, error: str | None, shown: str
) -> None:
    """Tool trait: the three constructors, and what a model is shown of each."""
    assert (result.ok, result.data, result.error) == (ok, data, error)
    made = await registry_of(Recorded("t", result)).invoke("t", {})
    assert (made.result, made.content, made.is_error) == (result, shown, not ok)


async def test_an_error_of_the_tool_is_told_to_the_model_and_one_of_the_framework_is_not() -> None:
    """Tool trait: the two levels of errors."""
    missing = Recorded("find", ToolResult.error("no such file"))
    async with talk(calls(("find", {})), says("Then not.")) as spoken:
        await spoken.cycle.submit_with_tools("go", registry_of(missing))
        assert spoken.results(2) == ["error: no such file"]
    broken = Recorded("find", ToolError("io", "the disk is gone"))
    async with talk(calls(("find", {}))) as spoken:
        with pytest.raises(ToolError, match="the disk is gone"):
            await spoken.cycle.submit_with_tools("go", registry_of(broken))
        assert len(spoken.model.requests) == 1


async def test_a_call_that_needs_approval_waits_for_it() -> None:
    """Tool trait: the life of a call, with the question between the model's call and the tool."""
    launch = Recorded("launch", "up", requires_approval=True)
    asked: list[ApprovalQuestion] = []
    order: list[str] = []

    async def approve(question: ApprovalQuestion) -> ApprovalAnswer:
        asked.append(question)
        order.append(f"asked when it had run {launch.ran} times")
        return ApprovalAnswer(decision="allowOnce" if question.input.get("go") else "deny", by="host")

    script = calls(("launch", {"go": True}, "c1")), calls(("launch", {"go": False}, "c2")), says("Once.")
    async with talk(*script) as spoken:
        scope = InvocationScope(approve=approve)
        await spoken.cycle.submit_with_tools("go", registry_of(launch), scope)
        assert spoken.results(3) == ["up", "error: launch was denied by the user"]
    assert [(question.call_id, question.tool_name, question.input) for question in asked] == [
        ("c1", "launch", {"go": True}),
        ("c2", "launch", {"go": False}),
    ]
    assert order == ["asked when it had run 0 times", "asked when it had run 1 times"]
    assert launch.ran == 1


async def test_arguments_are_read_for_a_function_and_left_as_they_are_for_a_class() -> None:
    """Tool trait: the macro reads arguments by itself, a tool written by hand gets the JSON."""

    @tool
    def place(at: Path, times: int = 1) -> str:
        """Puts it somewhere."""
        return f"{type(at).__name__ in ('PosixPath', 'WindowsPath')} {times}"

    class ByHand(Recorded):
        async def execute(self, args: dict[str, Any], ctx: ToolContext) -> Any:
            return args

    registry = registry_of(place, ByHand("by_hand"))
    assert (await registry.invoke("place", {"at": "a/b"})).content == "True 1"
    assert (await registry.invoke("by_hand", {"at": "a/b"})).content == '{"at":"a/b"}'
