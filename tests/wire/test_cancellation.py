"""Cancelling, both ways, and what is remembered of requests afterwards: nothing.

Source: protocol.md, ground rules 2.4, 3.1 to 3.3, 4.1 and 4.2.
"""

import json
from typing import Any

import pytest

from tests.harness.wire import Json, Wire, notification, request

CANCELLED = {"code": -32800, "message": "the request was cancelled", "data": {"kind": "requestCancelled"}}


def call(request_id: Any, tool: str, **arguments: Any) -> Json:
    return request(request_id, "tools/call", {"name": tool, "arguments": arguments})


def cancel(request_id: Any) -> Json:
    return notification("$/cancelRequest", {"id": request_id})


def waiting(server: Wire, **how: Any) -> int:
    """A call that has begun to wait; returns its id."""
    before = server.call("seen").count("waiting")
    request_id = server.begin("wait", **how)
    wait_until_seen(server, "waiting", before + 1)
    return request_id


def wait_until_seen(server: Wire, what: str, times: int) -> None:
    while server.call("seen").count(what) < times:
        pass


# The host cancels --------------------------------------------------------------------------------------


def test_a_cancelled_request_tidies_up_and_then_answers_so(server: Wire) -> None:
    request_id = waiting(server)
    tidied = server.call("seen").count("tidied")
    server.send(cancel(request_id))
    assert server.answer(request_id)["error"] == CANCELLED
    assert server.call("seen").count("tidied") == tidied + 1


def test_cancelling_again_neither_breaks_into_the_cleanup_nor_answers_twice(server: Wire) -> None:
    request_id = waiting(server, slowly=True)
    seen = server.call("seen")
    server.send(cancel(request_id), cancel(request_id))
    wait_until_seen(server, "tidying", seen.count("tidying") + 1)
    server.send(cancel(request_id))
    assert server.call("seen").count("tidied") == seen.count("tidied")
    server.call("let_tidy")
    assert server.answer(request_id)["error"] == CANCELLED
    server.send(cancel(request_id))
    assert server.call("seen").count("tidied") == seen.count("tidied") + 1


def test_cancelling_in_the_same_write_as_the_request_is_early_enough(server: Wire) -> None:
    server.send(call("a", "wait"), cancel("a"))
    assert server.read() == {"jsonrpc": "2.0", "id": "a", "error": CANCELLED}


@pytest.mark.parametrize("request_id", ["none", 0, 99999, None, 1.5, True, {}, "srv:1"], ids=json.dumps)
def test_cancelling_what_is_not_there_is_no_error(server: Wire, request_id: Any) -> None:
    server.send(cancel(request_id))


def test_cancelling_what_is_over_is_no_error(server: Wire) -> None:
    server.send(call("a", "echo"))
    server.answer("a")
    server.send(cancel("a"))


def test_a_string_and_an_integer_are_different_ids(server: Wire) -> None:
    server.send(call("1", "wait"), call(1, "wait"), cancel("1"))
    assert server.read()["id"] == "1"
    server.send(cancel(1))
    assert server.read()["id"] == 1


@pytest.mark.parametrize("tool", ["deaf", "crash_in_cleanup"])
def test_a_cancelled_request_answers_so_whatever_its_work_made_of_it(server: Wire, tool: str) -> None:
    server.send(call("a", tool), cancel("a"))
    assert server.read() == {"jsonrpc": "2.0", "id": "a", "error": CANCELLED}


# Ids ----------------------------------------------------------------------------------------------------


def test_an_id_in_use_is_refused_and_what_uses_it_goes_on(server: Wire) -> None:
    request_id = waiting(server)
    server.send(call(request_id, "echo"))
    assert server.read()["error"]["code"] == -32600
    server.send(cancel(request_id))
    assert server.read() == {"jsonrpc": "2.0", "id": request_id, "error": CANCELLED}
    server.send(call(request_id, "echo"))
    assert "result" in server.read()


def test_an_answer_under_the_id_of_a_request_of_the_host_answers_nothing(server: Wire) -> None:
    request_id = waiting(server)
    server.send_odd({"jsonrpc": "2.0", "id": request_id, "result": {}})
    server.send(cancel(request_id))
    assert server.answer(request_id)["error"] == CANCELLED


def test_the_host_cannot_cancel_a_request_of_ours_by_its_id(server: Wire) -> None:
    request_id = server.begin("ask_host", deadlineSecs=60)
    asked = server.read_until("tools/execute")
    server.send(cancel(asked["id"]), {"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": True}})
    assert server.answer(request_id)["result"]["result"]["data"] == {"ok": True}


def test_requests_begin_in_the_order_they_came(server: Wire) -> None:
    server.send(*(call(f"n{number}", "note", number=number) for number in range(200)))
    for number in range(200):
        server.answer(f"n{number}")
    noted = [entry for entry in server.call("seen") if isinstance(entry, int)]
    assert noted == list(range(200))


