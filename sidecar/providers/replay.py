"""A provider that plays a script instead of asking a model: for demos, tests and bug reports.

The script is a JSON file (`providers.<name>.file`), as `script` describes it. It is read again when it changes.
The name of the model is free: `replay/anything`.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import Usage
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ModelRequest,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
    WarningPiece,
)
from sidecar.providers.options import ProviderOptions
from sidecar.providers.script import (
    Deltas,
    Script,
    ScriptCall,
    ScriptError,
    ScriptTurn,
    ScriptUsage,
    read_script,
)


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
        self._played: Counter[int] = Counter()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """Plays the turn that follows the request's history. Raises ConfigurationError for a bad file."""
        script = self._script()
        place = place_of(request)
        turn = self._next_turn(script, place)
        delay_ms = script.delay_ms if turn.delay_ms is None else turn.delay_ms
        for warning in turn.warnings:
            yield WarningPiece(code=warning.code, message=warning.message, left_out=warning.left_out)
        for piece in _pieces(turn, place):
            await asyncio.sleep(delay_ms / 1000)
            yield piece
        if turn.error is not None:
            raise _failure(turn.error, self.name)
        if turn.extras is not None:
            yield ExtrasPiece(data=turn.extras)
        if turn.finish != "brokenOff":
            yield FinishPiece(reason=turn.finish or ("toolCalls" if _has_calls(turn) else "stop"))

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The one model there is, named for the file."""
        model = f"{self.name}/{self._file.stem}"
        return (ModelInfo(model=model, provider=self.name, context_tokens=self.context_tokens),)

    async def aclose(self) -> None:
        """There is nothing to let go of."""

    def _next_turn(self, script: Script, place: int) -> ScriptTurn:
        turns = script.at(place)
        if not turns:
            raise ModelError(
                f"{self.name}: the script {self._file} has {len(script.turns)} turns and was asked for turn "
                f"{place + 1}: add one to `turns`, or start a new session",
                provider=self.name,
            )
        tries = self._played[place]
        self._played[place] += 1
        return turns[min(tries, len(turns) - 1)]

    def _script(self) -> Script:
        try:
            status = self._file.stat()
            version = (status.st_mtime_ns, status.st_size)
            if self._read is None or self._read[0] != version:
                self._read = (version, read_script(self._file)[0])
                self._played.clear()
        except OSError as error:
            raise ConfigurationError(
                f"{self._file}: the script of provider {self.name!r} cannot be read: {error.strerror or error}; "
                f"correct `providers.{self.name}.file`",
                path=f"providers.{self.name}.file",
            ) from None
        return self._read[1]


def place_of(request: ModelRequest) -> int:
    """Where in a script a request belongs: how many answers its history holds."""
    return sum(message.role == "assistant" for message in request.messages)


def _pieces(turn: ScriptTurn, place: int) -> Iterator[ModelPiece]:
    yield from _said(turn.reasoning, turn.text)
    for number, call in enumerate(turn.calls or ()):
        # Unique in a session, because the place is: the history grows with each turn.
        call_id = call.call_id or f"call_{place + 1}_{number + 1}"
        index = number if call.index is None else call.index
        yield ToolCallPiece(index=index, call_id=call_id, name=call.tool, arguments=_arguments(call))
    for part in turn.parts or ():
        yield from _said(part.reasoning, part.text)
        for call in part.calls or ():
            yield ToolCallPiece(index=call.index, call_id=call.call_id, name=call.tool, arguments=_arguments(call))
    if turn.usage is not None:
        yield UsagePiece(usage=_usage(turn.usage))


def _said(reasoning: Deltas | None, text: Deltas | None) -> Iterator[ModelPiece]:
    for delta in _deltas(reasoning):
        yield ReasoningPiece(text=delta)
    for delta in _deltas(text):
        yield TextPiece(text=delta)


def _arguments(call: ScriptCall) -> str:
    if call.arguments is not None or call.tool is None:
        return call.arguments or ""
    return json.dumps(call.input, ensure_ascii=False)


def _has_calls(turn: ScriptTurn) -> bool:
    return bool(turn.calls) or any(part.calls for part in turn.parts or ())


def _deltas(text: Deltas | None) -> tuple[str, ...] | list[str]:
    """Words with the space after them, so that a script streams as a model does."""
    return re.findall(r"\S+\s*|\s+", text) if isinstance(text, str) else text or ()


def _usage(usage: ScriptUsage) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens
        if usage.total_tokens is None
        else usage.total_tokens,
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
