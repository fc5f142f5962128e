"""The scripts that `replay` plays and `record` writes: their shape, and how one is read. No I/O but the file's.

A script is a JSON file. In its shortest form it is a list of answers:

    ["Hello!", "You said something, and this is my second answer."]

In full:

    {
      "delayMs": 20,
      "turns": [
        {
          "reasoning": "The file may tell.",
          "text": "Let me look.",
          "calls": [
            {"tool": "read_file", "input": {"path": "notes.txt"}},
            {"tool": "read_file", "arguments": "{\\"path\\": ", "callId": "call_7"}
          ],
          "finish": "toolCalls",
          "usage": {"inputTokens": 120, "outputTokens": 18},
          "delayMs": 0
        },
        {"text": ["It ", "says: ", "hi."]},
        {"error": {"message": "slow down", "kind": "modelError", "retryable": true,
                   "status": 429, "retryAfterSecs": 2}},
        {"after": 2, "parts": [{"text": ["And "]}, {"reasoning": ["hm"]}, {"text": ["bye."]}]}
      ]
    }

A turn needs one of `text`, `reasoning`, `calls`, `parts` and `error`; a turn that is a string is its `text`. Text
and reasoning are split into words, or played delta by delta where they are lists. A call's `arguments` are raw
text, for a model that writes no valid JSON. `parts` is for a model that goes to and fro between them. Its calls
are played as they are written: they get neither id nor `index`, and one may come in pieces, of which only the
first has a `tool`. `finish` follows from the calls unless it is given: `stop`, `length`, `toolCalls`,
`contentFilter`, or `brokenOff` for a stream that ends in the middle. `delayMs` is the wait before each delta.
`error` comes after all else in its turn.

Which turn is played depends on the request: the one whose place is the number of assistant messages in the
history. The place is `after`, or without it the position in the list, so that every session starts at the first
turn. Where several turns have one place, such as a failure and the second try, each request there gets the next
of them, and the last one again and again.

Recordings hold more, which nobody needs to write by hand: `warnings` of the provider, and `extras`, what it wants
back with the message.
"""

import json
import re
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs import field, frozen

from sidecar.protocol.codec import DecodeError, camel, decode
from sidecar.protocol.errors import ConfigurationError, ModelErrorKind
from sidecar.protocol.values import JsonObject

MAX_SCRIPT_BYTES = 64 * 1024 * 1024
"""More than any run that somebody wants to replay (own choice)."""

Deltas = str | tuple[str, ...]
Finish = Literal["stop", "length", "toolCalls", "contentFilter", "brokenOff"]


@frozen(kw_only=True)
class ScriptCall:
    """A tool call, or within `parts` a piece of one. `arguments` is raw text and wins over `input`."""

    tool: str | None = None
    input: JsonObject = field(factory=dict)
    arguments: str | None = None
    call_id: str | None = None
    index: int | None = None


@frozen(kw_only=True)
class ScriptPart:
    """Some of an answer: one kind of it, or several in the order of the fields."""

    reasoning: Deltas | None = None
    text: Deltas | None = None
    calls: tuple[ScriptCall, ...] | None = None


