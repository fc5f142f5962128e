"""Runs a command and turns whatever ends it into an exit status: the last boundary before the shell."""

import argparse
import asyncio
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from sidecar.cli.arguments import serve_flags
from sidecar.cli.host import COMMAND, FAILED, INTERRUPTED, WRONG_USAGE, Spawn, UsageError, complain


def run(place: tuple[str, str], flags: argparse.Namespace, sidecar: Sequence[str] | None) -> int:
    """Runs the function at `place` (module, name) with the flags."""
    _open_missing_streams()
    module, name = place
    command = getattr(importlib.import_module(module), name)
    try:
        spawn = _spawn_of(flags, sidecar or COMMAND)
        return int(command(flags, spawn))
    except UsageError as error:
        complain(str(error))
        return WRONG_USAGE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    except OSError as error:
        if not isinstance(error, BrokenPipeError):  # Whoever read our output has left, and knows.
            complain(str(error))
        # Nothing may be flushed at exit into a stream that takes no more.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _open_missing_streams() -> None:
    """A stream that the shell has closed (`<&-`) is one that nobody writes to or reads from, not an accident."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def _spawn_of(flags: argparse.Namespace, command: Sequence[str]) -> Spawn:
    if flags.cwd is not None and not Path(flags.cwd).is_dir():
        raise UsageError(f"--cwd: {flags.cwd!r} is no folder")
    if flags.log_file is not None:
        _check_writable(Path(flags.log_file))
    shows_log = flags.log_level is not None and flags.log_file is None
    return Spawn(command=(*command, *serve_flags(flags)), cwd=flags.cwd, shows_log=shows_log)


def _check_writable(log_file: Path) -> None:
    try:
        with log_file.open("a"):
            pass
    except OSError as error:
        raise UsageError(f"--log-file: {str(log_file)!r} cannot be written: {error.strerror}") from None
