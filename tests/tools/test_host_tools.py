"""Tools that the host runs: what goes out, what comes back, progress and cancellation.

Source: protocol.md, "tools/register" and "tools/execute".
"""

import asyncio

import pytest

from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ToolExecutionProgress
from sidecar.protocol.messages import HostTool as Described
from sidecar.protocol.messages import ToolsExecuteParams, ToolsExecuteResult
from sidecar.protocol.values import ImageBlock, ToolInfo, ToolResult, ToolSource, ToolStats
from sidecar.tools.base import ToolContext
from sidecar.tools.host_tools import Execute, HostTool
from sidecar.tools.registry import ToolRegistry
from tests.harness.tools import Witness

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
OPEN_FILE = Described(
    name="open_file",
    description="Shows a file",
    input_schema=SCHEMA,
    required_permissions=("read",),
    tags=("editor",),
    category="view",
)


def registry_with(execute: Execute, running: dict[str, ToolContext] | None = None) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(HostTool(OPEN_FILE, execute, running), source=ToolSource(type="host"))
    return registry


def answering(result: ToolsExecuteResult, heard: list[ToolsExecuteParams] | None = None) -> Execute:
    async def execute(params: ToolsExecuteParams) -> ToolsExecuteResult:
        if heard is not None:
            heard.append(params)
        return result

    return execute


async def test_a_call_goes_to_the_host_with_all_that_it_needs() -> None:
    heard: list[ToolsExecuteParams] = []
    registry = registry_with(answering(ToolsExecuteResult(ok=True, data={"line": 1}), heard))
    made = await registry.invoke("open_file", {"path": "a"}, Witness().scope(), call_id="c")
    assert made.result == ToolResult.success({"line": 1})
    assert heard == [
        ToolsExecuteParams(
            call_id="c", name="open_file", arguments={"path": "a"}, session_id="ses-1", run_id="run-1"
        )
    ]


def test_a_host_s_tool_is_listed_as_it_was_described() -> None:
    registry = registry_with(answering(ToolsExecuteResult(ok=True)))
    assert registry.find("open_file").info() == ToolInfo(
        name="open_file",
        description="Shows a file",
        input_schema=SCHEMA,
        kind="custom",
        category="view",
        tags=("editor",),
        required_permissions=("read",),
        requires_approval=False,
        source=ToolSource(type="host"),
        stats=ToolStats(),
    )


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (ToolsExecuteResult(ok=False, error="no editor"), ToolResult.error("no editor")),
        (ToolsExecuteResult(ok=False), ToolResult.error("the host's tool failed and did not say why")),
        (ToolsExecuteResult(ok=False, error="x", data=[1]), ToolResult.error_with_data("x", [1])),
        (
            ToolsExecuteResult(ok=True, content=(ImageBlock(data="AA==", mime_type="image/png"),)),
            ToolResult.success(content=(ImageBlock(data="AA==", mime_type="image/png"),)),
        ),
    ],
)
async def test_the_host_s_answer_is_the_result(answer: ToolsExecuteResult, result: ToolResult) -> None:
    assert (await registry_with(answering(answer)).invoke("open_file", {"path": "a"})).result == result


async def test_arguments_are_checked_before_the_host_hears_of_the_call() -> None:
    heard: list[ToolsExecuteParams] = []
    with pytest.raises(ToolError, match="path is required"):
        await registry_with(answering(ToolsExecuteResult(ok=True), heard)).invoke("open_file", {})
    assert heard == []


async def test_progress_of_the_host_is_progress_of_the_call_while_it_runs() -> None:
    running: dict[str, ToolContext] = {}

    async def execute(params: ToolsExecuteParams) -> ToolsExecuteResult:
        await running[params.call_id].progress(1, 2, "half")
        return ToolsExecuteResult(ok=True)

    witness = Witness()
    await registry_with(execute, running).invoke("open_file", {"path": "a"}, witness.scope(), call_id="c")
    assert witness.events == [ToolExecutionProgress(call_id="c", done=1, total=2, message="half")]
    assert running == {}


async def test_a_call_that_times_out_is_cancelled_at_the_host() -> None:
    cancelled = asyncio.Event()

    async def execute(params: ToolsExecuteParams) -> ToolsExecuteResult:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    with pytest.raises(ToolError) as failed:
        await registry_with(execute).invoke("open_file", {"path": "a"}, Witness().scope(timeout_secs=0.05))
    assert failed.value.kind == "timeout"
    assert cancelled.is_set()


def test_a_permission_that_does_not_exist_is_refused() -> None:
    bad = Described(name="x", description="", input_schema={}, required_permissions=("reed",))
    with pytest.raises(ValueError, match="unknown permission 'reed'"):
        HostTool(bad, answering(ToolsExecuteResult(ok=True)))
