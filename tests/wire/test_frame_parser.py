"""Frames come out the same however the bytes are cut.

Source: LSP 3.17, "Base Protocol"; protocol.md, Transport and ground rule 1.3.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.server.framing import MAX_HEADER_BYTES, FrameParser, FramingError, frame

BODIES = st.lists(st.binary(max_size=60), max_size=6)
NAMES = st.sampled_from(["Content-Length", "content-length", "CONTENT-LENGTH", " Content-Length "])
OTHER_HEADERS = st.sampled_from(["", "Content-Type: application/vscode-jsonrpc; charset=utf-8\n", "X: é: y\n"])
LINE_ENDS = st.sampled_from(["\r\n", "\n"])


@st.composite
def written_by_some_host(draw: st.DrawFn, body: bytes) -> bytes:
    spaces = draw(st.sampled_from(["", " ", "   \t"]))
    length = f"{draw(NAMES)}:{spaces}{len(body)}{spaces}\n"
    before, after = draw(OTHER_HEADERS), draw(OTHER_HEADERS)
    blank_lines = draw(st.sampled_from(["", "\n", "\n\n"]))
    header = f"{blank_lines}{before}{length}{after}\n".replace("\n", draw(LINE_ENDS))
    return header.encode() + body


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Bodies, and their frames as one stream cut into pieces."""
    bodies = draw(BODIES)
    stream = b"".join(draw(written_by_some_host(body)) for body in bodies)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return bodies, [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def parsed(pieces: list[bytes], max_frame_bytes: int = 100) -> list[bytes]:
    parser = FrameParser(max_frame_bytes)
    bodies = []
    for piece in pieces:
        parser.receive(piece)
        while (body := parser.next_body()) is not None:
            bodies.append(body)
    return bodies


@settings(max_examples=150, deadline=None)
@given(streams())
def test_bodies_do_not_depend_on_how_bytes_arrive_or_how_headers_are_written(
    stream: tuple[list[bytes], list[bytes]],
) -> None:
    bodies, pieces = stream
    assert parsed(pieces) == bodies


@given(BODIES)
def test_what_we_write_we_can_read(bodies: list[bytes]) -> None:
    stream = b"".join(map(frame, bodies))
    assert parsed([stream]) == bodies
    assert parsed([stream[at : at + 1] for at in range(len(stream))]) == bodies


def test_our_own_frames_have_the_one_header_that_every_client_reads() -> None:
    assert frame("é".encode()) == b"Content-Length: 2\r\n\r\n\xc3\xa9"


BROKEN = {
    "negative": b"Content-Length: -1\r\n\r\n",
    "a plus sign": b"Content-Length: +1\r\n\r\nx",
    "no number": b"Content-Length: five\r\n\r\n",
    "hexadecimal": b"Content-Length: 0x5\r\n\r\n",
    "a fraction": b"Content-Length: 5.0\r\n\r\n",
    "digits of another script": "Content-Length: \N{ARABIC-INDIC DIGIT FIVE}\r\n\r\n".encode(),
    "empty": b"Content-Length:\r\n\r\n",
    "two that differ": b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "none": b"Content-Type: x\r\n\r\n",
    "text between frames": b"starting up\nContent-Length: 1\r\n\r\nx",
    "text before the header": b"startingContent-Length: 1\r\n\r\nx",
    "above the limit": b"Content-Length: 101\r\n",
    "ten thousand million": b"Content-Length: 10000000000\r\n",
    "above what a machine word holds": b"Content-Length: %d\r\n" % 2**63,
    "a number of 31 digits": b"Content-Length: %d\r\n" % 10**30,
    "a number of a thousand digits": b"Content-Length: " + b"9" * 1000 + b"\r\n",
    "an endless header line": b"X: " + b"y" * MAX_HEADER_BYTES,
    "endless header lines": b"X: y\r\n" * (MAX_HEADER_BYTES // 4),
}


@pytest.mark.parametrize("stream", BROKEN.values(), ids=list(BROKEN))
def test_a_header_that_gives_no_usable_length_loses_the_stream(stream: bytes) -> None:
    with pytest.raises(FramingError):
        parsed([stream])
    with pytest.raises(FramingError):
        parsed([stream[at : at + 1] for at in range(len(stream))])


@pytest.mark.parametrize("stream", BROKEN.values(), ids=list(BROKEN))
def test_frames_before_the_fault_are_still_read(stream: bytes) -> None:
    parser = FrameParser(100)
    parser.receive(frame(b"before") + stream)
    assert parser.next_body() == b"before"
    with pytest.raises(FramingError):
        parser.next_body()


def test_the_same_length_twice_is_one_length() -> None:
    assert parsed([b"Content-Length: 1\r\ncontent-length: 1\r\n\r\nx"]) == [b"x"]


def test_the_limit_itself_is_allowed_and_can_be_changed_between_frames() -> None:
    parser = FrameParser(3)
    parser.receive(frame(b"abc"))
    assert parser.next_body() == b"abc"
    parser.max_frame_bytes = 4
    parser.receive(frame(b"abcd"))
    assert parser.next_body() == b"abcd"


def test_a_large_frame_in_small_pieces_takes_time_in_proportion() -> None:
    body = b"x" * 4_000_000
    stream = frame(body)
    pieces = [stream[at : at + 1000] for at in range(0, len(stream), 1000)]
    assert parsed(pieces, 4_000_000) == [body]
