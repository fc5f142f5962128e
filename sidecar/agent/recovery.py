"""What a run is owed whose process did not live to end it. Pure."""

from collections.abc import Sequence

from attrs import frozen

from sidecar.agent.history import NO_RESULT
from sidecar.protocol.errors import SidecarError
from sidecar.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    AssistantReasoningDelta,
    AssistantTextDelta,
    EventError,
    RunCompleted,
    RunStarted,
    StopReason,
    ToolExecutionCompleted,
    ToolExecutionStarted,
    TurnComplete,
)
from sidecar.protocol.messages import AgentEventParams, RunStatus
from sidecar.protocol.values import Message, Usage

PROCESS_ENDED = "the process ended before the run did; submit again to go on"


@frozen(kw_only=True, eq=False, repr=False)
class Ending:
    """The events that are missing, with their numbers, and the part of an answer that never joined the history."""

    events: tuple[tuple[int, AgentEvent], ...]
    messages: tuple[Message, ...]
    status: RunStatus
    stop_reason: StopReason


def ending_of(events: Sequence[AgentEventParams], history: Sequence[Message], *, model: str) -> Ending:
    """How a run ends that stopped after these events, over a history that is valid as far as it goes.

    Open questions are denied, open calls have failed, and the host is told why by the last event.
    """
    seen = _Seen()
    for params in events:
        seen.add(params.event)
    if seen.last is not None:
        return Ending(events=(), messages=(), status=status_of(seen.last), stop_reason=seen.last)
    missing = [] if events else [RunStarted(model=model)]
    next_seq = events[-1].seq + 1 if events else 0
    numbered = tuple(enumerate([*missing, *seen.endings()], next_seq))
    return Ending(events=numbered, messages=seen.unsaved(history), status="failed", stop_reason="error")


def status_of(stop_reason: StopReason) -> RunStatus:
    """What is shown of a run that ended so."""
    match stop_reason:
        case "cancelled":
            return "cancelled"
        case "error":
            return "failed"
        case _:
            return "completed"


class _Seen:
    """What the events of a run have told so far."""

    def __init__(self) -> None:
        self.last: StopReason | None = None
        self._questions: dict[str, ApprovalRequested] = {}
        self._calls: dict[str, ToolExecutionStarted] = {}
        self._usage = Usage()
        self._turns = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._is_in_history = False

    def add(self, event: AgentEvent) -> None:
        match event:
            case ApprovalRequested(request_id=request_id):
                self._questions[request_id] = event
            case ApprovalResolved(request_id=request_id):
                self._questions.pop(request_id, None)
            case ToolExecutionStarted(call_id=call_id):
                self._calls[call_id] = event
                self._is_in_history = True  # An answer joins it before its calls are told of.
            case ToolExecutionCompleted(call_id=call_id):
                self._calls.pop(call_id, None)
            case AssistantTextDelta(text=text):
                self._text.append(text)
            case AssistantReasoningDelta(text=text):
                self._reasoning.append(text)
            case TurnComplete(usage=usage):
                self._turns += 1
                self._usage += usage
                self._text, self._reasoning, self._is_in_history = [], [], False
            case RunCompleted(stop_reason=stop_reason):
                self.last = stop_reason

    def endings(self) -> list[AgentEvent]:
        error = SidecarError("io", PROCESS_ENDED, turns=self._turns)
        data = {"kind": error.kind, **error.data}
        return [
            *(
                ApprovalResolved(request_id=request_id, decision="deny", by="cancel")
                for request_id in self._questions
            ),
            *map(_interrupted, self._calls.values()),
            RunCompleted(
                stop_reason="error",
                usage=self._usage,
                error=EventError(code=error.code, message=error.message, data=data),
            ),
        ]

    def unsaved(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """What the host has read of an answer that was broken off."""
        text = "".join(self._text)
        last = history[-1] if history else None
        is_there = last is not None and last.role == "assistant" and last.content == text
        if not text or self._is_in_history or is_there:
            return ()
        return (Message(role="assistant", content=text, reasoning="".join(self._reasoning) or None),)


def _interrupted(call: ToolExecutionStarted) -> ToolExecutionCompleted:
    return ToolExecutionCompleted(
        call_id=call.call_id,
        tool_name=call.tool_name,
        output=NO_RESULT,
        is_error=True,
        error_kind="requestCancelled",
        duration_ms=0,
        truncated=False,
    )
