"""Frames in tests are held to the schema: the check can fail, and every harness that speaks to a sidecar uses it.

Source: own choice.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness import scripted_host
from tests.harness.frames import LEDGER, LISTED, NOT_IN_SCHEMA, SCHEMA, Conversation, Ledger, listened, shape_of
from tests.harness.host import sidecar
from tests.harness.scripted_sidecar import scripted
from tests.harness.wire import framed, notification, request, wire

Json = dict[str, Any]

ANSWER = {
    "sessionId": "s",
    "runId": "r",
    "stopReason": "stop",
    "message": {"role": "assistant", "content": "Hello"},
    "turns": 1,
    "usage": {},
}
SAYS = {"type": "assistantTextDelta", "text": "Hello"}
APPROVAL = request("srv:1", "agent/requestApproval")
BROKEN_RUN = {"code": -31009, "message": "m", "data": {"kind": "io"}}


def event(**fields: Any) -> Json:
    return notification("agent/event", {"sessionId": "s", "runId": "r", "seq": 0, "event": fields})


def announcing(**abilities: Any) -> Json:
    return {"capabilities": {"experimental": {"agentSidecar": abilities}}}


def result(value: Any, request_id: Any = 1) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "result": value}


def error(code: Any, message: Any = "m", **more: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message, **more}}


def heard(sent: list[Any], received: list[Any]) -> list[str]:
    """The complaints about a conversation, first all of one side and then all of the other."""
    ledger = Ledger()
    conversation = Conversation(ledger)
    for frame in sent:
        conversation.sent(frame)
    for frame in received:
        conversation.received(frame)
    return ledger.take()


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        ({"id": 1, "result": ANSWER}, "$.jsonrpc"),
        ([], "$.jsonrpc"),
        (notification("agent/evnt"), "$.method"),
        (notification("agent/steer", {"runId": "r", "prompt": "p"}), "$.method"),
        (
            APPROVAL,
            "$.params: 'requestId' is a required property (schema: methods/agent/requestApproval/params/required)",
        ),
        (notification("agent/requestApproval"), "$.id"),
        (request("srv:1", "tools/changed", {"added": [], "removed": [], "changed": []}), "$.id"),
        (notification("tools/changed", {"added": "x", "removed": [], "changed": []}), "$.params.added"),
        (notification("tools/changed", None), "$.params"),
        (
            event(type="assistantTextDelta"),
            "$.params.event: 'text' is a required property (schema: events/assistantTextDelta",
        ),
        (event(type="assistantTextDlta", text="x"), "$.params.event.type"),
        (event(type="runCompleted", stopReason="tired", usage={}), "$.params.event.stopReason"),
        (
            event(type="runCompleted", stopReason="error", usage={}, error=BROKEN_RUN),
            "$.params.event.error.data.kind",
        ),
        ({**event(**SAYS), "params": {"sessionId": "s", "seq": 0, "event": SAYS}}, "$.params: 'runId'"),
        (result({}), "$.result: 'sessionId'"),
        (result(None), "$.result: None"),
        (result({**ANSWER, "turns": "1"}), "$.result.turns"),
        (result({**ANSWER, "message": {"role": "robot", "content": ""}}), "$.result.message.role"),
        (result(ANSWER, request_id=2), "$.id"),
        ({**result(ANSWER), "error": None}, "$: an answer"),
        (error("x"), "$.error"),
        (error(-31009, message=None), "$.error"),
        (error(-31009), "$.error.data.kind"),
        (error(-31009, data={"kind": "io"}), "$.error.data.kind"),
    ],
)
def test_what_a_sidecar_sends_is_complained_about(frame: Any, fault: str) -> None:
    """Twice, too: what does not fit is never remembered as what does."""
    complaints = heard([request(1, "agent/submit", {"prompt": "go"})], [frame])
    assert len(complaints) == 1
    assert fault in complaints[0]
    assert complaints[0].startswith("tests/schema/test_frames.py::test_what_a_sidecar_sends_is")
    assert "\n  received " in complaints[0]


@pytest.mark.parametrize(
    ("frame", "fault"),
    [
        (request(1, "agent/sumbit"), "$.method"),
        (request(1, "agent/submit", {"prompt": 5}), "$.params.prompt"),
        (request(1, "agent/submit", {"errorPolicy": {"io": "shrug"}}), "$.params.errorPolicy"),
        (request(1, "tools/list", {"selector": []}), "$.params.selector"),
        (
            request(1, "initialize", {"initializationOptions": {"model": 5}}),
            "$.params.initializationOptions.model",
        ),
        (
            request(1, "initialize", announcing(approvals="yes")),
            "$.params.capabilities.experimental.agentSidecar.",
        ),
        (notification("model/delta", {"text": "x"}), "$.params: 'requestId'"),
        (notification("agent/submit", {"prompt": "go"}), "$.id"),
        (result({"decision": "maybe"}, "srv:1"), "$.result.decision"),
        (result({"decision": "deny"}, "srv:2"), "$.id"),
    ],
)
def test_what_a_host_sends_is_complained_about(frame: Any, fault: str) -> None:
    ledger = Ledger()
    conversation = Conversation(ledger)
    asked = {**APPROVAL, "method": "agent/requestApproval"}
    conversation.received(asked)
    ledger.take()
    with conversation.being_odd():
        conversation.sent({**frame, "id": "other"} if "method" in frame else frame)
    assert ledger.take() == []
    conversation.received(asked)
    ledger.take()
    conversation.sent(frame)
    (complaint,) = ledger.take()
    assert fault in complaint
    assert "\n  sent " in complaint


def test_what_a_sidecar_says_of_itself_is_held_to_the_schema() -> None:
    described = {"protocolVersion": "1.0", "methods": [], "events": [], "models": []}
    hello = request(1, "initialize", {"capabilities": {}})
    assert heard([hello], [result(announcing(**described))]) == []
    assert heard([hello], [result({"capabilities": {"hoverProvider": True}})]) == [], "it may be no sidecar"
    (complaint,) = heard([hello], [result(announcing(**{**described, "models": "m"}))])
    assert "$.result.capabilities.experimental.agentSidecar.models" in complaint


def test_what_fits_is_not_complained_about() -> None:
    sent = [
        request(0, "initialize", {**announcing(approvals=True), "initializationOptions": {"unknown": 5}}),
        request(1, "agent/submit", {"prompt": "go", "errorPolicy": {"io": "stop"}, "unknown": 5}),
        request(2, "models/list"),
        request(3, "models/list", []),
        {**request(4, "models/list"), "params": None},
    ]
    received = [event(**SAYS), event(**SAYS), result(ANSWER), error(-32800, data={"kind": "requestCancelled"})]
    assert heard(sent, [*received, *(result({"models": []}, number) for number in (2, 3, 4))]) == []


@pytest.mark.parametrize("request_id", [1, "a", None, {}])
def test_a_complaint_about_a_request_goes_away_when_it_is_refused(request_id: Any) -> None:
    refused = {**error(-32602, data={"kind": "invalidParams"}), "id": request_id if request_id != {} else None}
    wrong = request(request_id, "agent/submit", {"prompt": 5})
    assert heard([wrong], [refused]) == []
    assert len(heard([wrong], [])) == 1
    failed = {**refused, "error": {"code": -31009, "message": "m", "data": {"kind": "other"}}}
    assert len(heard([wrong], [failed])) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": None}),
        ({"a": 1}, {"b": 1}),
        ({"a": 1.5}, {"a": 1.0}),
        ({"a": True}, {"a": 1}),
        ({"a": []}, {"a": {}}),
        ([1], ["1"]),
        ([{"a": 1}, {"a": 2}], [{"a": 1}, {"a": ""}]),
        ({"type": "text"}, {"type": "image"}),
        ({"errorPolicy": {"io": "stop"}}, {"errorPolicy": {"io": "shrug"}}),
        ({"sources": ["mcp"]}, {"sources": ["mpc"]}),
    ],
)
def test_what_the_schema_can_tell_apart_has_two_shapes(one: Any, other: Any) -> None:
    assert shape_of(one) != shape_of(other)


def test_what_the_schema_cannot_tell_apart_has_one_shape() -> None:
    """Which words of JSON Schema occur is what `shape_of` stands on."""
    assert shape_of({"a": "x", "b": [1, 2.0]}) == shape_of({"a": "y", "b": [3]})
    known = {"type", "properties", "required", "items", "additionalProperties", "anyOf", "$ref", "description"}
    assert words(SCHEMA["$defs"].values()) <= known | {"enum", "const", "not"}
    assert {"type", "stopReason", "errorPolicy", "sources", "decision"} <= LISTED


def words(schemas: Any) -> set[str]:
    """The words of JSON Schema in these, at any depth."""
    found: set[str] = set()
    for schema in schemas:
        found |= set(schema)
        inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
        inner += [schema[word] for word in ("items", "additionalProperties") if word in schema]
        found |= words(inner) if inner else set()
    return found


def test_methods_beside_the_schema_are_not_in_it() -> None:
    assert not NOT_IN_SCHEMA & set(SCHEMA["methods"])


# Every harness -------------------------------------------------------------------------------------------

WRONG = {"agent/submit": [{"event": {"type": "retrying"}}, {"result": ANSWER}]}


def deaf(folder: Path) -> tuple[str, ...]:
    """A scripted sidecar that sends what is wrong, and keeps nothing of what it hears."""
    return scripted(folder, WRONG)[:-1]


def test_the_host_of_raw_bytes_is_heard(tmp_path: Path) -> None:
    with wire(deaf(tmp_path), leftovers=True) as server:
        server.initialize()
        server.result("agent/submit", {"prompt": ["x"]})
    assert_both_are_heard()


async def test_the_host_of_pytest_lsp_is_heard(tmp_path: Path) -> None:
    async with sidecar(command=deaf(tmp_path)) as host:
        await host.submit(["x"])
    assert_both_are_heard()


async def test_the_host_of_a_scripted_sidecar_is_heard(tmp_path: Path) -> None:
    async with scripted_host.sidecar(tmp_path, WRONG) as host:
        await host.submit([{"type": "text"}]).result()
    assert_both_are_heard()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX alone lets a process become another")
def test_a_host_that_starts_its_own_sidecar_is_heard_and_notices_nothing(tmp_path: Path) -> None:
    says = framed(event(type="assistantTextDelta"))
    program = f"import os, sys; sys.stdin.read(); print({says.decode()!r}, end=''); sys.exit(os.getpid() % 100)"
    command = listened(tmp_path, [sys.executable, "-c", program])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        heard_by_host, _ = process.communicate(framed(request(1, "agent/submit", {"prompt": 5})), timeout=30)
    assert (process.returncode, heard_by_host) == (process.pid % 100, says)
    assert_both_are_heard()


def assert_both_are_heard() -> None:
    """What the host sends wrong and what the sidecar does."""
    sent, received = LEDGER.take()
    assert "\n  sent " in sent
    assert "\n  received " in received
