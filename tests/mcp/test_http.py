"""A client and real servers over HTTP. Source: MCP 2025-11-25, basic/transports#streamable-http; MCP 2026-07-28,
basic/transports/streamable-http; limits and leniency are our own choice."""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.client import Client
from sidecar.mcp.config import HttpServer, decode_server
from sidecar.mcp.connection import Connection
from sidecar.mcp.http_transport import MAX_OPEN_REQUESTS, open_http
from sidecar.mcp.tail import Tail
from sidecar.mcp.transport import Outgoing, SessionLostError
from sidecar.protocol.errors import SidecarError, ToolError
from tests.harness.mcp_http_faults import streamed
from tests.harness.mcp_http_server import (
    MALFORMED,
    MIRRORED,
    McpHttpServer,
    Seen,
    Wire,
    result,
    server_process,
    text,
    tool,
)
from tests.harness.tcp import closed_port, self_signed, tcp_server
from tests.mcp.conftest import http_client, words_of

BOUND_SECS = 5.0


async def call(client: Client, name: str = "echo", **arguments: Any) -> str:
    """The words of a result, within the bound."""
    return words_of(await asyncio.wait_for(client.call_tool(name, arguments), BOUND_SECS))


async def failure(server: McpHttpServer | str, **fields: Any) -> SidecarError:
    """Why a server cannot be connected."""
    entry = {"url": server, **fields} if isinstance(server, str) else server.entry(**fields)
    client = Client("s", decode_server("s", entry))
    with pytest.raises(SidecarError) as caught:
        await asyncio.wait_for(client.connect(), BOUND_SECS)
    await client.close()
    return caught.value


@contextlib.asynccontextmanager
async def speaking(server: McpHttpServer, tokens: Authorization | None = None) -> AsyncIterator[Connection]:
    """A connection to a server, without a client on top."""
    transport = await open_http("s", HttpServer(url=server.url), authorization=tokens)
    connection = Connection(
        transport,
        server="s",
        timeout_secs=BOUND_SECS,
        tail=Tail(),
        replies={},
        on_notification=lambda method, params: None,
    )
    reading = asyncio.create_task(connection.read())
    yield connection
    await transport.close()
    await reading


# What is sent -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replies", ["json", "sse"])
async def test_a_session_is_begun_kept_and_ended(replies: Any) -> None:
    async with McpHttpServer(replies=replies) as server:
        async with http_client(server, headers={"X-Own": "mine", "Accept": "nothing"}) as client:
            assert await call(client, text="hi") == "hi"
            (session,) = server.sessions
        assert server.sessions == set()
    first, initialized, called = (
        server.all(name)[0] for name in ("initialize", "notifications/initialized", "tools/call")
    )
    assert (first.http, first.path) == ("POST", "/mcp")
    assert first.headers["content-type"] == "application/json"
    assert first.headers["accept"] == "application/json, text/event-stream"
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    for seen in (initialized, called, server.all("DELETE")[0]):
        assert seen.headers["mcp-session-id"] == session
        assert seen.headers["mcp-protocol-version"] == "2025-11-25"
        assert seen.headers["x-own"] == "mine"
    assert "mcp-method" not in called.headers


async def test_a_stateless_request_says_in_its_headers_what_it_is() -> None:
    async with McpHttpServer(eras=("modern",), tools=[tool("ünï")]) as server, http_client(server) as client:
        assert client.protocol_version == "2026-07-28"
        await client.tools()
        await call(client, "echo", text="hi")
        with pytest.raises(ToolError, match="mcp-name"):  # This server compares without decoding.
            await call(client, "ünï")
    called, encoded = server.all("tools/call")[:2]
    assert called.headers["mcp-protocol-version"] == "2026-07-28"
    assert (called.headers["mcp-method"], called.headers["mcp-name"]) == ("tools/call", "echo")
    assert encoded.headers["mcp-name"] == "=?base64?w7xuw68=?="
    assert not any("mcp-session-id" in seen.headers for seen in server.seen)
    assert not server.all("GET") + server.all("DELETE") + server.all("initialize")


