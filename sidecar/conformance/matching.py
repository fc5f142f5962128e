"""Patterns against JSON values, and values made from templates. Pure.

A pattern is JSON. A scalar matches what is equal to it, an object what has its fields (and any others), an array
what has its elements in its order. An object with one name that begins with `$` is an operator; the tables below
are all there are, and `transcripts/README.md` describes them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

Names = MutableMapping[str, Any]
"""What was captured in a conversation. A label of a request has its id on the wire under `id:LABEL`."""

Mismatch = str | None
"""What does not fit, in words that name the place; None where everything does."""

ABSENT = object()
"""Stands for a field that is not there."""

MOST_SHOWN_CHARACTERS = 120
"""How much of a value a mismatch shows."""


class NotCapturedError(Exception):
    """A template names what was never captured, because an earlier step failed."""


def mismatch(pattern: Any, value: Any, names: Names, path: str = "") -> Mismatch:
    """What in `value` does not match; captures into `names` on the way, also from what does not match."""
    if (operator := _operator(pattern)) is not None:
        name, argument = operator
        if name in _LOOKERS:
            return _LOOKERS[name](argument, value, names, path)
        pattern = fill(pattern, names)
    if isinstance(pattern, dict):
        return _object_mismatch(pattern, value, names, path)
    if isinstance(pattern, list):
        return _array_mismatch(pattern, value, names, path)
    return None if same(pattern, value) else _told(path, f"expected {shown(pattern)}", value)


def matches(pattern: Any, value: Any, names: Names) -> bool:
    """Whether it matches, without capturing anything."""
    return mismatch(pattern, value, dict(names)) is None


def addressed(pattern: Mapping[str, Any], frame: Mapping[str, Any], names: Names) -> bool:
    """Whether `frame` is of the kind that `pattern` speaks of, whatever else is in it.

    A request or notification is known by its method, an `agent/event` by the event's type and the run, too, a
    `$/cancelRequest` by the id that it names; an answer by its id.
    """
    if "method" not in pattern:
        return (
            "method" not in frame
            and "id" in pattern
            and matches(wire_id(pattern["id"], names), frame.get("id"), names)
        )
    if frame.get("method") != pattern["method"]:
        return False
    if pattern["method"] == "$/cancelRequest" and "params" in pattern:
        return matches(pattern["params"], frame.get("params"), names)
    if pattern["method"] != "agent/event":
        return True
    return _same_event(pattern.get("params", {}), frame.get("params"), names)


def _same_event(pattern: Any, params: Any, names: Names) -> bool:
    if not isinstance(params, dict) or not isinstance(params.get("event"), dict):
        return True  # It will not match, and the complaint will say why.
    wanted = pattern.get("event", {}).get("type")
    if isinstance(wanted, str) and params["event"].get("type") != wanted:
        return False
    return "runId" not in pattern or matches(pattern["runId"], params.get("runId"), names)


def wire_id(written: Any, names: Names) -> Any:
    """The id on the wire of an answer as a transcript writes it: a text is a label, everything else itself."""
    if isinstance(written, str):
        return names.get(f"id:{written}", ABSENT)
    return written


def same(left: Any, right: Any) -> bool:
    """Equality of JSON: `true` is no number, `3.0` is 3."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def shown(value: Any) -> str:
    """A value on one line, cut where it is long."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN_CHARACTERS else f"{text[:MOST_SHOWN_CHARACTERS]}…"


def _told(path: str, wanted: str, value: Any) -> str:
    return f"{path.lstrip('.') or 'it'}: {wanted}, got {shown(value)}"


def _operator(pattern: Any) -> tuple[str, Any] | None:
    if isinstance(pattern, dict) and pattern:
        name = next(iter(pattern))
        if name.startswith("$"):
            return name, pattern[name] if len(pattern) == 1 else pattern
    return None


def _object_mismatch(pattern: Mapping[str, Any], value: Any, names: Names, path: str) -> Mismatch:
    if not isinstance(value, dict):
        return _told(path, "expected an object", value)
    found = [mismatch(inner, value.get(name, ABSENT), names, f"{path}.{name}") for name, inner in pattern.items()]
    return next(filter(None, found), None)


def _array_mismatch(pattern: list[Any], value: Any, names: Names, path: str) -> Mismatch:
    if not isinstance(value, list):
        return _told(path, "expected an array", value)
    if len(value) != len(pattern):
        return _told(path, f"expected {len(pattern)} elements", value)
    found = [
        mismatch(inner, each, names, f"{path}[{number}]")
        for number, (inner, each) in enumerate(zip(pattern, value, strict=True))
    ]
    return next(filter(None, found), None)


# Operators that look at a value --------------------------------------------------------------------------

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: (
        not isinstance(value, bool)
        and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def _any(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    return _told(path, "expected anything", value) if value is ABSENT else None


def _absent(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    return None if value is ABSENT or value is None else _told(path, "expected nothing", value)


def _type(argument: str, value: Any, names: Names, path: str) -> Mismatch:
    return None if _TYPES[argument](value) else _told(path, f"expected a value of type {argument}", value)


def _capture(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    """`{"$capture": NAME}`, or `{"$capture": NAME, "is": pattern}`."""
    name, inner = (
        (argument, {"$any": True}) if isinstance(argument, str) else (argument["$capture"], argument["is"])
    )
    if value is not ABSENT:
        names[name] = value
    return mismatch(inner, value, names, path)


def _one_of(argument: list[Any], value: Any, names: Names, path: str) -> Mismatch:
    if any(matches(each, value, names) for each in argument):
        return None
    return _told(path, f"expected one of {shown(argument)}", value)


def _all_of(argument: list[Any], value: Any, names: Names, path: str) -> Mismatch:
    return next(filter(None, [mismatch(each, value, names, path) for each in argument]), None)


def _not(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    return (
        _told(path, f"expected anything but {shown(argument)}", value) if matches(argument, value, names) else None
    )


def _contains(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    """An array with an element that matches, or a text with this part; an element captures."""
    if isinstance(value, str):
        part = fill(argument, names)
        return (
            None
            if isinstance(part, str) and part in value
            else _told(path, f"expected {shown(part)} in it", value)
        )
    for number, each in enumerate(value if isinstance(value, list) else ()):
        if matches(argument, each, names):
            return mismatch(argument, each, names, f"{path}[{number}]")
    return _told(path, f"expected an array with {shown(argument)}", value)


def _each(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    if not isinstance(value, list):
        return _told(path, "expected an array", value)
    found = [mismatch(argument, each, names, f"{path}[{number}]") for number, each in enumerate(value)]
    return next(filter(None, found), None)


def _same_items(argument: list[Any], value: Any, names: Names, path: str) -> Mismatch:
    """The elements in any order; patterns are taken in their order, each by the first element that fits."""
    left = list(value) if isinstance(value, list) else []
    for each in argument:
        found = next((item for item in left if matches(each, item, names)), ABSENT)
        if found is ABSENT:
            return _told(path, f"expected {shown(each)} in it", value)
        left.remove(found)
    return None if isinstance(value, list) and not left else _told(path, "expected no other elements", value)


def _length(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    if not isinstance(value, str | list | dict):
        return _told(path, "expected something with a length", value)
    return mismatch(argument, len(value), names, f"{path}.length")


def _regex(argument: str, value: Any, names: Names, path: str) -> Mismatch:
    fits = isinstance(value, str) and re.search(argument, value, re.DOTALL) is not None
    return None if fits else _told(path, f"expected a text that matches {argument!r}", value)


def _at_least(argument: float, value: Any, names: Names, path: str) -> Mismatch:
    fits = _TYPES["number"](value) and value >= argument
    return None if fits else _told(path, f"expected at least {argument}", value)


def _at_most(argument: float, value: Any, names: Names, path: str) -> Mismatch:
    fits = _TYPES["number"](value) and value <= argument
    return None if fits else _told(path, f"expected at most {argument}", value)


def _exactly(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    wanted = fill(argument, names)
    return None if same(wanted, value) else _told(path, f"expected exactly {shown(wanted)}", value)


def _json(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    """A text that holds JSON which matches."""
    try:
        inner = json.loads(value)
    except (TypeError, ValueError):
        return _told(path, "expected a text that is JSON", value)
    return mismatch(argument, inner, names, path)


def _text(argument: Any, value: Any, names: Names, path: str) -> Mismatch:
    """Content, as a text or as blocks: the text of it matches."""
    if isinstance(value, list):
        value = "".join(str(block.get("text", "")) for block in value if isinstance(block, dict))
    return mismatch(argument, value, names, path)


_LOOKERS: Mapping[str, Callable[[Any, Any, Names, str], Mismatch]] = {
    "$any": _any,
    "$absent": _absent,
    "$type": _type,
    "$capture": _capture,
    "$oneOf": _one_of,
    "$all": _all_of,
    "$not": _not,
    "$contains": _contains,
    "$each": _each,
    "$sameItems": _same_items,
    "$length": _length,
    "$regex": _regex,
    "$atLeast": _at_least,
    "$atMost": _at_most,
    "$exactly": _exactly,
    "$json": _json,
    "$text": _text,
}

# Operators that make a value -----------------------------------------------------------------------------


def fill(template: Any, names: Mapping[str, Any]) -> Any:
    """The value of a template. Raises NotCapturedError where it names what is not there."""
    if (operator := _operator(template)) is not None:
        name, argument = operator
        if name not in _MAKERS:
            raise ValueError(f"no operator for a value: {name}")
        return _MAKERS[name](argument, names)
    if isinstance(template, dict):
        return {name: fill(inner, names) for name, inner in template.items()}
    if isinstance(template, list):
        return [fill(inner, names) for inner in template]
    return template


def _use(argument: str, names: Mapping[str, Any]) -> Any:
    if argument not in names:
        raise NotCapturedError(argument)
    return names[argument]


def _id(argument: str, names: Mapping[str, Any]) -> Any:
    return _use(f"id:{argument}", names)


def _repeat(argument: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """`{"$repeat": TEXT or ARRAY, "times": N}`."""
    return fill(argument["$repeat"], names) * argument["times"]


def _concat(argument: list[Any], names: Mapping[str, Any]) -> str:
    return "".join(str(fill(each, names)) for each in argument)


def _nested(argument: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """`{"$nested": VALUE, "times": N}`: the value in so many arrays."""
    value = fill(argument["$nested"], names)
    for _ in range(argument["times"]):
        value = [value]
    return value


_MAKERS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "$use": _use,
    "$id": _id,
    "$literal": lambda argument, names: argument,
    "$repeat": _repeat,
    "$concat": _concat,
    "$nested": _nested,
}


def made_operators() -> Iterator[str]:
    """The names of all operators, for the description to be held against."""
    yield from (*_LOOKERS, *_MAKERS)
