"""Writes down what a model says, as a script that `replay` plays again piece by piece.

A recording holds answers and failures of the model, and what the provider warned of. It holds no request, no key
and no header. What is recorded into one file is played again in the order in which the requests were made.
"""

import asyncio
import json
import logging
import os
import tempfile
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any, get_args

from sidecar import __version__
from sidecar.protocol.codec import encode
from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import JsonObject, Usage
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ModelRequest,
    Provider,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
    WarningPiece,
)
from sidecar.providers.replay import place_of
from sidecar.providers.script import Finish, ScriptUsage, read_script

_KEPT_OF_ERRORS = ("status", "retryable", "retryAfterSecs")

_log = logging.getLogger("sidecar.providers")


class Recorder:
    """A provider that passes on what another one says, and writes it down turn by turn."""

    def __init__(self, provider: Provider, file: Path) -> None:
        self._provider = provider
        self._file = file
        self._turns: list[str] | None = None
        self._writing = threading.Lock()
        self.name = provider.name
        self.context_tokens = provider.context_tokens

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """As the provider does; raises ConfigurationError, too, where the recording cannot be begun."""
        self._turns = self._begun() if self._turns is None else self._turns
        recorded = _Turn(place_of(request))
        try:
            async with aclosing(self._provider.stream(request)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, FinishPiece) and (
                        warning := await self._keep(recorded.ended(piece.reason))
                    ):
                        yield warning
                    recorded.add(piece)
                    yield piece
        except ModelError as error:
            await self._keep(recorded.failed(error, self.name))
            raise
        except (asyncio.CancelledError, GeneratorExit):
            if not recorded.is_over:
                await self._keep(recorded.ended("brokenOff"))
            raise
        if not recorded.is_over and (warning := await self._keep(recorded.ended("brokenOff"))):
            yield warning

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """As the provider does."""
        return await self._provider.list_models()

    async def aclose(self) -> None:
        """Closes the provider; every turn is in the file by then."""
        await self._provider.aclose()

    def _begun(self) -> list[str]:
        """The turns that are in the file already. Raises ConfigurationError for a file of another kind."""
        path = f"providers.{self.name}.record"
        try:
            if self._file.exists():
                return [_line(turn) for turn in read_script(self._file)[1]]
            if not os.access(self._file.parent, os.W_OK):
                raise FileNotFoundError(f"nothing can be written into {self._file.parent}")
        except (ConfigurationError, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigurationError(
                f"{path}: {self._file} cannot be recorded into: {reason}; name another file", path=path
            ) from None
        return []

    async def _keep(self, turn: JsonObject) -> WarningPiece | None:
        """Adds a turn to the file. A run does not fail for what only its recording lacks."""
        assert self._turns is not None  # The stream has begun.
        self._turns.append(_line(turn))
        try:
            await asyncio.to_thread(self._write)
        except OSError as error:
            message = f"{self.name}: the turn was not recorded in {self._file}: {error.strerror or error}"
            _log.warning("%s", message)
            return WarningPiece(code="recordingFailed", message=message)
        return None

    def _write(self) -> None:
        """Replaces the file by one with all turns, so that whoever reads it finds a whole script at any time."""
        with self._writing:  # The last one to write has all the turns that there are.
            description = json.dumps(f"recorded from {self.name} by agent-sidecar {__version__}")
            turns = ",\n".join(self._turns or ())
            text = f'{{"description": {description}, "turns": [\n{turns}\n]}}\n'
            number, draft = tempfile.mkstemp(prefix=f".{self._file.name}.", dir=self._file.parent)
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(text.encode())
                Path(draft).replace(self._file)
            except BaseException:
                Path(draft).unlink(missing_ok=True)
                raise


class _Turn:
    """One answer as far as it has come, in a script's words."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._parts: list[JsonObject] = []
        self._more: JsonObject = {}
        self._last_call: JsonObject | None = None
        self._call_ids: set[str | None] = set()
        self.is_over = False

    def add(self, piece: ModelPiece) -> None:
        match piece:
            case TextPiece(text=text):
                self._part("text").append(text)
            case ReasoningPiece(text=text):
                self._part("reasoning").append(text)
            case ToolCallPiece():
                self._add_call(piece)
            case UsagePiece(usage=usage):
                self._more["usage"] = encode(_usage(usage))
            case ExtrasPiece(data=data):
                self._more["extras"] = data
            case WarningPiece(code=code, message=message, left_out=left_out):
                warning = {"code": code, "message": message, **({"leftOut": left_out} if left_out else {})}
                self._more.setdefault("warnings", []).append(warning)
            case FinishPiece():
                pass  # It was told to `ended` before.

    def ended(self, finish: str) -> JsonObject:
        """The turn, whole or broken off. A provider's own word for its end changes nothing and is not kept."""
        self.is_over = True
        known = {"finish": finish} if finish in get_args(Finish) else {}
        return {"after": self._place, "parts": self._parts, **known, **self._more}

    def failed(self, error: ModelError, provider: str) -> JsonObject:
        """The turn, ending in an error."""
        self.is_over = True
        said: JsonObject = {"message": error.message.removeprefix(f"{provider}: "), "kind": error.kind}
        said |= {name: error.data[name] for name in _KEPT_OF_ERRORS if name in error.data}
        return {"after": self._place, "parts": self._parts, **self._more, "error": said}

    def _part(self, name: str) -> list[Any]:
        """The list that the next piece of this kind belongs to."""
        if not self._parts or name not in self._parts[-1]:
            self._parts.append({name: []})
        part: list[Any] = self._parts[-1][name]
        return part

    def _add_call(self, piece: ToolCallPiece) -> None:
        """Writes a part of a call as it came, joined to the one before where both surely belong together."""
        last, goes_on = self._last_call, piece.call_id is None and piece.name is None
        if last is not None and goes_on and last.get("index") == piece.index:
            last["arguments"] += piece.arguments
            return
        said = {"index": piece.index, "tool": piece.name, "callId": piece.call_id}
        call = {name: value for name, value in said.items() if value is not None}
        call["arguments"] = piece.arguments
        self._part("calls").append(call)
        # What follows an id that was there before may go on with another call, which only the reply's fold knows.
        self._last_call = None if piece.call_id in self._call_ids else call
        self._call_ids |= {piece.call_id} - {None}


def _line(turn: JsonObject) -> str:
    """A turn on a line of its own, readable unless it holds what is no Unicode."""
    text = json.dumps(turn, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(turn)


def _usage(usage: Usage) -> ScriptUsage:
    return ScriptUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cached_tokens=usage.cached_tokens,
    )
