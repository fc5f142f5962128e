"""Asking the person at the host: whatever is not a clear yes in time is a no, and says how to change that.

Source: protocol.md, Approvals and questions, ground rules 4.1 and 4.2.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.wire import Json, Wire, notification
from tests.wire.conftest import Spawn

HOW = "allow it by a permission or a rule (option permissions, or permissions/set)"


def asked(
    server: Wire, answer: Json, tool: str = "approve", *, is_odd: bool = False, **arguments: Any
) -> tuple[Json, Any]:
    """The question that the tool asks, and what the tool makes of this answer to it, which may be `odd`."""
    request_id = server.begin(tool, **arguments)
    question = server.read()
    send = server.send_odd if is_odd else server.send
    send({"jsonrpc": "2.0", "id": question["id"], **answer})
    return question, server.answer(request_id)["result"]["result"].get("data")


# agent/requestApproval ---------------------------------------------------------------------------------


def test_an_approval_is_asked_for_with_all_that_is_needed_to_decide(server: Wire) -> None:
    question, _ = asked(server, {"result": {"decision": "deny"}})
    assert question["method"] == "agent/requestApproval"
    assert question["params"] == {
        "requestId": "q1",
        "sessionId": "s1",
        "runId": "r1",
        "callId": "c1",
        "toolName": "write_file",
        "input": {"path": "src/a.py"},
        "permissions": ["write"],
        "reason": "write is to be asked about",
        "title": "Run write_file?",
        "options": [
            {"decision": "allowOnce", "label": "Allow"},
            {
                "decision": "allowAlways",
                "label": "Allow",
                "rule": {"tool": "write_file", "decision": "allow", "arguments": {"path": "src/**"}},
            },
            {"decision": "deny", "label": "Deny"},
        ],
        "deadlineMs": 5000,
    }


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ({"decision": "allowOnce"}, {"decision": "allowOnce"}),
        ({"decision": "allowAlways"}, {"decision": "allowAlways", "rule": "write_file"}),
        (
            {"decision": "allowAlways", "rule": {"tool": "other", "decision": "allow"}},
            {"decision": "allowAlways", "rule": "other"},
        ),
        (
            {"decision": "allowOnce", "updatedInput": {"path": "b"}},
            {"decision": "allowOnce", "updatedInput": {"path": "b"}},
        ),
        ({"decision": "deny", "reason": "not now"}, {"decision": "deny", "reason": "not now"}),
        ({"decision": "denyAndStop"}, {"decision": "denyAndStop"}),
    ],
    ids=json.dumps,
)
def test_a_clear_answer_is_taken(server: Wire, result: Json, answer: Json) -> None:
    nothing = {"rule": None, "reason": None, "updatedInput": None, "explanation": None}
    assert asked(server, {"result": result})[1] == {**nothing, "by": "host", **answer}


@pytest.mark.parametrize(
    "answer",
    [
        {"result": None},
        {"result": {}},
        {"result": []},
        {"result": "allowOnce"},
        {"result": True},
        {"result": {"decision": "false"}},
        {"result": {"decision": True}},
        {"result": {"decision": ["allowOnce"]}},
        {"result": {"decision": "allow"}},
        {"result": {"decision": "ALLOWONCE"}},
        {"result": {"decision": "allowOnce "}},
        {"result": {"decision": "allowSession"}},
        {"result": {"decision": "allowOnce", "updatedInput": "x"}},
        {"result": {"decision": "allowAlways", "rule": {"tool": "*"}}},
        {"error": {"code": -32601, "message": "no such method"}},
        {"error": "x"},
        {},
    ],
    ids=json.dumps,
)
def test_an_answer_that_makes_no_sense_or_was_not_offered_denies(server: Wire, answer: Json) -> None:
    said = asked(server, answer, is_odd=True)[1]
    assert (said["decision"], said["by"]) == ("deny", "deadline")
    assert said["explanation"].endswith(f"; {HOW}")


def test_no_answer_in_time_denies_and_withdraws_the_question(server: Wire) -> None:
    request_id = server.begin("approve", deadlineSecs=0.05)
    question = server.read()
    assert question["params"]["deadlineMs"] == 50
    assert server.read() == notification("$/cancelRequest", {"id": question["id"]})
    said = server.answer(request_id)["result"]["result"]["data"]
    assert (said["decision"], said["by"]) == ("deny", "deadline")
    assert said["explanation"] == f"the host did not answer agent/requestApproval within 0.05 s; {HOW}"


@pytest.mark.parametrize("tool", ["approve", "ask_input"])
def test_cancelling_the_request_withdraws_its_question(server: Wire, tool: str) -> None:
    request_id = server.begin(tool)
    question = server.read()
    server.notify("$/cancelRequest", {"id": request_id})
    assert server.read() == notification("$/cancelRequest", {"id": question["id"]})
    assert server.read()["error"]["code"] == -32800


# window/showMessageRequest -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def editor_of_this_file(spawn: Spawn) -> Iterator[Wire]:
    with spawn() as server:
        server.initialize({"window": {"showMessage": {}}})
        yield server


@pytest.fixture
def editor(editor_of_this_file: Wire) -> Iterator[Wire]:
    """A host that knows nothing of us and can show a message with buttons."""
    yield editor_of_this_file
    editor_of_this_file.assert_all_read()


def test_an_editor_shows_the_options_as_buttons_that_differ(editor: Wire) -> None:
    question, _ = asked(editor, {"result": None})
    assert question["method"] == "window/showMessageRequest"
    assert question["params"]["type"] == 2
    assert question["params"]["actions"] == [
        {"title": "Allow (allowOnce)"},
        {"title": "Allow (allowAlways)"},
        {"title": "Deny"},
    ]
    assert question["params"]["message"] == "\n".join(
        [
            "Run write_file?",
            "Tool: write_file",
            "Reason: write is to be asked about",
            "Permissions: write",
            "Arguments:",
            '  path: "src/a.py"',
        ]
    )


@pytest.mark.parametrize(
    ("title", "decision", "rule"),
    [
        ("Allow (allowOnce)", "allowOnce", None),
        ("Allow (allowAlways)", "allowAlways", "write_file"),
        ("Deny", "deny", None),
    ],
)
def test_a_button_is_its_decision(editor: Wire, title: str, decision: str, rule: str | None) -> None:
    said = asked(editor, {"result": {"title": title, "extra": 1}})[1]
    assert (said["decision"], said["by"], said["rule"], said["explanation"]) == (decision, "host", rule, None)


def test_a_message_that_was_closed_denies_by_the_person(editor: Wire) -> None:
    said = asked(editor, {"result": None})[1]
    assert (said["decision"], said["by"]) == ("deny", "host")
    assert said["explanation"] == f"the question was closed without a choice; {HOW}"


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"title": "Allow"}},
        {"result": {"title": "allow (allowOnce)"}},
        {"result": {"title": 0}},
        {"result": {"title": ["Allow (allowOnce)"]}},
        {"result": "Allow (allowOnce)"},
        {"result": ["Allow (allowOnce)"]},
        {"result": {}},
        {"error": {"code": 1, "message": "no"}},
    ],
    ids=json.dumps,
)
def test_a_button_that_was_not_there_denies(editor: Wire, answer: Json) -> None:
    said = asked(editor, answer)[1]
    assert (said["decision"], said["by"]) == ("deny", "deadline")


def test_an_editor_cannot_be_asked_for_input(editor: Wire) -> None:
    assert editor.call("ask_input") is None


def test_a_host_that_can_show_nothing_denies_at_once(spawn: Spawn) -> None:
    with spawn() as server:
        server.initialize()
        said = server.call("approve")
        assert (said["decision"], said["by"]) == ("deny", "deadline")
        assert said["explanation"] == f"this host can show no question; {HOW}"
        assert server.call("ask_input") is None


# agent/requestInput ------------------------------------------------------------------------------------


def test_input_is_asked_for_with_what_is_wanted(server: Wire) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}, "required": ["a"]}
    accept = {"result": {"action": "accept", "content": {"a": [1]}}}
    question, content = asked(server, accept, "ask_input", schema=schema)
    assert question["method"] == "agent/requestInput"
    assert question["params"].pop("requestId").startswith("input_")
    assert question["params"] == {"message": "Which?", "schema": schema, "source": "a test", "deadlineMs": 5000}
    assert content == {"a": [1]}


@pytest.mark.parametrize(
    ("schema", "content", "fits"),
    [
        (None, "any text", True),
        (None, {"value": "x"}, False),
        (None, None, False),
        ({"type": "integer"}, 3, True),
        ({"type": "integer"}, "3", False),
        ({"enum": ["red", "blue"]}, "blue", True),
        ({"enum": ["red", "blue"]}, "green", False),
        ({"type": "object", "required": ["a"]}, {"b": 1}, False),
        ({"type": "object", "properties": {"a": {"minLength": 2}}}, {"a": "x"}, False),
        ({"type": "nonsense"}, {"a": 1}, True),
    ],
    ids=json.dumps,
)
def test_content_that_does_not_fit_the_schema_is_no_answer(
    server: Wire, schema: Json | None, content: Any, fits: bool
) -> None:
    accept = {"result": {"action": "accept", "content": content}}
    assert asked(server, accept, "ask_input", schema=schema)[1] == (content if fits else None)


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"action": "decline"}},
        {"result": {"action": "cancel", "content": "x"}},
        {"result": {"action": "Accept", "content": "x"}},
        {"result": {"content": "x"}},
        {"result": "x"},
        {"result": None},
        {"error": {"code": 1, "message": "no"}},
    ],
    ids=json.dumps,
)
def test_whatever_is_not_an_accepted_input_is_none(server: Wire, answer: Json) -> None:
    assert asked(server, answer, "ask_input", is_odd=True)[1] is None
