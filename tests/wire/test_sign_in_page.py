"""A sign-in page is shown by our own request, else by LSP's, else by nobody.

Source: protocol.md, Signing in and `agent/requestInput`; LSP 3.17, `window/showDocument`.
"""

import json
from collections.abc import Iterator

import pytest

from tests.harness.wire import Json, Wire
from tests.wire.conftest import Spawn
from tests.wire.test_questions import asked

PAGE = "https://example.com/authorize?state=x"


@pytest.fixture(scope="module")
def editor(spawn: Spawn) -> Iterator[Wire]:
    """A host that knows nothing of us and can open pages."""
    with spawn() as server:
        server.initialize({"window": {"showDocument": {"support": True}}})
        yield server


def test_a_host_of_ours_is_asked_to_show_the_page(server: Wire) -> None:
    question, answer = asked(server, {"result": {"action": "accept"}}, "show_sign_in")
    assert question["method"] == "agent/requestInput"
    assert question["params"].pop("requestId").startswith("input_")
    assert question["params"] == {
        "message": "MCP server github wants you to sign in. Open this page in your browser",
        "url": PAGE,
        "source": "MCP server github",
        "deadlineMs": 5000,
    }
    assert answer == ["shown", None]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"result": {"action": "accept", "content": "http://127.0.0.1:1/callback?code=c"}}, "shown"),
        ({"result": {"action": "accept", "content": {"value": "x"}}}, "shown"),
        ({"result": {"action": "decline"}}, "declined"),
        ({"result": {"action": "cancel"}}, "declined"),
        ({"result": {"action": "open"}}, "declined"),
        ({"error": {"code": 1, "message": "no"}}, "declined"),
    ],
    ids=json.dumps,
)
def test_only_accept_says_that_the_page_was_opened(server: Wire, answer: Json, outcome: str) -> None:
    content = answer.get("result", {}).get("content")
    address = content if isinstance(content, str) else None
    assert asked(server, answer, "show_sign_in", is_odd=True)[1] == [outcome, address]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"result": {"success": True}}, "shown"),
        ({"result": {"success": False}}, "nobody"),
        ({"result": None}, "nobody"),
        ({"result": {"success": 1}}, "nobody"),
        ({"error": {"code": -32601, "message": "no"}}, "nobody"),
    ],
    ids=json.dumps,
)
def test_an_editor_opens_the_page_outside(editor: Wire, answer: Json, outcome: str) -> None:
    request_id = editor.begin("show_sign_in")
    assert editor.read()["method"] == "window/logMessage"
    question = editor.read()
    assert question["method"] == "window/showDocument"
    assert question["params"] == {"uri": PAGE, "external": True}
    editor.send({"jsonrpc": "2.0", "id": question["id"], **answer})
    assert editor.answer(request_id)["result"]["result"]["data"] == [outcome, None]
    editor.assert_all_read()


def test_a_host_that_can_show_no_page_has_nobody(spawn: Spawn) -> None:
    with spawn() as server:
        server.initialize()
        assert server.call("show_sign_in") == ["nobody", None]
