"""TWINS: for each rule of servers one wrong sidecar, which breaks this rule and no other."""

from collections.abc import Callable, Sequence
from typing import Any

from tests.conformance_kit.process_twins import ARBITRARY_EVENT, SLOW_AND_GONE, WORKING_SERVERS, lingers
from tests.conformance_kit.switches import (
    Frames,
    Gone,
    Json,
    Twin,
    Wire,
    answer,
    asks,
    before,
    cut,
    drop,
    event,
    fails,
    gives,
    has_field,
    of_run,
    of_tool,
    put,
    spoils,
    status,
    texts,
    together,
    twice,
    with_results,
)

UNFIT = fails("invalidParams", -32602, path="params", reason="the twin says so")
BROKEN = fails("internalError", -32603, logId="twin")


# What takes more than a line -----------------------------------------------------------------------------


def _event_frame(like: Json, seq: int, event: Json) -> Json:
    """An event of the run that another event is of."""
    return {**like, "params": {**like["params"], "seq": seq, "event": event}}


def _and_one_more(frame: Json, wire: Wire) -> Frames:
    return frame, _event_frame(frame, frame["params"]["seq"] + 1, ARBITRARY_EVENT)


def _delta_before(frame: Json, wire: Wire) -> Frames:
    seq = frame["params"]["seq"]
    delta = _event_frame(frame, seq, {"type": "assistantTextDelta", "text": "unasked"})
    return delta, put("params.seq", seq + 1)(frame, wire)  # type: ignore[return-value]


def _held_until_after(is_held: Callable[[Json, Wire], bool], is_awaited: Callable[[Json, Wire], bool]) -> Twin:
    """A frame is sent after another one, which comes later."""

    def told(wire: Wire, frame: Json) -> Frames:
        if is_held(frame, wire):
            wire.memo["held"] = frame
            return ()
        held = wire.memo.pop("held", None) if is_awaited(frame, wire) else None
        return (frame,) if held is None else (frame, held)

    return Twin(told=told)


def _is_event(kind: str, at: str) -> Callable[[Json, Wire], bool]:
    return lambda frame, wire: (
        wire.at == at and frame.get("method") == "agent/event" and frame["params"]["event"]["type"] == kind
    )


def _is_method(method: str, at: str) -> Callable[[Json, Wire], bool]:
    return lambda frame, wire: wire.at == at and frame.get("method") == method


def _is_answer(label: str) -> Callable[[Json, Wire], bool]:
    return lambda frame, wire: "method" not in frame and frame.get("id") == label


def _numbers_for_ids() -> Twin:
    """The sidecar's ids go out as numbers."""

    def told(wire: Wire, frame: Json) -> Frames:
        if frame.get("method") == "model/complete" and wire.at == "unstreamed":
            wire.memo["id"] = frame["id"]
            return ({**frame, "id": 990001},)
        return (frame,)

    def heard(wire: Wire, frame: Json) -> Json:
        return {**frame, "id": wire.memo["id"]} if frame.get("id") == 990001 else frame

    return Twin(told=told, heard=heard)


def _odd(marker: bytes, *edits: Any) -> Twin:
    """Edits the answer without an id, once the host has sent this."""
    return spoils(
        lambda frame, wire: "method" not in frame and frame.get("id") is None and marker in wire.raw, *edits
    )


def _odd_status(marker: bytes, value: int) -> Twin:
    return status(lambda wire: marker in wire.raw, value)


def _ends(frame: Json, wire: Wire) -> Frames:
    return frame, Gone(0)


def _says(text: str) -> Callable[[Json, Wire], bool]:
    return lambda frame, wire: text in str(frame["params"]["messages"])


def _offered(is_meant: Callable[[int], bool]) -> Callable[[Json, Wire], bool]:
    return lambda frame, wire: is_meant(len(frame["params"]["tools"]))


def _server(name: str, **changed: Any) -> Callable[[Any], Any]:
    """In a list of servers, one that is otherwise."""
    return lambda servers: [{**each, **changed} if each["name"] == name else each for each in servers]


def _same_call_ids(frame: Json, wire: Wire) -> Json:
    """The second call of the conversation has the id of the first."""
    call = frame["params"]["event"]["callId"]
    first = wire.memo.setdefault("call", call)
    return put("event.callId", first)(frame, wire)  # type: ignore[return-value]


