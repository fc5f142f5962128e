"""A search in files by Python alone, for where there is no ripgrep, or for what that does not understand.

Both skip binary files (those with a null byte), files over MAX_FILE_BYTES, and links. A line ends at `\\n`, with
or without a `\\r` before it. Text is UTF-8, or UTF-16 with a byte order mark; other bytes are shown as U+FFFD.
"""

import codecs
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

import regex

from sidecar.tools.builtin.found import Found, Match
from sidecar.tools.builtin.search_query import MAX_MATCHES, Search, SearchError, is_folder
from sidecar.tools.builtin.text_file import MAX_FILE_BYTES
from sidecar.tools.builtin.tree import walk
from sidecar.tools.workspace import Place, Spot, spot_of

_ENCODINGS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be", codecs.BOM_UTF8: "utf-8"}


def python_search(search: Search, place: Place, is_cancelled: Callable[[], bool]) -> Found:
    """Searches with Python's means; blocks. Raises SearchError for a pattern that is none, and OSError."""
    searcher = _Searcher(search, is_cancelled)
    try:
        if is_folder(place):
            is_complete = walk(place, searcher.visit, with_ignored=search.with_ignored).is_complete
        else:
            with spot_of(place) as spot:
                is_complete = searcher.look_into("", _read(spot))
    except TimeoutError:
        raise SearchError(f"the search took more than {search.limit_secs:g} s; use a simpler pattern") from None
    return Found(sorted(searcher.matches), is_complete)


def lines_of(raw: bytes) -> list[str] | None:
    """The lines of a file; None for a binary one."""
    for mark, encoding in _ENCODINGS.items():
        if raw.startswith(mark):
            return _split(raw[len(mark) :].decode(encoding, "replace"))
    return None if b"\0" in raw else _split(raw.decode(errors="replace"))


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()  # What follows the last line end is no line.
    return [line.removesuffix("\r") for line in lines]


class _Searcher:
    """Collects matches, file by file."""

    def __init__(self, search: Search, is_cancelled: Callable[[], bool]) -> None:
        self._search = search
        self._is_cancelled = is_cancelled
        self._pattern = _compiled(search)
        self._deadline = time.monotonic() + search.limit_secs
        self.matches: list[Match] = []

    def visit(self, path: str, spot: Spot) -> bool:
        if self._is_cancelled():
            return False
        if self._search.glob is not None and not self._search.glob.matches(path):
            return True
        try:
            raw = _read(spot)
        except OSError:  # Closed to us, or gone: ripgrep passes over it, too.
            return True
        return self.look_into(path, raw)

    def look_into(self, path: str, raw: bytes | None) -> bool:
        """False where there have been too many matches."""
        lines = None if raw is None else lines_of(raw)
        around = self._search.context_lines
        for index, start in self._found(lines or []):
            assert lines is not None
            before, after = lines[max(0, index - around) : index], lines[index + 1 : index + 1 + around]
            self.matches.append(Match(path, index + 1, lines[index], start, tuple(before), tuple(after)))
            if len(self.matches) >= MAX_MATCHES:
                return False
        return True

    def _found(self, lines: list[str]) -> Iterator[tuple[int, int]]:
        left_secs = self._deadline - time.monotonic()
        if left_secs <= 0:
            raise TimeoutError
        for index, line in enumerate(lines):
            if found := self._pattern.search(line, timeout=left_secs):
                yield index, found.start()


def _compiled(search: Search) -> Any:
    pattern = regex.escape(search.pattern) if search.is_literal else search.pattern
    try:
        return regex.compile(pattern, regex.IGNORECASE if search.ignores_case else 0)
    except regex.error as error:
        raise SearchError(f"the pattern is no regular expression: {error}") from None


def _read(spot: Spot) -> bytes | None:
    """What an ordinary file holds; None where it is none, or too large."""
    with os.fdopen(spot.open(os.O_RDONLY), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        return file.read(MAX_FILE_BYTES)
