"""Requests as JSON text, put together from parts that are text already. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def as_json(value: Any) -> str:
    """Compact JSON text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def request_body(parameters: Mapping[str, Any], listed: Mapping[str, Sequence[str]]) -> bytes:
    """A request: `parameters` (at least one), and lists by name whose members are JSON text already.

    A large text is costly to copy, so that all is joined at once.
    """
    pieces = [as_json(parameters)[:-1]]
    for name, texts in listed.items():
        members = list(texts) or [""]
        members[0] = f'"{name}":[{members[0]}'
        members[-1] += "]"
        pieces += members
    pieces[-1] += "}"
    # A lone surrogate, which a tool's output may hold, is no Unicode; servers refuse the whole request for it.
    return ",".join(pieces).encode("utf-8", "replace")
