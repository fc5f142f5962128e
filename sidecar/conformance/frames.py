"""Frames of LSP 3.17 as they have to be written: bytes to bodies, and what is wrong with the bytes. Pure."""

import json
from collections.abc import Iterator
from typing import Any

from attrs import frozen

MOST_HEADER_BYTES = 8 * 1024
MOST_BODY_BYTES = 64 * 1024 * 1024
"""Limits of `protocol.md`, chapter Transport."""

_MARK = b"Content-"
"""How both headers of LSP begin: Content-Length and Content-Type."""


@frozen
class Body:
    """What one frame holds."""

    data: bytes


@frozen
class Garbage:
    """Bytes that are no frame."""

    data: bytes


class FrameReader:
    """Cuts bytes into frames, and goes on after what is none, so that one fault does not hide the next."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._wanted: int | None = None

    def feed(self, data: bytes) -> Iterator[Body | Garbage]:
        """What can be told apart now."""
        self._buffer += data
        while (found := self._next()) is not None:
            yield found

    def rest(self) -> bytes:
        """What was begun and not ended."""
        return bytes(self._buffer)

    def _next(self) -> Body | Garbage | None:
        if self._wanted is None:
            garbage = self._read_header()
            if garbage is not None:
                return garbage
        if self._wanted is None or len(self._buffer) < self._wanted:
            return None
        wanted, self._wanted = self._wanted, None
        return Body(self._take(wanted))

    def _read_header(self) -> Garbage | None:
        start = bytes(self._buffer[: len(_MARK)])
        if not _MARK.startswith(start):
            return self._skip(0)
        end = self._buffer.find(b"\r\n\r\n")
        if not 0 <= end <= MOST_HEADER_BYTES:
            return self._skip(1) if len(self._buffer) > MOST_HEADER_BYTES else None
        length = _length_of(bytes(self._buffer[:end]))
        if length is None or length > MOST_BODY_BYTES:
            return self._skip(1)
        self._take(end + 4)
        self._wanted = length
        return None

    def _skip(self, at_least: int) -> Garbage:
        """Everything up to what may be the next header."""
        end = self._buffer.find(_MARK, at_least)
        return Garbage(self._take(end if end >= 0 else len(self._buffer)))

    def _take(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data


def _length_of(header: bytes) -> int | None:
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if colon and name.lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return None


def framed(body: bytes) -> bytes:
    """A body as a frame."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def as_body(message: Any) -> bytes:
    """A JSON value as the body of a frame."""
    return json.dumps(message, separators=(",", ":")).encode()
