"""Bytes to JSON objects and back, framed as LSP 3.17 frames them. No input or output happens here."""

import json
import logging
from collections.abc import Iterator
from typing import Any

from sidecar_client.errors import BrokenStream

JsonObject = dict[str, Any]

MAX_HEADER_BYTES = 8 * 1024
"""Longer than any sensible header. Own choice; it ends the wait for a header in what is not the protocol."""

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""The sidecar's own default limit."""

_END_OF_HEADER = b"\r\n\r\n"

log = logging.getLogger("sidecar_client")


def encode_frame(message: JsonObject) -> bytes:
    """The message as it goes over the pipe.

    Raises ValueError or TypeError for what is not JSON (NaN, sets, …). Everything beyond ASCII is escaped,
    so that even half a surrogate pair survives.
    """
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameDecoder:
    """Takes bytes as they come and gives whole messages, however the bytes were cut."""

    def __init__(self, *, max_frame_bytes: int = MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._body_bytes: int | None = None

    def feed(self, data: bytes) -> Iterator[JsonObject]:
        """Yields the messages that `data` completes. Raises BrokenStream when the bytes are not frames.

        A frame whose body is no JSON object is logged and passed over: the stream itself is still whole.
        """
        self._buffer += data
        while (body := self._next_body()) is not None:
            message = _message_of(body)
            if message is not None:
                yield message

    def _next_body(self) -> bytes | None:
        if self._body_bytes is None:
            self._body_bytes = self._take_header()
        if self._body_bytes is None or len(self._buffer) < self._body_bytes:
            return None
        body = bytes(self._buffer[: self._body_bytes])
        del self._buffer[: self._body_bytes]
        self._body_bytes = None
        return body

    def _take_header(self) -> int | None:
        """The size of the next body, once its header is whole."""
        end = self._buffer.find(_END_OF_HEADER)
        if end < 0 and len(self._buffer) <= MAX_HEADER_BYTES:
            return None
        header = bytes(self._buffer[: max(end, 0)])
        body_bytes = _content_length(header)
        if body_bytes is None:
            raise BrokenStream(f"not a sidecar: stdout begins a frame with {bytes(self._buffer[:60])!r}")
        if body_bytes > self._max_frame_bytes:
            raise BrokenStream(f"a frame of {body_bytes} bytes; the limit is {self._max_frame_bytes}")
        del self._buffer[: end + len(_END_OF_HEADER)]
        return body_bytes


def _content_length(header: bytes) -> int | None:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return None


def _message_of(body: bytes) -> JsonObject | None:
    try:
        message = json.loads(body)
    except ValueError as error:
        log.warning("passed over a frame of %d bytes that is not JSON: %s", len(body), error)
        return None
    if not isinstance(message, dict):
        log.warning("passed over a frame that holds no JSON object")
        return None
    return message
