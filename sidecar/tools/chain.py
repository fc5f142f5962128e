"""Tools made of other tools: a chain of steps, and any tool with an approval in front."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject, ToolKind, ToolResult
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput

StepArguments = Callable[[JsonObject, Mapping[str, Any]], JsonObject]
"""A step's arguments, from those of the chain and from the run's shared state."""


def _same_arguments(args: JsonObject, state: Mapping[str, Any]) -> JsonObject:
    return args


@frozen(kw_only=True)
class Step:
    """One tool of the registry in a chain. Its result is put into the shared state as `result`."""

    tool: str
    arguments: StepArguments = _same_arguments
    result: str = field()

    @result.default
    def _named_after_its_tool(self) -> str:
        return self.tool


class ToolChain(BaseTool):
    """One tool made of steps, run one after the other; its result is that of the last.

    Each step goes through the registry, with its own permissions and its own approval, so that a chain opens
    nothing that its tools do not. The first step that fails ends it, and is named.
    """

    kind: ToolKind = "function"

    def __init__(
        self,
        name: str,
        description: str,
        steps: Sequence[Step],
        *,
        parameters: JsonObject | None = None,
        timeout_secs: float | None = None,
    ) -> None:
        """`parameters` are the chain's own, by default any object. Raises ValueError without a step."""
        if not steps:
            raise ValueError(f"the chain {name!r} has no steps")
        self.name = name
        self.description = description
        self.parameters = parameters or {"type": "object"}
        self.timeout_secs = timeout_secs
        self.steps = tuple(steps)

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        result = ToolResult.success()
        for number, step in enumerate(self.steps, 1):
            await ctx.progress(number - 1, len(self.steps), step.tool)
            try:
                result = await ctx.invoke(step.tool, step.arguments(args, ctx.shared_state))
            except ToolError as error:
                message = f"step {number} ({step.tool}) of {self.name}: {error.message}"
                raise ToolError(error.kind, message, action=error.action, **error.data) from error
            if not result.ok:
                message = f"step {number} ({step.tool}) of {self.name} failed: {result.error}"
                return ToolResult(ok=False, error_message=message, data=result.data, content=result.content)
            ctx.shared_state[step.result] = result.data
        return result


class ApprovalRequired(BaseTool):
    """Any tool, with somebody asked before each call of it."""

    requires_approval = True

    def __init__(self, tool: BaseTool) -> None:
        self.tool = tool
        self.name = tool.name
        self.description = tool.description
        self.parameters = tool.parameters
        self.required_permissions = tool.required_permissions
        self.kind = tool.kind
        self.idempotent = tool.idempotent
        self.timeout_secs = tool.timeout_secs
        self.tags = tool.tags
        self.category = tool.category
        self.version = tool.version
        self.remembered_arguments = tool.remembered_arguments

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return await self.tool.execute(args, ctx)

    async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
        return await self.tool.rule_arguments(args, workspace)
