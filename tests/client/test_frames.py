"""Framing in the client library: pure bytes in, messages out. Source: LSP 3.17, base protocol."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sidecar_client.errors import BrokenStream
from sidecar_client.frames import FrameDecoder, encode_frame

MESSAGES: list[dict[str, Any]] = [{"id": 1, "text": "ä\n\r\n\r\n€"}, {"method": "x", "half": "\ud800"}, {}]
STREAM = b"".join(map(encode_frame, MESSAGES))


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_messages_do_not_depend_on_how_bytes_arrive(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    decoder = FrameDecoder()
    chunks = [STREAM[start:end] for start, end in itertools.pairwise(places)]
    assert [message for chunk in chunks for message in decoder.feed(chunk)] == MESSAGES


def test_header_names_in_any_case_and_other_headers_are_fine() -> None:
    data = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-LENGTH:  2 \r\n\r\n{}"
    assert list(FrameDecoder().feed(data)) == [{}]


@pytest.mark.parametrize("body", [b"{", b"[]", b"1", b"\xff", b'"x"'])
def test_a_body_that_is_no_object_is_passed_over(body: bytes) -> None:
    data = b"Content-Length: %d\r\n\r\n%b" % (len(body), body) + encode_frame({"id": 2})
    assert list(FrameDecoder().feed(data)) == [{"id": 2}]


@pytest.mark.parametrize("data", [b"hello\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"x" * 9000])
def test_what_is_no_header_breaks_the_stream(data: bytes) -> None:
    with pytest.raises(BrokenStream, match="not a sidecar"):
        list(FrameDecoder().feed(data))


def test_a_frame_over_the_limit_breaks_the_stream_before_it_is_read() -> None:
    with pytest.raises(BrokenStream, match="a frame of 11 bytes; the limit is 10"):
        list(FrameDecoder(max_frame_bytes=10).feed(b"Content-Length: 11\r\n\r\n"))


@pytest.mark.parametrize("value", [float("nan"), {1}, object()])
def test_what_is_not_json_is_not_sent(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode_frame({"value": value})