def _swapped_results(messages: list[Json]) -> list[Json]:
    results = [message for message in messages if message["role"] == "tool"]
    return [message for message in messages if message["role"] != "tool"] + results[::-1]


def _swapped_calls() -> Twin:
    """Of three calls, the first that completes is said to be the second that does."""

    def told(wire: Wire, frame: Json) -> Frames:
        if _is_event("toolExecutionStarted", "side-by-side")(frame, wire):
            wire.memo.setdefault("calls", []).append(frame["params"]["event"]["callId"])
        elif _is_event("toolExecutionCompleted", "side-by-side")(frame, wire):
            one, _, three = wire.memo["calls"]
            other = {one: three, three: one}
            put("event.callId", lambda call: other.get(call, call))(frame, wire)
        return (frame,)

    return Twin(told=told)


def _one_id(messages: list[Json]) -> list[Json]:
    calls = [call for message in messages for call in message.get("toolCalls") or ()]
    for call in calls:
        call["callId"] = "same"
    for message in messages:
        if message["role"] == "tool":
            message["callId"] = "same"
    return messages


def _request(method: str, number: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": f"twin:{number}", "method": method, "params": params}


def _notice(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


EXECUTE = _request("tools/execute", "execute", callId="twin", name="twin", arguments={})
QUESTION = _request(
    "agent/requestApproval",
    "question",
    requestId="twin",
    callId="twin",
    toolName="twin",
    input={},
    permissions=[],
    reason="the twin says so",
    title="May it?",
    options=[{"decision": "deny", "label": "Deny"}],
    deadlineMs=1000,
)
INPUT = _request("agent/requestInput", "input", requestId="twin", message="What?", source="twin", deadlineMs=1000)
MODEL = _request("model/complete", "model", requestId="twin", messages=[], tools=[], idleTimeoutMs=1000)
STRAY_EVENT = _notice(
    "agent/event",
    sessionId="twin",
    runId="twin",
    seq=0,
    event={"type": "runStarted", "model": "twin/twin"},
)


# The switches --------------------------------------------------------------------------------------------

ALWAYS: dict[str, Twin] = {
    "S001": event("unstreamed", "turnComplete", before(b"hello\n")),
    "S002": event("unstreamed", "turnComplete", put("jsonrpc", "1.0")),
    "S003": event("plain", "runCompleted", put("event.usage.inputTokens", "11")),
    "S004": answer("left-alone/one-1", drop),
    "S005": answer("models/list", twice),
    "S006": answer("plain/same-run", put("error.data.kind", "notFound")),
    "S007": answer(
        "plain/same-run", put("error.message", 'Traceback (most recent call last):\n  File "x.py", line 3')
    ),
    "S008": _numbers_for_ids(),
    "S009": event("cancel-model", "runCompleted", before(_notice("$/cancelRequest", id="srv:never"))),
    "S010": event("unstreamed", "runCompleted", before(_request("workspace/applyEdit", "edit", edit={}))),
    "S011": answer("unstreamed/submit", _ends),
    "S012": asks("progress-bar", "$/progress", twice, when=has_field("params.value.kind", "end")),
    "S013": event("unstreamed", "runCompleted", put("params.seq", lambda seq: seq + 1)),
    "S014": event("unstreamed", "runStarted", put("params.event", ARBITRARY_EVENT)),
    "S015": event("unstreamed", "runCompleted", _and_one_more),
    "S016": _held_until_after(_is_event("runCompleted", "unstreamed"), _is_answer("unstreamed/submit")),
    "S017": event("registered-meanwhile", "toolExecutionCompleted", put("params.event", ARBITRARY_EVENT)),
    "S018": Twin(told=lambda wire, frame: (_call_ids_told(wire, frame),)),
    "S019": event("registered-meanwhile", "turnComplete", put("event.turn", lambda turn: turn + 1)),
    "S020": event("registered-meanwhile", "turnComplete", put("event.reason", "stop")),
    "S021": event("two-questions", "approvalResolved", put("params.event", ARBITRARY_EVENT)),
    "S022": _held_until_after(
        _is_event("approvalRequested", "updated-input"), _is_method("agent/requestApproval", "updated-input")
    ),
    "S023": event("plain", "runCompleted", put("event.usage.totalTokens", lambda tokens: tokens + 1)),
    "S024": event("unstreamed", "assistantTextDelta", put("event.text", lambda text: text + "!")),
}


def _call_ids_told(wire: Wire, frame: Json) -> Json:
    for kind in ("toolExecutionStarted", "toolExecutionCompleted"):
        if _is_event(kind, "same-call-ids")(frame, wire):
            return _same_call_ids(frame, wire)
    return frame


HANDSHAKE: dict[str, Twin] = {
    "S025": answer("handshake/early", fails()),
    "S026": answer("handshake/hello", put("result.capabilities.experimental.agentSidecar.protocolVersion", "2.0")),
    "S027": answer(
        "handshake/hello",
        put(
            "result.capabilities.experimental.agentSidecar.methods",
            lambda methods: [method for method in methods if method != "agent/steer"],
        ),
    ),
    "S028": answer(
        "handshake/hello",
        put(
            "result.capabilities.experimental.agentSidecar.events",
            lambda events: [event for event in events if event != "retrying"],
        ),
    ),
    "S029": answer("handshake/hello", put("result.capabilities.experimental.agentSidecar.models", [])),
    "S030": answer("handshake/hello", cut("result.serverInfo.name")),
    "S031": answer("handshake/again", fails()),
    "S032": answer("odd-capabilities/hello", UNFIT),
    "S033": answer("bad-option/hello", put("error.data.path", "elsewhere")),
    "S034": answer("end-of-stdin/hello", UNFIT),
    "S035": answer("documents/ping", fails()),
    "S036": answer("handshake/bye", put("result", {})),
    "S037": answer("handshake/late", fails()),
    "S038": status(lambda wire: wire.at == "handshake", 1),
    "S039": status(lambda wire: wire.at == "odd-capabilities", 0),
    "S040": status(lambda wire: wire.at == "end-of-stdin", 0),
    "S041": status(lambda wire: wire.at == "end-of-stdin-after-shutdown", 1),
    "S042": status(lambda wire: wire.at == "terminated", 0),
    "S043": _held_until_after(_is_answer("shutdown-in-a-run/submit"), _is_answer("shutdown-in-a-run/bye")),
    "S044": lingers("end-of-stdin-in-a-run"),
}

FRAMES: dict[str, Twin] = {
    "S045": answer(101, fails()),
    "S046": answer(102, fails()),
    "S047": answer(103, fails()),
    "S048": answer(104, fails()),
    "S049": answer(106, fails()),
    "S050": answer("texts/list", texts("世", "?")),
    "S051": spoils(lambda frame, wire: wire.last == "texts/half", texts("\ufffd", "?")),
    "S052": answer("big-frame/submit", put("result.stopReason", "length")),
    "S053": _odd(b"Content-Length: 65537", fails()),
    "S054": _odd(b"Content-Length: many", fails()),
    "S055": _odd(b"{}{}{}", fails()),
    "S056": _odd_status(b"xxxxxxxx", 0),
    "S057": Twin(
        at_end=lambda wire: (
            ({"jsonrpc": "2.0", "id": 107, "result": {"sessions": []}},) if b'"id":107' in wire.raw else ()
        )
    ),
    "S058": _odd(b'"id":108', fails()),
    "S059": _odd(b'"id":109', fails()),
    "S060": _odd(b'"hello"', fails()),
    "S061": answer(110, fails()),
    "S062": answer(112, fails()),
    "S063": _odd(b'"id":true', fails()),
    "S064": answer("malformed/ping", fails()),
    "S065": answer("unfit/unknown", fails()),
    "S066": answer("unfit/missing", cut("error.data.reason")),
    "S067": spoils(
        lambda frame, wire: frame.get("id") == "id-in-use/submit" and "error" in frame,
        fails(),
    ),
    "S068": answer("ignored/after-notifications", fails()),
    "S069": answer("ignored/after-answers", fails()),
    "S070": answer(-3, put("id", "-3")),
    "S071": answer("lenient/future", UNFIT),
    "S072": answer("unfit/enum", fails()),
    "S073": answer("unfit/text", gives(sessions=[])),
    "S074": answer("lenient/decimal", UNFIT),
    "S075": answer("lenient/null", UNFIT),
    "S076": answer("lenient/lua", UNFIT),
    "S077": answer("lenient/array", UNFIT),
    "S078": answer("deep/ping", fails()),
}

RUNS: dict[str, Twin] = {
    "S079": event("plain", "runStarted", put("event.model", "host/other")),
    "S080": asks("plain", "model/complete", put("params.model", "host/kit")),
    "S081": asks("parameters", "model/complete", cut("params.temperature")),
    "S082": event("plain", "assistantTextDelta", drop),
    "S083": asks(
        "unstreamed", "session/changed", put("params.messageCount", 7), when=has_field("params.change", "updated")
    ),
    "S084": answer("stray-delta/ping", before(STRAY_EVENT)),
    "S085": answer("plain/submit", put("result.turns", 2)),
    "S086": answer("finish-reasons/long", put("result.stopReason", "stop")),
    "S087": answer("finish-reasons/filtered", put("result.stopReason", "stop")),
    "S088": event("plain", "turnComplete", put("event.usage.inputTokens", 12)),
    "S089": asks("plain", "agent/event", put("params.sessionId", "another")),
    "S090": asks("goes-on", "model/complete", put("params.messages", lambda messages: messages[-1:])),
    "S091": answer("not-waiting/submit", put("result.stopReason", "stop")),
    "S092": answer("refused-submits/neither", fails()),
    "S093": answer("refused-submits/empty", fails()),
    "S094": answer("refused-submits/lost", fails()),
    "S095": answer("busy/two", fails()),
    "S096": answer("busy/three", put("result.stopReason", "length")),
    "S097": answer("busy/cancel", put("result.cancelled", False)),
    "S098": asks("blocks", "model/complete", put("params.messages.0.content", "Look: ")),
    "S099": asks("messages", "model/complete", put("params.messages", lambda messages: messages[-1:])),
    "S100": event("mended", "warning", put("event.code", "other")),
    "S101": answer("plain/submit", before(MODEL)),
    "S102": event("opted-out", "runCompleted", _delta_before),
    "S103": asks("progress-bar", "$/progress", drop),
    "S104": answer("refused-submits/model", fails()),
    "S105": answer("model-fails/one", fails()),
    "S106": answer("model-fails/two", fails()),
    "S107": answer("model-silent/submit", fails()),
    "S108": asks("model-silent", "$/cancelRequest", drop),
    "S109": answer("too-many-turns/submit", cut("error.data.turns")),
    "S110": event(
        "model-fails",
        "runCompleted",
        put("event.error", {"code": -31009, "message": "", "data": {}}),
        when=of_run("kit-run-failed"),
    ),
    "S111": answer("too-many-turns/submit", put("error.code", -31009), put("error.data.kind", "other")),
    "S112": answer("repeats/submit", fails()),
    "S113": asks("steered", "model/complete", texts("In English, please.", "unheard"), when=_says("In English")),
    "S114": asks("steered", "model/complete", texts("And shorter.", "unheard"), when=_says("And shorter")),
    "S115": answer("steered/late", put("result.accepted", True)),
    "S116": answer("steered/lost", fails()),
    "S117": answer("model-fails/three", put("result.stopReason", "length")),
    "S118": answer("plain/same-run", gives(sessionId="twin", runId="kit-run-plain")),
}

CANCELLING: dict[str, Twin] = {
    "S119": answer("cancel-model/submit", cut("error.data.runId")),
    "S120": event("cancel-model", "runCompleted", put("event.stopReason", "length")),
    "S121": answer("cancel-model/ping", fails()),
    "S122": asks("cancel-model", "$/cancelRequest", drop),
    "S123": asks("cancel-tool", "$/cancelRequest", drop),
    "S124": event(
        "cancel-tool",
        "toolExecutionCompleted",
        put("event.errorKind", "other"),
        when=has_field("params.event.errorKind", "requestCancelled"),
    ),
    "S125": answer("cancel-tool/get", put("result.messages", lambda messages: messages[:-1])),
    "S126": answer("agent-cancel/cancel", put("result.cancelled", False)),
    "S127": answer("agent-cancel/by-session", put("result.cancelled", False)),
    "S128": answer("agent-cancel/again", put("result.cancelled", True)),
    "S129": answer("agent-cancel/nothing", fails()),
    "S130": answer("cancel-tools-call/call", fails()),
    "S131": answer(
        "cancel-model/get",
        put("result.messages", lambda messages: [*messages, {"role": "assistant", "content": "too late"}]),
    ),
}

CALLS: dict[str, Twin] = {
    "S132": event("one-call", "toolExecutionStarted", put("event.input", {})),
    "S133": asks("one-call", "tools/execute", put("params.runId", "another")),
    "S134": event("one-call", "toolExecutionCompleted", put("event.output", "nothing")),
    "S135": asks("side-by-side", "tools/execute", drop, when=has_field("params.arguments.text", "3")),
    "S136": _swapped_calls(),
    "S137": asks("side-by-side", "model/complete", put("params.messages", _swapped_results)),
    "S138": asks("one-call", "model/complete", put("params.messages.1.toolCalls.0.input", {}), when=with_results),
    "S139": answer("claims/none", put("result.stopReason", "length")),
    "S140": event("failing-tools", "toolExecutionCompleted", put("event.isError", False), when=of_tool("kit_no")),
    "S141": answer("failing-tools/error", put("result.stopReason", "length")),
    "S142": answer("failing-tools/nonsense", put("result.stopReason", "length")),
    "S143": answer("slow-tools/submit", put("result.stopReason", "length")),
    "S144": asks("failing-tools", "model/complete", texts("shown instead", "IGNORED")),
    "S145": event("reporting-tool", "toolExecutionProgress", put("event.done", 0.3)),
    "S146": event("large-result", "toolExecutionCompleted", put("event.truncated", False)),
    "S147": event("unfit-arguments", "toolExecutionCompleted", put("event.errorKind", "other")),
    "S148": answer("no-such-tool/stops", fails()),
    "S149": answer("no-such-tool/goes-on", put("result.stopReason", "length")),
    "S150": event("prefixed-name", "warning", put("event.code", "other")),
    "S151": asks(
        "selected-tools", "model/complete", put("params.tools", []), when=_offered(lambda count: count == 1)
    ),
    "S152": asks(
        "selected-tools", "model/complete", put("params.tools", []), when=_offered(lambda count: count > 2)
    ),
    "S153": asks("registered-meanwhile", "model/complete", put("params.tools", []), when=with_results),
    "S154": event(
        "slow-tools", "toolExecutionCompleted", put("event.errorKind", "other"), when=of_tool("kit_slower")
    ),
    "S155": asks("same-call-ids", "model/complete", put("params.messages", _one_id)),
}

TOOLS: dict[str, Twin] = {
    "S156": answer("register/register", put("result.registered", [])),
    "S157": asks("register", "tools/changed", put("params.added", [])),
    "S158": answer("register/taken", fails()),
    "S159": answer("register/schema", fails()),
    "S160": answer("register/list", cut("result.tools.0.category")),
    "S161": answer("list/by-tag", put("result.tools", lambda tools: tools[:1])),
    "S162": answer("list/second", put("result.nextCursor", "more")),
    "S163": answer("list/zero", gives(tools=[])),
    "S164": answer("call/ok", put("result.result.data", {})),
    "S165": answer("call/no", fails("executionFailed", -31002)),
    "S166": answer("call/ok", put("result.callId", "another")),
    "S167": asks("call", "tools/execute", put("params.runId", "another")),
    "S168": answer("call/lost", fails()),
    "S169": answer("call/unfit", put("error.data.faults", [])),
    "S170": answer("call/slow", fails()),
    "S171": answer("call/error", fails()),
    "S172": answer("call/session", fails()),
    "S173": answer("call-large/large", put("result.truncated", False)),
    "S174": answer("unregister/unregister", put("result.unregistered", lambda names: [*names, "kit_never_was"])),
    "S175": answer("unregister/gone", fails()),
    "S176": answer("unregister/call", put("result.result.data", "cut off")),
    "S177": answer("call/stats", put("result.tools.0.stats.calls", 0)),
    "S178": answer("call/close", cut("error.data.nearest")),
}

PERMISSIONS: dict[str, Twin] = {
    "S179": answer("get-and-set/get-default", put("result.allowed", ["read", "shell"])),
    "S180": answer("get-and-set/set", put("result.denied", [])),
    "S181": answer("get-and-set/get-other", put("result.rules", [{"tool": "kit_x", "decision": "deny"}])),
    "S182": answer("get-and-set/no-session", fails()),
    "S183": answer("get-and-set/misspelt", fails()),
    "S184": answer("get-and-set/lost", fails()),
    "S185": answer("check/read", put("result.decision", "deny")),
    "S186": answer("check/write", put("result.decision", "allow")),
    "S187": answer("check/delete", put("result.decision", "ask")),
    "S188": answer("check/shell", put("result.decision", "ask")),
    "S189": answer("check/none-strict", put("result.decision", "allow")),
    "S190": answer("check/shell-open", put("result.decision", "deny")),
    "S191": answer("check/rule-deny", put("result.decision", "allow")),
    "S192": answer("check/rule-asked", put("result.decision", "ask")),
    "S193": answer("check/rule-ask", put("result.decision", "allow")),
    "S194": answer("check/rule-denied", put("result.decision", "allow")),
    "S195": answer("check/asked", put("result.decision", "allow")),
    "S196": answer("check/spaced-asked", put("result.decision", "deny")),
    "S197": answer("check/star-stops", put("result.decision", "allow")),
    "S198": answer("check/leads-out", put("result.decision", "allow")),
    "S199": answer("check/lost", fails()),
    "S200": answer("check/why", cut("result.permission")),
    "S201": answer("denied/call", fails()),
    "S202": answer("denied/submit", fails()),
}

APPROVALS: dict[str, Twin] = {
    "S203": asks(
        "allow-once",
        "agent/requestApproval",
        put("params.toolName", "another"),
        when=has_field("params.runId", "kit-run-once"),
    ),
    "S204": asks("allow-once", "agent/requestApproval", put("params.options", lambda options: options[1:])),
    "S205": event("allow-once", "approvalRequested", put("event.permissions", [])),
    "S206": asks("allow-once", "tools/execute", drop),
    "S207": asks("allow-once/again", "agent/requestApproval", drop),
    "S208": event("allow-once", "approvalResolved", put("event.by", "rule")),
    "S209": asks("allow-once/submit", "agent/requestApproval", before(EXECUTE)),
    "S210": asks("allow-session/two", "tools/execute", before(QUESTION)),
    "S211": asks("allow-session/other-session", "agent/requestApproval", drop),
    "S212": asks("allow-session/other-arguments", "agent/requestApproval", drop),
    "S213": asks("allow-always/two", "tools/execute", before(QUESTION)),
    "S214": asks("deny/submit", "model/complete", texts("use the other file", "no")),
    "S215": answer("deny/stopped", fails()),
    "S216": answer("deny/error", fails()),
    "S217": answer("deny/nonsense", fails()),
    "S218": event("deadline", "approvalResolved", put("event.by", "cancel"), when=of_run("kit-run-late")),
    "S219": asks("deadline", "$/cancelRequest", drop),
    "S220": answer("deadline/submit", before(EXECUTE)),
    "S221": event("withdrawn", "approvalResolved", put("event.by", "deadline"), when=of_run("kit-run-withdrawn")),
    "S222": event("withdrawn", "approvalResolved", put("event.by", "host"), when=of_run("kit-run-ruled")),
    "S223": asks("updated-input/submit", "tools/execute", put("params.arguments.path", "a.txt")),
    "S224": asks("updated-input/unfit", "model/complete", before(EXECUTE), when=with_results),
    "S225": answer("tools-call-asks/no", fails()),
    "S226": answer("nobody-to-ask/call", fails()),
    "S227": asks("buttons/yes", "window/showMessageRequest", put("params.message", "May it?")),
    "S228": answer("buttons/no", fails()),
    "S229": answer("buttons/closed", fails()),
    "S230": asks("two-questions", "agent/requestApproval", drop, when=has_field("params.input.path", "2")),
    "S231": asks("tools-call-asks/required", "agent/requestApproval", drop),
    "S232": event(
        "deadline", "toolExecutionCompleted", put("event.errorKind", "timeout"), when=of_tool("kit_waits")
    ),
}

SERVERS: dict[str, Twin] = {
    "S233": answer(
        "bad-entries/list",
        put("result.servers", _server("kit-bad", error={"kind": "other", "message": "kit-bad"})),
    ),
    "S234": answer("bad-entries/list", put("result.servers", _server("kit-fine", status="failed"))),
    "S235": answer("connect/connect", put("result.status", "stopped")),
    "S236": answer("connect/list", put("result.servers", [])),
    "S237": asks(
        "connect", "mcp/statusChanged", put("params.status", "ready"), when=has_field("params.status", "failed")
    ),
    "S238": answer("connect/disconnect", put("result.status", "failed")),
    "S239": answer("connect/restart", put("result.toolCount", 3)),
    "S240": answer("connect/d-lost", fails()),
    "S241": answer("connect/o-lost", fails()),
    "S242": answer("connect/resources", fails()),
    "S243": answer(
        "bad-entries/list", put("result.servers", _server("kit-unset", error={"kind": "other", "message": "no"}))
    ),
    "S244": answer("bad-entries/list", put("result.servers", _server("kit-off", status="failed"))),
    "S245": asks("inputs/one", "agent/requestInput", put("params.message", "What?")),
    "S246": answer("inputs/two", before(INPUT)),
    "S247": answer("inputs/three", put("result.error.message", "no")),
    "S248": answer("inputs/four", put("result.error.message", "no")),
    "S249": answer("input-deadline/six", put("result.status", "stopped")),
    "S250": answer("bad-entries/submit", put("result.stopReason", "length")),
    "S251": answer("models/list", put("result.models", [{"model": "plain", "provider": "twin"}])),
    "S252": answer("connect/invalid", put("result.error.kind", "other")),
}

SESSIONS: dict[str, Twin] = {
    "S253": answer("create-and-list/get", put("result.title", "another")),
    "S254": asks("create-and-list/create", "session/changed", put("params.change", "updated")),
    "S255": answer("create-and-list/first", put("result.sessions.0.title", "another")),
    "S256": answer("create-and-list/second", put("result.sessions.0.sessionId", "another")),
    "S257": answer("create-and-list/get-named", put("result.title", "another")),
    "S258": answer("get/get", put("result.runs", lambda runs: runs[::-1])),
    "S259": answer("not-there/events", fails()),
    "S260": answer("events/run", put("result.events", lambda events: events[:1])),
    "S261": answer("events/after", put("result.events", lambda events: [{**events[0], "seq": 0}, *events])),
    "S262": answer("events/all", put("result.events", lambda events: events[:1])),
    "S263": answer("get/get-fork", put("result.messages", [])),
    "S264": answer("get/get-cut", put("result.messages", lambda messages: messages[:-1])),
    "S265": answer("get/compacted", put("result.afterTokens", -1)),
    "S266": answer("get/compact", fails()),
    "S267": answer("get/json", put("result.text", "{}")),
    "S268": answer("get/markdown", put("result.text", "")),
    "S269": answer("get/replay", put("result.text", "")),
    "S270": answer("get/odd", fails()),
    "S271": answer("delete/again", put("result.deleted", True)),
    "S272": answer("delete/submit", fails()),
    "S273": asks(
        "delete", "session/changed", put("params.change", "updated"), when=has_field("params.change", "deleted")
    ),
    "S274": answer("audit/list", put("result.entries", lambda entries: entries[::-1])),
    "S275": answer("audit/list", texts("denied", "failed")),
    "S276": answer("audit/by-tool", put("result.entries", [])),
    "S277": answer("audit/list", put("result.entries.1.inputDigest", "0")),
    "S278": answer("events/run", put("result.events.0.event.model", "host/other")),
}

TWINS: dict[str, Twin] = {
    **ALWAYS,
    **HANDSHAKE,
    **FRAMES,
    **RUNS,
    **CANCELLING,
    **CALLS,
    **TOOLS,
    **PERMISSIONS,
    **APPROVALS,
    **SERVERS,
    **SESSIONS,
    **WORKING_SERVERS,
    **SLOW_AND_GONE,
}

WATCHED_IN: dict[str, tuple[str, ...]] = {
    "S001": ("unstreamed",),
    "S002": ("unstreamed",),
    "S003": ("plain",),
    "S004": ("left-alone",),
    "S005": ("models",),
    "S006": ("plain",),
    "S007": ("plain",),
    "S008": ("unstreamed",),
    "S009": ("cancel-model",),
    "S010": ("unstreamed",),
    "S011": ("unstreamed", "finish-reasons"),
    "S012": ("progress-bar",),
    "S013": ("unstreamed",),
    "S014": ("unstreamed",),
    "S015": ("unstreamed",),
    "S016": ("unstreamed",),
    "S017": ("registered-meanwhile",),
    "S018": ("same-call-ids",),
    "S019": ("registered-meanwhile",),
    "S020": ("registered-meanwhile",),
    "S021": ("two-questions",),
    "S022": ("updated-input",),
    "S023": ("plain",),
    "S024": ("unstreamed",),
}
"""For rules that no step proves: the conversation in which their twin shows what it does."""


def chosen(rules: Sequence[str]) -> Twin:
    """The twin with the switches of these rules."""
    return together([TWINS[rule] for rule in rules])
