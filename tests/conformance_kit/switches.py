"""What a twin sees of a connection, and what it can do about a frame."""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

Json = dict[str, Any]


class Gone(Exception):
    """The twin ends, with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@define
class Wire:
    """The connection so far. `raw` is what the host wrote last, `last` the id of its latest request."""

    raw: bytes = b""
    last: str = ""
    hello: Json = field(factory=dict)
    asked: dict[str, Json] = field(factory=dict)
    memo: dict[str, Any] = field(factory=dict)

    @property
    def at(self) -> str:
        """The conversation that is played; `start` until its first request."""
        return self.last.partition("/")[0]

    def from_host(self, body: bytes) -> Json | None:
        """Takes a look at a frame of the host."""
        frame = _parsed(body)
        if frame is not None and isinstance(frame.get("method"), str) and "id" in frame:
            self.last = str(frame["id"])
            if frame["method"] == "initialize" and isinstance(frame.get("params"), dict):
                self.hello = frame["params"]
        return frame

    def from_sidecar(self, body: bytes) -> Json:
        """Takes a look at a frame of the sidecar."""
        frame = _parsed(body)
        assert frame is not None
        if "method" in frame and "id" in frame:
            self.asked[str(frame["id"])] = frame
        return frame

    @staticmethod
    def dumped(frame: object) -> bytes:
        """A frame as a body."""
        return json.dumps(frame, separators=(",", ":")).encode()


def _parsed(body: bytes) -> Json | None:
    try:
        frame = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) else None


Frames = Sequence[object]
Edit = Callable[[Json, Wire], Json | Frames | None]
"""Changes a frame, a copy that it may write on: another one, several in its place, or None for none."""

When = Callable[[Json, Wire], bool]


def _untold(wire: Wire, frame: Json) -> Frames:
    return (frame,)


def _unheard(wire: Wire, frame: Json) -> Json:
    return frame


def _same_status(wire: Wire, status: int) -> int:
    return status


def _nothing(wire: Wire) -> Frames:
    return ()


@frozen(kw_only=True)
class Twin:
    """One switch: what becomes of the sidecar's frames, the host's, the status and the end of stdin."""

    told: Callable[[Wire, Json], Frames] = _untold
    heard: Callable[[Wire, Json], Json] = _unheard
    status: Callable[[Wire, int], int] = _same_status
    at_end: Callable[[Wire], Frames] = _nothing


def together(twins: Sequence[Twin]) -> Twin:
    """Several switches at once, each with a memory of its own."""
    memos: list[dict[str, Any]] = [{} for _ in twins]

    def parts(wire: Wire) -> Iterator[tuple[Twin, Wire]]:
        return ((twin, evolve(wire, memo=memo)) for twin, memo in zip(twins, memos, strict=True))

    def told(wire: Wire, frame: Json) -> Frames:
        frames: list[object] = [frame]
        for twin, own in parts(wire):
            frames = [new for old in frames for new in (twin.told(own, old) if isinstance(old, dict) else (old,))]
        return frames

    def heard(wire: Wire, frame: Json) -> Json:
        for twin, own in parts(wire):
            frame = twin.heard(own, frame)
        return frame

    def ended_with(wire: Wire, code: int) -> int:
        for twin, own in parts(wire):
            code = twin.status(own, code)
        return code

    return Twin(
        told=told,
        heard=heard,
        status=ended_with,
        at_end=lambda wire: [frame for twin, own in parts(wire) for frame in twin.at_end(own)],
    )


# Which frames --------------------------------------------------------------------------------------------


def spoils(when: When, *edits: Edit) -> Twin:
    """Edits the sidecar's frames that are meant."""

    def told(wire: Wire, frame: Json) -> Frames:
        if not when(frame, wire):
            return (frame,)
        changed: Json | Frames | None = copy.deepcopy(frame)
        for edit in edits:
            assert isinstance(changed, dict)
            changed = edit(changed, wire)
        if changed is None:
            return ()
        return (changed,) if isinstance(changed, dict) else changed

    return Twin(told=told)


