"""A program that runs one MCP server through McpManager and then waits: to be killed.

`python -m tests.harness.mcp_driver OPTION...` with the options of `mcp_server`. Writes `ready` once the server is.
"""

import asyncio
import sys

from sidecar.mcp.manager import McpManager
from tests.harness.mcp_server import server_entry


async def main() -> None:
    """Starts the server and never ends."""
    manager = McpManager(on_status=lambda info: None, on_tools=lambda name, client, tools: None)
    info = await manager.connect("s", server_entry(*sys.argv[1:]))
    sys.stdout.write(f"{info.status}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
