"""Server-sent events out of bytes, as MCP's transports over HTTP carry messages. Pure.

Source: HTML standard, 9.2.5 and 9.2.6. Data stays bytes: it is JSON, and may be tens of MiB.
"""

from typing import NamedTuple

from sidecar.mcp.framing import MAX_LINE_BYTES, GrowingLine, Line, OversizedLine

_BOM = b"\xef\xbb\xbf"
_SHOWN_BYTES = 1024
_MAX_RETRY_DIGITS = 9


class Event(NamedTuple):
    """One event. `data` is empty in events that only set an id or a time to wait."""

    kind: str
    data: Line


class EventDecoder:
    """Cuts a stream of bytes into events; `last_id` and `retry_ms` are what it has said of resuming so far.

    Lines end at CR, LF or both. An event that the stream ends in is dropped, as the standard wants it.
    Of one whose data is longer than the limit only the two ends are kept.
    """

    def __init__(self, *, max_data_bytes: int = MAX_LINE_BYTES) -> None:
        self.last_id: str | None = None
        self.retry_ms: int | None = None
        self._lines = _Lines(max_data_bytes)
        self._max_data_bytes = max_data_bytes
        self._kind = ""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._oversized: OversizedLine | None = None
        self._id: str | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes."""
        events = []
        for line in self._lines.feed(chunk):
            if line:
                self._take(line)
            else:
                events.append(self._finished())
        return [event for event in events if event is not None]

    def _take(self, line: Line) -> None:
        if isinstance(line, OversizedLine):
            if line.head.startswith(b"data:"):
                self._oversized = OversizedLine(_value(line.head), line.tail)
            return
        colon = line.find(b":")
        match line if colon < 0 else line[:colon]:
            case b"data":
                self._grow(_value(line))
            case b"event":
                self._kind = _value(line).decode(errors="replace")
            case b"id" if b"\0" not in line:
                self._id = _value(line).decode(errors="replace")
            case b"retry":
                digits = _value(line)
                if digits.isdigit() and len(digits) <= _MAX_RETRY_DIGITS:
                    self.retry_ms = int(digits)

    def _grow(self, data: bytes) -> None:
        self._data.append(data)
        self._data_bytes += len(data)
        if self._data_bytes > self._max_data_bytes:
            whole = b"\n".join(self._data)
            head = whole[:_SHOWN_BYTES] if self._oversized is None else self._oversized.head
            self._oversized = OversizedLine(head, whole[-_SHOWN_BYTES:])
            self._data, self._data_bytes = [], 0

    def _finished(self) -> Event | None:
        """What has gathered up to an empty line; None where that is nothing."""
        if self._id is not None:
            self.last_id = self._id or None
        data: Line = b"\n".join(self._data) if self._oversized is None else self._oversized
        event = Event(self._kind or "message", data) if self._data or self._oversized is not None else None
        self._kind, self._data, self._data_bytes, self._oversized, self._id = "", [], 0, None, None
        return event


def _value(line: bytes) -> bytes:
    """What stands behind the colon, less one space. Cut out once: data may be tens of MiB."""
    colon = line.find(b":")
    if colon < 0:
        return b""
    return line[colon + 2 :] if line[colon + 1 : colon + 2] == b" " else line[colon + 1 :]


class _Lines:
    """Lines, empty ones included, out of bytes. Every byte is looked at once."""

    def __init__(self, max_bytes: int) -> None:
        # Room for the name of the field: the limit is for what it holds.
        self._line = GrowingLine(max_bytes + len(b"data: "))
        self._held = b""
        self._is_after_return = False
        self._is_at_start = True

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that `chunk` completes."""
        if self._is_at_start:
            chunk, self._held = self._held + chunk, b""
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._held = chunk
                return []
            self._is_at_start = False
            chunk = chunk.removeprefix(_BOM)
        if self._is_after_return:
            self._is_after_return = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._is_after_return = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *others = chunk.split(b"\n")
        self._line.grow(first)
        if not others:
            return []
        *middle, last = others
        lines = [self._line.take(), *middle]
        self._line.grow(last)
        return lines
