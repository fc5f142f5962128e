"""The nouns of the wire: content, messages, tools, usage.

Content blocks are those of MCP (2025-11-25, schema `ContentBlock`); the other shapes are our own,
described in `protocol.md`. All values are frozen; a tuple on this side is a list in JSON.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, overload

from attrs import field, frozen

from sidecar.protocol.errors import ToolError
from sidecar.protocol.value import Value

JsonObject = dict[str, Any]
"""A decoded JSON object whose inside is not ours: tool arguments, JSON Schema, foreign extras."""

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""How much an MCP server tells of itself, from much to little (MCP 2025-11-25, `LoggingLevel`)."""


@frozen(kw_only=True, repr=False, eq=False)
class TextBlock(Value):
    """Text, as in MCP `TextContent`."""

    type: ClassVar = "text"
    text: str
    annotations: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ImageBlock(Value):
    """An image; `data` is base64."""

    type: ClassVar = "image"
    data: str
    mime_type: str
    annotations: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class AudioBlock(Value):
    """A sound; `data` is base64."""

    type: ClassVar = "audio"
    data: str
    mime_type: str
    annotations: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ResourceBlock(Value):
    """An embedded resource: `{uri, mimeType?, text | blob}`."""

    type: ClassVar = "resource"
    resource: JsonObject
    annotations: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ResourceLinkBlock(Value):
    """A resource by its address, to be read on demand."""

    type: ClassVar = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: JsonObject | None = None


@frozen(kw_only=True, repr=False, eq=False)
class UnknownBlock(Value):
    """A block of a type this version does not know, kept as it came."""

    raw: JsonObject


ContentBlock = TextBlock | ImageBlock | AudioBlock | ResourceBlock | ResourceLinkBlock | UnknownBlock
"""A piece of content, told apart by `type`."""

Content = str | tuple[ContentBlock, ...]
"""What a message says: plain text, or blocks."""


@frozen(kw_only=True, repr=False, eq=False)
class ToolCall(Value):
    """A model's request to run a tool. `input` is a JSON object always, `call_id` unique in its session."""

    call_id: str
    tool_name: str
    input: JsonObject


@frozen(kw_only=True, repr=False, eq=False)
class ProviderExtras(Value):
    """What a provider wants back unchanged (signatures, thinking blocks), and who it belongs to."""

    provider: str
    data: Any


Role = Literal["system", "user", "assistant", "tool"]


@frozen(kw_only=True, repr=False, eq=False)
class Message(Value):
    """One entry of a conversation.

    `tool_calls` and `reasoning` occur on assistant messages, `call_id`, `tool_name` and `is_error` on tool
    messages. `provider_extras` goes back byte for byte, and only to the provider that sent it.
    """

    role: Role
    content: Content
    tool_calls: tuple[ToolCall, ...] | None = None
    call_id: str | None = None
    tool_name: str | None = None
    is_error: bool | None = None
    reasoning: str | None = None
    provider_extras: ProviderExtras | None = None


@frozen(kw_only=True, repr=False, eq=False)
class Usage(Value):
    """Tokens. `tool_definition_tokens` and `tool_result_tokens` are our estimate of their part of the input."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int | None = None
    tool_definition_tokens: int | None = None
    tool_result_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
            tool_definition_tokens=_sum(self.tool_definition_tokens, other.tool_definition_tokens),
            tool_result_tokens=_sum(self.tool_result_tokens, other.tool_result_tokens),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else left + right


ToolKind = Literal["web", "file", "code", "function", "custom", "mcp", "openapi", "unknown"]
SourceType = Literal["builtin", "python", "mcp", "host"]


@frozen(kw_only=True, repr=False, eq=False)
class ToolSource(Value):
    """Where a tool comes from; `server` names the MCP server."""

    type: SourceType
    server: str | None = None


@frozen(kw_only=True, repr=False, eq=False)
class ToolStats(Value):
    """Calls so far, failures among them (errors, denials, time-outs), and the mean time of a call."""

    calls: int = 0
    failures: int = 0
    mean_duration_ms: float = 0.0


@frozen(kw_only=True, repr=False, eq=False)
class ToolDefinition(Value):
    """What a model is told of a tool. `parameters` is a JSON Schema 2020-12 object, verbatim."""

    name: str
    description: str
    parameters: JsonObject


@frozen(kw_only=True, repr=False, eq=False)
class ToolInfo(Value):
    """What a host is told of a tool."""

    name: str
    description: str
    input_schema: JsonObject
    kind: ToolKind
    category: str | None = None
    tags: tuple[str, ...]
    version: str | None = None
    required_permissions: tuple[str, ...]
    requires_approval: bool
    source: ToolSource
    stats: ToolStats


@frozen(kw_only=True, repr=False, eq=False)
class ToolSelector(Value):
    """Which tools: those that match every field given, less the names in `exclude`.

    `names` and `exclude` are globs over tool names.
    """

    names: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    categories: tuple[str, ...] | None = None
    sources: tuple[SourceType, ...] | None = None
    exclude: tuple[str, ...] | None = None


class _ErrorOfToolResult:
    """`ToolResult.error(message)` constructs a failed result; `result.error` reads its message."""

    @overload
    def __get__(self, result: None, owner: "type[ToolResult]") -> "Callable[[str], ToolResult]": ...

    @overload
    def __get__(self, result: "ToolResult", owner: "type[ToolResult]") -> str | None: ...

    def __get__(
        self, result: "ToolResult | None", owner: "type[ToolResult]"
    ) -> "Callable[[str], ToolResult] | str | None":
        if result is not None:
            return result.error_message

        def error(message: str) -> "ToolResult":
            """The tool ran and failed; the model is told why, and may try another way."""
            return owner(ok=False, error_message=message)

        return error


@frozen(kw_only=True, repr=False, eq=False)
class ToolResult(Value):
    """What a tool answers: `{ok, data?, error?}`. An error is told to the model, which may try another way.

    `content` holds blocks for a model that can take them (images, links); without it the model is shown
    `data` or `error`.
    """

    ok: bool
    data: Any = None
    error_message: str | None = field(default=None, metadata={"wire": "error"})
    content: tuple[ContentBlock, ...] | None = None

    error = _ErrorOfToolResult()

    @classmethod
    def success(cls, data: Any = None, *, content: tuple[ContentBlock, ...] | None = None) -> "ToolResult":
        """The tool did what it was asked; `data` is any JSON value."""
        return cls(ok=True, data=data, content=content)

    @classmethod
    def error_with_data(cls, message: str, data: Any) -> "ToolResult":
        """The tool ran and failed; `data` says more, for example which field is at fault."""
        return cls(ok=False, error_message=message, data=data)


@frozen(kw_only=True, repr=False, eq=False)
class ToolInvocation(Value):
    """The record of one call, complete: what was asked, what came of it, when and for how long.

    Exactly one of `result` and `error` is set. `content` is what the model is shown, already cut to the
    limit; `original_bytes` is its size before the cut.
    """

    call_id: str
    tool_name: str
    input: JsonObject
    result: ToolResult | None = None
    error: ToolError | None = None
    content: Content = ""
    started_ms: int
    duration_ms: int
    truncated: bool = False
    original_bytes: int | None = None

    @property
    def is_error(self) -> bool:
        return self.error is not None or (self.result is not None and not self.result.ok)
