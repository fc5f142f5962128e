"""What a search in files finds."""

from typing import NamedTuple


class Match(NamedTuple):
    """A line that was found, counted from 1. `start` is where in it, in characters; `path` is below the place."""

    path: str
    line: int
    text: str
    start: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Found(NamedTuple):
    """All matches, by path and line; `is_complete` is false where the search ended early."""

    matches: list[Match]
    is_complete: bool
