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
    "FunctionTool": "sidecar.tools.decorator",
    "BaseTool": "sidecar.tools.base",
    "ToolContext": "sidecar.tools.base",
    "CancellationToken": "sidecar.tools.base",
    "ToolOutput": "sidecar.tools.base",
    "ToolResult": "sidecar.protocol.values",
    "ToolRegistry": "sidecar.tools.registry",
    "ToolEntry": "sidecar.tools.entry",
    "ToolInvocation": "sidecar.protocol.values",
    "ToolDefinition": "sidecar.protocol.values",
    "ToolInfo": "sidecar.protocol.values",
    "ToolSelector": "sidecar.protocol.values",
    "ToolSource": "sidecar.protocol.values",
    "ToolStats": "sidecar.protocol.values",
    "ToolCall": "sidecar.protocol.values",
    "ToolChain": "sidecar.tools.chain",
    "Step": "sidecar.tools.chain",
    "ApprovalRequired": "sidecar.tools.chain",
    "InvocationScope": "sidecar.tools.scope",
    "BUILTIN": "sidecar.tools.builtin",
    "load_tools": "sidecar.tools.loading",
    # Permissions and approvals
    "Permission": "sidecar.permissions.model",
    "PermissionConfig": "sidecar.permissions.model",
    "PermissionChecker": "sidecar.permissions.checker",
    "PermissionDecision": "sidecar.permissions.model",
    "PermissionRule": "sidecar.protocol.messages",
    "ApprovalQuestion": "sidecar.tools.approval",
    "ApprovalOption": "sidecar.protocol.messages",
    "ApprovalAnswer": "sidecar.tools.approval",
    # The loop
    "LlmCycle": "sidecar.agent.cycle",
    "CycleConfig": "sidecar.agent.config",
    "RunSettings": "sidecar.agent.config",
    "RunResult": "sidecar.agent.run",
    "Steering": "sidecar.agent.run",
    "Message": "sidecar.protocol.values",
    "Usage": "sidecar.protocol.values",
    "Content": "sidecar.protocol.values",
    "ContentBlock": "sidecar.protocol.values",
    "TextBlock": "sidecar.protocol.values",
    "ImageBlock": "sidecar.protocol.values",
    "AudioBlock": "sidecar.protocol.values",
    "ResourceBlock": "sidecar.protocol.values",
    "ResourceLinkBlock": "sidecar.protocol.values",
    "UnknownBlock": "sidecar.protocol.values",
    # Its events
    "AgentEvent": "sidecar.protocol.events",
    "RunStarted": "sidecar.protocol.events",
    "AssistantTextDelta": "sidecar.protocol.events",
    "AssistantReasoningDelta": "sidecar.protocol.events",
    "ToolExecutionStarted": "sidecar.protocol.events",
    "ToolExecutionProgress": "sidecar.protocol.events",
    "ToolExecutionCompleted": "sidecar.protocol.events",
    "TurnComplete": "sidecar.protocol.events",
    "ApprovalRequested": "sidecar.protocol.events",
    "ApprovalResolved": "sidecar.protocol.events",
    "Retrying": "sidecar.protocol.events",
    "Compacted": "sidecar.protocol.events",
    "Warned": "sidecar.protocol.events",
    "RunCompleted": "sidecar.protocol.events",
    "EventError": "sidecar.protocol.events",
    # Models
    "Provider": "sidecar.providers.base",
    "ProviderOptions": "sidecar.providers.options",
    "open_provider": "sidecar.providers",
    "ModelRequest": "sidecar.providers.base",
    "ModelInfo": "sidecar.protocol.messages",
    "ModelPiece": "sidecar.providers.base",
    "TextPiece": "sidecar.providers.base",
    "ReasoningPiece": "sidecar.providers.base",
    "ToolCallPiece": "sidecar.providers.base",
    "UsagePiece": "sidecar.providers.base",
    "FinishPiece": "sidecar.providers.base",
    "ExtrasPiece": "sidecar.providers.base",
    "WarningPiece": "sidecar.providers.base",
    # MCP
    "McpClient": "sidecar.tools.mcp_tools",
    "StdioServer": "sidecar.mcp.config",
    "HttpServer": "sidecar.mcp.config",
    "McpToolDefinition": "sidecar.mcp.results",
    "McpCallResult": "sidecar.mcp.results",
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
