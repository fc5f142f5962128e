"""What servers say of their tools and answer to calls, as values. Pure, and lenient.

A tool that cannot be used is left out alone, a schema that would be refused is mended, each with a warning; the
rest of a schema stays as it came. Content of an unknown kind is kept, a broken block is shown as text.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from attrs import field, frozen

from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.values import ContentBlock, JsonObject, TextBlock, UnknownBlock

Warn = Callable[[str], None]


@frozen(kw_only=True)
class McpToolDefinition:
    """A tool as its server describes it.

    `input_schema` is a JSON Schema of an object. `annotations` are the server's word on itself: hints, not to be
    trusted.
    """

    name: str
    title: str | None = None
    description: str = ""
    input_schema: JsonObject = field(factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    annotations: JsonObject | None = None


@frozen(kw_only=True)
class McpCallResult:
    """What a tool answered. `is_error` is the tool's own failure, which the model should see."""

    content: tuple[ContentBlock, ...] = ()
    structured_content: Any = None
    is_error: bool = False


def read_tools(entries: Iterable[Any], warn: Warn) -> list[McpToolDefinition]:
    """The usable tools among the entries of `tools/list`; of two with one name the first."""
    tools: dict[str, McpToolDefinition] = {}
    for entry in entries:
        tool = _read_tool(entry, warn)
        if tool is None:
            continue
        if tool.name in tools:
            warn(f"tool {tool.name!r} is listed twice; the second is left out")
        else:
            tools[tool.name] = tool
    return list(tools.values())


def read_call_result(result: JsonObject) -> McpCallResult:
    """The result of `tools/call`, whatever is missing in it."""
    return McpCallResult(
        content=_read_content(result.get("content")),
        structured_content=result.get("structuredContent"),
        is_error=result.get("isError") is True,
    )


# Tools --------------------------------------------------------------------------------------------------


def _read_tool(entry: Any, warn: Warn) -> McpToolDefinition | None:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        warn("a tool without a name is left out")
        return None
    execution = _object(entry.get("execution")) or {}
    if execution.get("taskSupport") == "required":
        warn(f"tool {name!r} is left out: it runs as a task only, which this client does not offer")
        return None
    annotations = _object(entry.get("annotations"))
    return McpToolDefinition(
        name=name,
        title=_text(entry.get("title")) or _text((annotations or {}).get("title")),
        description=_text(entry.get("description")) or "",
        input_schema=_input_schema(name, entry.get("inputSchema"), warn),
        output_schema=_output_schema(name, entry.get("outputSchema"), warn),
        annotations=annotations,
    )


def _input_schema(name: str, schema: Any, warn: Warn) -> JsonObject:
    if isinstance(schema, dict):
        kind = schema.get("type")
        if kind == "object":
            return schema
        if kind is None or (isinstance(kind, list) and "object" in kind):
            warn(f"the input schema of tool {name!r} does not say that it is of an object; it is taken as one")
            return {**schema, "type": "object"}
    warn(f"the input schema of tool {name!r} is not of an object; any object is taken instead")
    return {"type": "object"}


def _output_schema(name: str, schema: Any, warn: Warn) -> JsonObject | None:
    if schema is None or isinstance(schema, dict):
        return schema
    warn(f"the output schema of tool {name!r} is no object; it is left out")
    return None


# Content ------------------------------------------------------------------------------------------------


def _read_content(content: Any) -> tuple[ContentBlock, ...]:
    if content is None:
        return ()
    return tuple(map(_read_block, content if isinstance(content, list) else [content]))


def _read_block(block: Any) -> ContentBlock:
    match block:
        case dict() if len(block) == 2 and block.get("type") == "text" and isinstance(block.get("text"), str):
            return TextBlock(text=block["text"])  # By far the most frequent.
        case str():
            return TextBlock(text=block)
        case dict():
            try:
                return decode(block, ContentBlock)  # type: ignore[arg-type]  # a union is no class
            except DecodeError:
                # Passed on as a block it would be none to a host that reads strictly.
                return TextBlock(text=json.dumps(block, ensure_ascii=False))
        case _:
            return UnknownBlock(raw={"type": "unknown", "value": block})


def _object(value: Any) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
