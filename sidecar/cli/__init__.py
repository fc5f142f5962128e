"""The terminal host: each command over a sidecar that it spawns as an editor spawns it.

Uses the client library and nothing of the server. What a command needs is imported when it is run: `--version`
and `--help` have no use for asyncio.
"""

import importlib
import sys
from collections.abc import Sequence

from sidecar.cli.arguments import PROGRAM, WRONG_USAGE, about, build_parser, parse

__all__ = ["main", "build_parser"]

COMMANDS = {
    "ask": ("sidecar.cli.ask", "ask"),
    "chat": ("sidecar.cli.chat", "chat"),
    "demo": ("sidecar.cli.demo", "demo"),
    "doctor": ("sidecar.cli.doctor", "doctor"),
    "sessions": ("sidecar.cli.sessions", "sessions"),
    "audit": ("sidecar.cli.audit", "audit"),
    "mcp": ("sidecar.cli.mcp", "mcp"),
    "trust": ("sidecar.cli.trust", "trust"),
    "conformance": ("sidecar.cli.conformance", "conformance"),
    "schema": ("sidecar.cli.print_schema", "print_schema"),
}
"""Where each command is: a module and its function, which takes the flags and a Spawn."""


def main(arguments: Sequence[str], *, sidecar: Sequence[str] | None = None) -> int:
    """Runs a command of `agent-sidecar` other than `serve`; returns the exit status.

    `sidecar` is the command that serves, without flags; the default is that of this installation.
    """
    try:
        flags = parse(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    if flags.command not in COMMANDS:
        return _explain(flags.command)
    # Only now, because asyncio and the client take longer to import than `--version` may.
    runner = importlib.import_module("sidecar.cli.runner")
    status: int = runner.run(COMMANDS[flags.command], flags, sidecar)
    return status


def _explain(command: str | None) -> int:
    if command is None and sys.stdin.isatty():
        sys.stdout.write(about())
        return 0
    sys.stderr.write(f"{PROGRAM}: error: to serve, say `{PROGRAM} serve` before any flags\n")
    return WRONG_USAGE
