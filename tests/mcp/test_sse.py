"""Server-sent events as MCP uses them. Source: HTML standard, 9.2.5 and 9.2.6; the limit is our own choice."""

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.mcp.framing import OversizedLine
from sidecar.mcp.sse import Event, EventDecoder

STREAM = (
    b"\xef\xbb\xbf: hello\r\nid: 1\nretry: 500\ndata:\n\n"
    b'event: message\r\ndata: {"a":\r\ndata: 1}\r\nid: 2\r\n\r\n'
    b"data:no space\rdata:  two\r\r"
    b"event: endpoint\ndata: /messages\n\n"
    b": only a comment\n\n"
    b"nonsense\nretry: soon\ndata\n\n"
    b"id: 3\ndata: cut off"
)
EVENTS = [
    Event("message", b""),
    Event("message", b'{"a":\n1}'),
    Event("message", b"no space\n two"),
    Event("endpoint", b"/messages"),
    Event("message", b""),
]


@pytest.mark.parametrize("size", [*range(1, 12), 1000])
def test_events_do_not_depend_on_how_bytes_arrive(size: int) -> None:
    decoder = EventDecoder()
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in decoder.feed(piece)] == EVENTS
    assert (decoder.last_id, decoder.retry_ms) == ("2", 500)


PARTS = st.sampled_from(
    ["data", "event", "id", "retry", ":", ": ", "\n", "\r", "\r\n", "\n\n", "x", "é", "7", "\0", " "]
)


@given(st.lists(PARTS, max_size=40), st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_what_is_in_a_stream_is_what_another_reader_finds_in_it(parts: list[str], size: int) -> None:
    stream = "".join(parts).encode()
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=stream)
    theirs = [(event.event, event.data.encode()) for event in EventSource(response).iter_sse() if event.data]
    decoder = EventDecoder()
    ours = [event for start in range(0, len(stream), size) for event in decoder.feed(stream[start : start + size])]
    assert [(event.kind, event.data) for event in ours if event.data] == theirs


def test_an_id_counts_once_its_event_is_whole() -> None:
    decoder = EventDecoder()
    decoder.feed(b"id: 1\n")
    assert decoder.last_id is None
    decoder.feed(b"\n")
    assert decoder.last_id == "1"
    decoder.feed(b"id: bad\0id\ndata: x\n\n")
    assert decoder.last_id == "1"
    decoder.feed(b"id:\n\n")
    assert decoder.last_id is None


@pytest.mark.parametrize("size", [7, 64, 4096])
def test_data_beyond_the_limit_is_known_by_its_ends_and_what_follows_is_whole(size: int) -> None:
    decoder = EventDecoder(max_data_bytes=100)
    long = b"data: {" + b"x" * 200 + b"}\nid: 8\n\n"
    many = b"".join(b"data: %030d\n" % number for number in range(9)) + b"\n"
    stream = long + b"data: " + b"y" * 100 + b"\n\n" + many + b"data: short\n\n"
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    first, fits, lines, last = [event for piece in pieces for event in decoder.feed(piece)]
    assert isinstance(first.data, OversizedLine)
    assert first.data.head.startswith(b"{xxx")
    assert first.data.tail.endswith(b"x}")
    assert fits.data == b"y" * 100
    assert isinstance(lines.data, OversizedLine)
    assert lines.data.head.startswith(b"0")
    assert last.data == b"short"
    assert decoder.last_id == "8"
