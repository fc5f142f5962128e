"""Lines of a file that is too large to be read whole: what lies before them is counted, what follows not read."""

import os
from typing import BinaryIO, NamedTuple

from sidecar.tools.builtin.text_file import UnfitFileError
from sidecar.tools.workspace import Spot

MAX_LINES_BYTES = 1024 * 1024
"""So much is read of the lines that are asked for. Own choice: far more than a model is shown."""

_BLOCK_BYTES = 256 * 1024


class Lines(NamedTuple):
    """Some lines; `first` is the number of the first, from the end of the file where it is negative.

    `version` changes when the file does, as far as its size, time and place on the disk tell.
    """

    text: str
    first: int
    lines: int
    size_bytes: int
    version: str


def read_lines(spot: Spot, first: int, last: int | None) -> Lines:
    """The lines from `first` to `last`, as far as MAX_LINES_BYTES go. Raises UnfitFileError and OSError.

    `first` counts from 1, or from the end where it is negative (-1 is the last line).
    """
    with os.fdopen(spot.open(os.O_RDONLY), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if first < 0:
            _seek_from_end(file, status.st_size, -first)
        elif not _skip(file, first - 1):
            raise UnfitFileError(f"has fewer than {first} lines")
        raw = _taken(file, None if last is None else last - first + 1)
    version = f"{status.st_mtime_ns:x}-{status.st_size:x}-{status.st_ino:x}"
    lines = raw.count(b"\n") + (not raw.endswith(b"\n") and bool(raw))
    return Lines(_text(raw), first, lines, status.st_size, version)


def _skip(file: BinaryIO, lines: int) -> bool:
    """Moves behind so many lines; false where there are not as many."""
    position = 0
    while lines > 0:
        block = file.read(_BLOCK_BYTES)
        if not block:
            return False
        ends = block.count(b"\n")
        if ends < lines:
            lines -= ends
            position += len(block)
            continue
        end = -1
        for _ in range(lines):
            end = block.find(b"\n", end + 1)
        position += end + 1
        lines = 0
    file.seek(position)
    return True


def _seek_from_end(file: BinaryIO, size: int, lines: int) -> None:
    """Moves before the last so many lines, or to where they would no longer fit what may be read."""
    start = end = size
    lowest = max(0, size - MAX_LINES_BYTES)
    while start > lowest:
        start = max(lowest, start - _BLOCK_BYTES)
        file.seek(start)
        block = file.read(end - start)
        end = start
        if start + len(block) == size and block.endswith(b"\n"):
            block = block[:-1]  # The end of the last line begins no other.
        ends = block.count(b"\n")
        if ends >= lines:
            place = len(block)
            for _ in range(lines):
                place = block.rfind(b"\n", 0, place)
            file.seek(start + place + 1)
            return
        lines -= ends
    file.seek(lowest)


def _taken(file: BinaryIO, lines: int | None) -> bytes:
    """So many lines from here on, or all; whole ones as far as one fits."""
    raw = b""
    while len(raw) < MAX_LINES_BYTES and (block := file.read(min(_BLOCK_BYTES, MAX_LINES_BYTES - len(raw)))):
        raw += block
        if lines is not None and raw.count(b"\n") >= lines:
            return b"".join(line + b"\n" for line in raw.split(b"\n")[:lines])
    if len(raw) == MAX_LINES_BYTES and (end := raw.rfind(b"\n")) >= 0:
        return raw[: end + 1]
    return raw


def _text(raw: bytes) -> str:
    if b"\0" in raw:
        raise UnfitFileError("is binary, not text")
    return raw.decode(errors="replace").replace("\r\n", "\n")