async def test_parameters_are_mirrored_and_a_tool_that_cannot_be_is_left_out() -> None:
    warnings: list[str] = []
    async with (
        McpHttpServer(eras=("modern",), tools=[MIRRORED, MALFORMED]) as server,
        http_client(server, on_warning=warnings.append) as client,
    ):
        assert [tool.name for tool in await client.tools()] == ["mirrored"]
        await call(client, "mirrored", region="us-west1")
        server.tools[:] = [tool("mirrored", zone={"type": "integer", "x-mcp-header": "Zone"})]
        await call(client, "mirrored", zone=7)
    assert server.all("tools/call")[0].headers["mcp-param-region"] == "us-west1"
    assert [seen.headers.get("mcp-param-zone") for seen in server.all("tools/call")[1:]] == [None, "7"]
    assert warnings == ["tool 'malformed' is left out: x-mcp-header of parameter 'region' is no name of a header"]


async def test_what_follows_the_handshake_waits_until_its_end_has_arrived() -> None:
    async with McpHttpServer() as server:
        server.may_initialize.clear()
        async with http_client(server) as client:
            listing = asyncio.create_task(client.tools())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(server.received("tools/list"), 0.2)
            server.may_initialize.set()
            assert await asyncio.wait_for(listing, BOUND_SECS)


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_keeps_method_and_body(status: int) -> None:
    async def play(wire: Wire, seen: Seen) -> None:
        if seen.headers.get("x-hop"):
            await wire.json(result(seen.id, text("there")))
        else:
            await wire.respond(status, location="/mcp?hop")

    async with McpHttpServer(faults={"redirect": play}) as server, http_client(server) as client:
        server.rewrites["/mcp?hop"] = "x-hop"
        assert await call(client, "fault", kind="redirect") == "there"


