"""`mcp add` and `mcp remove`."""

import argparse
import re

from sidecar.cli.host import DONE, UsageError, complain
from sidecar.cli.mcp.entries import JsonObject, check_url, pairs
from sidecar.cli.mcp.user_file import UserFile

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def add(flags: argparse.Namespace, file: UserFile) -> int:
    """Puts a server into the user's file. Raises UsageError."""
    entry = _entry(flags)
    if not flags.name.strip() or not flags.name.isprintable():
        raise UsageError(f"{flags.name!r} is no name for a server")
    if flags.name in file.servers and not flags.replace:
        raise UsageError(f"{file.path} has a server {flags.name!r} already; say --replace to replace it")
    file.put({flags.name: entry})
    complain(f"added {flags.name} to {file.path}; try it: agent-sidecar mcp test {flags.name}", is_error=False)
    for name, value in {**entry.get("env", {}), **entry.get("headers", {})}.items():
        if _SECRET_NAME.search(name) and "${" not in value:
            advice = f"{name} stands there in plain text; '${{NAME}}' in its place takes it from your environment"
            complain(advice, is_error=False)
    return DONE


def remove(flags: argparse.Namespace, file: UserFile) -> int:
    """Takes a server out of the user's file. Raises UsageError."""
    if flags.name not in file.servers:
        known = ", ".join(sorted(file.servers)) or "none"
        raise UsageError(f"{file.path} has no server {flags.name!r}; there are: {known}")
    file.remove(flags.name)
    complain(f"removed {flags.name} from {file.path}", is_error=False)
    return DONE


def _entry(flags: argparse.Namespace) -> JsonObject:
    env, headers = pairs("--env", flags.env), pairs("--header", flags.header)
    match flags.url, flags.command_line:
        case None, []:
            raise UsageError("say what to start, after `--`, or where it is, with --url")
        case None, [program, *arguments]:
            if headers:
                raise UsageError("--header: is for a server with --url")
            entry: JsonObject = {"command": program, "args": arguments}
            return {**entry, "env": env} if env else entry
        case url, []:
            if env:
                raise UsageError("--env: is for a server with a command")
            check_url(url)
            return {"url": url, "headers": headers} if headers else {"url": url}
        case _:
            raise UsageError("a server has a command or a --url, not both")
