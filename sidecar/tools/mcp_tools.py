"""Tools of MCP servers as tools of the registry: `server__tool`, found by table, never by splitting a name."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sidecar.mcp.client import Client
from sidecar.mcp.config import Server, path_of
from sidecar.mcp.results import McpCallResult, McpToolDefinition
from sidecar.permissions.globs import name_matches
from sidecar.permissions.model import Permission
from sidecar.protocol.codec import encode
from sidecar.protocol.errors import ConfigurationError, ToolError
from sidecar.protocol.events import Warned
from sidecar.protocol.values import ContentBlock, JsonObject, TextBlock, ToolResult, ToolSource
from sidecar.tools.arguments import MAX_FAULTS, ArgumentCheck, BrokenSchemaError
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.entry import ToolEntry
from sidecar.tools.registry import ToolRegistry, entry_of

PermissionsByGlob = Mapping[str, Sequence[str]]
"""The `permissions` of a server's entry: globs over its tools' own names, and what such a tool needs."""

_NO_NAME = re.compile(r"[^\w.:/-]+")


class McpTool(BaseTool):
    """A tool of a server, run by its client. Without `permissions`, see `permissions_of`."""

    kind = "mcp"

    def __init__(
        self,
        client: Client,
        definition: McpToolDefinition,
        permissions: Sequence[Permission] | None = None,
    ) -> None:
        hints = definition.annotations or {}
        self.name = registered_name(client.name, definition.name)
        self.description = definition.description or definition.title or ""
        self.parameters = definition.input_schema
        self.required_permissions = tuple(
            permissions_of(client.name, definition) if permissions is None else permissions
        )
        self.idempotent = hints.get("idempotentHint") is True or hints.get("readOnlyHint") is True
        self.definition = definition
        self.client = client
        self._output = ArgumentCheck(definition.output_schema) if definition.output_schema is not None else None

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        with self.client.calling(ctx.session_id, ctx.run_id):
            answer = await self.client.call_tool(self.definition.name, args, on_progress=ctx.progress)
        if self._output is not None and not answer.is_error:
            await self._check_output(self._output, answer.structured_content, ctx)
        return _result(answer)

    def person_secs(self) -> float:
        return self.client.person_secs

    def is_same_as(self, other: BaseTool) -> bool:
        """Whether `other` is this very tool as a model and a host see it."""
        return (
            isinstance(other, McpTool)
            and other.definition == self.definition
            and other.required_permissions == self.required_permissions
        )

    async def _check_output(self, check: ArgumentCheck, content: Any, ctx: ToolContext) -> None:
        """Says where a result is not what the tool promised; it is of use all the same, so nothing is lost."""
        try:
            faults = await check.faults(content)
        except BrokenSchemaError as error:
            self._output = None  # Once is enough.
            message = f"the output schema of {self.name} is broken, so its results go unchecked: {error}"
            await ctx.warn(Warned(code="schemaBroken", message=message))
            return
        if faults:
            told = "; ".join(f"{fault.path or 'it'} {fault.reason}" for fault in faults[:MAX_FAULTS])
            message = f"the structured content of {self.name} does not fit its output schema: {told}"
            await ctx.warn(Warned(code="resultMismatch", message=message))


ToolKind = tuple[type[McpTool], McpToolDefinition]
"""A tool to be made: of which class, from what."""


class McpClient(Client):
    """A client of one MCP server for Python users: `connect`, then register what `into_tools` gives."""

    async def list_tools(self) -> tuple[McpToolDefinition, ...]:
        """The server's tools, from memory where that is fresh."""
        return await self.tools()

    async def into_tools(self) -> list[BaseTool]:
        """The server's tools, ready for a registry. Raises as `connect` and `tools` do."""
        return [McpTool(self, definition) for definition in await self.tools()]


def registered_name(server: str, tool: str) -> str:
    """The registry's name of a server's tool; what no name may hold becomes `_`."""
    return f"{_NO_NAME.sub('_', server)}__{_NO_NAME.sub('_', tool)}"


def permissions_of(
    server: str, definition: McpToolDefinition, configured: PermissionsByGlob | None = None
) -> tuple[Permission, ...]:
    """What the configuration says of the tool, else `read` for one that says it only reads, else `mcp:<server>`.

    Raises ValueError for a configured permission that does not exist.
    """
    for glob, permissions in (configured or {}).items():
        if name_matches(glob, definition.name):
            return tuple(map(Permission, permissions))
    if (definition.annotations or {}).get("readOnlyHint") is True:
        return (Permission.READ,)
    return (Permission(f"mcp:{server}"),)


