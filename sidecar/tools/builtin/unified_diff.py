"""Unified diffs: made for people to look at, and taken from models, who get line numbers wrong. Pure.

A hunk goes where its lines stand in the file. Its line number only decides between several such places.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

CONTEXT_LINES = 3

MAX_COMPARED_LINES = 10_000
"""Between the first and the last change; of more it is only said how many. Own choice: comparing takes long."""

_HEADER = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_RANGE = re.compile(r"([-+])(\d+)")
_NO_LINE_END = "\\ No newline at end of file"


class DiffError(Exception):
    """The diff cannot be applied; the message says which hunk, and why."""


class _Hunk(NamedTuple):
    """Lines to find, and lines to put there; `line` is where the diff says that they are, if it does."""

    line: int | None
    old: list[str]
    new: list[str]


def unified_diff(before: str, after: str, path: str) -> str:
    """What changes from one text to the other; empty where nothing does."""
    old, new = _lines(before), _lines(after)
    same_before = _same(old, new)
    rest = min(len(old), len(new)) - same_before
    same_after = _same(old[: -rest - 1 : -1], new[: -rest - 1 : -1]) if rest else 0
    first = max(0, same_before - CONTEXT_LINES)
    changed_old = old[first : len(old) - max(0, same_after - CONTEXT_LINES)]
    changed_new = new[first : len(new) - max(0, same_after - CONTEXT_LINES)]
    if len(changed_old) + len(changed_new) > MAX_COMPARED_LINES:
        return f"--- a/{path}\n+++ b/{path}\n[{len(changed_old)} lines replaced by {len(changed_new)}]\n"
    return "".join(_compared(changed_old, changed_new, path, first))


def _lines(text: str) -> list[str]:
    """The lines with their ends, which are `\\n` alone: a form feed is a character like any other."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [line for line in text.split("\n")[-1:] if line]


def _same(old: list[str], new: list[str]) -> int:
    """How many lines are the same from the beginning on."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _compared(old: list[str], new: list[str], path: str, first: int) -> Iterator[str]:
    import difflib  # noqa: PLC0415

    for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=CONTEXT_LINES):
        if line.startswith("@@"):
            yield _RANGE.sub(lambda found: f"{found[1]}{int(found[2]) + first}", line)
        else:
            yield line if line.endswith("\n") else f"{line}\n{_NO_LINE_END}\n"


def applied(text: str, diff: str) -> str:
    """The text with the diff applied. Raises DiffError, and then nothing was."""
    lines = text.split("\n")
    hunks = list(_hunks(diff))
    if not hunks:
        raise DiffError("the diff has no hunk: each begins with a line such as @@ -1,3 +1,4 @@")
    result: list[str] = []
    taken = 0
    for number, hunk in enumerate(hunks, start=1):
        place = _place(lines, hunk, taken, number)
        result += [*lines[taken:place], *hunk.new]
        taken = place + len(hunk.old)
    return "\n".join([*result, *lines[taken:]])


def _hunks(diff: str) -> Iterator[_Hunk]:
    hunk: _Hunk | None = None
    for line in diff.removesuffix("\n").split("\n"):
        line = line.removesuffix("\r")
        if line.startswith("@@"):
            if hunk is not None:
                yield hunk
            header = _HEADER.match(line)
            hunk = _Hunk(int(header[1]) if header else None, [], [])
        elif hunk is None or line == _NO_LINE_END:
            continue  # File names and what git says before the first hunk.
        elif not _take(hunk, line):
            raise DiffError(f"a line of the diff begins with neither space, + nor -: {line[:80]!r}")
    if hunk is not None:
        yield hunk


def _take(hunk: _Hunk, line: str) -> bool:
    mark, rest = line[:1], line[1:]
    if mark in ("", " ", "-"):  # Editors and models drop the one space of an empty line.
        hunk.old.append(rest)
    if mark in ("", " ", "+"):
        hunk.new.append(rest)
    return mark in ("", " ", "+", "-")


def _place(lines: list[str], hunk: _Hunk, start: int, number: int) -> int:
    """Where the lines of a hunk stand, not before `start`."""
    wanted = None if hunk.line is None else hunk.line - 1
    if not hunk.old:
        if wanted is None or not start <= wanted + 1 <= len(lines):
            raise DiffError(f"hunk {number} has no line that says where its own belong")
        return wanted + 1 if hunk.line else 0
    size = len(hunk.old)
    places = [place for place in range(start, len(lines) - size + 1) if lines[place : place + size] == hunk.old]
    if not places:
        raise DiffError(f"the lines of hunk {number} are not in the file (any more); read it again")
    if len(places) > 1 and wanted is None:
        raise DiffError(
            f"the lines of hunk {number} are in the file {len(places)} times; give more of those around"
        )
    return min(places, key=lambda place: abs(place - (wanted or 0)))