@pytest.mark.parametrize(
    "answer",
    [
        *((status, "no") for status in (400, 404, 405, 422, 500, 501)),
        *((status, "") for status in (200, 202, 400, 404)),
        (200, "<html>no</html>"),
        (200, {"jsonrpc": "2.0", "id": 99, "result": {}}),
        (400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no"}}),
    ],
    ids=str,
)
async def test_whatever_a_server_answers_to_what_it_does_not_know_the_handshake_is_tried(answer: Any) -> None:
    async with McpHttpServer(on_discover=answer) as server, http_client(server) as client:
        assert client.protocol_version == "2025-11-25"
        assert await call(client, text="hi") == "hi"


# What comes ---------------------------------------------------------------------------------------------


async def test_the_server_is_heard_on_its_own_stream_and_again_after_that_broke() -> None:
    lists: asyncio.Queue[Any] = asyncio.Queue()
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    async with McpHttpServer() as server, http_client(server, on_tools=lists.put_nowait) as client:
        await client.tools()
        for number, name in enumerate(("one", "two"), 1):
            server.tools.append(tool(name))
            await server.push(changed, id=f"e{number}", retry=10)
            assert name in {tool.name for tool in await asyncio.wait_for(lists.get(), BOUND_SECS)}
            server.end_streams()
            again = await server.received("GET", number + 1)
            assert again.headers["last-event-id"] == f"e{number}"


async def test_a_server_without_a_stream_of_its_own_is_not_asked_again() -> None:
    async with McpHttpServer(has_stream=False) as server, http_client(server) as client:
        await server.received("GET")
        assert await call(client, text="hi") == "hi"
        assert len(server.all("GET")) == 1


async def test_the_server_may_ask_on_the_stream_of_a_call() -> None:
    async with McpHttpServer() as server, http_client(server) as client:
        assert await call(client, "ask") == "{}"


async def test_progress_comes_before_the_answer() -> None:
    heard: list[Any] = []

    async def on_progress(*report: Any) -> None:
        heard.append(report)

    async def play(wire: Wire, seen: Seen) -> None:
        await wire.stream()
        for step in (1, 2):
            params = {"progressToken": seen.meta["progressToken"], "progress": step, "total": 2}
            await wire.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await wire.event(result(seen.id, text("done")))
        await wire.end()

    async with McpHttpServer(faults={"steps": play}) as server, http_client(server) as client:
        await client.call_tool("fault", {"kind": "steps"}, on_progress=on_progress)
    assert heard == [(1, 2, None), (2, 2, None)]


async def test_many_calls_at_once_get_each_its_own_answer() -> None:
    async with McpHttpServer(replies="sse") as server, http_client(server) as client:
        words = [str(number) for number in range(60)]
        assert await asyncio.gather(*(call(client, text=word) for word in words)) == words


async def test_only_so_many_requests_are_under_way_and_the_others_wait_for_their_turn() -> None:
    async with McpHttpServer() as server, http_client(server) as client:
        calls = [asyncio.create_task(client.call_tool("silent", {})) for _ in range(MAX_OPEN_REQUESTS + 3)]
        await server.received("tools/call", MAX_OPEN_REQUESTS)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(server.received("tools/call", MAX_OPEN_REQUESTS + 1), 0.2)
        calls.pop().cancel()  # It was never sent, so nobody has to be told.
        calls.pop(0).cancel()
        await server.received("tools/call", MAX_OPEN_REQUESTS + 1)
        (told,) = server.all("notifications/cancelled")
        assert told.params["requestId"] == server.all("tools/call")[0].id
        for calling in calls:
            calling.cancel()


@pytest.mark.parametrize("replies", ["json", "sse"])
async def test_a_large_result_costs_little_and_the_loop_keeps_ticking(replies: Any) -> None:
    """In processor time of this process, so that it does not count what else the machine does. Work that grows
    with the square of the size takes minutes; `tests/bench/bench_mcp.py` measures how long it really takes.
    """
    ticks: list[float] = []
    loop = asyncio.get_running_loop()

    def tick() -> None:
        ticks.append(time.process_time())
        if len(ticks) < 10_000:
            loop.call_later(0.001, tick)

    async with server_process(replies) as url, http_client(url) as client:
        tick()
        assert len(await call(client, "huge", bytes=20_000_000)) == 20_000_000
        spent_secs = time.process_time() - ticks[0]
    assert spent_secs < 3
    assert max(after - before for before, after in itertools.pairwise(ticks)) < 1


async def test_an_answer_with_the_id_of_another_request_settles_neither() -> None:
    others: list[int] = []

    async def note(wire: Wire, seen: Seen) -> None:
        others.append(seen.id)
        await seen.disconnected.wait()

    async def mixed_up(wire: Wire, seen: Seen) -> None:
        await wire.json(result(others[0], text("not for you")))

    async with (
        McpHttpServer(faults={"note": note, "mixed up": mixed_up}) as server,
        http_client(server) as client,
    ):
        other = asyncio.create_task(client.call_tool("fault", {"kind": "note"}))
        await server.until(lambda: others)
        with pytest.raises(ToolError, match="sent no answer to tools/call in what it sent for it"):
            await call(client, "fault", kind="mixed up")
        assert not other.done()
        other.cancel()


# Streams that break off ---------------------------------------------------------------------------------


async def test_a_stream_that_broke_off_is_resumed_when_the_server_wants_it() -> None:
    closed_at: list[float] = []

    async def rest(wire: Wire, seen: Seen) -> None:
        closed_at.append(time.perf_counter())
        await wire.stream()
        if seen.headers["last-event-id"] == "one":
            server.rests["two"] = rest
            await wire.event(None, id="two", retry=50)
        else:
            await wire.event(result(calls[-1], text("after all")), id="three")
        await wire.end()

    async def play(wire: Wire, seen: Seen) -> None:
        calls.append(seen.id)
        server.rests["one"] = rest
        await wire.stream()
        await wire.event(None, id="one", retry=300)
        await wire.end()
        closed_at.append(time.perf_counter())

    calls: list[int] = []
    async with McpHttpServer(faults={"poll": play}, has_stream=False) as server, http_client(server) as client:
        assert await call(client, "fault", kind="poll") == "after all"
    first, second = closed_at[1] - closed_at[0], closed_at[2] - closed_at[1]
    assert 0.29 < first < 2
    assert 0.04 < second < 2
    assert server.all("GET")[-1].headers["mcp-session-id"].startswith("secret")


async def test_a_stream_that_cannot_be_resumed_fails_its_call_and_says_that_it_may_have_run() -> None:
    async def play(wire: Wire, seen: Seen) -> None:
        await wire.stream()
        await wire.event(None, id="one", retry=1)
        await wire.end()

    async with McpHttpServer(faults={"poll": play}, has_stream=False) as server, http_client(server) as client:
        with pytest.raises(ToolError) as caught:
            await call(client, "fault", kind="poll")
    assert caught.value.message == (
        "the stream of server 's' ended before its answer to tools/call (server 's' answered the rest of "
        "tools/call with HTTP 405 Method Not Allowed; check mcpServers.s.url); whether it was carried out is not "
        "known, so it is not sent again"
    )


async def test_a_stream_that_never_says_anything_new_is_given_up() -> None:
    async def nothing(wire: Wire, seen: Seen) -> None:
        server.rests["one"] = nothing
        await wire.stream()
        await wire.end()

    async def play(wire: Wire, seen: Seen) -> None:
        server.rests["one"] = nothing
        await wire.stream()
        await wire.event(None, id="one", retry=1)
        await wire.end()

    async with McpHttpServer(faults={"poll": play}, has_stream=False) as server, http_client(server) as client:
        with pytest.raises(ToolError, match="ended before its answer"):
            await call(client, "fault", kind="poll")
        assert len(server.all("GET")) < 10


async def test_an_answer_may_come_on_the_stream_of_the_servers_own_messages() -> None:
    async def later(wire: Wire, seen: Seen) -> None:
        await wire.respond(202)
        accepted.set()

    accepted = asyncio.Event()
    async with McpHttpServer(faults={"later": later}) as server, http_client(server) as client:
        await server.until(lambda: server.streams)
        calling = asyncio.create_task(call(client, "fault", kind="later"))
        await accepted.wait()
        assert await call(client, text="meanwhile") == "meanwhile"
        await server.push(result(server.all("tools/call")[0].id, text("later")))
        assert await calling == "later"


async def test_a_stream_that_stays_open_behind_its_answer_is_closed() -> None:
    left_open = streamed(b"data: OK\n\n", is_ended=False)
    async with McpHttpServer(faults={"left open": left_open}) as server, http_client(server) as client:
        assert await call(client, "fault", kind="left open") == "ok"
        async with asyncio.timeout(BOUND_SECS):
            await server.all("tools/call")[0].disconnected.wait()


# Giving up ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("name", ["silent", "slow"])
async def test_a_call_that_nobody_waits_for_is_cancelled_at_the_server(era: Any, name: str) -> None:
    async with McpHttpServer(eras=(era,)) as server, http_client(server) as client:
        with pytest.raises(ToolError) as caught:
            await client.call_tool(name, {}, timeout_secs=0.1)
        assert caught.value.kind == "mcpTimeout"
        calling = asyncio.create_task(client.call_tool(name, {}))
        await server.received("tools/call", 2)
        calling.cancel()
        for seen in server.all("tools/call"):
            async with asyncio.timeout(BOUND_SECS):
                await seen.disconnected.wait()
        told = [seen.params["requestId"] for seen in server.all("notifications/cancelled")]
    assert told == ([] if era == "modern" else [seen.id for seen in server.all("tools/call")])


@pytest.mark.parametrize("lost_status", [400, 404])
async def test_a_server_that_was_restarted_gets_a_new_session_and_the_calls_again(lost_status: Any) -> None:
    async with McpHttpServer(lost_status=lost_status) as server, http_client(server) as client:
        assert await call(client, text="before") == "before"
        await server.restart()
        words = ["a", "b", "c"]
        assert await asyncio.gather(*(call(client, text=word) for word in words)) == words
        assert len(server.all("initialize")) == 2
        assert len(server.sessions) == 1


async def test_nothing_is_asked_in_a_session_that_is_lost() -> None:
    async with McpHttpServer() as server, speaking(server) as connection:
        await connection.request("initialize", {})
        server.sessions.clear()
        for _ in range(3):
            with pytest.raises(SessionLostError):
                await connection.request("tools/list")
        assert len(server.all("tools/list")) == 1
        await connection.request("initialize", {})
        await connection.request("tools/list")


async def test_a_server_that_sends_more_than_is_taken_is_read_no_further() -> None:
    async def flood(wire: Wire, seen: Seen) -> None:
        await wire.stream()
        while len(sent) < 1000:
            await wire.event(
                {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 2**18}}
            )
            sent.append(1)

    sent: list[int] = []
    async with McpHttpServer(faults={"flood": flood}) as server:
        transport = await open_http("s", HttpServer(url=server.url))
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).encode()
        transport.send(Outgoing(body, 1, "initialize"))
        await transport.receive()
        params = {"name": "fault", "arguments": {"kind": "flood"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()
        transport.send(Outgoing(body, 2, "tools/call", params))
        seen = await server.received("tools/call")
        before = -1
        async with asyncio.timeout(BOUND_SECS):
            while before != len(sent) or not sent:  # Until the pipe between the two is full.
                before = len(sent)
                for _ in range(200):
                    await asyncio.sleep(0)
        assert len(sent) < 200
        assert not seen.disconnected.is_set()
        await transport.close()


async def test_a_server_that_forgets_every_session_fails_the_call() -> None:
    async with McpHttpServer() as server, http_client(server) as client:
        server.keeps_sessions = False
        server.sessions.clear()
        with pytest.raises(ToolError) as caught:
            await call(client, text="hi")
    assert caught.value.message == (
        "server 's' has forgotten this session, as after a restart: HTTP 404 Session not found"
    )


@pytest.mark.parametrize(
    ("status", "words", "is_lost"),
    [
        (400, "Bad Request: No valid session ID provided", True),
        (400, "Bad Request: Server not initialized", True),
        (400, "Session abc not found", True),
        (404, "", True),
        (400, "session_id must be a string", False),
        (410, "Session not found", False),
    ],
)
async def test_a_session_is_lost_where_the_server_says_so(status: int, words: str, is_lost: bool) -> None:
    async def play(wire: Wire, seen: Seen) -> None:
        if len(server.sessions) == 1 and len(server.all("initialize")) == 1:
            await wire.respond(status, words.encode(), "text/plain")
        else:
            await wire.json(result(seen.id, text("in a new session")))

    async with McpHttpServer(faults={"lost": play}) as server, http_client(server) as client:
        if is_lost:
            assert await call(client, "fault", kind="lost") == "in a new session"
        else:
            with pytest.raises(ToolError, match=f"with HTTP {status} .*: {words}"):
                await call(client, "fault", kind="lost")


async def test_a_server_that_went_away_fails_its_calls_and_is_used_again_when_it_is_back() -> None:
    async with McpHttpServer() as server, http_client(server) as client:
        waiting = asyncio.create_task(client.call_tool("silent", {}))
        await server.received("tools/call")
        await server.stop()
        with pytest.raises(ToolError, match="connection to server 's' was lost at tools/call"):
            await asyncio.wait_for(waiting, BOUND_SECS)
        with pytest.raises(ToolError) as caught:
            await call(client, text="hi")
        assert caught.value.message == (
            f"server 's' cannot be reached at {server.url}: Connection refused; start it, or correct "
            "mcpServers.s.url"
        )
        await server.start()
        assert await call(client, text="back") == "back"


@pytest.mark.parametrize("manner", ["refuses", "is silent", "is gone"])
async def test_closing_does_not_wait_for_the_server(manner: str) -> None:
    async with McpHttpServer() as server:
        async with http_client(server) as client:
            await call(client, text="hi")
            server.on_delete = manner
            if manner == "is gone":
                await server.stop()
            before = time.perf_counter()
        assert time.perf_counter() - before < 2


async def test_what_the_server_has_not_taken_is_counted_until_it_has() -> None:
    async with McpHttpServer() as server:
        transport = await open_http("s", HttpServer(url=server.url))
        transport.send(Outgoing(b'{"method":"initialize","id":1}' + b" " * 1000, 1, "initialize"))
        await server.received("initialize")
        assert transport.unsent_bytes > 1000
        await transport.receive()
        assert transport.unsent_bytes == 0
        transport.kill()
        while await asyncio.wait_for(transport.receive(), BOUND_SECS):
            pass
        await transport.close()


# Who cannot be reached ----------------------------------------------------------------------------------


async def test_a_server_that_is_not_there_is_named_with_what_to_do() -> None:
    port = closed_port()
    error = await failure(f"http://user:pass@127.0.0.1:{port}/mcp?key=secret")
    assert error.message == (
        f"server 's' cannot be reached at http://127.0.0.1:{port}/mcp: Connection refused; start it, or correct "
        "mcpServers.s.url"
    )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"url": "example.com/mcp?key=secret"}, "mcpServers.s.url"),
        ({"url": "ftp://example.com/secret"}, "mcpServers.s.url"),
        ({"url": "http://"}, "mcpServers.s.url"),
        ({"url": "http://[secret"}, "mcpServers.s.url"),
        ({"url": "http://a:port/secret"}, "mcpServers.s.url"),
        ({"url": "http://a/", "headers": {"A": "secret\r\nB: c"}}, "mcpServers.s.headers.A"),
        ({"url": "http://a/", "headers": {"A": "secret✓"}}, "mcpServers.s.headers.A"),
        ({"url": "http://a/", "headers": {"A b": "secret"}}, "mcpServers.s.headers"),
    ],
)
async def test_an_entry_that_cannot_be_used_is_named_without_what_it_holds(fields: Any, path: str) -> None:
    error = await failure(fields.pop("url"), **fields)
    assert error.data == {"path": path}
    assert error.message.startswith(path)
    assert "secret" not in error.message


