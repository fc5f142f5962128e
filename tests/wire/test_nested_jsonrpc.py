"""A JSON-RPC message inside params is data, and nothing else.

Source: protocol.md, ground rule 2.1. pygls 2.1 takes every nested object with a `jsonrpc` member for a message.
"""

import json
from typing import Any

import pytest

from tests.harness.wire import Wire, request

ODD = [
    {"jsonrpc": "2.0", "a": 1},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}},
    {"jsonrpc": "2.0", "id": 1, "method": "initialize"},
    {"jsonrpc": "2.0", "method": "exit"},
    {"jsonrpc": "2.0", "id": "srv:1", "result": {"ok": False}},
    {"jsonrpc": "2.0", "id": "srv:1", "error": {"code": 1, "message": "x"}},
    {"jsonrpc": "1.0"},
    {"jsonrpc": {"jsonrpc": "2.0"}},
    {"type_name": "Evil", "class": 1, "_id": 2, "a-b": 3, "def": {"b": [1, {"c": 2}]}},
    {"__class__": "x", "params": {"jsonrpc": "2.0", "method": 5}},
]


@pytest.mark.parametrize("value", ODD, ids=json.dumps)
def test_arguments_come_back_as_they_were(server: Wire, value: dict[str, Any]) -> None:
    assert server.call("echo", **value) == value
    assert server.call("echo", deep=[{"er": value}]) == {"deep": [{"er": value}]}


def test_params_may_themselves_look_like_a_message(server: Wire) -> None:
    server.send(request("x", "tools/list", {"jsonrpc": "2.0", "id": 2, "method": "exit"}))
    assert server.read() == {"jsonrpc": "2.0", "id": "x", "result": {"tools": []}}


def test_a_nested_answer_does_not_answer_a_question(server: Wire) -> None:
    call = server.begin("ask_host", deadlineSecs=60)
    asked = server.read_until("tools/execute")
    nested = {"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": False}}
    assert server.call("echo", nested=nested) == {"nested": nested}
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": True, "data": nested}})
    assert server.answer(call)["result"]["result"]["data"] == {"ok": True}
