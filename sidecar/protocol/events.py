"""The events of a run, in the `agent/event` notification: `{sessionId, runId, seq, event: {type, …}}`."""

from typing import Any, ClassVar, Literal, get_args

from attrs import frozen

from sidecar.protocol.errors import ErrorKind
from sidecar.protocol.value import Value
from sidecar.protocol.values import Content, JsonObject, Usage

TurnEnd = Literal["toolCalls", "stop", "length", "contentFilter"]
StopReason = Literal["stop", "length", "contentFilter", "cancelled", "error"]
ApprovalDecision = Literal["allowOnce", "allowSession", "allowAlways", "deny", "denyAndStop"]
DecidedBy = Literal["host", "rule", "deadline", "cancel"]


@frozen(kw_only=True, repr=False, eq=False)
class RunStarted(Value):
    """Always the first. `prompt` is absent when the run was given messages instead."""

    type: ClassVar = "runStarted"
    model: str
    prompt: Content | None = None


@frozen(kw_only=True, repr=False, eq=False)
class AssistantTextDelta(Value):
    """More of the answer's text; the deltas of a turn, joined, are its text."""

    type: ClassVar = "assistantTextDelta"
    text: str


@frozen(kw_only=True, repr=False, eq=False)
class AssistantReasoningDelta(Value):
    """More of what the model thinks before it answers; never part of the answer's text."""

    type: ClassVar = "assistantReasoningDelta"
    text: str


@frozen(kw_only=True, repr=False, eq=False)
class ToolExecutionStarted(Value):
    """The model asks for this call; it has not run yet."""

    type: ClassVar = "toolExecutionStarted"
    call_id: str
    tool_name: str
    input: JsonObject


@frozen(kw_only=True, repr=False, eq=False)
class ToolExecutionProgress(Value):
    """A running tool reports. `partial` is a part of its result."""

    type: ClassVar = "toolExecutionProgress"
    call_id: str
    done: float | None = None
    total: float | None = None
    message: str | None = None
    partial: Any = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolExecutionCompleted(Value):
    """The call is over. `output` is what the model is shown, cut to the limit when `truncated`."""

    type: ClassVar = "toolExecutionCompleted"
    call_id: str
    tool_name: str
    output: Content
    is_error: bool
    error_kind: ErrorKind | None = None
    duration_ms: int
    truncated: bool
    original_bytes: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class TurnComplete(Value):
    """One answer of the model is whole. `turn` counts from 1."""

    type: ClassVar = "turnComplete"
    turn: int
    reason: TurnEnd
    usage: Usage


@frozen(kw_only=True, repr=False, eq=False)
class ApprovalRequested(Value):
    """Somebody is asked; the question itself is the request `agent/requestApproval`."""

    type: ClassVar = "approvalRequested"
    request_id: str
    call_id: str
    tool_name: str
    permissions: tuple[str, ...]
    reason: str


@frozen(kw_only=True, repr=False, eq=False)
class ApprovalResolved(Value):
    """The question is over; whoever still shows it takes it away."""

    type: ClassVar = "approvalResolved"
    request_id: str
    decision: ApprovalDecision
    by: DecidedBy


@frozen(kw_only=True, repr=False, eq=False)
class Retrying(Value):
    """The provider failed in a way that may pass; the request goes out again after `delay_ms`."""

    type: ClassVar = "retrying"
    attempt: int
    delay_ms: int
    reason: str


@frozen(kw_only=True, repr=False, eq=False)
class Compacted(Value):
    """The history was made smaller."""

    type: ClassVar = "compacted"
    before_tokens: int
    after_tokens: int


@frozen(kw_only=True, repr=False, eq=False)
class Warned(Value):
    """Something was mended, left out or is late, and the run goes on. `code` is for programs."""

    type: ClassVar = "warning"
    code: str
    message: str


@frozen(kw_only=True, repr=False, eq=False)
class EventError(Value):
    """Why a run ended, in the shape of a JSON-RPC error."""

    code: int
    message: str
    data: JsonObject


@frozen(kw_only=True, repr=False, eq=False)
class RunCompleted(Value):
    """Always the last."""

    type: ClassVar = "runCompleted"
    stop_reason: StopReason
    usage: Usage
    error: EventError | None = None


AgentEvent = (
    RunStarted
    | AssistantTextDelta
    | AssistantReasoningDelta
    | ToolExecutionStarted
    | ToolExecutionProgress
    | ToolExecutionCompleted
    | TurnComplete
    | ApprovalRequested
    | ApprovalResolved
    | Retrying
    | Compacted
    | Warned
    | RunCompleted
)
"""One step of a run, told apart by `type`."""

EVENTS: dict[str, type] = {event.type: event for event in get_args(AgentEvent)}
"""Event class by `type`."""

Delta = AssistantTextDelta | AssistantReasoningDelta
"""The events that may be merged while they wait to be sent."""
