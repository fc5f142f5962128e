"""tools/*: what tools there are, one call for the host, and the host's own tools."""

from functools import partial
from typing import Any

from attrs import evolve

from sidecar.protocol import messages
from sidecar.protocol.errors import ToolError, invalid_params
from sidecar.protocol.events import AgentEvent, ToolExecutionProgress, Warned
from sidecar.protocol.messages import (
    ToolOutcome,
    ToolsCallParams,
    ToolsCallResult,
    ToolsExecuteParams,
    ToolsExecuteResult,
    ToolsListParams,
    ToolsListResult,
    ToolsRegisterParams,
    ToolsRegisterResult,
    ToolsUnregisterParams,
    ToolsUnregisterResult,
)
from sidecar.protocol.values import Content, ContentBlock, TextBlock, ToolInvocation, ToolSource
from sidecar.server.handlers.paging import page
from sidecar.server.handlers.scope import invocation_scope
from sidecar.server.rpc import Request
from sidecar.server.services import Services
from sidecar.server.unanswered import HostError
from sidecar.tools.entry import ToolEntry
from sidecar.tools.host_tools import HostTool
from sidecar.tools.registry import entry_of

HOST_SOURCE = ToolSource(type="host")


async def list_tools(request: Request, params: ToolsListParams) -> ToolsListResult:
    """Tools by name, those that the selector takes."""
    services: Services = request.services
    tools = [entry.info() for entry in services.registry.entries(params.selector)]
    shown, cursor = page(tools, lambda tool: tool.name, cursor=params.cursor, limit=params.limit)
    return ToolsListResult(tools=shown, next_cursor=cursor)


async def call(request: Request, params: ToolsCallParams) -> ToolsCallResult:
    """Runs one tool for the host, through the same checks and questions as in the loop."""
    services: Services = request.services
    if params.session_id is not None:
        services.sessions.get(params.session_id)
    if params.timeout_secs is not None and params.timeout_secs <= 0:
        raise invalid_params("params.timeoutSecs", f"must be more than 0, not {params.timeout_secs}")

    async def emit(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionProgress):
            request.work_done.report(event.message, done=event.done, total=event.total)
        elif isinstance(event, Warned):  # There is no run whose event it could be.
            services.host.log_message(event.message, warning=True)

    scope = invocation_scope(services, session_id=params.session_id, run_id=None, emit=emit)
    if params.timeout_secs is not None:
        scope = evolve(scope, timeout_secs=params.timeout_secs)
    invocation = await services.registry.invoke(params.name, params.arguments or {}, scope, call_id=params.call_id)
    return _result(invocation)


async def register(request: Request, params: ToolsRegisterParams) -> ToolsRegisterResult:
    """All of the tools or, where one cannot join, none of them."""
    services: Services = request.services
    entries: list[ToolEntry] = []
    try:
        for tool in params.tools:
            entries.append(_entry(services, tool))
        services.registry.replace((), entries)
    except (ToolError, ValueError) as error:
        names = [tool.name for tool in params.tools]
        at = names.index(error.tool) if isinstance(error, ToolError) and error.tool in names else len(entries)
        raise invalid_params(f"params.tools[{at}]", str(error)) from None
    return ToolsRegisterResult(registered=tuple(entry.name for entry in entries))


def _entry(services: Services, tool: messages.HostTool) -> ToolEntry:
    return entry_of(
        HostTool(tool, partial(_execute, services), services.host_calls),
        tags=tool.tags or (),
        category=tool.category,
        source=HOST_SOURCE,
    )


async def unregister(request: Request, params: ToolsUnregisterParams) -> ToolsUnregisterResult:
    """Only tools of the host; other names are passed over."""
    services: Services = request.services
    left = []
    for name in params.names:
        entry = services.registry.get(name)
        if entry is not None and entry.source.type == "host":
            services.registry.unregister(name)
            left.append(name)
    return ToolsUnregisterResult(unregistered=tuple(left))


async def progress(services: Services, params: Any) -> None:
    """The host's `$/progress` on a call that it runs for us; on anything else it is passed over."""
    match params:
        case {"token": str(call_id), "value": {"kind": "report"} as value}:
            running = services.host_calls.get(call_id)
        case _:
            return
    message, percentage = value.get("message"), value.get("percentage")
    if running is not None:
        done = percentage if isinstance(percentage, int | float) and not isinstance(percentage, bool) else None
        await running.progress(done, None if done is None else 100, message if isinstance(message, str) else None)


async def _execute(services: Services, params: ToolsExecuteParams) -> ToolsExecuteResult:
    try:
        result = await services.host.request("tools/execute", params, HOST_TOOL_DEADLINE_SECS)
    except HostError as error:
        raise ToolError("executionFailed", f"{params.name} failed: {error}", tool=params.name) from None
    assert isinstance(result, ToolsExecuteResult)
    return result


HOST_TOOL_DEADLINE_SECS = 24 * 3600.0
"""The last resort; the registry's own limit on the call ends it, and withdraws the request, long before."""


def _result(invocation: ToolInvocation) -> ToolsCallResult:
    result = invocation.result
    assert result is not None, "invoke raises where there is no result"
    return ToolsCallResult(
        call_id=invocation.call_id,
        tool_name=invocation.tool_name,
        input=invocation.input,
        result=ToolOutcome(ok=result.ok, data=result.data, error=result.error),
        content=_blocks(invocation.content),
        duration_ms=invocation.duration_ms,
        truncated=invocation.truncated,
        original_bytes=invocation.original_bytes,
    )


def _blocks(content: Content) -> tuple[ContentBlock, ...]:
    return (TextBlock(text=content),) if isinstance(content, str) else content
