"""Whose answer is whose, limits, cancellation, progress. Source: MCP 2025-11-25, basic and basic/utilities; the
limits and what is salvaged are our own choice."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from sidecar.mcp import connection as connection_module
from sidecar.mcp.connection import Connection, ReplyRefusal, ServerRefusalError
from sidecar.mcp.framing import Line
from sidecar.mcp.progress import MAX_WAITING_REPORTS
from sidecar.mcp.tail import Tail
from sidecar.mcp.transport import FailedRequest, Outgoing
from sidecar.protocol.errors import ToolError

BOUND_SECS = 5.0


class Wire:
    """A transport whose other end is the test."""

    def __init__(self) -> None:
        self.unsent_bytes = 0
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._coming: asyncio.Queue[list[Line | FailedRequest]] = asyncio.Queue()

    @property
    def pid(self) -> int | None:
        return None

    def send(self, message: Outgoing) -> None:
        self._sent.put_nowait(json.loads(message.body))

    def withdraw(self, request_id: int) -> bool:
        return False

    def speaks(self, revision: str) -> None:
        pass

    async def receive(self) -> Sequence[Line | FailedRequest]:
        return await self._coming.get()

    async def why_ended(self) -> str:
        return "exited with status 7"

    def kill(self) -> None:
        pass

    async def close(self) -> None:
        self._coming.put_nowait([])

    async def sent(self) -> dict[str, Any]:
        """What the connection sent next."""
        async with asyncio.timeout(BOUND_SECS):
            return await self._sent.get()

    def has_sent_more(self) -> bool:
        return not self._sent.empty()

    def comes(self, *messages: Any) -> None:
        """Lets lines come, in one go: text as it is, all else as JSON."""
        texts = [message if isinstance(message, str) else json.dumps(message) for message in messages]
        self._coming.put_nowait([text.encode() for text in texts])

    def fails(self, request_id: int, message: str) -> None:
        """Lets the transport give up one request."""
        self._coming.put_nowait([FailedRequest(request_id, ToolError("mcpError", message))])

    def answers(self, request_id: int, **result: Any) -> None:
        self.comes({"jsonrpc": "2.0", "id": request_id, "result": result})

    def ends(self) -> None:
        self._coming.put_nowait([])


class Talk:
    """A connection, its wire, and what it was notified of. `roots/list` is answered when the test lets it."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.paused_secs = 0.0
        self.wire = Wire()
        self.tail = Tail()
        self.notified: list[tuple[str, Any]] = []
        self.connection = Connection(
            self.wire,
            server="s",
            timeout_secs=BOUND_SECS,
            tail=self.tail,
            replies={"roots/list": self._roots, "sampling/createMessage": _refuses, "breaks": _breaks},
            on_notification=lambda method, params: self.notified.append((method, params)),
            paused_secs=lambda: self.paused_secs,
        )

    async def _roots(self, params: Any) -> dict[str, Any]:
        await self.may_answer.wait()
        return {"roots": []}

    def asks(self, method: str = "tools/call", **options: Any) -> "asyncio.Task[Any]":
        return asyncio.create_task(self.connection.request(method, {}, **options))


async def _refuses(params: Any) -> dict[str, Any]:
    raise ReplyRefusal(-1, "the user said no")


async def _breaks(params: Any) -> dict[str, Any]:
    raise RuntimeError("a secret of ours")


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    talk = Talk()
    reading = asyncio.create_task(talk.connection.read())
    yield talk
    talk.wire.ends()
    await reading


async def outcome(request: "asyncio.Task[Any]") -> Any:
    """A request's result, or the message of its error."""
    async with asyncio.timeout(BOUND_SECS):
        try:
            return await request
        except (ToolError, ServerRefusalError) as error:
            return error.message


async def test_answers_find_their_requests_in_any_order(talk: Talk) -> None:
    requests = [talk.asks() for _ in range(3)]
    ids = [(await talk.wire.sent())["id"] for _ in requests]
    for request_id in reversed(ids):
        talk.wire.answers(request_id, me=request_id)
    assert [await outcome(request) for request in requests] == [{"me": request_id} for request_id in ids]


async def test_an_error_of_the_server_keeps_its_code_and_data(talk: Talk) -> None:
    request = talk.asks()
    sent = await talk.wire.sent()
    talk.wire.comes({"jsonrpc": "2.0", "id": sent["id"], "error": {"code": -32602, "message": "bad", "data": [1]}})
    with pytest.raises(ServerRefusalError) as caught:
        await request
    assert (caught.value.message, caught.value.code, caught.value.data) == ("bad", -32602, [1])


