"""A provider that plays a script instead of asking a model: for demos, tests and bug reports.

The script is a JSON file (`providers.<name>.file`). In its shortest form it is a list of answers:

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
                   "status": 429, "retryAfterSecs": 2}}
      ]
    }

A turn needs one of `text`, `reasoning`, `calls` and `error`; a turn that is a string is its `text`. Text and
reasoning are split into words, or played delta by delta where they are lists. A call's `arguments` are raw text,
for a model that writes no valid JSON. `finish` follows from the calls unless it is given: `stop`, `length`,
`toolCalls` or `contentFilter`. `delayMs` is the wait before each delta. `error` comes after all else in its turn.

Which turn is played depends on the request alone: the one after as many turns as there are assistant messages
in its history. So every session starts at the first turn, and the same request gets the same answer again. The
file is read again when it changes. The name of the model is free: `replay/anything`.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs import field, frozen

from sidecar.protocol.codec import DecodeError, camel, decode
from sidecar.protocol.errors import ConfigurationError, ModelError, ModelErrorKind
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import JsonObject, Usage
from sidecar.providers.base import (
    FinishPiece,
    ModelPiece,
    ModelRequest,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from sidecar.providers.options import ProviderOptions

MAX_SCRIPT_BYTES = 64 * 1024 * 1024
"""More than any run that somebody wants to replay (own choice)."""

Deltas = str | tuple[str, ...]


@frozen(kw_only=True)
class ScriptCall:
    """A tool call. `arguments` is raw text and wins over `input`."""

    tool: str
    input: JsonObject = field(factory=dict)
    arguments: str | None = None
    call_id: str | None = None


@frozen(kw_only=True)
class ScriptUsage:
    """Tokens of the turn; the total is their sum."""

    input_tokens: int = 0
    output_tokens: int = 0
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
class ScriptTurn:
    """One answer of the model."""

    text: Deltas | None = None
    reasoning: Deltas | None = None
    calls: tuple[ScriptCall, ...] | None = None
    finish: Literal["stop", "length", "toolCalls", "contentFilter"] | None = None
    usage: ScriptUsage | None = None
    delay_ms: float | None = None
    error: ScriptError | None = None


@frozen(kw_only=True)
class Script:
    """A whole script file."""

    turns: tuple[ScriptTurn, ...]
    delay_ms: float = 0.0
    description: str | None = None


class Replay:
    """A provider that plays the turns of a script file, whatever it is asked."""

    def __init__(self, name: str, options: ProviderOptions) -> None:
        if options.file is None:
            path = f"providers.{name}.file"
            raise ConfigurationError(f"{path}: is required for the API 'replay': the path of a script", path=path)
        self.name = name
        self.context_tokens = options.context_tokens
        self._file = Path(options.file).expanduser()
        self._read: tuple[tuple[int, int], Script] | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Plays the turn that follows the request's history. Raises ConfigurationError for a bad file."""
        script = self._script()
        number = sum(message.role == "assistant" for message in request.messages)
        if number >= len(script.turns):
            raise ModelError(
                f"{self.name}: the script {self._file} has {len(script.turns)} turns and was asked for turn "
                f"{number + 1}: add one to `turns`, or start a new session",
                provider=self.name,
            )
        turn = script.turns[number]
        delay_ms = script.delay_ms if turn.delay_ms is None else turn.delay_ms
        for piece in _pieces(turn, number):
            await asyncio.sleep(delay_ms / 1000)
            yield piece
        if turn.error is not None:
            raise _failure(turn.error, self.name)
        yield FinishPiece(reason=turn.finish or ("toolCalls" if turn.calls else "stop"))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The one model there is, named for the file."""
        model = f"{self.name}/{self._file.stem}"
        return (ModelInfo(model=model, provider=self.name, context_tokens=self.context_tokens),)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def _script(self) -> Script:
        try:
            status = self._file.stat()
            version = (status.st_mtime_ns, status.st_size)
            if self._read is None or self._read[0] != version:
                self._read = (version, _script(self._file, status.st_size))
        except OSError as error:
            raise ConfigurationError(
                f"{self._file}: the script of provider {self.name!r} cannot be read: {error.strerror or error}; "
                f"correct `providers.{self.name}.file`",
                path=f"providers.{self.name}.file",
            ) from None
        return self._read[1]


def _pieces(turn: ScriptTurn, number: int) -> Iterator[ModelPiece]:
    for text in _deltas(turn.reasoning):
        yield ReasoningPiece(text=text)
    for text in _deltas(turn.text):
        yield TextPiece(text=text)
    for index, call in enumerate(turn.calls or ()):
        # Unique in a session, because the number of the turn is: the history grows with each.
        call_id = call.call_id or f"call_{number + 1}_{index + 1}"
        arguments = json.dumps(call.input, ensure_ascii=False) if call.arguments is None else call.arguments
        yield ToolCallPiece(index=index, call_id=call_id, name=call.tool, arguments=arguments)
    if turn.usage is not None:
        yield UsagePiece(usage=_usage(turn.usage))


def _deltas(text: Deltas | None) -> tuple[str, ...] | list[str]:
    """Words with the space after them, so that a script streams as a model does."""
    return re.findall(r"\S+\s*|\s+", text) if isinstance(text, str) else text or ()


def _usage(usage: ScriptUsage) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        cached_tokens=usage.cached_tokens,
    )


def _failure(error: ScriptError, provider: str) -> ModelError:
    return ModelError(
        f"{provider}: {error.message}",
        provider=provider,
        kind=error.kind,
        retryable=error.retryable,
        status=error.status,
        retry_after_secs=error.retry_after_secs,
    )


# The file -----------------------------------------------------------------------------------------------


def _script(file: Path, size_bytes: int) -> Script:
    """Raises OSError when the file cannot be read, ConfigurationError when it is no script."""
    if size_bytes > MAX_SCRIPT_BYTES:
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


def _decoded(raw: Any) -> Script:
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
    return script


def _check_turn(raw: JsonObject, turn: ScriptTurn, path: str) -> None:
    _check_fields(raw, ScriptTurn, path)
    for number, call in enumerate(raw.get("calls") or ()):
        _check_fields(call, ScriptCall, f"{path}.calls[{number}]")
    for name, shape in (("usage", ScriptUsage), ("error", ScriptError)):
        _check_fields(raw.get(name) or {}, shape, f"{path}.{name}")
    if turn.text is None and turn.reasoning is None and not turn.calls and turn.error is None:
        raise DecodeError(path, "needs `text`, `reasoning`, `calls` or `error`")
    if turn.delay_ms is not None and turn.delay_ms < 0:
        raise DecodeError(f"{path}.delayMs", f"must not be negative, as {turn.delay_ms:g} is")


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
