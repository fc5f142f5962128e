"""What a call may use when it comes from this host: its permissions, its questions, its workspace."""

import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from sidecar.protocol.events import AgentEvent
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import JsonObject, ToolCall
from sidecar.server.services import Services
from sidecar.tools.registry import InvocationScope


async def _nobody_watches(event: AgentEvent) -> None:
    """A call without a run has no events."""


def invocation_scope(
    services: Services,
    *,
    session_id: str | None,
    run_id: str | None,
    emit: Callable[[AgentEvent], Awaitable[None]] = _nobody_watches,
) -> InvocationScope:
    """The scope of a run's calls, or of a single call without a run."""

    async def ask(call: ToolCall, prompt: str, schema: JsonObject | None) -> Any:
        return await services.questions.ask_input(
            source=f"tool {call.tool_name}",
            message=prompt,
            schema=schema,
            session_id=session_id,
            run_id=run_id,
        )

    def remember(rule: PermissionRule, scope: Literal["session", "workspace"]) -> None:
        services.permissions.remember(rule, scope, session_id)
        services.registry.reconsider()

    return InvocationScope(
        session_id=session_id,
        run_id=run_id,
        trace_id=run_id or uuid.uuid4().hex,
        workspace=services.workspace,
        permissions=services.permissions.for_session(session_id),
        approve=services.questions.approve,
        ask=ask,
        emit=emit,
        remember=remember,
        timeout_secs=services.cycle.tool_timeout_secs,
        max_result_bytes=services.cycle.max_tool_result_bytes,
    )
