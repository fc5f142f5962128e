"""Checks of runs: the order, the numbers and the completeness of their events, in every conversation."""

from typing import Any

from attrs import define

from sidecar.conformance.matching import same, shown
from sidecar.conformance.watches import Complaints, Watch
from sidecar.protocol.values import JsonObject


@define
class _Event:
    """One `agent/event`, taken apart as far as it can be."""

    run: str
    session: str
    seq: Any
    type: str
    fields: JsonObject

    @classmethod
    def of(cls, frame: JsonObject) -> "_Event | None":
        params = frame.get("params")
        if frame.get("method") != "agent/event" or not isinstance(params, dict):
            return None
        event = params.get("event")
        if not isinstance(event, dict):
            return None
        return cls(
            str(params.get("runId")),
            str(params.get("sessionId")),
            params.get("seq"),
            str(event.get("type")),
            event,
        )


class _EventWatch(Watch):
    """A watch of events alone."""

    def received(self, frame: JsonObject) -> Complaints:
        event = _Event.of(frame)
        if event is not None:
            yield from self.happened(event)

    def happened(self, event: _Event) -> Complaints:
        """An event came."""
        yield from ()


class Numbers(_EventWatch):
    """Events of a run are numbered 0, 1, 2, … without a gap."""

    name = "numbers"

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[str, int] = {}

    def happened(self, event: _Event) -> Complaints:
        self.proofs += 1
        expected = self._next.get(event.run, 0)
        if not same(expected, event.seq):
            yield f"{event.type} has the seq {shown(event.seq)} where {expected} is next"
        self._next[event.run] = (event.seq if isinstance(event.seq, int) else expected) + 1


class First(_EventWatch):
    """`runStarted` comes first, and once."""

    name = "first"

    def __init__(self) -> None:
        super().__init__()
        self._begun: set[str] = set()

    def happened(self, event: _Event) -> Complaints:
        if (event.type == "runStarted") == (event.run in self._begun):
            yield f"{event.type} comes {'again' if event.run in self._begun else 'first'} in {event.run}"
        self.proofs += event.run not in self._begun
        self._begun.add(event.run)


class Last(_EventWatch):
    """`runCompleted` comes once, and nothing of the run after it."""

    name = "last"

    def __init__(self) -> None:
        super().__init__()
        self._over: set[str] = set()

    def happened(self, event: _Event) -> Complaints:
        if event.run in self._over:
            yield f"{event.type} comes after runCompleted of {event.run}"
        if event.type == "runCompleted":
            self.proofs += 1
            self._over.add(event.run)


class BeforeAnswer(Watch):
    """All events of a run come before the answer to its submit; `runCompleted` is among them."""

    name = "beforeAnswer"

    def __init__(self) -> None:
        super().__init__()
        self._waiting: set[str] = set()
        self._completed: set[str] = set()
        self._answered: set[str] = set()

    def sent(self, frame: JsonObject) -> Complaints:
        params = frame.get("params")
        if frame.get("method") == "agent/submit" and isinstance(params, dict) and params.get("wait") is not False:
            self._waiting.add(shown(frame.get("id")))
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        event = _Event.of(frame)
        if event is not None:
            if event.run in self._answered:
                yield f"{event.type} of {event.run} comes after the answer to its submit"
            if event.type == "runCompleted":
                self._completed.add(event.run)
        elif "method" not in frame and shown(frame.get("id")) in self._waiting:
            self._waiting.discard(shown(frame.get("id")))
            if (run := _run_of(frame)) is not None:
                self.proofs += 1
                self._answered.add(run)
                if run not in self._completed:
                    yield f"the submit of {run} is answered before its runCompleted"


def _run_of(answer: JsonObject) -> str | None:
    """The run that a submit's answer is about, if it came to one."""
    result, error = answer.get("result"), answer.get("error")
    inside = result if isinstance(result, dict) else error.get("data") if isinstance(error, dict) else None
    run = inside.get("runId") if isinstance(inside, dict) else None
    is_of_another = isinstance(error, dict) and isinstance(inside, dict) and inside.get("kind") == "sessionBusy"
    return run if isinstance(run, str) and not is_of_another else None


class CallsClosed(_EventWatch):
    """For each `toolExecutionStarted` there is one `toolExecutionCompleted`, and no other."""

    name = "callsClosed"

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, list[str]] = {}

    def happened(self, event: _Event) -> Complaints:
        calls, call = self._open.setdefault(event.run, []), str(event.fields.get("callId"))
        match event.type:
            case "toolExecutionStarted":
                calls.append(call)
            case "toolExecutionCompleted":
                self.proofs += 1
                if call not in calls:
                    yield f"toolExecutionCompleted of {call}, which is not open"
                else:
                    calls.remove(call)
            case "runCompleted":
                yield from (f"no toolExecutionCompleted of {each} before runCompleted" for each in calls)


class CallIds(_EventWatch):
    """Ids of calls are unique in their session."""

    name = "callIds"

    def __init__(self) -> None:
        super().__init__()
        self._known: set[tuple[str, str]] = set()

    def happened(self, event: _Event) -> Complaints:
        if event.type != "toolExecutionStarted":
            return
        self.proofs += 1
        key = (event.session, str(event.fields.get("callId")))
        if key in self._known:
            yield f"{key[1]} was the id of another call in this session"
        self._known.add(key)


