"""The model as LuaCATS annotations, for Neovim plugins and other hosts in Lua."""

import json
from collections.abc import Iterator

from sidecar.protocol.values import JsonObject

PREFIX = "sidecar."
"""Types have no name space of their own in LuaCATS."""

_HEAD = """\
---@meta
-- Made by `agent-sidecar schema --format lua`; change the types in sidecar/protocol and make it again.
"""

_BASE = {
    "string": "string",
    "boolean": "boolean",
    "integer": "integer",
    "decimal": "number",
    "null": "nil",
    "any": "any",
}


def luacats(model: JsonObject) -> str:
    """The file's text."""
    parts = [
        _HEAD,
        *(_alias(each["name"], _choices(each)) for each in model["enumerations"]),
        *(_alias(each["name"], _type(each["type"])) for each in model["typeAliases"]),
        *("\n".join(_class(each)) + "\n" for each in model["structures"]),
        _methods(model),
    ]
    return "\n".join(parts)


def _alias(name: str, kind: str) -> str:
    return f"---@alias {PREFIX}{name} {kind}\n"


def _choices(enumeration: JsonObject) -> str:
    return "|".join(json.dumps(each["value"]) for each in enumeration["values"])


def _class(structure: JsonObject) -> Iterator[str]:
    yield from (f"--- {line}".rstrip() for line in structure["documentation"].splitlines())
    yield f"---@class {PREFIX}{structure['name']}"
    for each in structure["properties"]:
        mark = "?" if each.get("optional") else ""
        yield f"---@field {each['name']}{mark} {_type(each['type'])}"


def _methods(model: JsonObject) -> str:
    directions = {"clientToServer": "Host", "serverToClient": "Sidecar"}
    rows = [*model["requests"], *model["notifications"]]
    lines = []
    for direction, sender in directions.items():
        names = [json.dumps(row["method"]) for row in rows if row["messageDirection"] == direction]
        lines.append(f"---@alias {PREFIX}{sender}Method {'|'.join(names)}")
    return "\n".join([*lines, ""])


def _type(kind: JsonObject) -> str:
    match kind:
        case {"kind": "base", "name": str(name)}:
            return _BASE[name]
        case {"kind": "reference", "name": str(name)}:
            return f"{PREFIX}{name}"
        case {"kind": "array", "element": dict(element)}:
            inner = _type(element)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case {"kind": "map", "value": dict(value)}:
            return f"table<string, {_type(value)}>"
        case {"kind": "literal", "value": value}:
            return json.dumps(value)
        case {"kind": "or", "items": list(items)}:
            return "|".join(dict.fromkeys(map(_type, items)))
    raise TypeError(f"no type of the model: {kind!r}")
