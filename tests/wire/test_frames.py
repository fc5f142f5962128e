"""A lost byte stream is said and ends the process; anything less is not.

Source: protocol.md, Transport and ground rule 1.3.
"""

import json
from typing import Any

import pytest

from tests.harness.wire import Wire, framed, request
from tests.wire.conftest import Spawn

LIST = json.dumps(request(1, "tools/list")).encode()
LISTED = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}

ACCEPTED = {
    "lower case": b"content-length: %d\r\n\r\n",
    "upper case": b"CONTENT-LENGTH: %d\r\n\r\n",
    "no space": b"Content-Length:%d\r\n\r\n",
    "many spaces": b"Content-Length:   %d  \r\n\r\n",
    "line feeds alone": b"Content-Length: %d\n\n",
    "another header before": b"Content-Type: x; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
    "another header after": b"Content-Length: %d\r\nX-Trace: 1\r\n\r\n",
    "a blank line before": b"\r\nContent-Length: %d\r\n\r\n",
}


@pytest.mark.parametrize("header", ACCEPTED.values(), ids=list(ACCEPTED))
def test_headers_may_be_written_in_many_ways(server: Wire, header: bytes) -> None:
    server.send_bytes(header % len(LIST) + LIST)
    assert server.read() == LISTED


def test_a_frame_may_come_byte_by_byte(server: Wire) -> None:
    for byte in framed(request("é漢😀", "tools/list")):
        server.send_bytes(bytes([byte]))
    assert server.read()["id"] == "é漢😀"


def test_many_frames_may_come_in_one_piece(server: Wire) -> None:
    server.send(*(request(number, "tools/list") for number in range(500)))
    assert [server.read()["id"] for _ in range(500)] == list(range(500))


def test_an_empty_body_is_no_json_and_no_more(server: Wire) -> None:
    server.send_bytes(b"Content-Length: 0\r\n\r\n")
    assert server.read()["error"]["code"] == -32700


FATAL = {
    "a length that is none": (b"Content-Length: -5\r\n\r\n", "is no length"),
    "a line of text": (b"DEBUG starting\n" + framed(LIST), "no header"),
    "10**30": (b"Content-Length: %d\r\n\r\n" % 10**30, "exceeds 67108864 bytes"),
}
"""One of each kind; `test_frame_parser.py` has every header that gives no usable length."""


@pytest.mark.parametrize(("stream", "why"), FATAL.values(), ids=list(FATAL))
def test_a_lost_stream_is_said_once_and_ends_the_process(spawn: Spawn, stream: bytes, why: str) -> None:
    with spawn() as server:
        server.send_bytes(stream)
        answer = server.read()
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        assert why in answer["error"]["message"]
        assert server.exit_status() == 1


@pytest.mark.parametrize("wrong_by", [-5, 5])
def test_a_length_that_is_wrong_costs_a_message_and_then_the_stream(spawn: Spawn, wrong_by: int) -> None:
    with spawn() as server:
        server.send_bytes(
            b"Content-Length: %d\r\n\r\n" % (len(LIST) + wrong_by) + LIST + framed(LIST) + framed(LIST)
        )
        assert [server.read()["error"]["code"] for _ in range(2)] == [-32700, -32700]
        assert server.exit_status() == 1


def test_a_body_cut_off_by_the_end_of_input_is_never_acted_on(spawn: Spawn) -> None:
    with spawn() as server:
        server.send_bytes(b"Content-Length: %d\r\n\r\n" % (len(LIST) + 1) + LIST)
        server.end_input()
        assert server.exit_status() == 1


def test_the_largest_frame_is_a_setting(spawn: Spawn) -> None:
    with spawn() as server:
        server.initialize(initializationOptions={"maxFrameBytes": 1000})
        assert server.call("echo", text="x" * 500) == {"text": "x" * 500}
        server.begin("echo", text="x" * 1000)
        assert "exceeds 1000 bytes" in server.read()["error"]["message"]
        assert server.exit_status() == 1


def test_a_frame_of_twenty_megabytes_goes_both_ways(server: Wire) -> None:
    arguments: dict[str, Any] = {"text": "x" * 20_000_000}
    assert server.call("echo", **arguments) == arguments
