"""What is registered on the server as on any pygls server works, and fails, like our own methods.

Source: pygls' user guide, "Features"; protocol.md, ground rules 2.1 to 2.6.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.wire import Json, Wire, notification, wire
from tests.wire.conftest import ROOT

DOCUMENT = {"uri": "file:///a.txt", "languageId": "text", "version": 0, "text": "héllo"}


@pytest.fixture(scope="module")
def running() -> Iterator[Wire]:
    command = [sys.executable, str(Path(__file__).with_name("lsp_server.py"))]
    with wire(command, env={"PYTHONPATH": str(ROOT)}) as server:
        server.initialize()
        yield server


@pytest.fixture
def server(running: Wire) -> Iterator[Wire]:
    yield running
    running.error("no/such")
    assert running.take() == []


def at(line: int) -> Json:
    return {"textDocument": {"uri": "file:///a.txt"}, "position": {"line": line, "character": 0}}


def test_a_plain_function_answers_and_sees_the_documents(server: Wire) -> None:
    server.notify("textDocument/didOpen", {"textDocument": DOCUMENT})
    assert server.result("textDocument/hover", at(0)) == {"contents": {"kind": "markdown", "value": "héllo"}}


def test_a_coroutine_function_answers_after_the_notifications_before_it(server: Wire) -> None:
    saved = {"textDocument": {"uri": "file:///saved"}}
    server.send(*[notification("textDocument/didSave", saved)] * 3)
    labels = [item["label"] for item in server.result("textDocument/completion", at(0))]
    assert labels[-3:] == ["file:///saved"] * 3


def test_a_function_for_threads_runs_in_one(server: Wire) -> None:
    assert server.result("textDocument/definition", at(0))["uri"].startswith("ThreadPoolExecutor")


def test_a_method_that_lsp_does_not_know_gets_its_params_as_they_are(server: Wire) -> None:
    params: Any = {"jsonrpc": "2.0", "type_name": "x", "class": [1]}
    assert server.result("custom/echo", params) == params


def test_a_command_gets_its_arguments(server: Wire) -> None:
    assert server.result("workspace/executeCommand", {"command": "add", "arguments": [1, 2]}) == 3


@pytest.mark.parametrize("params", [None, {}, {"textDocument": {"uri": "x"}}, {"position": {}}, 5])
def test_params_that_do_not_fit_are_refused_by_their_path(server: Wire, params: Any) -> None:
    error = server.error("textDocument/hover", params)
    assert (error["code"], error["data"]["path"].split(".")[0]) == (-32602, "params")


def test_a_feature_that_breaks_is_an_internal_error_without_its_text(server: Wire) -> None:
    error = server.error("textDocument/completion", at(2))
    assert (error["code"], set(error["data"])) == (-32603, {"kind", "logId"})
    assert "sk-secret" not in str(error)


def test_a_feature_can_be_cancelled(server: Wire) -> None:
    request_id = server.ask("textDocument/completion", at(1))
    server.notify("$/cancelRequest", {"id": request_id})
    assert server.answer(request_id)["error"]["code"] == -32800


def test_a_feature_for_a_notification_runs_behind_the_built_in_one_and_may_break(server: Wire) -> None:
    server.notify("textDocument/didOpen", {"textDocument": {**DOCUMENT, "uri": "file:///bad"}})
    labels = [item["label"] for item in server.result("textDocument/completion", at(0))]
    assert labels[-1] == "opened file:///bad"
    server.wait_until_printed("ValueError: bad")


def test_pygls_own_loop_is_not_to_be_used() -> None:
    from tests.wire.lsp_server import server

    with pytest.raises(NotImplementedError, match="serve_stdio"):
        server.start_io()