# We ask -------------------------------------------------------------------------------------------------


def test_cancelling_a_request_withdraws_what_it_asked_the_host(server: Wire) -> None:
    request_id = server.begin("ask_host", deadlineSecs=60)
    asked = server.read_until("tools/execute")
    server.send(cancel(request_id))
    assert server.read() == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked["id"]}}
    assert server.read()["error"] == CANCELLED
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": True}})
    assert server.call("bookkeeping")["unanswered"] == 0


def test_a_deadline_withdraws_the_question_and_a_late_answer_is_ignored(server: Wire) -> None:
    request_id = server.begin("ask_host", deadlineSecs=0.05)
    asked = server.read_until("tools/execute")
    assert server.read() == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": asked["id"]}}
    assert server.answer(request_id)["result"]["result"]["data"] == {
        "failed": "HostDidNotAnswer",
        "message": "the host did not answer tools/execute within 0.05 s",
    }
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"ok": True}})


def test_nothing_is_kept_of_questions_that_were_not_answered(server: Wire) -> None:
    before = server.call("bookkeeping")
    calls = [server.begin("ask_host", deadlineSecs=0.01) for _ in range(200)]
    for request_id in calls:
        server.answer(request_id)
    assert len({frame["id"] for frame in server.take() if frame["method"] == "tools/execute"}) == 200
    assert server.call("bookkeeping") == before


def test_pygls_own_methods_ask_and_tell_through_our_tables(server: Wire) -> None:
    request_id = server.begin("ask_by_pygls")
    asked = server.read_until("workspace/configuration")
    assert str(asked["id"]).startswith("srv:")
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": [{"a": 1}]})
    assert server.read_until("window/logMessage")["params"] == {"type": 3, "message": "done"}
    assert server.read() == notification("custom/bare"), "no params are no null"
    assert server.answer(request_id)["result"]["result"]["data"] == [{"a": 1}]
    assert server.call("bookkeeping")["pyglsFutures"] == 0


# Nothing grows, nothing starves -------------------------------------------------------------------------


def test_busy_worker_threads_delay_nobody(server: Wire) -> None:
    blocked = [server.begin("block_a_thread", secs=1.0) for _ in range(20)]
    assert server.call("echo") == {}
    server.send(*map(cancel, blocked))
    for request_id in blocked:
        assert server.answer(request_id)["error"] == CANCELLED


def test_documents_change_in_the_order_of_messages_and_requests_see_what_came_before(server: Wire) -> None:
    document = {"uri": "file:///a.txt", "languageId": "text", "version": 0, "text": ""}
    messages = [notification("textDocument/didOpen", {"textDocument": document})]
    for version in range(1, 6):
        messages += [change(version, f"v{version}"), call(f"d{version}", "document")]
    server.send(*messages)
    for version in range(1, 6):
        text = "".join(f"v{number}" for number in reversed(range(1, version + 1)))
        assert server.answer(f"d{version}")["result"]["result"]["data"]["file:///a.txt"] == text
    server.notify("textDocument/didClose", {"textDocument": {"uri": "file:///a.txt"}})
    assert "file:///a.txt" not in server.call("document")


def change(version: int, text: str) -> Json:
    start = {"line": 0, "character": 0}
    return notification(
        "textDocument/didChange",
        {
            "textDocument": {"uri": "file:///a.txt", "version": version},
            "contentChanges": [{"range": {"start": start, "end": start}, "text": text}],
        },
    )


def test_twenty_thousand_notifications_leave_nothing_behind(server: Wire) -> None:
    document = {"uri": "file:///a.txt", "languageId": "text", "version": 0, "text": ""}
    server.notify("textDocument/didOpen", {"textDocument": document})
    whole = {"textDocument": {"uri": "file:///a.txt", "version": 1}, "contentChanges": [{"text": "x"}]}
    server.send(*[notification("textDocument/didChange", whole)] * 1000)
    before, memory_before = server.call("bookkeeping"), server.resident_bytes()
    for _ in range(20):
        server.send(*[notification("textDocument/didChange", whole)] * 1000)
    assert server.call("bookkeeping") == before
    assert server.resident_bytes() - memory_before < 4_000_000
    server.notify("textDocument/didClose", {"textDocument": {"uri": "file:///a.txt"}})


def test_more_requests_than_anybody_needs_at_once_are_refused(server: Wire) -> None:
    server.send(*(call(f"w{number}", "hold") for number in range(1001)))
    refused = server.read()
    assert (refused["id"], refused["error"]["code"], refused["error"]["data"]) == (
        "w1000",
        -31050,
        {"limit": 1000, "kind": "overloaded"},
    )
    server.send(*(cancel(f"w{number}") for number in range(1000)))
    assert {server.read()["id"] for _ in range(1000)} == {f"w{number}" for number in range(1000)}