async def test_a_proxy_and_certificates_that_cannot_be_used_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    async with tcp_server(b"", tls=self_signed(tmp_path)) as (url, _):
        secure = url.replace("http://", "https://")
        assert "name the file with its authority in the environment variable SSL_CERT_FILE" in (
            (await failure(secure)).message
        )
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        assert (await failure(secure)).data == {"path": "SSL_CERT_FILE"}
        monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@127.0.0.1:{closed_port()}")
    error = await failure("http://mcp.invalid/mcp")
    assert error.kind == "io"
    assert "the proxy that HTTP_PROXY names, on the way to http://mcp.invalid/mcp, cannot be used" in error.message
    monkeypatch.setenv("HTTP_PROXY", "gopher://secret")
    error = await failure("http://mcp.invalid/mcp")
    assert error.data == {"path": "HTTP_PROXY"}
    assert "secret" not in error.message


async def test_a_proxy_is_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    async with McpHttpServer(routes={"http://mcp.invalid/mcp": "/mcp"}) as server:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
        client = Client("s", decode_server("s", {"url": "http://mcp.invalid/mcp"}))
        await client.connect()
        assert await call(client, text="hi") == "hi"
        await client.close()


# Who we are ---------------------------------------------------------------------------------------------


class Tokens:
    """An authorization that has the next token after each challenge."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)
        self.challenges: list[tuple[int, str]] = []

    async def headers(self, method: str, url: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self._tokens[0]}"} if self._tokens[0] else {}

    async def challenged(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        self.challenges.append((status, headers["www-authenticate"]))
        if len(self._tokens) > 1:
            self._tokens.pop(0)
            return True
        return False


async def test_a_challenge_is_met_and_the_request_sent_again() -> None:
    tokens = Tokens("", "old", "good")
    async with McpHttpServer(token="good") as server, speaking(server, tokens) as connection:
        await connection.request("initialize", {})
        await connection.request("tools/list")
    assert tokens.challenges == [(401, "Bearer"), (401, "Bearer")]
    assert [seen.headers.get("authorization") for seen in server.seen[:4]] == [
        None,
        "Bearer old",
        "Bearer good",
        "Bearer good",
    ]


async def test_challenges_that_lead_nowhere_end() -> None:
    tokens = Tokens(*map(str, range(9)))
    async with McpHttpServer(token="good") as server, speaking(server, tokens) as connection:
        with pytest.raises(ToolError) as caught:
            await connection.request("initialize", {})
    assert caught.value.data["needsAuth"] is True
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    ("headers", "advice"),
    [
        ({}, "it needs to know who you are: give it a token in mcpServers.s.headers"),
        ({"Authorization": "Bearer wrong-token"}, "check the credentials in mcpServers.s.headers"),
    ],
)
async def test_a_server_that_wants_to_know_who_we_are_says_where_to_write_it(headers: Any, advice: str) -> None:
    async with McpHttpServer(token="good") as server:
        error = await failure(server, headers=headers)
    assert error.data == {"server": "s", "status": 401, "needsAuth": True}
    assert "with HTTP 401 Unauthorized: invalid_token" in error.message
    assert advice in error.message
    assert "wrong-token" not in error.message
