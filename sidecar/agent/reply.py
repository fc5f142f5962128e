"""Folds the pieces of a model's stream into one reply, whatever order and shape they come in.

Pure. Streams in the wild leave out indexes, send 0 for all of them, give arguments before names, repeat
names, or claim to have stopped when they ask for tools. Only what has been gathered counts here.
"""

import json
from typing import Any

from attrs import define, field, frozen

from sidecar.protocol.values import JsonObject, Usage
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelPiece,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
    WarningPiece,
)


@frozen(kw_only=True)
class RequestedCall:
    """A call as the model wrote it. `arguments` is its JSON text, not yet parsed."""

    call_id: str | None
    name: str
    arguments: str


@frozen(kw_only=True)
class Reply:
    """One answer of a model. `finish` is None when the stream broke off.

    `left_out` are tools of the request that the provider did not tell the model of.
    """

    text: str
    reasoning: str
    calls: tuple[RequestedCall, ...]
    finish: str | None
    usage: Usage | None
    extras: Any
    left_out: frozenset[str] = frozenset()


@define
class _OpenCall:
    index: int | None
    call_id: str | None
    name: str = ""
    fragments: list[str] = field(factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)


class ReplyFold:
    """Takes pieces one at a time; `reply()` says what they make so far."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_OpenCall] = []
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._extras: Any = None
        self._left_out: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come yet that a second try would say again."""
        return not (self._text or self._reasoning or self._calls)

    def add(self, piece: ModelPiece) -> None:
        """Takes one piece in."""
        match piece:
            case TextPiece(text=text):
                self._text.append(text)
            case ReasoningPiece(text=text):
                self._reasoning.append(text)
            case ToolCallPiece():
                self._add_call(piece)
            case UsagePiece(usage=usage):
                self._usage = usage
            case FinishPiece(reason=reason):
                self._finish = reason
            case ExtrasPiece(data=data):
                self._extras = data
            case WarningPiece(left_out=left_out):  # Its words are the run's to report.
                self._left_out |= frozenset(left_out)

    def reply(self) -> Reply:
        """All that has come, in one value."""
        return Reply(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=tuple(_closed(call) for call in self._calls),
            finish=self._finish,
            usage=self._usage,
            extras=self._extras,
            left_out=self._left_out,
        )

    def _add_call(self, piece: ToolCallPiece) -> None:
        call = self._call_for(piece)
        if call is None:
            call = _OpenCall(index=piece.index, call_id=piece.call_id)
            self._calls.append(call)
        elif _repeats(piece, call):
            return
        call.call_id = call.call_id or piece.call_id
        if piece.name and piece.name != call.name:
            call.name += piece.name
        if piece.arguments:
            call.fragments.append(piece.arguments)

    def _call_for(self, piece: ToolCallPiece) -> _OpenCall | None:
        """The call that a piece belongs to: by id, then by index, then the current one. None: a new one."""
        if piece.call_id is not None:
            for call in reversed(self._calls):
                if call.call_id == piece.call_id:
                    return None if _shares_its_id(piece, call) else call
        candidate = self._by_index(piece.index) if piece.index is not None else self._current()
        if candidate is None or _starts_another(piece, candidate):
            return None
        return candidate

    def _by_index(self, index: int) -> _OpenCall | None:
        return next((call for call in reversed(self._calls) if call.index == index), None)

    def _current(self) -> _OpenCall | None:
        return self._calls[-1] if self._calls else None


def _starts_another(piece: ToolCallPiece, call: _OpenCall) -> bool:
    """Whether a piece is a new call although its index says it belongs to `call`."""
    if piece.call_id is not None and call.call_id is not None:
        # Two ids are two calls that share an index by the server's fault; but a call begins with its name, and
        # some servers make up another id for what follows.
        return bool(piece.name) or piece.index is None
    if not piece.name or not call.name:
        return False
    if piece.name != call.name:
        return bool(call.fragments or piece.arguments)  # Names that come in fragments come before all arguments.
    return _is_whole(call)


def _shares_its_id(piece: ToolCallPiece, call: _OpenCall) -> bool:
    """Whether a piece is a new call although it bears the id of `call`: some give parallel calls one id."""
    if not piece.name or not call.name or _repeats(piece, call):
        return False
    stands_elsewhere = None not in (piece.index, call.index) and piece.index != call.index
    if piece.name != call.name:
        return stands_elsewhere or bool(call.fragments and piece.arguments)
    return (stands_elsewhere or bool(piece.arguments)) and _is_whole(call)


def _repeats(piece: ToolCallPiece, call: _OpenCall) -> bool:
    """Whether a piece says a whole call of the same id once more."""
    is_same = (
        bool(piece.name) and (piece.name, piece.call_id) == (call.name, call.call_id) and call.call_id is not None
    )
    return is_same and bool(piece.arguments) and _is_whole(call) and piece.arguments == call.arguments


_CLOSING = {"{": "}", "[": "]", '"': '"'}


def _is_whole(call: _OpenCall) -> bool:
    """Whether the arguments are complete JSON. Only what can be is put together: it may be long by now."""
    if not call.fragments:
        return False
    first, last = call.fragments[0].lstrip()[:1], call.fragments[-1].rstrip()[-1:]
    if last and last != _CLOSING.get(first, last):
        return False
    try:
        json.loads(call.arguments)
    except (ValueError, RecursionError):
        return False
    return True


def _closed(call: _OpenCall) -> RequestedCall:
    return RequestedCall(call_id=call.call_id, name=call.name, arguments=call.arguments)


class UnreadableArgumentsError(ValueError):
    """A call's arguments never became a JSON object; the message says what they are, for the model."""


@frozen(kw_only=True)
class ReadArguments:
    """Arguments as an object; `was_string` when a JSON string had to be opened to find it."""

    value: JsonObject
    was_string: bool = False


def read_arguments(text: str) -> ReadArguments:
    """The JSON object that a call's argument text holds; nothing at all stands for `{}`.

    Raises UnreadableArgumentsError for anything that is no JSON object. Own choice: an object inside a JSON
    string is opened once, because several models quote it twice.
    """
    value = _parse(text) if text.strip() else {}
    if isinstance(value, dict):
        return ReadArguments(value=value)
    if isinstance(value, str):
        inner = _parse(value) if value.strip() else {}
        if isinstance(inner, dict):
            return ReadArguments(value=inner, was_string=True)
    raise UnreadableArgumentsError(f"the arguments must be a JSON object, not {text[:200]!r}")


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UnreadableArgumentsError(
            f"the arguments are not valid JSON ({error}): {text[:200]!r}; send one JSON object"
        ) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
