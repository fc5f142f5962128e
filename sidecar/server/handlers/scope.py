"""What a call may use when it comes from this host: its permissions, its questions, its workspace."""

import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

from attrs import frozen

from sidecar.permissions.model import PermissionDecision
from sidecar.protocol.events import AgentEvent
from sidecar.protocol.messages import CallOutcome, PermissionRule, RuleDecision
from sidecar.protocol.values import JsonObject, ToolCall, ToolInvocation
from sidecar.server.services import Services
from sidecar.store.audit import AuditedCall
from sidecar.store.errors import StoreError
from sidecar.tools.approval import ApprovalAnswer
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
    caller = _Caller(services, session_id, run_id)
    return InvocationScope(
        session_id=session_id,
        run_id=run_id,
        trace_id=run_id or uuid.uuid4().hex,
        workspace=services.workspace,
        documents=services.documents,
        secrets=services.host.secrets,
        permissions=services.permissions.for_session(session_id),
        approve=services.questions.approve,
        ask=caller.ask,
        emit=emit,
        remember=caller.remember,
        audit=caller.audit,
        record=caller.record,
        timeout_secs=services.cycle.tool_timeout_secs,
        max_result_bytes=services.cycle.max_tool_result_bytes,
    )


@frozen(eq=False)
class _Caller:
    """A run, or a host that calls a tool: who is asked, and where its decisions are written down."""

    services: Services
    session_id: str | None
    run_id: str | None

    async def ask(self, call: ToolCall, prompt: str, schema: JsonObject | None) -> Any:
        return await self.services.questions.ask_input(
            source=f"tool {call.tool_name}",
            message=prompt,
            schema=schema,
            session_id=self.session_id,
            run_id=self.run_id,
        )

    def audit(self, call: ToolCall, decision: PermissionDecision, answer: ApprovalAnswer | None) -> None:
        is_asked = decision.decision == "ask"
        self.services.store.audit.decided(
            self._audited(call),
            decision=_decided(answer) if answer is not None else decision.decision,
            rule=decision.rule,
            permission=decision.permission,
            decided_by=answer.by if answer is not None else None if is_asked else "rule",
            answer=answer.decision if answer is not None else None,
        )

    def record(self, call: ToolCall, invocation: ToolInvocation | None) -> None:
        if invocation is None:
            with suppress(StoreError):  # Nothing may take the place of the cancellation that is under way.
                self.services.store.audit.ended(self._audited(call), "cancelled")
            return
        self.services.store.audit.ended(
            self._audited(call),
            _outcome(invocation),
            error_kind=invocation.error.kind if invocation.error is not None else None,
            duration_ms=invocation.duration_ms,
        )

    def remember(self, rule: PermissionRule, scope: Literal["session", "workspace"]) -> None:
        self.services.permissions.remember(rule, scope, self.session_id)
        self.services.registry.reconsider()

    def _audited(self, call: ToolCall) -> AuditedCall:
        return AuditedCall(
            session_id=self.session_id,
            run_id=self.run_id,
            call_id=call.call_id,
            tool_name=call.tool_name,
            input=call.input,
        )


def _decided(answer: ApprovalAnswer) -> RuleDecision:
    return "deny" if answer.decision in ("deny", "denyAndStop") else "allow"


def _outcome(invocation: ToolInvocation) -> CallOutcome:
    if invocation.error is not None and invocation.error.kind == "permissionDenied":
        return "denied"
    return "failed" if invocation.is_error else "ok"
