"""JSON Schema validation that ends soon, whatever the schema and the value are.

Schemas come from MCP servers, values from models, and everything else in the process waits for a check. The
library's own validators can be made to take for ever: by a pattern that backtracks, by references that double
with each level, by comparing every item of a list with every other.
"""

import re
import time
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache
from typing import Any

from jsonschema import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from sidecar.tools.arguments import CheckTooLongError

MAX_REPETITIONS = 10_000
"""What counted repetitions of a pattern may multiply to; the engine writes them out. Own choice."""

_deadline: ContextVar[float] = ContextVar("deadline")

_Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


@cache
def bounded(draft: type[Validator]) -> type[Validator]:
    """The validator of a draft, with every keyword under the limit. Used within `limited`."""
    keywords: dict[str, _Keyword] = {
        **draft.VALIDATORS,
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "uniqueItems": _unique_items,
        "additionalProperties": _additional_properties(draft.VALIDATORS["additionalProperties"]),
    }
    timed = {name: _timed(check) for name, check in keywords.items()}
    bounded_draft: type[Validator] = extend(draft, timed)  # type: ignore[no-untyped-call]
    return bounded_draft


def limited(errors: Iterable[ValidationError], limit_secs: float) -> list[ValidationError]:
    """All the errors. Raises CheckTooLongError where finding them takes longer.

    It is the thread's own time that counts, so that a busy machine fails no check.
    """
    token = _deadline.set(time.thread_time() + limit_secs)
    try:
        return list(errors)
    finally:
        _deadline.reset(token)


def checkable(schema: Any, *, has_patterns: bool | None = None) -> Any:
    """The schema without what would lead out of the limit.

    That is a nested `$schema`, which changes the validator, and `unevaluatedProperties` beside
    `patternProperties`, where the library matches without a limit.
    """
    if has_patterns is None:
        has_patterns = "patternProperties" in repr(schema)
    match schema:
        case dict():
            left_out = ("$schema", "unevaluatedProperties") if has_patterns else ("$schema",)
            return {
                name: checkable(inner, has_patterns=has_patterns)
                for name, inner in schema.items()
                if name not in left_out or isinstance(inner, dict)
            }
        case list():
            return [checkable(inner, has_patterns=has_patterns) for inner in schema]
    return schema


def _left_secs() -> float:
    left = _deadline.get() - time.thread_time()
    if left <= 0:
        raise CheckTooLongError
    return left


def _timed(check: _Keyword) -> _Keyword:
    """Every recursion of a validator passes through a keyword, so it is enough to look at the clock there."""

    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        _left_secs()
        return check(validator, value, instance, schema)

    return timed


# Keywords -----------------------------------------------------------------------------------------------


def _matches(pattern: str, text: str) -> bool:
    # 30 ms to import, and most schemas hold no pattern.
    import regex  # noqa: PLC0415

    if _repetitions(pattern) > MAX_REPETITIONS:
        raise CheckTooLongError
    try:
        # `concurrent` lets other threads run meanwhile: the event loop's, where this is another.
        return regex.search(pattern, text, timeout=_left_secs(), concurrent=True) is not None
    except TimeoutError:
        raise CheckTooLongError from None


def _repetitions(pattern: str) -> int:
    """How long the pattern gets where `{m,n}` is written out, about: those of groups multiply."""
    longest, product = 1, 1
    for group, least, most in re.findall(r"(\)?)\{(\d{1,9}),?(\d{0,9})\}", pattern):
        count = max(1, int(most or least))
        if group:
            product *= count
        else:
            longest = max(longest, count)
    return longest * product


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterable[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
) -> Iterable[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(check: _Keyword) -> _Keyword:
    def additional(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterable[ValidationError] | None:
        patterns = schema.get("patternProperties") or {}
        if patterns and validator.is_type(instance, "object"):
            declared = schema.get("properties") or {}
            known = [n for n in instance if n in declared or any(_matches(pattern, n) for pattern in patterns)]
            schema = {"properties": dict.fromkeys(known, True)}
        return check(validator, wanted, instance, schema)

    return additional


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    if wanted and validator.is_type(instance, "array") and len(set(map(_comparable, instance))) < len(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _comparable(value: Any) -> Any:
    """Equal for what JSON Schema takes as equal: 1 and 1.0, not 1 and true."""
    match value:
        case dict():
            return frozenset((name, _comparable(inner)) for name, inner in value.items())
        case list():
            return tuple(map(_comparable, value))
    return isinstance(value, bool), value
