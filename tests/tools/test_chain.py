"""Tools made of other tools.

Source: own choice; that nothing runs but through the registry is an invariant of `sidecar/ARCHITECTURE.md`.
"""

import pytest

from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ToolExecutionProgress
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.approval import ApprovalAnswer
from sidecar.tools.base import ToolContext, ToolOutput
from sidecar.tools.chain import ApprovalRequired, Step, ToolChain
from sidecar.tools.registry import ToolRegistry
from tests.harness.tools import Made, Witness, answering, echo


async def double(args: JsonObject, ctx: ToolContext) -> ToolOutput:
    return args["n"] * 2


DOUBLE_TWICE = ToolChain(
    "quadruple",
    "Doubles twice.",
    [
        Step(tool="double", result="once"),
        Step(tool="double", arguments=lambda args, state: {"n": state["once"]}),
    ],
    parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)


async def test_a_chain_passes_results_on_and_gives_the_last() -> None:
    registry = ToolRegistry()
    registry.register_all([DOUBLE_TWICE, Made("double", double)])
    witness = Witness()
    scope = witness.scope()
    made = await registry.invoke("quadruple", {"n": 3}, scope, call_id="c")
    assert made.result == ToolResult.success(12)
    assert scope.shared_state == {"once": 6, "double": 12}
    assert witness.events == [
        ToolExecutionProgress(call_id="c", done=0, total=2, message="double"),
        ToolExecutionProgress(call_id="c", done=1, total=2, message="double"),
    ]
    assert registry.find("double").stats.calls == 2


async def test_each_step_needs_its_own_permission() -> None:
    registry = ToolRegistry()
    registry.register_all([DOUBLE_TWICE, Made("double", double, required_permissions=("delete",))])
    with pytest.raises(ToolError) as failed:
        await registry.invoke("quadruple", {"n": 3})
    assert failed.value.kind == "permissionDenied"
    assert failed.value.message.startswith("step 1 (double) of quadruple: double is not permitted: ")
    assert failed.value.data["tool"] == "double"


async def test_the_first_step_that_fails_ends_the_chain_and_is_named() -> None:
    ran: list[int] = []

    async def never(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        ran.append(1)

    registry = ToolRegistry()
    chain = ToolChain("both", "", [Step(tool="fails"), Step(tool="never")])
    registry.register_all([chain, Made("fails", answering(ToolResult.error("no"))), Made("never", never)])
    made = await registry.invoke("both", {})
    assert made.result == ToolResult.error("step 1 (fails) of both failed: no")
    assert ran == []


async def test_a_step_that_is_not_there_is_not_found() -> None:
    registry = ToolRegistry()
    registry.register(ToolChain("one", "", [Step(tool="missing")]))
    with pytest.raises(ToolError, match=r"step 1 \(missing\) of one: there is no tool 'missing'") as failed:
        await registry.invoke("one", {})
    assert failed.value.kind == "notFound"


async def test_a_chain_that_calls_itself_ends() -> None:
    registry = ToolRegistry()
    registry.register(ToolChain("again", "", [Step(tool="again")]))
    with pytest.raises(ToolError, match="again failed: its calls are nested more than 16 deep") as failed:
        await registry.invoke("again", {})
    assert failed.value.kind == "executionFailed"
    assert registry.find("again").stats.calls == 17


def test_a_chain_has_steps() -> None:
    with pytest.raises(ValueError, match="the chain 'x' has no steps"):
        ToolChain("x", "", [])


async def test_any_tool_can_be_made_to_ask() -> None:
    registry = ToolRegistry()
    inner = Made("echo", echo, tags=("a",), remembered_arguments=("x",))
    registry.register(ApprovalRequired(inner))
    witness = Witness(ApprovalAnswer(decision="deny", by="host"))
    with pytest.raises(ToolError, match="denied by the user"):
        await registry.invoke("echo", {"x": 1}, witness.scope())
    witness.answer = ApprovalAnswer(decision="allowOnce", by="host")
    assert (await registry.invoke("echo", {"x": 1}, witness.scope())).content == '{"x":1}'
    assert [question.reason for question in witness.questions] == ["the tool requires approval"] * 2
    assert registry.find("echo").tags == ("a",)
