"""Pages of a list. A cursor is opaque to hosts: the key of the last entry they were given."""

import base64
from collections.abc import Callable, Sequence
from typing import TypeVar

from sidecar.protocol.errors import invalid_params

T = TypeVar("T")

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000


def page(
    entries: Sequence[T], key: Callable[[T], str], *, cursor: str | None, limit: int | None
) -> tuple[tuple[T, ...], str | None]:
    """The entries after `cursor`, at most `limit` of them, and the cursor of the next page.

    Raises -32602 for a limit out of range and for a cursor whose entry is gone.
    """
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise invalid_params("params.limit", f"must be from 1 to {MAX_LIMIT}, not {limit}")
    start = 0 if cursor is None else _position(entries, key, cursor) + 1
    end = start + (limit or DEFAULT_LIMIT)
    shown = tuple(entries[start:end])
    return shown, _cursor(key(shown[-1])) if shown and end < len(entries) else None


def _position(entries: Sequence[T], key: Callable[[T], str], cursor: str) -> int:
    for index, entry in enumerate(entries):
        if _cursor(key(entry)) == cursor:
            return index
    raise invalid_params("params.cursor", "is not a cursor of this list, or its entry is gone; start anew without")


def _cursor(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
