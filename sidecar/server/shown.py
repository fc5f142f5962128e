"""A question in plain text, for hosts that can show a message and nothing more. Pure.

What a person cannot see they cannot decide on: nothing is cut off in silence. What is long is shown by its
beginning, its size and its SHA-256, and characters that could hide or reorder text are shown as escapes.
"""

import hashlib
import json
from typing import Any

from sidecar.protocol.printable import printable
from sidecar.protocol.values import JsonObject
from sidecar.tools.approval import ApprovalQuestion

WHOLE_BYTES = 600
"""An argument up to this long is shown whole. Own choice: some lines of a dialog."""

BEGINNING_CHARACTERS = 200
"""How much of a longer one is shown before its size and digest."""

DIFF_LINES = 60
"""How many lines of a change are shown before its size and digest. Own choice: what fits on a screen."""

ARGUMENTS_SHOWN = 20
"""Further arguments are shown by their names, their size and their digest together."""


def shown_question(question: ApprovalQuestion) -> str:
    """The tool, why it is asked about, what it needs, and its arguments."""
    lines = [printable(question.title), f"Tool: {printable(question.tool_name)}"]
    if question.reason:
        lines.append(f"Reason: {printable(question.reason)}")
    if question.permissions:
        lines.append(f"Permissions: {printable(', '.join(question.permissions))}")
    return "\n".join([*lines, *_arguments(question.input), *_change(question.diff)])


def _arguments(arguments: JsonObject) -> list[str]:
    if not arguments:
        return ["Arguments: none"]
    named = list(arguments.items())
    lines = ["Arguments:"]
    lines += [f"  {printable(name)}: {_value(value)}" for name, value in named[:ARGUMENTS_SHOWN]]
    if rest := dict(named[ARGUMENTS_SHOWN:]):
        names = printable(", ".join(rest))
        text = _json(rest)
        lines.append(
            f"  and {len(rest)} more: {_long(names) if len(names) > WHOLE_BYTES else names} {_digest(text)}"
        )
    return lines


def _change(diff: str | None) -> list[str]:
    if not diff:
        return []
    lines = diff.rstrip("\n").split("\n")
    shown = [f"  {printable(line)}" for line in lines[:DIFF_LINES]]
    return ["Change:", *shown, *([f"  … {_digest(diff)}"] if len(lines) > DIFF_LINES else [])]


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else _json(value)
    if len(text.encode("utf-8", "surrogatepass")) > WHOLE_BYTES:
        return f"{_long(text)} {_digest(text)}"
    return f'"{printable(text)}"' if isinstance(value, str) else printable(text)


def _long(text: str) -> str:
    return f"{printable(text[:BEGINNING_CHARACTERS])}…"


def _digest(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return f"[{len(data)} bytes in all, SHA-256 {hashlib.sha256(data).hexdigest()}]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
