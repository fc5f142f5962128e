"""How a run ends whose process did not live to end it.

Source: protocol.md, "Durability" 3; the events of an ended run are those of "Events".
"""

from sidecar.agent.recovery import PROCESS_ENDED, ending_of
from sidecar.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    AssistantReasoningDelta,
    AssistantTextDelta,
    RunCompleted,
    RunStarted,
    ToolExecutionCompleted,
    ToolExecutionStarted,
    TurnComplete,
    Warned,
)
from sidecar.protocol.messages import AgentEventParams
from sidecar.protocol.values import Message, ToolCall, Usage

START = RunStarted(model="test/m", prompt="go")
USAGE = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
GO = Message(role="user", content="go")


def numbered(*events: AgentEvent) -> list[AgentEventParams]:
    return [AgentEventParams(session_id="s", run_id="r", seq=seq, event=event) for seq, event in enumerate(events)]


def started(call_id: str) -> ToolExecutionStarted:
    return ToolExecutionStarted(call_id=call_id, tool_name="look", input={})


def completed(call_id: str) -> ToolExecutionCompleted:
    return ToolExecutionCompleted(
        call_id=call_id, tool_name="look", output="seen", is_error=False, duration_ms=1, truncated=False
    )


def asked(request_id: str, call_id: str) -> ApprovalRequested:
    return ApprovalRequested(request_id=request_id, call_id=call_id, tool_name="look", permissions=(), reason="r")


def said(text: str, **more: str) -> Message:
    return Message(role="assistant", content=text, **more)  # type: ignore[arg-type]


def test_open_questions_and_calls_end_before_the_run_does() -> None:
    turn = TurnComplete(turn=1, reason="toolCalls", usage=USAGE)
    answered = ApprovalResolved(request_id="a1", decision="allowOnce", by="host")
    events = numbered(
        START, started("c1"), started("c2"), started("c3"), turn, asked("a1", "c1"), answered, asked("a2", "c2"),
        completed("c1"),
    )  # fmt: skip
    ending = ending_of(events, [GO], model="test/m")
    assert [seq for seq, _ in ending.events] == [9, 10, 11, 12]
    denied, second, third, last = (event for _, event in ending.events)
    assert denied == ApprovalResolved(request_id="a2", decision="deny", by="cancel")
    assert isinstance(second, ToolExecutionCompleted) and isinstance(third, ToolExecutionCompleted)
    assert [(call.call_id, call.is_error, call.error_kind) for call in (second, third)] == [
        ("c2", True, "requestCancelled"),
        ("c3", True, "requestCancelled"),
    ]
    assert isinstance(last, RunCompleted) and last.error is not None
    assert (last.stop_reason, last.usage) == ("error", USAGE)
    assert (last.error.message, last.error.data) == (PROCESS_ENDED, {"kind": "io", "turns": 1})
    assert (ending.status, ending.stop_reason, ending.messages) == ("failed", "error", ())


def test_a_run_that_has_said_its_last_word_is_left_as_it_is() -> None:
    for reason, status in (("stop", "completed"), ("cancelled", "cancelled"), ("error", "failed")):
        last = RunCompleted(stop_reason=reason, usage=USAGE)  # type: ignore[arg-type]
        ending = ending_of(numbered(START, last), [GO], model="test/m")
        assert (ending.events, ending.messages, ending.status, ending.stop_reason) == ((), (), status, reason)


def test_a_run_that_said_nothing_still_begins_before_it_ends() -> None:
    ending = ending_of([], [], model="test/m")
    assert [(seq, event.type) for seq, event in ending.events] == [(0, "runStarted"), (1, "runCompleted")]


def test_what_the_host_has_read_of_an_answer_joins_the_history() -> None:
    thinks, says = AssistantReasoningDelta(text="hm"), AssistantTextDelta(text="Hel")
    events = numbered(START, thinks, says, AssistantTextDelta(text="lo"))
    assert ending_of(events, [GO], model="m").messages == (said("Hello", reasoning="hm"),)


def test_an_answer_that_is_in_the_history_does_not_join_it_twice() -> None:
    text = AssistantTextDelta(text="Hello")
    call = ToolCall(call_id="c1", tool_name="look", input={})
    with_call = Message(role="assistant", content="Hello", tool_calls=(call,))
    result = Message(role="tool", content="?", call_id="c1", tool_name="look", is_error=True)
    told = numbered(START, text, started("c1"))
    assert ending_of(told, [GO, with_call, result], model="m").messages == ()
    warned = numbered(START, text, Warned(code="callCutOff", message="x"))
    assert ending_of(warned, [GO, said("Hello")], model="m").messages == ()
    whole = numbered(START, text, TurnComplete(turn=1, reason="stop", usage=USAGE))
    assert ending_of(whole, [GO, said("Hello")], model="m").messages == ()


def test_the_same_words_in_an_earlier_turn_do_not_hide_those_of_the_last() -> None:
    text, turn = AssistantTextDelta(text="ok"), TurnComplete(turn=1, reason="toolCalls", usage=USAGE)
    events = numbered(START, text, started("c1"), turn, completed("c1"), text)
    result = Message(role="tool", content="seen", call_id="c1", tool_name="look")
    assert ending_of(events, [GO, said("ok"), result], model="m").messages == (said("ok"),)
