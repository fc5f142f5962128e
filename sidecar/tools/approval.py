"""A question whether a call may run, and its answer. Who asks whom is decided by the `Approve` passed in."""

from collections.abc import Awaitable, Callable

from attrs import frozen

from sidecar.protocol.events import ApprovalDecision, DecidedBy
from sidecar.protocol.messages import ApprovalOption, PermissionRule
from sidecar.protocol.values import JsonObject


@frozen(kw_only=True)
class ApprovalQuestion:
    """All that somebody needs to decide; `options` are the answers on offer, with the rule each would keep."""

    request_id: str
    session_id: str | None
    run_id: str | None
    call_id: str
    tool_name: str
    input: JsonObject
    permissions: tuple[str, ...]
    reason: str
    title: str
    options: tuple[ApprovalOption, ...]


@frozen(kw_only=True)
class ApprovalAnswer:
    """What was decided and by whom; `explanation` says why nobody could decide, and how to allow the call."""

    decision: ApprovalDecision
    by: DecidedBy
    rule: PermissionRule | None = None
    reason: str | None = None
    updated_input: JsonObject | None = None
    explanation: str | None = None


Approve = Callable[[ApprovalQuestion], Awaitable[ApprovalAnswer]]
"""Must answer within its own deadline. Raises CancelledError alone."""


async def nobody_approves(question: ApprovalQuestion) -> ApprovalAnswer:
    """Denies: there is nobody to ask."""
    return ApprovalAnswer(
        decision="deny",
        by="deadline",
        explanation="nobody can be asked here; allow it by a permission or a rule",
    )