def check_permissions(server: str, entry: Server) -> None:
    """Raises ConfigurationError naming the glob whose permissions do not exist."""
    for glob, permissions in entry.permissions.items():
        for permission in permissions:
            try:
                Permission(permission)
            except ValueError as error:
                path = f"{path_of(server)}.permissions.{glob}"
                raise ConfigurationError(f"{path}: {error}", path=path) from None


def digest_of(definition: McpToolDefinition) -> str:
    """What a tool looks like to a model and to people: changes with its words, its schemas and its hints."""
    said = json.dumps(encode(definition), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(said.encode()).hexdigest()


def sync_server_tools(
    registry: ToolRegistry,
    server: str,
    client: Client | None,
    definitions: Iterable[McpToolDefinition],
    permissions: PermissionsByGlob | None = None,
    *,
    ours: Sequence[ToolKind] = (),
) -> list[str]:
    """Makes the registry hold exactly these tools of a server, in one change; none without a client.

    With them come `ours`, tools of our own making, where the server has none of these names.

    Gives a sentence for each tool that had to be left out or renamed; the others join all the same.
    """
    held = {entry.name: entry for entry in registry.entries() if _is_of(entry, server)}
    warnings: list[str] = []
    wanted: dict[str, ToolEntry] = {}
    for make, definition in _with_ours(definitions, ours) if client is not None else ():
        assert client is not None
        try:
            tool = make(client, definition, permissions_of(server, definition, permissions))
            entry = entry_of(tool, source=ToolSource(type="mcp", server=server))
            _refuse_taken(registry, entry, held, wanted)
        except (ToolError, ValueError) as error:
            warnings.append(f"tool {definition.name!r} of MCP server {server!r} is left out: {error}")
            continue
        if tool.name != f"{server}__{definition.name}":
            warnings.append(f"tool {definition.name!r} of MCP server {server!r} is called {tool.name}")
        wanted[entry.name] = entry
    _apply(registry, held, wanted)
    return warnings


def _with_ours(definitions: Iterable[McpToolDefinition], ours: Sequence[ToolKind]) -> Iterator[ToolKind]:
    names = set()
    for definition in definitions:
        names.add(definition.name)
        yield McpTool, definition
    yield from (kind for kind in ours if kind[1].name not in names)


def _apply(registry: ToolRegistry, held: Mapping[str, ToolEntry], wanted: Mapping[str, ToolEntry]) -> None:
    """Tools that are as before stay, and go on with the client of now."""
    kept = set()
    for name, entry in wanted.items():
        before, now = held.get(name), entry.tool
        if before is None or not isinstance(before.tool, McpTool) or not isinstance(now, McpTool):
            continue
        if now.is_same_as(before.tool):
            before.tool.client = now.client
            kept.add(name)
    leaving = [name for name in held if name not in kept]
    registry.replace(leaving, [entry for name, entry in wanted.items() if name not in kept])


def _refuse_taken(
    registry: ToolRegistry, entry: ToolEntry, held: Mapping[str, ToolEntry], wanted: Mapping[str, ToolEntry]
) -> None:
    holder = wanted.get(entry.name) or (None if entry.name in held else registry.get(entry.name))
    if holder is not None:
        raise ValueError(f"its name {entry.name!r} is taken by {holder.holder}")


def _is_of(entry: ToolEntry, server: str) -> bool:
    return entry.source == ToolSource(type="mcp", server=server)


def _result(answer: McpCallResult) -> ToolResult:
    """A failure of the tool's own is for the model to see, so it is a result as well."""
    text = "\n".join(block.text for block in answer.content if isinstance(block, TextBlock))
    is_text = all(_is_plain(block) for block in answer.content)
    data = answer.structured_content
    if answer.is_error:
        message = text or "the tool failed and did not say why"
        return ToolResult(ok=False, error_message=message, data=data, content=None if is_text else answer.content)
    if data is None and answer.content:
        data = text if text or is_text else None
    return ToolResult.success(data, content=answer.content or None)


def _is_plain(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock) and block.annotations is None
