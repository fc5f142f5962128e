"""mcp/*: the child servers, and what they offer beside tools."""

from sidecar.mcp import features
from sidecar.protocol.errors import invalid_params
from sidecar.protocol.messages import (
    McpCompleteParams,
    McpCompleteResult,
    McpConnectParams,
    McpGetPromptParams,
    McpGetPromptResult,
    McpListResult,
    McpOfferParams,
    McpPromptsResult,
    McpReadResourceParams,
    McpReadResourceResult,
    McpResourcesResult,
    McpResourceTemplatesResult,
    McpServerParams,
    McpSetLogLevelParams,
    McpWatchResourcesParams,
    NoParams,
    ServerInfo,
)
from sidecar.server.rpc import Request
from sidecar.server.services import Services

MAX_WATCHED = 1000
"""Resources of one server. Own choice: an editor shows fewer, and each is a request."""


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


async def resources(request: Request, params: McpOfferParams) -> McpResourcesResult:
    """The resources of a server, all pages."""
    services: Services = request.services
    found = await features.list_resources(services.servers.client(params.server))
    return McpResourcesResult(resources=tuple(found))


async def resource_templates(request: Request, params: McpOfferParams) -> McpResourceTemplatesResult:
    """The patterns of further addresses."""
    services: Services = request.services
    found = await features.list_resource_templates(services.servers.client(params.server))
    return McpResourceTemplatesResult(resource_templates=tuple(found))


async def read_resource(request: Request, params: McpReadResourceParams) -> McpReadResourceResult:
    """What is at an address."""
    services: Services = request.services
    contents = await features.read_resource(services.servers.client(params.server), params.uri)
    return McpReadResourceResult(contents=tuple(contents))


async def watch_resources(request: Request, params: McpWatchResourcesParams) -> ServerInfo:
    """Of which resources a server is to tell that they changed."""
    if len(params.uris) > MAX_WATCHED:
        raise invalid_params("params.uris", f"must be at most {MAX_WATCHED} addresses, not {len(params.uris)}")
    services: Services = request.services
    return await services.servers.watch_resources(params.server, params.uris)


async def prompts(request: Request, params: McpOfferParams) -> McpPromptsResult:
    """The prompts of a server, all pages."""
    services: Services = request.services
    found = await features.list_prompts(services.servers.client(params.server))
    return McpPromptsResult(prompts=tuple(found))


async def get_prompt(request: Request, params: McpGetPromptParams) -> McpGetPromptResult:
    """A prompt, filled in."""
    services: Services = request.services
    client = services.servers.client(params.server)
    prompt = await features.get_prompt(client, params.name, params.arguments or {})
    description = prompt.get("description")
    return McpGetPromptResult(
        description=description if isinstance(description, str) else None, messages=tuple(prompt["messages"])
    )


async def complete(request: Request, params: McpCompleteParams) -> McpCompleteResult:
    """What the beginning of an argument may become."""
    services: Services = request.services
    client = services.servers.client(params.server)
    completion = await features.complete(client, params.ref, params.argument, params.context)
    return McpCompleteResult(completion=completion)


async def set_log_level(request: Request, params: McpSetLogLevelParams) -> ServerInfo:
    """From which level on a server is to tell what it does."""
    services: Services = request.services
    return await services.servers.set_log_level(params.server, params.level)