@frozen(kw_only=True)
class ScriptUsage:
    """Tokens of the turn; the total is their sum unless it is given."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int | None = None
    cached_tokens: int | None = None


@frozen(kw_only=True)
class ScriptError:
    """How the turn fails, after everything else in it was played."""

    message: str
    kind: ModelErrorKind = "modelError"
    status: int | None = None
    retryable: bool = False
    retry_after_secs: float | None = None


@frozen(kw_only=True)
class ScriptWarning:
    """What the provider mended, and the tools that it left out."""

    code: str
    message: str
    left_out: tuple[str, ...] = ()


@frozen(kw_only=True)
class ScriptTurn:
    """One answer of the model."""

    after: int | None = None
    text: Deltas | None = None
    reasoning: Deltas | None = None
    calls: tuple[ScriptCall, ...] | None = None
    parts: tuple[ScriptPart, ...] | None = None
    finish: Finish | None = None
    usage: ScriptUsage | None = None
    delay_ms: float | None = None
    error: ScriptError | None = None
    warnings: tuple[ScriptWarning, ...] = ()
    extras: Any = None


@frozen(kw_only=True)
class Script:
    """A whole script file."""

    turns: tuple[ScriptTurn, ...]
    delay_ms: float = 0.0
    description: str | None = None

    def at(self, place: int) -> tuple[ScriptTurn, ...]:
        """The turns that have this place, in their order."""
        turns = enumerate(self.turns)
        return tuple(turn for n, turn in turns if (n if turn.after is None else turn.after) == place)


def read_script(file: Path) -> tuple[Script, list[JsonObject]]:
    """The script in a file, and its turns as they are written there.

    Raises OSError when the file cannot be read, ConfigurationError when it is no script.
    """
    if file.stat().st_size > MAX_SCRIPT_BYTES:
        raise _bad(file, f"is larger than {MAX_SCRIPT_BYTES} bytes", "")
    try:
        text = file.read_text(encoding="utf-8-sig")
        raw = json.loads(text)
    except UnicodeDecodeError:
        raise _bad(file, "is not UTF-8", "") from None
    except json.JSONDecodeError as error:
        raise _bad(file, f"is not JSON: {error.msg} at column {error.colno}", "", line=error.lineno) from None
    except RecursionError:
        raise _bad(file, "is nested too deeply", "") from None
    try:
        return _decoded(raw)
    except DecodeError as error:
        turn = re.match(r"turns\[(\d+)\]", error.path)
        line = _line_of_turn(text, int(turn[1])) if turn else None
        raise _bad(file, str(error), error.path, line=line) from None


def _decoded(raw: Any) -> tuple[Script, list[JsonObject]]:
    """Stricter than the wire's codec: a field that is not known is a slip of the pen."""
    if isinstance(raw, list):
        raw = {"turns": raw}
    if isinstance(raw, dict) and isinstance(raw.get("turns"), list):
        raw = {**raw, "turns": [{"text": turn} if isinstance(turn, str) else turn for turn in raw["turns"]]}
        _check_fields(raw, Script, "")
    script = decode(raw, Script, path="")
    if not script.turns:
        raise DecodeError("turns", "must hold at least one turn")
    for number, turn in enumerate(script.turns):
        _check_turn(raw["turns"][number], turn, f"turns[{number}]")
    return script, raw["turns"]


def _check_turn(raw: JsonObject, turn: ScriptTurn, path: str) -> None:
    _check_fields(raw, ScriptTurn, path)
    for number, call in enumerate(raw.get("calls") or ()):
        _check_fields(call, ScriptCall, f"{path}.calls[{number}]")
        if call.get("tool") is None:
            raise DecodeError(f"{path}.calls[{number}].tool", "is required")
    for number, part in enumerate(raw.get("parts") or ()):
        _check_fields(part, ScriptPart, f"{path}.parts[{number}]")
        for piece, call in enumerate(part.get("calls") or ()):
            _check_fields(call, ScriptCall, f"{path}.parts[{number}].calls[{piece}]")
    for name, shape in (("usage", ScriptUsage), ("error", ScriptError)):
        _check_fields(raw.get(name) or {}, shape, f"{path}.{name}")
    if not turn.calls and all(said is None for said in (turn.text, turn.reasoning, turn.parts, turn.error)):
        raise DecodeError(path, "needs `text`, `reasoning`, `calls`, `parts` or `error`")
    for name, value in (("delayMs", turn.delay_ms), ("after", turn.after)):
        if value is not None and value < 0:
            raise DecodeError(f"{path}.{name}", f"must not be negative, as {value:g} is")


def _check_fields(raw: JsonObject, shape: type[Any], path: str) -> None:
    known = [camel(attribute.name) for attribute in attrs.fields(shape)]
    for name in raw:
        if name not in known:
            raise DecodeError(f"{path}.{name}".lstrip("."), f"is not known here; known are {', '.join(known)}")


def _line_of_turn(text: str, number: int) -> int | None:
    """The line where a turn begins, found by decoding the turns before it."""
    start = re.search(r'"turns"\s*:\s*\[|^\s*\[', text)
    if start is None:
        return None
    position, decoder = start.end(), json.JSONDecoder()
    for _ in range(number):
        _, position = decoder.raw_decode(text, _next_value(text, position))
    return text.count("\n", 0, _next_value(text, position)) + 1


def _next_value(text: str, position: int) -> int:
    """The position behind white space and commas."""
    return position + len(text[position:]) - len(text[position:].lstrip(" \t\r\n,"))


def _bad(file: Path, reason: str, path: str, *, line: int | None = None) -> ConfigurationError:
    place = f"{file}:{line}" if line is not None else str(file)
    data: dict[str, Any] = {} if line is None else {"line": line}
    return ConfigurationError(f"{place}: {reason}", path=path or str(file), file=str(file), **data)
