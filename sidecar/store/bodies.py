"""Values as the text that is kept of them, and back."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sidecar.protocol.codec import decode, encode
from sidecar.protocol.events import AgentEvent
from sidecar.protocol.values import Message

T = TypeVar("T")

_to_json = json.JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":")).encode


def body_of(value: Any) -> str:
    """JSON as on the wire. ASCII, so that half a pair of surrogates can be kept, too."""
    return _to_json(encode(value))


def value_of(body: str, shape: type[T]) -> T:
    """The value that was kept."""
    return decode(json.loads(body), shape, path="store")


def message_of(body: str) -> Message:
    """A message that was kept."""
    return value_of(body, Message)


def event_of(body: str) -> AgentEvent:
    """An event that was kept, other than a delta."""
    return value_of(body, AgentEvent)  # type: ignore[arg-type]


def piece_body(seq: int, text: str) -> str:
    """A piece of a delta: a line, so that the next can be appended."""
    return f"{_to_json([seq, text])}\n"


def pieces_of(body: str) -> Iterator[tuple[int, str]]:
    """The deltas of a row: seq and text, those of one seq joined."""
    seq, parts = -1, list[str]()
    for number, text in map(json.loads, body.splitlines()):
        if number != seq and parts:
            yield seq, "".join(parts)
            parts = []
        seq = number
        parts.append(text)
    if parts:
        yield seq, "".join(parts)


def placeholders(values: Iterable[Any]) -> str:
    """A question mark for each."""
    return ", ".join("?" for _ in values)
