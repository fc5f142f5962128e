"""The model as TypeScript: an interface for each shape, and two maps from methods to their types."""

import json
from collections.abc import Iterator

from sidecar.protocol.values import JsonObject

_HEAD = """\
// Made by `agent-sidecar schema --format typescript`; change the types in sidecar/protocol and make it again.

export const PROTOCOL_VERSION = {version};

/** An object whose inside is not the protocol's: tool arguments, JSON Schema. */
export type JsonObject = {{ [name: string]: unknown }};
"""

_BASE = {
    "string": "string",
    "boolean": "boolean",
    "integer": "number",
    "decimal": "number",
    "null": "null",
    "any": "unknown",
}


def typescript(model: JsonObject) -> str:
    """The module's text."""
    parts = [
        _HEAD.format(version=json.dumps(model["metaData"]["version"])),
        *(_enumeration(each) for each in model["enumerations"]),
        *(f"export type {each['name']} = {_type(each['type'])};\n" for each in model["typeAliases"]),
        *(_structure(each) for each in model["structures"]),
        _map("HostRequests", "What a host asks the sidecar.", model["requests"], "clientToServer"),
        _map("SidecarRequests", "What the sidecar asks the host.", model["requests"], "serverToClient"),
        _map("HostNotifications", "What a host tells the sidecar.", model["notifications"], "clientToServer"),
        _map("SidecarNotifications", "What the sidecar tells the host.", model["notifications"], "serverToClient"),
        _errors(model["errors"]),
    ]
    return "\n".join(parts)


def _structure(structure: JsonObject) -> str:
    lines = [*_comment(structure["documentation"]), f"export interface {structure['name']} {{"]
    lines += [f"  {_property(each)};" for each in structure["properties"]]
    if structure.get("isOpen"):
        lines.append("  [name: string]: unknown;")
    return "\n".join([*lines, "}", ""])


def _property(described: JsonObject) -> str:
    mark = "?" if described.get("optional") else ""
    null = " | null" if described.get("nullable") else ""
    return f"{described['name']}{mark}: {_type(described['type'])}{null}"


def _enumeration(enumeration: JsonObject) -> str:
    choices = " | ".join(json.dumps(each["value"]) for each in enumeration["values"])
    return f"export type {enumeration['name']} = {choices};\n"


def _map(name: str, about: str, rows: list[JsonObject], direction: str) -> str:
    chosen = [row for row in rows if row["messageDirection"] == direction]
    lines = [f"/** {about} */", f"export interface {name} {{"]
    for row in chosen:
        result = f"; result: {_type(row['result'])}" if "result" in row else ""
        lines.append(f"  {json.dumps(row['method'])}: {{ params: {_type(row['params'])}{result} }};")
    return "\n".join([*lines, "}", ""])


def _errors(errors: list[JsonObject]) -> str:
    lines = ["/** `data.kind` of an error, and its code. */", "export const ERROR_CODES = {"]
    lines += [f"  {each['kind']}: {each['code']}," for each in errors]
    return "\n".join([*lines, "} as const;", "", "export type ErrorKindName = keyof typeof ERROR_CODES;", ""])


def _type(kind: JsonObject) -> str:
    match kind:
        case {"kind": "base", "name": str(name)}:
            return _BASE[name]
        case {"kind": "reference", "name": str(name)}:
            return name
        case {"kind": "array", "element": dict(element)}:
            inner = _type(element)
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case {"kind": "map", "value": {"kind": "base", "name": "any"}}:
            return "JsonObject"
        case {"kind": "map", "value": dict(value)}:
            return f"{{ [name: string]: {_type(value)} }}"
        case {"kind": "literal", "value": value}:
            return json.dumps(value)
        case {"kind": "or", "items": list(items)}:
            return " | ".join(dict.fromkeys(map(_type, items)))
    raise TypeError(f"no type of the model: {kind!r}")


def _comment(text: str) -> Iterator[str]:
    """JSDoc; a text cannot end it."""
    lines = text.replace("*/", "*\\/").splitlines()
    if len(lines) == 1:
        yield f"/** {lines[0]} */"
    elif lines:
        yield "/**"
        yield from (f" * {line}".rstrip() for line in lines)
        yield " */"
