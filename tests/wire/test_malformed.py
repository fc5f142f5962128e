"""Whatever a host sends, it gets the one right answer, and the connection goes on.

Source: protocol.md, ground rules 2.1 to 2.7; JSON-RPC 2.0; LSP 3.17, "Base Protocol".
"""

import json
from typing import Any

import pytest

from tests.harness.wire import Json, Wire, framed, notification, request

ECHO = {"name": "echo", "arguments": {}}


def error_of(answer: Json) -> tuple[Any, int, str]:
    """Id, code and kind, having checked that the error is whole."""
    assert set(answer) == {"jsonrpc", "id", "error"}
    error = answer["error"]
    assert set(error) == {"code", "message", "data"}
    return answer["id"], error["code"], error["data"]["kind"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"{} {}",
        b"\xff\xfe",
        b'{"a": "\xe9"}',
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": NaN}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": -Infinity}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": 1e999}}',
        b"1" * 5000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_no_json_is_a_parse_error_without_an_id(server: Wire, body: bytes) -> None:
    server.send_bytes(framed(body))
    assert error_of(server.read()) == (None, -32700, "parseError")


@pytest.mark.parametrize(
    "value",
    [
        42,
        None,
        "x",
        True,
        [],
        [request(1, "tools/list")],
        {},
        {"id": 1.5, "jsonrpc": "2.0", "method": "tools/list"},
        {"id": None, "jsonrpc": "2.0", "method": "tools/list"},
        {"id": {}, "jsonrpc": "2.0", "method": "tools/list"},
        {"id": True, "jsonrpc": "2.0", "method": "tools/list"},
        {"jsonrpc": "1.0", "method": "initialized"},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": None},
    ],
    ids=json.dumps,
)
def test_json_that_is_no_message_is_an_invalid_request_without_an_id(server: Wire, value: Any) -> None:
    server.send(value)
    assert error_of(server.read()) == (None, -32600, "invalidRequest")


@pytest.mark.parametrize(
    "value",
    [
        {"id": "a", "method": "tools/list"},
        {"id": "a", "jsonrpc": "1.0", "method": "tools/list"},
        {"id": "a", "jsonrpc": 2.0, "method": "tools/list"},
        {"id": "a", "jsonrpc": "2.0", "method": 5},
        {"id": "a", "jsonrpc": "2.0", "method": None},
        {"id": "a", "jsonrpc": "2.0", "method": ["tools/list"]},
        {"id": "a", "jsonrpc": "2.0"},
        {"id": "a", "jsonrpc": "2.0", "params": {}},
    ],
    ids=json.dumps,
)
def test_an_invalid_request_is_answered_under_its_id_where_that_can_be_read(server: Wire, value: Json) -> None:
    server.send(value)
    assert error_of(server.read()) == ("a", -32600, "invalidRequest")


@pytest.mark.parametrize(
    "method", ["no/such", "", "agent/event", "$/unknown", "textDocument/hover", "tools/execute"]
)
def test_an_unknown_method_is_named(server: Wire, method: str) -> None:
    server.send(request(7, method, {}))
    answer = server.read()
    assert error_of(answer) == (7, -32601, "methodNotFound")
    assert answer["error"]["data"]["method"] == method


@pytest.mark.parametrize(
    "method", ["textDocument/didOpen", "initialized", "exit", "$/cancelRequest", "$/setTrace"]
)
def test_a_notification_that_asks_for_an_answer_is_no_method(server: Wire, method: str) -> None:
    server.send(request(7, method, {}))
    assert error_of(server.read()) == (7, -32601, "methodNotFound")


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("tools/call", {}, "params.name"),
        ("tools/call", None, "params.name"),
        ("tools/call", [], "params.name"),
        ("tools/call", 5, "params"),
        ("tools/call", "echo", "params"),
        ("tools/call", ["echo"], "params"),
        ("tools/call", {"name": 5}, "params.name"),
        ("tools/call", {"name": "echo", "arguments": "{}"}, "params.arguments"),
        ("tools/list", {"selector": {"tags": ["a", 5]}}, "params.selector.tags[1]"),
        ("tools/list", {"selector": {"tags": "abc"}}, "params.selector.tags"),
        ("tools/list", {"selector": {"sources": ["elsewhere"]}}, "params.selector.sources[0]"),
        ("agent/submit", {"prompt": "x", "wait": "false"}, "params.wait"),
        ("agent/submit", {"prompt": "x", "wait": 0}, "params.wait"),
        ("agent/submit", {"prompt": "x", "maxTurns": "7"}, "params.maxTurns"),
        ("agent/submit", {"prompt": "x", "maxTurns": 1.9}, "params.maxTurns"),
        ("agent/submit", {"prompt": "x", "maxTurns": True}, "params.maxTurns"),
        ("agent/submit", {"prompt": "x", "sessionId": 5}, "params.sessionId"),
        ("agent/submit", {"prompt": 5}, "params.prompt"),
        ("workspace/executeCommand", {}, "params.command"),
        ("workspace/executeCommand", None, "params.command"),
        ("workspace/executeCommand", 5, "params"),
        ("workspace/executeCommand", {"command": "x", "arguments": 5}, "params.arguments"),
    ],
    ids=json.dumps,
)
def test_params_that_do_not_fit_are_refused_by_the_path_of_the_fault(
    server: Wire, method: str, params: Any, path: str
) -> None:
    answer = server.answer(server.ask(method, params))
    assert error_of(answer)[1:] == (-32602, "invalidParams")
    assert answer["error"]["data"]["path"] == path
    assert answer["error"]["data"]["reason"]


