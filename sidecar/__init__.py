"""Agent Sidecar: tools, permissions, MCP servers and the model loop, behind LSP framing or in process.

The names below are the embedding API. Each is imported when it is first used, so that a process that only
serves, or only prints its version, does not pay for the rest; `__init__.pyi` says the same to type checkers.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

EXPORTS = {
    # Tools
    "tool": "sidecar.tools.decorator",
    "BaseTool": "sidecar.tools.base",
    "ToolContext": "sidecar.tools.base",
    "CancellationToken": "sidecar.tools.base",
    "ToolResult": "sidecar.protocol.values",
    "ToolRegistry": "sidecar.tools.registry",
    "ToolEntry": "sidecar.tools.entry",
    "ToolInvocation": "sidecar.protocol.values",
    "ToolDefinition": "sidecar.protocol.values",
    "ToolSelector": "sidecar.protocol.values",
    "ToolSource": "sidecar.protocol.values",
    "ToolCall": "sidecar.protocol.values",
    "ToolChain": "sidecar.tools.chain",
    "InvocationScope": "sidecar.tools.scope",
    "BUILTIN": "sidecar.tools.builtin",
    # Permissions and approvals
    "Permission": "sidecar.permissions.model",
    "PermissionConfig": "sidecar.permissions.model",
    "PermissionChecker": "sidecar.permissions.checker",
    "PermissionRule": "sidecar.protocol.messages",
    "ApprovalQuestion": "sidecar.tools.approval",
    "ApprovalAnswer": "sidecar.tools.approval",
    # The loop
    "LlmCycle": "sidecar.agent.cycle",
    "CycleConfig": "sidecar.agent.config",
    "RunResult": "sidecar.agent.run",
    "AgentEvent": "sidecar.protocol.events",
    "Message": "sidecar.protocol.values",
    "Usage": "sidecar.protocol.values",
    "TextBlock": "sidecar.protocol.values",
    "ImageBlock": "sidecar.protocol.values",
    # Models
    "Provider": "sidecar.providers.base",
    "ProviderOptions": "sidecar.providers.options",
    "open_provider": "sidecar.providers",
    # MCP
    "McpClient": "sidecar.tools.mcp_tools",
    "StdioServer": "sidecar.mcp.config",
    # Errors
    "SidecarError": "sidecar.protocol.errors",
    "ToolError": "sidecar.protocol.errors",
    "ModelError": "sidecar.protocol.errors",
    "ConfigurationError": "sidecar.protocol.errors",
}
"""Where each name of the embedding API is defined."""

__all__ = ["__version__", *EXPORTS]


def __getattr__(name: str) -> Any:
    if name not in EXPORTS:
        raise AttributeError(f"module 'sidecar' has no attribute {name!r}")
    value = getattr(import_module(EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
