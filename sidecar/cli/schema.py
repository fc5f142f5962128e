"""What a person is asked to type, out of a JSON Schema: fields with types. Pure.

Takes the flat objects and single values that questions use; what is more than that is typed as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Field:
    """One thing to type. `choices` are the only values allowed, where there are any.

    An empty line stands for `default`, where that is not None. What `is_secret` is not shown while it is typed.
    """

    name: str
    label: str
    type: str
    choices: tuple[Any, ...] = ()
    is_required: bool = True
    default: Any = None
    is_secret: bool = False


def fields_of(schema: Any) -> tuple[list[Field], bool]:
    """The fields to ask for, and whether together they make an object; without a schema it is one text."""
    if not isinstance(schema, Mapping):
        return [Field(name="", label="answer", type="string")], False
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return [_field("", schema, is_required=True)], False
    required = schema.get("required") or ()
    return [_field(name, inner, is_required=name in required) for name, inner in properties.items()], True


def _field(name: str, schema: Any, *, is_required: bool) -> Field:
    known: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    choices = tuple(known.get("enum") or ())
    kind = "boolean" if known.get("type") == "boolean" else str(known.get("type", "string"))
    default = known.get("default")
    is_secret = known.get("writeOnly") is True or known.get("format") == "password"
    parts = [str(known.get("title") or known.get("description") or name or "answer")]
    if choices:
        parts.append(f"({' / '.join(map(str, choices))})")
    elif kind == "boolean":
        parts.append("(y/n)")
    elif kind != "string":
        parts.append(f"({kind})")
    if default is not None and not is_secret:
        parts.append(f"[{default}]")
    elif not is_required:
        parts.append("(may be left empty)")
    return Field(
        name=name,
        label=" ".join(parts),
        type=kind,
        choices=choices,
        is_required=is_required,
        default=default,
        is_secret=is_secret,
    )


def value_of(typed: str, wanted: Field) -> Any:
    """What was typed, as the field's type. Raises ValueError saying what is expected."""
    if wanted.choices:
        return _choice(typed, wanted.choices)
    match wanted.type:
        case "string":
            return typed
        case "boolean":
            return _boolean(typed)
        case "integer" | "number":
            return _number(typed, wanted.type)
        case _:
            return _json(typed)


def _choice(typed: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if str(choice) == typed:
            return choice
    raise ValueError(f"one of {', '.join(map(str, choices))}")


def _boolean(typed: str) -> bool:
    answers = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
    if typed.strip().lower() not in answers:
        raise ValueError("y or n")
    return answers[typed.strip().lower()]


def _number(typed: str, kind: str) -> int | float:
    try:
        return int(typed) if kind == "integer" else float(typed)
    except ValueError:
        raise ValueError("a whole number" if kind == "integer" else "a number") from None


def _json(typed: str) -> Any:
    try:
        return json.loads(typed)
    except ValueError:
        raise ValueError("a value in JSON") from None
