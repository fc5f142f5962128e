"""Tools that the host runs itself: a call goes out as `tools/execute` and its answer is the result."""

from collections.abc import Awaitable, Callable

from sidecar.permissions.model import Permission
from sidecar.protocol import messages
from sidecar.protocol.messages import ToolsExecuteParams, ToolsExecuteResult
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput

Execute = Callable[[ToolsExecuteParams], Awaitable[ToolsExecuteResult]]
"""Asks the host. Raises ToolError where it cannot; cancelled, it withdraws what it asked."""


class HostTool(BaseTool):
    """A tool of the host's, as it described it. Raises ValueError for arguments that are no object,
    and for a permission that does not exist.

    `running` holds the contexts of calls by their id while the host works on them, so that whoever hears the
    host's `$/progress` can pass it on; tools of one host share it.
    """

    kind = "custom"

    def __init__(
        self, tool: messages.HostTool, execute: Execute, running: dict[str, ToolContext] | None = None
    ) -> None:
        kind = tool.input_schema.get("type", "object")
        if "object" not in (kind if isinstance(kind, list) else [kind]):
            raise ValueError(f'inputSchema.type must be "object", for arguments have names, and not {kind!r}')
        self.name = tool.name
        self.description = tool.description
        self.parameters = tool.input_schema
        self.required_permissions = tuple(map(Permission, tool.required_permissions or ()))
        self.requires_approval = bool(tool.requires_approval)
        self.timeout_secs = tool.timeout_secs
        self.tags = tool.tags or ()
        self.category = tool.category
        self._execute = execute
        self._running = running if running is not None else {}

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        params = ToolsExecuteParams(
            call_id=ctx.call_id,
            name=self.name,
            arguments=args,
            session_id=ctx.session_id,
            run_id=ctx.run_id,
        )
        self._running[ctx.call_id] = ctx
        try:
            answer = await self._execute(params)
        finally:
            self._running.pop(ctx.call_id, None)
        if answer.ok:
            return ToolResult.success(answer.data, content=answer.content)
        message = answer.error or "the host's tool failed and did not say why"
        return ToolResult(ok=False, error_message=message, data=answer.data, content=answer.content)
