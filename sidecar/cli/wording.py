"""Values in words for people: durations, sizes, a call's arguments, a call's output, an error."""

import json
from collections.abc import Mapping
from typing import Any

from sidecar.cli.terminal import safe, safe_line

JsonObject = dict[str, Any]


def duration(seconds: float) -> str:
    """`12 ms`, `3.2 s`, `1 min 12 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def size(size_bytes: int) -> str:
    """`812 bytes`, `64 KiB`, `1.5 MiB`."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    kibibytes = size_bytes / 1024
    return f"{kibibytes:.0f} KiB" if kibibytes < 1024 else f"{kibibytes / 1024:.1f} MiB"


def count(number: int, noun: str) -> str:
    """`1 call`, `3 calls`, `12,345 tokens`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def arguments(given: Any) -> str:
    """A call's arguments on one line, safe to show; strings without spaces stand bare."""
    if not isinstance(given, Mapping):
        return safe_line(_json(given))
    return "  ".join(f"{safe_line(str(name))}={_argument(value)}" for name, value in given.items())


def _argument(value: Any) -> str:
    bare = isinstance(value, str) and value.isprintable() and value != "" and not set(value) & set(" \t\n\"'=")
    return safe(value) if bare else safe_line(_json(value))


def full_arguments(given: Any, *, bar: str = "│") -> list[str]:
    """A call's arguments exactly, one or more lines each: text of several lines as a block behind a bar."""
    if not isinstance(given, Mapping):
        return safe(_json(given)).split("\n")
    lines: list[str] = []
    for name, value in given.items():
        if isinstance(value, str) and "\n" in value:
            lines.append(f"{safe_line(str(name))}:")
            lines.extend(f"  {bar} {line}" for line in safe(value).split("\n"))
        else:
            lines.append(f"{safe_line(str(name))}: {safe(_json(value))}")
    return lines


def output(content: Any) -> str:
    """The gist of a call's output on one line: its text, or what blocks there are."""
    if isinstance(content, str):
        return safe_line(content)
    blocks = content if isinstance(content, list) else []
    return safe_line(" ".join(_block(block) for block in blocks if isinstance(block, dict)))


def _block(block: JsonObject) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource_link", "uri": str(uri)}:
            return uri
        case {"mimeType": str(kind)}:
            return f"[{kind}]"
        case _:
            return f"[{block.get('type', 'block')}]"


def error(fields: Any) -> str:
    """An error as in JSON-RPC, in one line."""
    message = fields.get("message") if isinstance(fields, dict) else None
    return safe_line(message) if isinstance(message, str) else "failed without a message"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
