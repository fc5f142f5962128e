"""A call's arguments against its tool's JSON Schema: checked, never coerced, faults in words for a model."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from attrs import frozen

from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject
from sidecar.tools.output import compact
from sidecar.tools.threads import in_thread

MAX_FAULTS = 10
"""How many faults are told at once; a model mends the first ones first (own choice)."""

MAX_SHOWN_CHARS = 60

LIMIT_SECS = 1.0
"""How long a check may take. Own choice: a usual one takes 1 ms."""

AT_ONCE_SECS = 0.01
"""A check that takes longer goes on in a thread, so that nothing else has to wait for it (own choice)."""

SHALLOW_LEVELS = 50
"""Arguments no deeper than this can be checked against any schema that ends (own choice)."""


@frozen
class Fault:
    """What is wrong, and where: `edits[0].text`; the empty path is the arguments as a whole."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path} {self.reason}" if self.path else f"the argument object {self.reason}"


class BrokenSchemaError(Exception):
    """A tool's schema cannot be used to check anything; the message says why."""


class CheckTooLongError(Exception):
    """Checking the arguments takes longer than they are worth."""


class ArgumentCheck:
    """The check for one tool. Its schema is compiled when it is first used.

    The schema's own `$schema` decides on the draft, 2020-12 where it names none that is known. A `$ref` is
    followed inside the schema only, never fetched.
    """

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._errors: Callable[[Any, float], list[Any]] | None = None
        self._broken: str | None = None

    async def faults(self, arguments: JsonObject) -> list[Fault]:
        """All that is wrong, in the order of the paths; empty when the arguments fit.

        Arguments that take too long to check are at fault. Raises BrokenSchemaError when the schema is wrong.
        """
        try:
            return self._found(arguments, AT_ONCE_SECS)
        except CheckTooLongError:
            return await in_thread(self._found_in_time, arguments)

    def _found_in_time(self, arguments: JsonObject) -> list[Fault]:
        try:
            return self._found(arguments, LIMIT_SECS)
        except CheckTooLongError:
            return [Fault("", "takes too long to check; send less")]

    def _found(self, arguments: JsonObject, limit_secs: float) -> list[Fault]:
        if self._broken is not None:
            raise BrokenSchemaError(self._broken)
        try:
            if self._errors is None:
                self._errors = _compiled(self._schema)
        except Exception as error:  # noqa: BLE001  foreign schemas break the library in many ways
            raise self._is_broken(error) from None
        try:
            return _faults(self._errors(arguments, limit_secs))
        except RecursionError as error:
            if not _is_deeper(arguments, SHALLOW_LEVELS):
                raise self._is_broken(error) from None  # It leads back to itself whatever it is given.
            return [Fault("", "is nested too deeply to be checked")]
        except CheckTooLongError:
            raise
        except Exception as error:  # noqa: BLE001  as above: a wrong `$ref` shows only now
            raise self._is_broken(error) from None

    def _is_broken(self, error: Exception) -> BrokenSchemaError:
        self._broken = f"{type(error).__name__}: {error}"[:200]
        return BrokenSchemaError(self._broken)


def read_arguments(arguments: Any) -> tuple[JsonObject, bool]:
    """The argument object, and whether it had to be taken out of a JSON string.

    Arguments that were never sent (None, an empty string) are `{}`, and so is `[]`, as Lua writes it.
    Raises ToolError `invalidArguments` for anything else that is no object.
    """
    match arguments:
        case dict():
            return arguments, False
        case None | "" | [] | ():
            return {}, False
        case str():
            inner = _parsed(arguments)
            if isinstance(inner, dict):
                return inner, True
    raise ToolError("invalidArguments", f"the arguments must be a JSON object, not {_shown(arguments)}", faults=[])


def invalid_arguments(tool_name: str, faults: Sequence[Fault]) -> ToolError:
    """The error that tells a model what to mend."""
    told = "; ".join(str(fault) for fault in faults[:MAX_FAULTS])
    more = f"; and {len(faults) - MAX_FAULTS} more" if len(faults) > MAX_FAULTS else ""
    return ToolError(
        "invalidArguments",
        f"invalid arguments for {tool_name}: {told}{more}",
        tool=tool_name,
        faults=[{"path": fault.path, "reason": fault.reason} for fault in faults[:MAX_FAULTS]],
    )


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class _SchemaError(Protocol):
    """What this module reads of `jsonschema.ValidationError`."""

    absolute_path: Any
    relative_path: Any
    relative_schema_path: Any
    validator: str
    validator_value: Any
    instance: Any
    schema: Any
    message: str
    context: Any