class Turns(_EventWatch):
    """Turns are numbered 1, 2, 3, …; `toolCalls` is the reason of those with calls, and of no others."""

    name = "turns"

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[str, int] = {}

    def happened(self, event: _Event) -> Complaints:
        if event.type == "turnComplete":
            self.proofs += 1
            expected = self._turns.get(event.run, 0) + 1
            self._turns[event.run] = expected
            if not same(expected, event.fields.get("turn")):
                yield f"turn {shown(event.fields.get('turn'))} where {expected} is next"


class TurnReasons(_EventWatch):
    """Calls are announced before the `turnComplete` of their turn, which says `toolCalls` with calls alone."""

    name = "turnReasons"

    def __init__(self) -> None:
        super().__init__()
        self._announced: dict[str, set[str]] = {}
        self._running: dict[str, set[str]] = {}

    def happened(self, event: _Event) -> Complaints:
        announced = self._announced.setdefault(event.run, set())
        call = str(event.fields.get("callId"))
        match event.type:
            case "toolExecutionStarted":
                announced.add(call)
            case "toolExecutionCompleted" if (
                call in announced and event.fields.get("errorKind") != "requestCancelled"
            ):
                yield f"{call} completed before the turnComplete of its turn"
            case "turnComplete":
                self.proofs += 1
                has_calls = event.fields.get("reason") == "toolCalls"
                if has_calls != bool(announced):
                    yield f"turnComplete says {shown(event.fields.get('reason'))} after {len(announced)} calls"
                announced.clear()


class ApprovalEvents(_EventWatch):
    """Each `approvalRequested` of a run is resolved once before `runCompleted`."""

    name = "approvalEvents"

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[str, list[str]] = {}

    def happened(self, event: _Event) -> Complaints:
        questions, question = self._open.setdefault(event.run, []), str(event.fields.get("requestId"))
        match event.type:
            case "approvalRequested":
                questions.append(question)
            case "approvalResolved":
                self.proofs += 1
                if question not in questions:
                    yield f"approvalResolved of {question}, which is not open"
                else:
                    questions.remove(question)
            case "runCompleted":
                yield from (f"no approvalResolved of {each} before runCompleted" for each in questions)


class QuestionAfterEvent(Watch):
    """An `agent/requestApproval` of a run comes after its `approvalRequested`."""

    name = "questionAfterEvent"

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def received(self, frame: JsonObject) -> Complaints:
        event, params = _Event.of(frame), frame.get("params")
        if event is not None and event.type == "approvalRequested":
            self._told.add(str(event.fields.get("requestId")))
        elif frame.get("method") == "agent/requestApproval" and isinstance(params, dict) and params.get("runId"):
            self.proofs += 1
            if str(params.get("requestId")) not in self._told:
                yield f"agent/requestApproval {shown(params.get('requestId'))} comes before its approvalRequested"


class UsageSums(_EventWatch):
    """The usage of a run is the sum of its turns'."""

    name = "usageSums"

    def __init__(self) -> None:
        super().__init__()
        self._sums: dict[str, int] = {}

    def happened(self, event: _Event) -> Complaints:
        usage = event.fields.get("usage")
        total = usage.get("totalTokens") if isinstance(usage, dict) else None
        if not isinstance(total, int):
            return
        if event.type == "turnComplete":
            self._sums[event.run] = self._sums.get(event.run, 0) + total
        elif event.type == "runCompleted" and event.fields.get("stopReason") == "stop":
            self.proofs += 1
            if self._sums.get(event.run, 0) != total:
                yield f"the run took {total} tokens, its turns {self._sums.get(event.run, 0)}"


class TextWhole(Watch):
    """The text deltas of the last turn, joined, are the text of the message that `agent/submit` answers with."""

    name = "textWhole"

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}
        self._opted_out = False

    def sent(self, frame: JsonObject) -> Complaints:
        if frame.get("method") == "initialize":
            self._opted_out = "assistantTextDelta" in shown_whole(frame)
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        event = _Event.of(frame)
        if event is not None:
            self._collect(event)
            return
        result = frame.get("result")
        message = result.get("message") if isinstance(result, dict) else None
        if isinstance(result, dict) and isinstance(message, dict) and not self._opted_out:
            self.proofs += 1
            streamed = self._texts.pop(str(result.get("runId")), "")
            if _text_of(message.get("content")) != streamed:
                yield f"streamed was {shown(streamed)}, answered {shown(message.get('content'))}"

    def _collect(self, event: _Event) -> None:
        if event.type == "assistantTextDelta":
            self._parts.setdefault(event.run, []).append(str(event.fields.get("text")))
        elif event.type == "turnComplete":
            self._texts[event.run] = "".join(self._parts.pop(event.run, []))


def shown_whole(frame: JsonObject) -> str:
    """Every text inside, for a look at what is named anywhere."""
    return repr(frame)


def _text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    return str(content)


RUN_WATCHES: tuple[type[Watch], ...] = (
    Numbers,
    First,
    Last,
    BeforeAnswer,
    CallsClosed,
    CallIds,
    Turns,
    TurnReasons,
    ApprovalEvents,
    QuestionAfterEvent,
    UsageSums,
    TextWhole,
)
