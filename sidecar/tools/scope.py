"""Where a call comes from, and what it may use: the one thing that callers of the registry fill in."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionDecision
from sidecar.protocol.events import AgentEvent
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.secrets import Secrets
from sidecar.protocol.values import JsonObject, ToolCall, ToolInvocation
from sidecar.tools.approval import ApprovalAnswer, Approve, nobody_approves
from sidecar.tools.base import CancellationToken
from sidecar.tools.documents import NO_DOCUMENTS, Documents


async def _nobody_to_ask(call: ToolCall, prompt: str, schema: JsonObject | None) -> Any:
    return None


async def _nobody_listens(event: AgentEvent) -> None:
    pass


def _not_remembered(rule: PermissionRule, scope: Literal["session", "workspace"]) -> None:
    pass


def _not_audited(call: ToolCall, decision: PermissionDecision, answer: ApprovalAnswer | None) -> None:
    pass


def _not_recorded(call: ToolCall, invocation: ToolInvocation | None) -> None:
    pass


@frozen(kw_only=True, eq=False, repr=False)
class InvocationScope:
    """The surroundings of one or more calls. The defaults serve Python users without a host.

    `permissions` None means the registry's own. `emit` gets approvalRequested, approvalResolved,
    toolExecutionProgress and warning events; `remember` the rule that somebody's answer keeps; `audit` hears
    of every decision, `"ask"` before somebody is asked and once more with the answer; `record` hears of every
    call that is over, with None where it was broken off. `timeout_secs` is the limit of one call, less
    the time that people take to answer; a tool's own limit wins. `max_result_bytes` is how much of a result a
    model is shown; `secrets` show in none. `depth` counts the calls that this one is made inside of.
    """

    session_id: str | None = None
    run_id: str | None = None
    trace_id: str = ""
    workspace: tuple[Path, ...] = ()
    documents: Documents = NO_DOCUMENTS
    secrets: Secrets = field(factory=Secrets)
    shared_state: dict[str, Any] = field(factory=dict)
    cancellation: CancellationToken = field(factory=CancellationToken)
    permissions: PermissionChecker | None = None
    approve: Approve = nobody_approves
    ask: Callable[[ToolCall, str, JsonObject | None], Awaitable[Any]] = _nobody_to_ask
    emit: Callable[[AgentEvent], Awaitable[None]] = _nobody_listens
    remember: Callable[[PermissionRule, Literal["session", "workspace"]], None] = _not_remembered
    audit: Callable[[ToolCall, PermissionDecision, ApprovalAnswer | None], None] = _not_audited
    record: Callable[[ToolCall, ToolInvocation | None], None] = _not_recorded
    timeout_secs: float = 60.0
    max_result_bytes: int = 65536
    depth: int = 0
