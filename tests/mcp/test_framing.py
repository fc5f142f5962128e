"""Lines out of bytes. Source: MCP 2025-11-25, basic/transports#stdio; limits are our own choice."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.mcp.framing import Line, LineSplitter, OversizedLine

STREAM = '\ufeff{"a":1}\r\n\n{"text":"x\u2028y\u0085z ✓"}\n\r\n{"b":2}\nlast'.encode()
LINES = [b'{"a":1}', '{"text":"x\u2028y\u0085z ✓"}'.encode(), b'{"b":2}', b"last"]


def split(pieces: list[bytes], *, max_line_bytes: int = 1000) -> list[Line]:
    splitter = LineSplitter(max_line_bytes=max_line_bytes)
    return [line for piece in pieces for line in splitter.feed(piece)] + splitter.flush()


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_lines_do_not_depend_on_how_bytes_arrive(cut: int) -> None:
    assert split([STREAM[:cut], STREAM[cut:]]) == LINES


def test_bytes_may_arrive_one_by_one() -> None:
    assert split([bytes((byte,)) for byte in STREAM]) == LINES


@given(st.lists(st.binary(max_size=30)), st.integers(1, 20))
def test_every_byte_of_a_line_that_fits_comes_out(pieces: list[bytes], max_line_bytes: int) -> None:
    stream = b"".join(pieces)
    expected = [line.removesuffix(b"\r") for line in stream.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    lines = split(pieces, max_line_bytes=max_line_bytes)
    fitting = [line for line in expected if 0 < len(line) < max_line_bytes]
    assert [line for line in lines if isinstance(line, bytes) and len(line) < max_line_bytes] == fitting


def test_a_line_over_the_limit_keeps_its_ends_and_the_next_is_whole() -> None:
    pieces = [b"head" + b"x" * 3000, b"y" * 3000, b"tail\nnext\n"]
    oversized, following = split(pieces, max_line_bytes=1500)
    assert isinstance(oversized, OversizedLine)
    assert oversized.head.startswith(b"head")
    assert oversized.tail.endswith(b"tail")
    assert following == b"next"


def test_a_line_over_the_limit_in_one_piece_is_noticed_too() -> None:
    (line,) = split([b"x" * 2000 + b"\n"], max_line_bytes=1500)
    assert isinstance(line, OversizedLine)


def test_a_long_line_takes_time_in_proportion_to_its_length() -> None:
    def secs(size: int) -> float:
        pieces = [b"x" * 65536] * (size // 65536) + [b"\n"]
        began = time.process_time()
        split(pieces, max_line_bytes=2 * size)
        return time.process_time() - began

    short, long = (min(secs(size * 1024 * 1024) for _ in range(3)) for size in (8, 64))
    assert long < 32 * short, "eight times as long; work that grows with the square would take 64 times"