def _compiled(schema: JsonObject) -> Callable[[Any, float], list[Any]]:
    # jsonschema takes 100 ms to import, and no start needs it: only the first call of a tool does.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from jsonschema.validators import validator_for  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    from sidecar.tools.bounded_check import bounded, checkable, limited  # noqa: PLC0415

    draft = validator_for(schema, default=Draft202012Validator)
    draft.check_schema(schema)
    # An empty registry, because the library's own would fetch what a `$ref` names.
    iter_errors = bounded(draft)(checkable(schema), registry=Registry()).iter_errors
    return lambda arguments, limit_secs: limited(iter_errors(arguments), limit_secs)


# Words --------------------------------------------------------------------------------------------------


def _faults(errors: Iterable[_SchemaError]) -> list[Fault]:
    ordered = sorted(errors, key=lambda error: [str(step) for step in error.absolute_path])
    return [fault for error in ordered for fault in _told(error, list(error.absolute_path))]


def _told(error: _SchemaError, place: list[str | int]) -> Iterator[Fault]:
    path = _path(place)
    match error.validator:
        case "required":
            # The library reports each missing name by itself, and names it in its sentence alone.
            missing = next(n for n in error.validator_value if error.message.startswith(repr(n)))
            yield Fault(_path([*place, missing]), "is required")
        case "type":
            yield Fault(path, f"must be {_types(error.validator_value)}, not {_shown(error.instance)}")
        case "enum":
            choices = ", ".join(_shown(choice) for choice in error.validator_value[:20])
            yield Fault(path, f"must be one of {choices}, not {_shown(error.instance)}")
        case "const":
            yield Fault(path, f"must be {_shown(error.validator_value)}, not {_shown(error.instance)}")
        case "additionalProperties" if error.validator_value is False:
            yield from _unknown(error, place)
        case "anyOf" | "oneOf" if error.context:
            yield from _of_branches(error, place)
        case _:
            yield Fault(path, f"does not fit: {_shortened(error.message, 200)}")


def _unknown(error: _SchemaError, place: list[str | int]) -> Iterator[Fault]:
    known = list(error.schema.get("properties", {}))
    patterns = error.schema.get("patternProperties")
    unknown = [name for name in error.instance if name not in known]
    if patterns:
        yield Fault(_path(place), f"does not fit: {_shortened(error.message, 200)}")
        return
    *others, last = unknown
    yield from (Fault(_path([*place, name]), "is not known") for name in others)
    yield Fault(_path([*place, last]), f"is not known; known are {', '.join(known) or 'none'}")


def _of_branches(error: _SchemaError, place: list[str | int]) -> Iterator[Fault]:
    """The faults of the branch that was most likely meant, or what all the branches want."""
    branches: dict[Any, list[_SchemaError]] = {}
    for inner in error.context:
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    # Faults inside a value, not of it as a whole, and no wrong tag: this branch was meant.
    meant = [
        errors
        for errors in branches.values()
        if all(inner.relative_path and inner.validator != "const" for inner in errors)
    ]
    if meant:
        for inner in min(meant, key=len):
            yield from _told(inner, [*place, *inner.relative_path])
        return
    heads = [errors[0] for errors in branches.values()]
    if all(inner.validator == "type" and not inner.relative_path for inner in heads):
        wanted = " or ".join(dict.fromkeys(_types(inner.validator_value) for inner in heads))
        yield Fault(_path(place), f"must be {wanted}, not {_shown(error.instance)}")
        return
    yield Fault(_path(place), f"fits none of the {len(branches)} allowed shapes: {_shown(error.instance)}")


def _types(types: str | list[str]) -> str:
    names = [types] if isinstance(types, str) else types
    return " or ".join(
        name if name == "null" else f"an {name}" if name[0] in "aio" else f"a {name}" for name in names
    )


def _path(steps: Iterable[str | int]) -> str:
    path = ""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _shown(value: Any) -> str:
    try:
        return _shortened(compact(value), MAX_SHOWN_CHARS)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
