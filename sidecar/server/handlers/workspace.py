"""workspace/*: LSP's word on which folders the host has open, and which files in them have changed."""

from typing import Any

from sidecar.server.services import Services


async def folders_changed(services: Services, params: Any) -> None:
    """Tools of runs that begin from now on, and MCP servers, see the folders that are open now."""
    services.folders.change(params)


async def initialized(services: Services, params: Any) -> None:
    """Now the host may be asked to do something for us."""
    await services.watched.register()


async def files_changed(services: Services, params: Any) -> None:
    """Files may have changed that bring configuration along."""
    services.watched.heed(params)
