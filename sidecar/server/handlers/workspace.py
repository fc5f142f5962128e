"""workspace/*: LSP's word on which folders the host has open."""

from typing import Any

from sidecar.server.services import Services


async def folders_changed(services: Services, params: Any) -> None:
    """Tools of runs that begin from now on, and MCP servers, see the folders that are open now."""
    services.folders.change(params)
