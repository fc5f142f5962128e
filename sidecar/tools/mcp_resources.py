"""Tools that let a model see the resources of a server: `server__list_resources` and `server__read_resource`."""

from typing import Any

from sidecar.mcp.features import list_resource_templates, list_resources, read_resource
from sidecar.mcp.results import McpToolDefinition
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import ContentBlock, ImageBlock, JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext, ToolOutput
from sidecar.tools.mcp_tools import McpTool, ToolKind
from sidecar.tools.output import compact

_SHOWN_OF_RESOURCE = ("uri", "name", "title", "description", "mimeType", "size")
_SHOWN_OF_TEMPLATE = ("uriTemplate", "name", "title", "description", "mimeType")
"""What a model needs to choose one; the rest is for people and programs."""


class ListResources(McpTool):
    """The resources of its server, and the patterns of further addresses."""

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        resources = await list_resources(self.client)
        listed = {"resources": [_shown(resource, _SHOWN_OF_RESOURCE) for resource in resources]}
        templates = await self._templates()
        if templates:
            listed["resourceTemplates"] = [_shown(template, _SHOWN_OF_TEMPLATE) for template in templates]
        return listed

    async def _templates(self) -> list[JsonObject]:
        try:
            return await list_resource_templates(self.client)
        except ToolError as error:
            if error.kind != "mcpError":
                raise
            return []  # Many servers have resources and refuse to speak of templates.


class ReadResource(McpTool):
    """What is at an address: text as text, pictures as such."""

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        try:
            contents = await read_resource(self.client, args["uri"])
        except ToolError as error:
            if error.kind != "notFound":
                raise
            return ToolResult.error(error.message)  # A model may have misread an address, and can read the list.
        blocks = tuple(map(_block, contents))
        texts = [block.text for block in blocks if isinstance(block, TextBlock)]
        return ToolResult.success(
            "\n".join(texts) if len(texts) == len(blocks) else contents, content=blocks or None
        )


RESOURCE_TOOLS: tuple[ToolKind, ...] = (
    (
        ListResources,
        McpToolDefinition(
            name="list_resources",
            description="Lists the resources (documents, data) that this server offers for reading.",
            input_schema={"type": "object", "properties": {}},
            annotations={"idempotentHint": True},
        ),
    ),
    (
        ReadResource,
        McpToolDefinition(
            name="read_resource",
            description="Reads a resource of this server by its URI.",
            input_schema={
                "type": "object",
                "properties": {"uri": {"type": "string", "description": "The address, as list_resources has it."}},
                "required": ["uri"],
            },
            annotations={"idempotentHint": True},
        ),
    ),
)
"""What a model is offered of a server that has resources."""


def _shown(entry: JsonObject, fields: tuple[str, ...]) -> JsonObject:
    return {name: entry[name] for name in fields if entry.get(name) is not None}


def _block(content: JsonObject) -> ContentBlock:
    mime_type: Any = content.get("mimeType")
    match content:
        case {"text": str(text)}:
            return TextBlock(text=text)
        case {"blob": str(blob)} if isinstance(mime_type, str) and mime_type.startswith("image/"):
            return ImageBlock(data=blob, mime_type=mime_type)
        case {"blob": str(blob)}:
            kind = mime_type if isinstance(mime_type, str) else "binary data"
            return TextBlock(text=f"[{kind}, {len(blob) * 3 // 4} bytes, which cannot be shown as text]")
    return TextBlock(text=compact(content))
