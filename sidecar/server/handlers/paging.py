"""Pages of a list. A cursor is opaque to hosts: the key of the last entry they were given."""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

from sidecar.protocol.errors import RequestError, invalid_params

T = TypeVar("T")

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000


def page(
    entries: Sequence[T], key: Callable[[T], str], *, cursor: str | None, limit: int | None
) -> tuple[tuple[T, ...], str | None]:
    """The entries after `cursor`, at most `limit` of them, and the cursor of the next page.

    Raises -32602 for a limit out of range and for a cursor whose entry is gone.
    """
    start = 0 if cursor is None else _position(entries, key, cursor) + 1
    end = start + limit_of(limit)
    shown = tuple(entries[start:end])
    return shown, cursor_of(key(shown[-1])) if shown and end < len(entries) else None


def limit_of(limit: int | None) -> int:
    """How many entries a page may have. Raises -32602."""
    if limit is not None and not 1 <= limit <= MAX_LIMIT:
        raise invalid_params("params.limit", f"must be from 1 to {MAX_LIMIT}, not {limit}")
    return limit or DEFAULT_LIMIT


def cursor_of(key: str) -> str:
    """The cursor that stands for a key."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def key_of(cursor: str) -> str:
    """The key that a cursor stands for. Raises -32602 for what is no cursor."""
    try:
        return base64.urlsafe_b64decode(cursor.encode() + b"==").decode()
    except (binascii.Error, ValueError):
        raise no_cursor() from None


def no_cursor() -> RequestError:
    """Whatever it is, it was not given out for this list."""
    return invalid_params(
        "params.cursor", "is not a cursor of this list, or its entry is gone; start anew without"
    )


def _position(entries: Sequence[T], key: Callable[[T], str], cursor: str) -> int:
    for index, entry in enumerate(entries):
        if cursor_of(key(entry)) == cursor:
            return index
    raise no_cursor()