def test_a_command_that_nobody_registered_is_an_error_of_its_params(server: Wire) -> None:
    answer = server.answer(server.ask("workspace/executeCommand", {"command": "x"}))
    assert error_of(answer)[1:] == (-32602, "invalidParams")


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": None},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"selector": None, "unknown": 1}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"selector": []}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "unknown": {"a": 1}},
    ],
    ids=json.dumps,
)
def test_what_may_be_absent_may_be_absent_and_what_is_unknown_is_ignored(server: Wire, message: Json) -> None:
    server.send_odd(message)
    assert server.read() == {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}


@pytest.mark.parametrize("identity", [0, -1, 2**53, "", "a", "1", 1, "é\u2028"])
def test_an_id_comes_back_as_it_was(server: Wire, identity: Any) -> None:
    server.send(request(identity, "tools/list"))
    answer = server.read()
    assert answer["id"] == identity and type(answer["id"]) is type(identity)


@pytest.mark.parametrize(
    "message",
    [
        notification("no/such"),
        notification("$/unknown", {"a": 1}),
        notification("tools/call", ECHO),
        notification("agent/submit", {"prompt": "x"}),
        notification("initialize", {}),
        notification("shutdown"),
        notification("workspace/executeCommand", {"command": "x"}),
        notification("textDocument/didOpen", {}),
        notification("textDocument/didOpen", 5),
        notification("textDocument/didChange", {"textDocument": {"uri": "file:///none", "version": 1}}),
        notification("textDocument/didClose", {"textDocument": {"uri": "file:///none"}}),
        notification(
            "textDocument/didChange",
            {"textDocument": {"uri": "file:///none", "version": 1}, "contentChanges": [{"text": "x"}]},
        ),
        notification("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [{"uri": 5}]}}),
        notification("$/setTrace", {"value": "nonsense"}),
        notification("$/cancelRequest"),
        notification("$/cancelRequest", {"id": None}),
        notification("$/cancelRequest", {"id": ["a"]}),
        notification("$/cancelRequest", 5),
        notification("window/workDoneProgress/cancel", {"token": "none"}),
    ],
    ids=json.dumps,
)
def test_a_notification_is_never_answered(server: Wire, message: Json) -> None:
    server.send_odd(message)
    server.assert_all_read()


def test_a_request_of_lsp_without_an_id_does_nothing(server: Wire) -> None:
    document = {"uri": "file:///kept.txt", "languageId": "text", "version": 0, "text": "kept"}
    server.notify("textDocument/didOpen", {"textDocument": document})
    server.notify("initialize", {"capabilities": {}})
    server.notify("shutdown")
    assert server.call("document")["file:///kept.txt"] == "kept"
    server.notify("textDocument/didClose", {"textDocument": {"uri": "file:///kept.txt"}})


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": "srv:999", "result": {}},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": "srv:999", "error": "x"},
        {"jsonrpc": "2.0", "id": "srv:999"},
        {"id": "srv:999", "result": 1},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the host could not read us"}},
        {"jsonrpc": "2.0", "result": 1},
        {"jsonrpc": "2.0", "id": {}, "result": 1},
    ],
    ids=json.dumps,
)
def test_an_answer_that_nobody_waits_for_is_ignored(server: Wire, message: Json) -> None:
    server.send_odd(message)
    server.assert_all_read()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"error": {}},
        {"error": "no"},
        {"error": 5},
        {"error": {"code": "x", "message": "no"}},
        {"error": {"code": 1}},
        {"error": {"message": "no"}},
        {"error": {"code": 1, "message": "no", "data": {"a": 1}}},
        {"error": None},
        {"result": {"ok": "false"}},
        {"result": {}},
        {"result": None},
        {"result": [1]},
        {"result": {"ok": True}, "error": {"code": 1, "message": "no"}},
        {"result": {"ok": True}, "jsonrpc": "1.0"},
    ],
    ids=json.dumps,
)
def test_an_answer_of_the_host_that_makes_no_sense_is_a_refusal_at_once(server: Wire, answer: Json) -> None:
    call = server.begin("ask_host", deadlineSecs=60)
    asked = server.read_until("tools/execute")
    server.send_odd({"jsonrpc": "2.0", "id": asked["id"], **answer})
    assert server.answer(call)["result"]["result"]["data"]["failed"] == "HostRefused"


def test_an_answer_of_the_host_may_say_that_there_is_no_error(server: Wire) -> None:
    call = server.begin("ask_host", deadlineSecs=60)
    asked = server.read_until("tools/execute")
    server.send_odd({"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": True}, "error": None})
    assert server.answer(call)["result"]["result"]["data"] == {"ok": True}