async def test_the_time_in_which_a_person_is_asked_counts_against_no_limit(talk: Talk) -> None:
    waiting = talk.asks(timeout_secs=0.1)
    sent = await talk.wire.sent()
    talk.paused_secs += BOUND_SECS
    later = talk.asks(timeout_secs=0.3)
    assert await outcome(later) == "server 's' did not answer tools/call within 0.3 s"
    assert not waiting.done()
    talk.wire.answers(sent["id"], late=True)
    assert await outcome(waiting) == {"late": True}


async def test_a_limit_goes_on_where_it_was_once_the_person_has_answered(talk: Talk) -> None:
    talk.paused_secs = 100.0
    request = talk.asks(timeout_secs=0.1)
    await talk.wire.sent()
    talk.paused_secs += 0.2
    assert await outcome(request) == "server 's' did not answer tools/call within 0.1 s"


async def test_a_request_without_an_answer_fails_in_time_and_the_server_is_told(talk: Talk) -> None:
    slow, quick = talk.asks(timeout_secs=BOUND_SECS), talk.asks(timeout_secs=0.02)
    slow_id, quick_id = (await talk.wire.sent())["id"], (await talk.wire.sent())["id"]
    with pytest.raises(ToolError) as caught:
        await quick
    assert (caught.value.kind, caught.value.data) == ("mcpTimeout", {"server": "s"})
    assert caught.value.message == "server 's' did not answer tools/call within 0.02 s"
    assert await talk.wire.sent() == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": quick_id, "reason": "no answer within 0.02 s"},
    }
    talk.wire.answers(quick_id, too="late")
    talk.wire.answers(slow_id, in_="time")
    assert await outcome(slow) == {"in_": "time"}


async def test_each_request_has_its_own_limit(talk: Talk) -> None:
    requests = [talk.asks(timeout_secs=limit) for limit in (0.3, 0.1, 0.2)]
    done: list[float] = []
    for request, limit in zip(requests, (0.3, 0.1, 0.2), strict=True):
        request.add_done_callback(lambda _, limit=limit: done.append(limit))  # type: ignore[misc]
    await asyncio.gather(*map(outcome, requests))
    assert done == [0.1, 0.2, 0.3]


async def test_cancelling_the_caller_cancels_at_the_server(talk: Talk) -> None:
    request = talk.asks()
    sent = await talk.wire.sent()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    cancelled = await talk.wire.sent()
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", sent["id"])
    assert not talk.wire.has_sent_more()


async def test_what_must_not_be_cancelled_is_given_up_without_a_word(talk: Talk) -> None:
    request = talk.asks("initialize", timeout_secs=0.02, is_cancellable=False)
    assert (await talk.wire.sent())["method"] == "initialize"
    assert await outcome(request) == "server 's' did not answer initialize within 0.02 s"
    assert not talk.wire.has_sent_more()


async def test_the_end_of_the_server_fails_everything_at_once_with_its_last_words(talk: Talk) -> None:
    requests = [talk.asks(), talk.asks("tools/list")]
    await talk.wire.sent()
    await talk.wire.sent()
    talk.tail.add(b"out of memory\n")
    talk.wire.ends()
    assert [await outcome(request) for request in requests] == [
        "server 's' exited with status 7 before it answered tools/call",
        "server 's' exited with status 7 before it answered tools/list",
    ]
    with pytest.raises(ToolError) as caught:
        await talk.asks()
    assert caught.value.message == "server 's' exited with status 7, so tools/call cannot be sent"
    assert caught.value.data == {"server": "s", "stderrTail": "out of memory"}
    assert await talk.connection.wait_ended() == "exited with status 7"


async def test_requests_of_the_server_are_answered_once_each(talk: Talk) -> None:
    talk.wire.comes(
        {"jsonrpc": "2.0", "id": "p", "method": "ping"},
        {"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": 1}},
    )
    assert await talk.wire.sent() == {"jsonrpc": "2.0", "id": "p", "result": {}}
    assert await talk.wire.sent() == {
        "jsonrpc": "2.0",
        "id": 0,
        "error": {"code": -32601, "message": "elicitation/create is not offered by this client"},
    }
    assert talk.notified == [("notifications/message", {"data": 1})]
    assert not talk.wire.has_sent_more()


async def test_a_broken_answer_fails_the_request_whose_id_it_bears(talk: Talk) -> None:
    first, second = talk.asks(), talk.asks()
    first_id, second_id = (await talk.wire.sent())["id"], (await talk.wire.sent())["id"]
    talk.wire.comes('{"jsonrpc":"2.0","id":%d,"result":{"cut' % second_id)  # noqa: UP031  braces
    assert str(await outcome(second)).startswith("server 's' failed at tools/call: its answer is no JSON")
    talk.wire.answers(first_id)
    assert await outcome(first) == {}


async def test_a_broken_answer_without_an_id_fails_the_only_request(talk: Talk) -> None:
    request = talk.asks()
    await talk.wire.sent()
    talk.wire.comes({"jsonrpc": "2.0", "result": {}})
    assert await outcome(request) == "server 's' failed at tools/call: its answer has no usable id"


