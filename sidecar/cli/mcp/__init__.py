"""`agent-sidecar mcp`: the MCP servers in the user's configuration, listed, changed, tried and brought in."""

import argparse
import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from sidecar.cli.checks import user_configuration
from sidecar.cli.host import Spawn
from sidecar.cli.mcp.changing import add, remove
from sidecar.cli.mcp.importing import import_servers
from sidecar.cli.mcp.showing import list_servers, try_servers
from sidecar.cli.mcp.user_file import UserFile


def mcp(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status. Raises UsageError."""
    file = UserFile(Path(flags.config) if flags.config else user_configuration())
    return ACTIONS[flags.action](flags, spawn, file)


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Spawn, UserFile], int]] = {
    "list": lambda flags, spawn, file: asyncio.run(list_servers(flags, spawn, file)),
    "add": lambda flags, spawn, file: add(flags, file),
    "remove": lambda flags, spawn, file: remove(flags, file),
    "test": lambda flags, spawn, file: asyncio.run(try_servers(flags, spawn, file)),
    "import": lambda flags, spawn, file: import_servers(flags, file),
}
