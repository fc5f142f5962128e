"""A model server that is silent, absent or breaks off is one clear error, in time; and we let go of it at once.

Source: protocol.md, "Errors", "Model providers" and "Options"; the limits are our own choice.
"""

import asyncio
import contextlib
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.providers.base import FinishPiece, TextPiece, WarningPiece
from tests.harness.asking import asks, failure, failure_at, pieces_of, provider_at, text_of, tool
from tests.harness.model_server import (
    Reply,
    ScriptedModel,
    disconnects,
    never_begins,
    raw,
    refuses,
    resets,
    says,
    stalls,
    trickles,
)
from tests.harness.tcp import closed_port, self_signed, tcp_server


async def busy(secs: float) -> None:
    """What a consumer does that takes its time over a piece."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), secs)


# Time-outs ----------------------------------------------------------------------------------------------


async def test_a_stream_that_falls_silent_is_a_time_out() -> None:
    error = await failure(stalls(says("hello world"), after=2), idle_timeout_secs=0.2)
    assert (error.kind, error.retryable) == ("modelTimeout", True)
    assert "sent nothing for 0.2 s" in error.message and "`providers.local.idleTimeoutSecs`" in error.message


@pytest.mark.parametrize("piece", [b": keep-alive\n\n", b"event: ping\ndata:\n\n", b"id: 1\n\n", b": half a line"])
async def test_comments_and_empty_events_are_silence(piece: bytes) -> None:
    began = time.monotonic()
    error = await failure(trickles(says("hello"), piece), idle_timeout_secs=0.3)
    assert error.kind == "modelTimeout"
    assert time.monotonic() - began < 2


async def test_events_with_data_end_the_silence() -> None:
    reply = trickles(says("!"), b'data: {"choices": []}\n\n', every_secs=0.2, times=6)
    async with ScriptedModel(reply) as model, provider_at(model, idle_timeout_secs=1.0) as provider:
        assert text_of(await pieces_of(provider)) == "!"


async def test_a_slow_consumer_is_no_silence_of_the_server() -> None:
    async with ScriptedModel(says("one two")) as model, provider_at(model, idle_timeout_secs=0.2) as provider:
        text = ""
        async for piece in provider.stream(asks()):
            if isinstance(piece, TextPiece):
                text += piece.text
                await busy(0.3)
    assert text == "one two"


@pytest.mark.parametrize("limits", [{"timeout_secs": 0.2}, {"idle_timeout_secs": 0.2}], ids=repr)
async def test_a_server_that_does_not_begin_to_answer_is_a_time_out(limits: dict[str, float]) -> None:
    error = await failure(never_begins(says("hello")), **limits)
    assert (error.kind, error.retryable) == ("modelTimeout", True)
    assert "did not begin to answer within 0.2 s" in error.message
    (setting,) = ("timeoutSecs" if name == "timeout_secs" else "idleTimeoutSecs" for name in limits)
    assert f"`providers.local.{setting}`" in error.message


async def test_a_stream_without_a_first_event_has_not_begun() -> None:
    error = await failure(stalls(says("hello"), after=0), timeout_secs=0.2)
    assert error.kind == "modelTimeout" and "did not begin" in error.message


async def test_an_answer_may_take_longer_than_its_beginning() -> None:
    reply = stalls(says("one two"), after=2, secs=1.5)
    async with ScriptedModel(reply) as model, provider_at(model, timeout_secs=1.0) as provider:
        assert text_of(await pieces_of(provider)) == "one two"


async def test_a_whole_answer_that_stalls_is_a_time_out() -> None:
    reply = stalls(raw('{"choices"', ": []}", content_type="application/json"), after=1)
    assert (await failure(reply, idle_timeout_secs=0.2)).kind == "modelTimeout"


async def test_an_error_whose_words_never_come_is_told_by_its_status() -> None:
    reply = stalls(refuses(503, "overloaded"), after=0)
    async with ScriptedModel(reply) as model, provider_at(model) as provider:
        asked = asyncio.create_task(pieces_of(provider))
        await reply.stall.reached.wait()
        reply.stall.release()
        with pytest.raises(ModelError, match="HTTP 503: overloaded"):
            await asked


async def test_a_server_that_accepts_no_connection_is_a_time_out() -> None:
    # On Linux, a full queue of connections that nobody accepts makes the next one wait.
    with socket.socket() as server, contextlib.ExitStack() as stack:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        error = await failure_at(f"http://127.0.0.1:{server.getsockname()[1]}", connect_timeout_secs=0.2)
    assert error.kind == "modelTimeout" and "`providers.local.connectTimeoutSecs`" in error.message


# Connections --------------------------------------------------------------------------------------------


async def test_a_server_that_is_not_there_says_what_to_start() -> None:
    error = await failure_at(f"http://127.0.0.1:{closed_port()}/v1")
    assert isinstance(error, ModelError) and error.retryable and error.kind == "modelError"
    assert "cannot connect to http://127.0.0.1:" in error.message
    assert "refused" in error.message and "start the server" in error.message


async def test_the_usual_port_says_how_to_start_its_server() -> None:
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 11434))  # Bound, but not listening: whoever connects is refused.
        except OSError:
            pytest.skip("Ollama's port is in use")
        error = await failure_at("http://127.0.0.1:11434")
    assert "`ollama serve`" in error.message


async def test_a_host_that_does_not_exist_says_so() -> None:
    error = await failure_at("http://no-such-host.invalid/v1")
    assert isinstance(error, ModelError) and error.retryable
    assert "no-such-host.invalid" in error.message and "check the network" in error.message


@pytest.mark.parametrize("lose", [disconnects, resets])
async def test_a_connection_that_is_lost_half_way_may_be_tried_again(lose: Any) -> None:
    error = await failure(lose(says("hello world"), after=3))
    assert (error.kind, error.retryable) == ("modelError", True)
    assert "was lost" in error.message


@pytest.mark.parametrize("lose", [disconnects, resets])
async def test_a_connection_that_is_lost_after_the_end_does_not_matter(lose: Any) -> None:
    async with ScriptedModel(lose(says("hi", usage=None), after=3)) as model, provider_at(model) as provider:
        assert await pieces_of(provider) == [TextPiece(text="hi"), FinishPiece(reason="stop")]


async def test_a_server_that_hangs_up_without_an_answer_may_be_tried_again() -> None:
    async with tcp_server(b"") as (url, _):
        error = await failure_at(url)
    assert isinstance(error, ModelError) and error.retryable and "was lost" in error.message


async def test_a_server_that_speaks_no_http_may_be_tried_again() -> None:
    async with tcp_server(b"220 mail ready\r\n") as (url, _):
        error = await failure_at(url)
    assert isinstance(error, ModelError) and error.retryable


async def test_a_kept_connection_that_the_server_closed_is_made_anew() -> None:
    replies = (disconnects(says("one", usage=None), after=5), says("two"))
    async with ScriptedModel(*replies) as model, provider_at(model) as provider:
        assert text_of(await pieces_of(provider)) == "one"
        assert text_of(await pieces_of(provider)) == "two"
        assert model.connections == 2


async def test_tls_to_a_server_without_it_is_a_clear_error() -> None:
    async with tcp_server(b"HTTP/1.1 400 Bad Request\r\n\r\n", until=b"\x03") as (url, _):
        error = await failure_at(url.replace("http:", "https:"))
    assert isinstance(error, ModelError) and not error.retryable
    assert "does not speak TLS" in error.message and "write http://" in error.message


async def test_a_tls_handshake_that_never_ends_is_a_time_out() -> None:
    async with ScriptedModel() as model:
        error = await failure_at(model.base_url.replace("http:", "https:"), connect_timeout_secs=0.2)
    assert error.kind == "modelTimeout" and "no connection within 0.2 s" in error.message


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
async def test_a_server_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    async with tcp_server(b"", tls=self_signed(tmp_path)) as (url, _):
        error = await failure_at(url.replace("http:", "https:"))
    assert isinstance(error, ModelError) and not error.retryable
    assert "is not trusted" in error.message and "SSL_CERT_FILE" in error.message


# Ending early -------------------------------------------------------------------------------------------


async def test_closing_the_stream_ends_the_request_at_once() -> None:
    async with ScriptedModel(stalls(says("hello world"), after=2)) as model, provider_at(model) as provider:
        stream = provider.stream(asks())
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(model.requests[0].disconnected.wait(), 1)


async def test_closing_the_stream_at_a_warning_ends_the_request_too() -> None:
    async with ScriptedModel(stalls(says("hello world"), after=2)) as model, provider_at(model) as provider:
        stream = provider.stream(asks(tools=(tool("a.b"),)))
        assert isinstance(await anext(stream), WarningPiece)
        await stream.aclose()
        await asyncio.wait_for(model.requests[0].disconnected.wait(), 1)


@pytest.mark.parametrize("reply", [stalls(says("hello"), after=2), never_begins(says("hello"))], ids=range(2))
async def test_cancelling_ends_the_request_at_once(reply: Reply) -> None:
    async with ScriptedModel(reply) as model, provider_at(model) as provider:
        asked = asyncio.create_task(pieces_of(provider))
        await asyncio.wait_for(reply.stall.reached.wait(), 5)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.wait_for(model.requests[0].disconnected.wait(), 1)


async def test_a_provider_can_be_used_after_a_stream_was_closed() -> None:
    async with ScriptedModel(stalls(says("one"), after=2), says("two")) as model, provider_at(model) as provider:
        stream = provider.stream(asks())
        await anext(stream)
        await stream.aclose()
        assert text_of(await pieces_of(provider)) == "two"


async def test_closing_the_provider_ends_a_stream_with_an_error() -> None:
    reply = stalls(says("hello"), after=2)
    async with ScriptedModel(reply) as model, provider_at(model) as provider:
        asked = asyncio.create_task(pieces_of(provider))
        await reply.stall.reached.wait()
        await provider.aclose()
        with pytest.raises(ModelError):
            await asyncio.wait_for(asked, 5)


# Proxies and certificates -------------------------------------------------------------------------------


async def test_a_proxy_that_cannot_be_used_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "ftp://user:hunter2secret@127.0.0.1:1")
    error = await failure_at("http://127.0.0.1:9/v1")
    assert isinstance(error, ConfigurationError) and error.path == "HTTP_PROXY"
    assert "hunter2secret" not in error.message and "NO_PROXY" in error.message


async def test_a_socks_proxy_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    error = await failure_at("http://127.0.0.1:9/v1")
    assert error.kind == "invalidConfiguration" and "ALL_PROXY" in error.message and "socksio" in error.message


async def test_a_proxy_that_is_not_there_is_an_io_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    async with ScriptedModel() as model:
        error = await failure_at(model.base_url)
    assert error.kind == "io" and "HTTP_PROXY" in error.message and "NO_PROXY" in error.message


async def test_a_proxy_is_used_when_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tcp_server(b"HTTP/1.1 502 Bad\r\ncontent-length: 0\r\n\r\n") as (url, head):
        monkeypatch.setenv("http_proxy", url)
        await failure_at("http://model.example/v1")
        assert (await head).startswith(b"POST http://model.example/v1/chat/completions ")


async def test_a_proxy_that_does_not_apply_is_not_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "nonsense://")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with ScriptedModel(says("hi")) as model, provider_at(model) as provider:
        assert text_of(await pieces_of(provider)) == "hi"


async def test_certificates_that_cannot_be_read_name_their_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for broken in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        (tmp_path / "empty.pem").write_text("nothing here")
        monkeypatch.setenv("SSL_CERT_FILE", str(broken))
        error = await failure_at("https://127.0.0.1:9/v1")
        assert isinstance(error, ConfigurationError) and error.path == "SSL_CERT_FILE"