async def test_a_broken_answer_that_may_be_for_either_of_two_fails_neither(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    requests = [talk.asks(), talk.asks()]
    ids = [(await talk.wire.sent())["id"] for _ in requests]
    talk.wire.comes({"jsonrpc": "2.0", "result": {}}, {"jsonrpc": "2.0", "id": None, "error": {"message": "no"}})
    for request_id in ids:
        talk.wire.answers(request_id)
    assert [await outcome(request) for request in requests] == [{}, {}]
    assert "sent a broken message" in caplog.text


async def test_talk_between_messages_goes_to_the_last_words(talk: Talk) -> None:
    request = talk.asks()
    sent = await talk.wire.sent()
    talk.wire.comes("Server running", '{"level":30,"msg":"hello"}', "42")
    talk.wire.answers(sent["id"])
    assert await outcome(request) == {}
    assert talk.tail.text() == 'Server running\n{"level":30,"msg":"hello"}\n42'


async def test_a_program_that_only_talks_is_given_up(talk: Talk) -> None:
    request = talk.asks()
    await talk.wire.sent()
    for _ in range(2):
        talk.wire.comes(*["yes"] * (connection_module.MAX_JUNK_LINES // 2 + 1))
    assert (
        await outcome(request)
        == "server 's' writes on its stdout what is no MCP message before it answered tools/call"
    )


async def test_a_server_that_reads_nothing_is_sent_nothing_more(talk: Talk) -> None:
    request = talk.asks()
    sent = await talk.wire.sent()
    talk.wire.unsent_bytes = connection_module.MAX_UNSENT_BYTES + 1
    assert await outcome(talk.asks()) == "server 's' does not read what it is sent, so tools/call is not sent"
    talk.wire.comes({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"id": sent["id"], "result": {}})
    assert await outcome(request) == {}
    assert not talk.wire.has_sent_more()
    talk.wire.unsent_bytes = 0
    talk.wire.comes({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert (await talk.wire.sent())["id"] == 2


async def test_arguments_that_are_no_json_fail_before_anything_is_sent(talk: Talk) -> None:
    with pytest.raises(ToolError) as caught:
        await talk.connection.request("tools/call", {"x": float("nan")})
    assert caught.value.kind == "invalidArguments"
    assert not talk.wire.has_sent_more()


async def test_a_mistake_of_ours_in_one_message_does_not_stop_the_next(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(method: str, params: Any) -> None:
        raise ZeroDivisionError(method)

    wire = Wire()
    connection = Connection(wire, server="s", timeout_secs=1, tail=Tail(), replies={}, on_notification=breaks)
    reading = asyncio.create_task(connection.read())
    request = asyncio.create_task(connection.request("x"))
    sent = await wire.sent()
    with caplog.at_level(logging.CRITICAL, logger="sidecar.mcp"):
        wire.comes({"jsonrpc": "2.0", "method": "n"})
        wire.answers(sent["id"])
        assert await outcome(request) == {}
    wire.ends()
    await reading


# Progress -----------------------------------------------------------------------------------------------


def report(token: Any, done: Any, **more: Any) -> dict[str, Any]:
    params = {"progressToken": token, "progress": done, **more}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


async def test_progress_arrives_in_order_and_before_the_answer(talk: Talk) -> None:
    heard: list[Any] = []

    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        heard.append((done, total, message))

    request = talk.asks(on_progress=on_progress)
    sent = await talk.wire.sent()
    token = sent["params"]["_meta"]["progressToken"]
    talk.wire.comes(
        report(token, 1, total=4),
        report(str(token), 2.5, message="half"),
        report("other", 9),
        report(token, "x", message=7, total=True),
        {"jsonrpc": "2.0", "id": sent["id"], "result": {}},
        report(token, 5),
    )
    assert await outcome(request) == {}
    assert heard == [(1, 4, None), (2.5, None, "half"), (None, None, None)]


async def test_no_token_is_sent_when_nobody_listens(talk: Talk) -> None:
    request = talk.asks()
    sent = await talk.wire.sent()
    assert "_meta" not in sent["params"]
    talk.wire.comes(report(sent["id"], 1), {"jsonrpc": "2.0", "id": sent["id"], "result": {}})
    assert await outcome(request) == {}


async def test_a_listener_that_is_slow_holds_the_reader_and_loses_nothing(talk: Talk) -> None:
    heard: list[float | None] = []
    may_go_on = asyncio.Event()

    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        await may_go_on.wait()
        heard.append(done)

    followed, other = talk.asks(on_progress=on_progress), talk.asks("other")
    followed_id, other_id = (await talk.wire.sent())["id"], (await talk.wire.sent())["id"]
    count = MAX_WAITING_REPORTS + 10
    talk.wire.comes(*[report(followed_id, number) for number in range(count)])
    talk.wire.answers(other_id)
    done, _ = await asyncio.wait({other}, timeout=0.05)
    assert not done, "the reader must not have gone on"
    may_go_on.set()
    assert await outcome(other) == {}
    talk.wire.answers(followed_id)
    assert await outcome(followed) == {}
    assert heard == list(range(count))


async def test_a_listener_that_hangs_holds_the_reader_no_longer_than_the_request_may_take(talk: Talk) -> None:
    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        await asyncio.Event().wait()

    followed, other = talk.asks(on_progress=on_progress, timeout_secs=0.1), talk.asks("other")
    followed_id, other_id = (await talk.wire.sent())["id"], (await talk.wire.sent())["id"]
    talk.wire.comes(*[report(followed_id, number) for number in range(MAX_WAITING_REPORTS + 10)])
    talk.wire.answers(other_id)
    assert await outcome(followed) == "server 's' did not answer tools/call within 0.1 s"
    assert await outcome(other) == {}


async def test_an_answer_is_not_lost_to_a_listener_that_hangs(talk: Talk) -> None:
    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        await asyncio.Event().wait()

    request = talk.asks(on_progress=on_progress, timeout_secs=0.1)
    sent = await talk.wire.sent()
    talk.wire.comes(report(sent["id"], 1), {"jsonrpc": "2.0", "id": sent["id"], "result": {"a": 1}})
    assert await outcome(request) == {"a": 1}


async def test_an_error_of_the_listener_reaches_the_caller(talk: Talk) -> None:
    async def on_progress(done: float | None, total: float | None, message: str | None) -> None:
        raise LookupError("no such host")

    request = talk.asks(on_progress=on_progress)
    sent = await talk.wire.sent()
    talk.wire.comes(report(sent["id"], 1))
    talk.wire.answers(sent["id"])
    with pytest.raises(LookupError):
        await request


async def test_a_request_of_the_server_that_takes_long_holds_up_nothing(talk: Talk) -> None:
    talk.wire.comes({"jsonrpc": "2.0", "id": "r", "method": "roots/list"})
    request = talk.asks()
    sent = await talk.wire.sent()
    talk.wire.answers(sent["id"], done=True)
    assert await outcome(request) == {"done": True}
    talk.may_answer.set()
    assert await talk.wire.sent() == {"jsonrpc": "2.0", "id": "r", "result": {"roots": []}}


async def test_a_request_that_the_server_takes_back_gets_no_answer(talk: Talk) -> None:
    taken_back = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "r"}}
    talk.wire.comes({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}, taken_back)
    talk.wire.comes({"jsonrpc": "2.0", "id": "p", "method": "ping"})
    assert (await talk.wire.sent())["id"] == "p"
    talk.may_answer.set()
    talk.wire.comes({"jsonrpc": "2.0", "id": "q", "method": "ping"})
    assert (await talk.wire.sent())["id"] == "q"


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("sampling/createMessage", {"code": -1, "message": "the user said no"}),
        ("breaks", {"code": -32603, "message": "the client failed at this request"}),
        ("unheard/of", {"code": -32601, "message": "unheard/of is not offered by this client"}),
    ],
)
async def test_a_request_of_the_server_that_is_not_granted_gets_an_error(
    talk: Talk, method: str, error: dict[str, Any]
) -> None:
    talk.wire.comes({"jsonrpc": "2.0", "id": 7, "method": method})
    assert await talk.wire.sent() == {"jsonrpc": "2.0", "id": 7, "error": error}


async def test_a_second_request_of_an_id_that_is_in_use_is_refused(talk: Talk) -> None:
    asked = {"jsonrpc": "2.0", "id": "r", "method": "roots/list"}
    talk.wire.comes(asked, asked)
    assert (await talk.wire.sent())["error"]["code"] == -32600


async def test_what_the_transport_could_not_carry_fails_alone(talk: Talk) -> None:
    lost, other = talk.asks(), talk.asks()
    first, second = await talk.wire.sent(), await talk.wire.sent()
    talk.wire.fails(first["id"], "the answer was lost")
    assert await outcome(lost) == "the answer was lost"
    talk.wire.answers(second["id"], done=True)
    assert await outcome(other) == {"done": True}


async def test_others_go_on_while_a_long_answer_is_read(talk: Talk) -> None:
    request = talk.asks()
    sent = await talk.wire.sent()
    rows = [{"number": number, "name": "row"} for number in range(40_000)]
    talk.wire.answers(sent["id"], rows=rows)
    turns = 0
    while not request.done():
        await asyncio.sleep(0)
        turns += 1
    assert await outcome(request) == {"rows": rows}
    assert turns > 5, "read in one go, there are two"
