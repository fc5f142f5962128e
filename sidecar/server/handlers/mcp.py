"""mcp/*: the child servers."""

from sidecar.protocol.messages import McpConnectParams, McpListResult, McpServerParams, NoParams, ServerInfo
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def list_servers(request: Request, params: NoParams) -> McpListResult:
    """All configured servers and how they are."""
    return McpListResult(servers=request.services.servers.servers())


async def connect(request: Request, params: McpConnectParams) -> ServerInfo:
    """Adds or replaces a server; answers when it is ready or has failed."""
    services: Services = request.services
    return await services.servers.connect(params.name, params.config)


async def disconnect(request: Request, params: McpServerParams) -> ServerInfo:
    """Stops a server; its tools leave the registry."""
    services: Services = request.services
    return await services.servers.disconnect(params.name)


async def restart(request: Request, params: McpServerParams) -> ServerInfo:
    """Stops a server and starts it again."""
    services: Services = request.services
    return await services.servers.restart(params.name)
