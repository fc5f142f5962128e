"""Lines out of bytes, as MCP's stdio transport frames messages (2025-11-25, basic/transports#stdio)."""

from typing import NamedTuple

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest message taken. Own choice: the specification sets none; images in base64 reach tens of MiB."""

_SHOWN_BYTES = 1024
_BOM = b"\xef\xbb\xbf"


class OversizedLine(NamedTuple):
    """A line that was longer than the limit. Only its two ends were kept."""

    head: bytes
    tail: bytes


Line = bytes | OversizedLine


class GrowingLine:
    """A line that comes in pieces. Of one longer than `max_bytes` only the two ends are kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._partial = bytearray()
        self._oversized: OversizedLine | None = None

    @property
    def is_empty(self) -> bool:
        return not self._partial and self._oversized is None

    def grow(self, piece: bytes) -> None:
        """Adds the next piece."""
        if self._oversized is not None:
            tail = (self._oversized.tail + piece)[-_SHOWN_BYTES:]
            self._oversized = OversizedLine(self._oversized.head, tail)
            return
        self._partial += piece
        if len(self._partial) > self._max_bytes:
            ends = self._partial[:_SHOWN_BYTES], self._partial[-_SHOWN_BYTES:]
            self._oversized = OversizedLine(*map(bytes, ends))
            self._partial.clear()

    def take(self) -> Line:
        """What has gathered; the next line begins."""
        if self._oversized is not None:
            oversized, self._oversized = self._oversized, None
            return oversized
        whole = bytes(self._partial)
        self._partial.clear()
        return whole


class LineSplitter:
    """Cuts a stream of bytes at 0x0A alone; U+2028 and its like are ordinary text in JSON.

    A carriage return before the end, a byte order mark at the start of the stream, and empty lines are dropped.
    Every byte is looked at once, however many pieces a long line comes in.
    """

    def __init__(self, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._line = GrowingLine(max_line_bytes)
        self._held = b""
        self._at_start = True

    def feed(self, data: bytes) -> list[Line]:
        """The lines that `data` completes."""
        if self._at_start:
            data = self._without_mark(data)
        if self._line.is_empty and data.endswith(b"\n"):
            return [line for piece in data.split(b"\n") if (line := self._finished(piece))]
        first, *others = data.split(b"\n")
        self._line.grow(first)
        if not others:
            return []
        *middle, last = others
        lines = [self._take(), *(self._finished(piece) for piece in middle)]
        self._line.grow(last)
        return [line for line in lines if line]

    def flush(self) -> list[Line]:
        """The last line, where the stream ended without ending it."""
        self._line.grow(self._held)
        self._held = b""
        line = self._take()
        return [line] if line else []

    def _without_mark(self, data: bytes) -> bytes:
        """The first bytes of the stream without a byte order mark; nothing as long as they may still be one."""
        start, self._held = self._held + data, b""
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._held = start
            return b""
        self._at_start = False
        return start.removeprefix(_BOM)

    def _take(self) -> Line:
        """What has gathered, as a finished line."""
        line = self._line.take()
        return line if isinstance(line, OversizedLine) else self._finished(line)

    def _finished(self, piece: bytes) -> Line:
        line = piece.removesuffix(b"\r")
        if len(line) > self._max_line_bytes:
            return OversizedLine(line[:_SHOWN_BYTES], line[-_SHOWN_BYTES:])
        return line