def answer(label: object, *edits: Edit) -> Twin:
    """Edits the answer to the request `conversation/label`, or with that number."""
    return spoils(lambda frame, wire: "method" not in frame and frame.get("id") == label, *edits)


def asks(at: str, method: str, *edits: Edit, when: When | None = None) -> Twin:
    """Edits the sidecar's requests and notifications of a method in a conversation, or at `conversation/label`."""
    return spoils(
        lambda frame, wire: (
            frame.get("method") == method and _is_at(at, wire) and (when is None or when(frame, wire))
        ),
        *edits,
    )


def event(at: str, kind: str, *edits: Edit, when: When | None = None) -> Twin:
    """Edits the events of a type in a conversation; paths begin in the event."""

    def is_meant(frame: Json, wire: Wire) -> bool:
        return frame["params"]["event"]["type"] == kind and (when is None or when(frame, wire))

    return asks(at, "agent/event", *edits, when=is_meant)


def _is_at(at: str, wire: Wire) -> bool:
    return at in ("*", wire.at, wire.last)


def of_run(run: str) -> When:
    """Whether it is of a run."""
    return lambda frame, wire: frame["params"]["runId"] == run


def of_tool(name: str) -> When:
    """Whether it is an event about a call of this tool."""
    return lambda frame, wire: frame["params"]["event"]["toolName"] == name


def has_field(path: str, value: object) -> When:
    """Whether `a.b.c` of a frame is this."""

    def is_it(frame: Json, wire: Wire) -> bool:
        inside: Any = frame
        for name in path.split("."):
            inside = inside.get(name) if isinstance(inside, dict) else None
        return bool(inside == value)

    return is_it


def with_results(frame: Json, wire: Wire) -> bool:
    """Whether a conversation for a model holds results of tools."""
    return any(message["role"] == "tool" for message in frame["params"]["messages"])


# What becomes of them ------------------------------------------------------------------------------------


def put(path: str, value: Any) -> Edit:
    """Sets what is there; a function makes it of what was there."""

    def edit(frame: Json, wire: Wire) -> Json:
        owner, name = _owner(frame, path)
        owner[name] = value(owner[name]) if callable(value) else value
        return frame

    return edit


def cut(path: str) -> Edit:
    """Takes a field away."""

    def edit(frame: Json, wire: Wire) -> Json:
        owner, name = _owner(frame, path)
        owner.pop(name, None)
        return frame

    return edit


def _owner(frame: Json, path: str) -> tuple[Any, Any]:
    """The object or array that holds the last name of a path. `event.` stands for the inside of an event."""
    *names, last = (
        path.replace("event.", "params.event.", 1).split(".") if path.startswith("event.") else path.split(".")
    )
    inside: Any = frame
    for name in names:
        inside = inside[int(name) if isinstance(inside, list) else name]
    return inside, int(last) if isinstance(inside, list) else last


def drop(frame: Json, wire: Wire) -> None:
    """The frame is never sent."""


def twice(frame: Json, wire: Wire) -> Frames:
    """The frame is sent again."""
    return frame, frame


def fails(kind: str = "other", code: int = -31009, **data: Any) -> Edit:
    """The answer is this error, whatever it was."""

    def edit(frame: Json, wire: Wire) -> Json:
        error = {"code": code, "message": "the twin says so", "data": {"kind": kind, **data}}
        return {"jsonrpc": "2.0", "id": frame["id"], "error": error}

    return edit


def gives(**result: Any) -> Edit:
    """The answer is this result, whatever it was."""
    return lambda frame, wire: {"jsonrpc": "2.0", "id": frame["id"], "result": result}


def before(*frames: object) -> Edit:
    """These are sent before it."""
    return lambda frame, wire: (*frames, frame)


def texts(old: str, new: str) -> Edit:
    """Every text in it has `new` for `old`."""

    def edit(frame: Json, wire: Wire) -> Json:
        written = json.dumps(frame, ensure_ascii=False)
        changed: Json = json.loads(written.replace(old, new))
        return changed

    return edit


def status(when: Callable[[Wire], bool], value: int) -> Twin:
    """Another exit status."""
    return Twin(status=lambda wire, code: value if when(wire) else code)
