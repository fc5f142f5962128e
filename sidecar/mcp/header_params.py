"""Tool parameters that travel as HTTP headers too: `x-mcp-header` in a tool's input schema. Pure.

Source: MCP 2026-07-28, basic/transports/streamable-http#custom-headers-from-tool-parameters. A tool with an
annotation that breaks the rules there must not be used over HTTP at all.
"""

import base64
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from sidecar.protocol.values import JsonObject

ANNOTATION = "x-mcp-header"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRIMITIVES = ("string", "integer", "boolean")
_LARGEST_INTEGER = 2**53 - 1
_PLAIN = re.compile(r"(?![ \t])[\t\x20-\x7e]*(?<![ \t])")
_MAX_DEPTH = 100
"""Schemas nested deeper than this are not searched for annotations. Own choice: no parameter lies so deep."""


class HeaderParam(NamedTuple):
    """One parameter that is mirrored: its header, and the property names that lead to it."""

    header: str
    path: tuple[str, ...]


class HeaderParamError(ValueError):
    """An annotation that breaks the rules; the message says which and why."""


def header_params(schema: JsonObject) -> tuple[HeaderParam, ...]:
    """The parameters of a tool that are mirrored into headers. Raises HeaderParamError."""
    params = tuple(_reachable(schema, ()))
    if len(params) != _count(schema, 0):
        raise HeaderParamError(f"{ANNOTATION} stands where no chain of properties leads to")
    names = [param.header.lower() for param in params]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise HeaderParamError(f"{ANNOTATION} {twice!r} is used for two parameters")
    return params


def param_headers(params: tuple[HeaderParam, ...], arguments: JsonObject) -> dict[str, str]:
    """The headers that mirror `arguments`; none for what is absent or null.

    A value of a type that no header can carry is left out: the server's own check of arguments is to say so.
    """
    headers = {}
    for param in params:
        text = _as_text(_value_at(arguments, param.path))
        if text is not None:
            headers[f"Mcp-Param-{param.header}"] = header_value(text)
    return headers


def header_value(text: str) -> str:
    """The text as a header carries it: as it is where it is plain ASCII, else in base64 between marks."""
    if _PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode('ascii')}?="


def _reachable(schema: JsonObject, path: tuple[str, ...]) -> Iterator[HeaderParam]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(path) > _MAX_DEPTH:
        return
    for name, inner in properties.items():
        if isinstance(inner, dict):
            here = (*path, name)
            if ANNOTATION in inner:
                yield _param(inner, here)
            yield from _reachable(inner, here)


def _param(schema: JsonObject, path: tuple[str, ...]) -> HeaderParam:
    header, kind = schema[ANNOTATION], schema.get("type")
    place = ".".join(path)
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise HeaderParamError(f"{ANNOTATION} of parameter {place!r} is no name of a header")
    if kind not in _PRIMITIVES:
        raise HeaderParamError(
            f"{ANNOTATION} of parameter {place!r} is for a string, an integer or a boolean only"
        )
    return HeaderParam(header, path)


def _count(schema: Any, depth: int) -> int:
    """All annotations anywhere in a schema, a property that happens to have that name not counted."""
    if depth > _MAX_DEPTH:
        return 0
    if isinstance(schema, list):
        return sum(_count(item, depth + 1) for item in schema)
    if not isinstance(schema, dict):
        return 0
    count = int(ANNOTATION in schema)
    for keyword, inner in schema.items():
        if keyword in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
            inner = list(inner.values()) if isinstance(inner, dict) else inner
        elif keyword in _DATA:
            continue
        count += _count(inner, depth + 1)
    return count


_DATA = ("const", "default", "enum", "examples", ANNOTATION)
"""Keywords that hold values, not schemas."""


def _value_at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _as_text(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() if abs(value) <= _LARGEST_INTEGER:
            return str(value)
        case float() if value.is_integer() and abs(value) <= _LARGEST_INTEGER:
            return str(int(value))
        case _:
            return None
