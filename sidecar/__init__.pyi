"""The embedding API, for type checkers; `__init__.py` imports the same names when they are first used."""

from sidecar.agent.config import CycleConfig as CycleConfig
from sidecar.agent.cycle import LlmCycle as LlmCycle
from sidecar.agent.run import RunResult as RunResult
from sidecar.mcp.config import StdioServer as StdioServer
from sidecar.permissions.checker import PermissionChecker as PermissionChecker
from sidecar.permissions.model import Permission as Permission
from sidecar.permissions.model import PermissionConfig as PermissionConfig
from sidecar.protocol.errors import ConfigurationError as ConfigurationError
from sidecar.protocol.errors import ModelError as ModelError
from sidecar.protocol.errors import SidecarError as SidecarError
from sidecar.protocol.errors import ToolError as ToolError
from sidecar.protocol.events import AgentEvent as AgentEvent
from sidecar.protocol.messages import PermissionRule as PermissionRule
from sidecar.protocol.values import ImageBlock as ImageBlock
from sidecar.protocol.values import Message as Message
from sidecar.protocol.values import TextBlock as TextBlock
from sidecar.protocol.values import ToolCall as ToolCall
from sidecar.protocol.values import ToolDefinition as ToolDefinition
from sidecar.protocol.values import ToolInvocation as ToolInvocation
from sidecar.protocol.values import ToolResult as ToolResult
from sidecar.protocol.values import ToolSelector as ToolSelector
from sidecar.protocol.values import ToolSource as ToolSource
from sidecar.protocol.values import Usage as Usage
from sidecar.providers import open_provider as open_provider
from sidecar.providers.base import Provider as Provider
from sidecar.providers.options import ProviderOptions as ProviderOptions
from sidecar.tools.approval import ApprovalAnswer as ApprovalAnswer
from sidecar.tools.approval import ApprovalQuestion as ApprovalQuestion
from sidecar.tools.base import BaseTool as BaseTool
from sidecar.tools.base import CancellationToken as CancellationToken
from sidecar.tools.base import ToolContext as ToolContext
from sidecar.tools.builtin import BUILTIN as BUILTIN
from sidecar.tools.chain import ToolChain as ToolChain
from sidecar.tools.decorator import tool as tool
from sidecar.tools.entry import ToolEntry as ToolEntry
from sidecar.tools.mcp_tools import McpClient as McpClient
from sidecar.tools.registry import ToolRegistry as ToolRegistry
from sidecar.tools.scope import InvocationScope as InvocationScope

__version__: str
EXPORTS: dict[str, str]
