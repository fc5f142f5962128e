"""A registered tool with what is known of it, and which of them a selector takes."""

from collections.abc import Iterable
from functools import partial

from attrs import define, field

from sidecar.permissions.globs import name_matches
from sidecar.protocol.values import ToolDefinition, ToolInfo, ToolSelector, ToolSource, ToolStats
from sidecar.tools.arguments import ArgumentCheck
from sidecar.tools.base import BaseTool


@define(kw_only=True, eq=False)
class ToolEntry:
    """A tool in a registry. Only `stats` change, with every call; what models are told is read once."""

    tool: BaseTool
    tags: tuple[str, ...] = ()
    category: str | None = None
    version: str | None = None
    source: ToolSource = field(factory=partial(ToolSource, type="python"))
    stats: ToolStats = field(factory=ToolStats, init=False)
    check: ArgumentCheck = field(init=False, repr=False)
    definition: ToolDefinition = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        tool = self.tool
        self.check = ArgumentCheck(tool.parameters)
        self.definition = ToolDefinition(name=tool.name, description=tool.description, parameters=tool.parameters)

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def holder(self) -> str:
        """Who has the name, in words: `the MCP server 'git'`."""
        match self.source.type:
            case "builtin":
                return "a built-in tool"
            case "mcp":
                return f"the MCP server {self.source.server!r}"
            case "host":
                return "the host"
            case "python":
                return "a Python tool"

    def info(self) -> ToolInfo:
        """What a host is told."""
        return ToolInfo(
            name=self.name,
            description=self.tool.description,
            input_schema=self.tool.parameters,
            kind=self.tool.kind,
            category=self.category,
            tags=self.tags,
            version=self.version,
            required_permissions=tuple(map(str, self.tool.required_permissions)),
            requires_approval=self.tool.requires_approval,
            source=self.source,
            stats=self.stats,
        )

    def matches(self, selector: ToolSelector) -> bool:
        """Whether a selector takes this tool: every field that it gives must."""
        return (
            (selector.names is None or _any_matches(selector.names, self.name))
            and (selector.tags is None or bool(set(selector.tags) & set(self.tags)))
            and (selector.categories is None or self.category in selector.categories)
            and (selector.sources is None or self.source.type in selector.sources)
            and not (selector.exclude and _any_matches(selector.exclude, self.name))
        )

    def count(self, duration_ms: float, *, failed: bool) -> None:
        """One more call in the statistics."""
        before = self.stats
        calls = before.calls + 1
        self.stats = ToolStats(
            calls=calls,
            failures=before.failures + failed,
            mean_duration_ms=before.mean_duration_ms + (duration_ms - before.mean_duration_ms) / calls,
        )


def _any_matches(globs: Iterable[str], name: str) -> bool:
    return any(name_matches(glob, name) for glob in globs)
