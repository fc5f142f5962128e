"""Frames of the LSP base protocol: bytes to bodies and back. Pure; knows nothing of JSON or of pipes.

Source: LSP 3.17, "Base Protocol". Beyond it, header names may have any case, lines may end in a bare line
feed, and blank lines between frames are passed over: hosts in the wild do all three.
"""

import re

DEFAULT_MAX_FRAME_BYTES = 64 * 1024 * 1024
"""Largest body that is read, without its header. Own choice: room for some images, far from what would hurt."""

MAX_HEADER_BYTES = 8 * 1024
"""All header lines of a frame together. Own choice, as HTTP servers have it."""

_LENGTH = re.compile(rb"\d{1,19}")


class FramingError(Exception):
    """The byte stream is lost: nobody can tell where the next frame begins."""


def frame(body: bytes) -> bytes:
    """The body with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameParser:
    """Takes bytes as they come and gives bodies as they are complete.

    Call `receive` with any piece of the stream, then `next_body` until it returns None. After a FramingError
    the parser is of no more use.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._header_bytes = 0
        self._declared: int | None = None
        self._in_body = False

    def receive(self, data: bytes) -> None:
        """Adds the next piece of the stream."""
        self._buffer += data

    def next_body(self) -> bytes | None:
        """The next complete body, or None until more bytes came.

        Raises FramingError where a header is none, names no length, or names one above the limit.
        """
        if not self._in_body and not self._read_header():
            return None
        length = self._declared or 0
        if len(self._buffer) < length:
            return None
        with memoryview(self._buffer) as view:
            body = bytes(view[:length])
        del self._buffer[:length]
        self._in_body = False
        self._declared = None
        self._header_bytes = 0
        return body

    def _read_header(self) -> bool:
        """Takes header lines from the buffer; true once the blank line after them was read."""
        while (line := self._next_line()) is not None:
            if line:
                self._take_header(line)
            elif self._header_bytes:
                if self._declared is None:
                    raise FramingError("the header names no Content-Length")
                self._in_body = True
                return True
        return False

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if self._header_bytes + (len(self._buffer) if end < 0 else end) > MAX_HEADER_BYTES:
            raise FramingError(f"the header exceeds {MAX_HEADER_BYTES} bytes")
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        self._searched = 0
        if line:
            self._header_bytes += end + 1
        return line

    def _take_header(self, line: bytes) -> None:
        name, colon, value = line.partition(b":")
        if not colon:
            raise FramingError("a line between frames is no header")
        if name.strip().lower() != b"content-length":
            return
        length = self._length(value.strip())
        if self._declared not in (None, length):
            raise FramingError("the header names two different Content-Lengths")
        self._declared = length

    def _length(self, value: bytes) -> int:
        if not _LENGTH.fullmatch(value):
            what = f"exceeds {self.max_frame_bytes} bytes" if value.isdigit() else "is no length"
            raise FramingError(f"Content-Length {what}")
        if int(value) > self.max_frame_bytes:
            raise FramingError(f"Content-Length {int(value)} exceeds {self.max_frame_bytes} bytes")
        return int(value)
