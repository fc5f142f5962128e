"""`agent-sidecar conformance`: judges an implementation of the protocol, and reports by rule."""

import argparse
import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from sidecar.cli.host import DONE, FAILED, UsageError
from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.judge_server import judge_server
from sidecar.conformance.report import Report, as_json, as_junit, as_text, listed
from sidecar.conformance.rules import all_passed
from sidecar.conformance.subject import CannotStartError
from sidecar.conformance.transcripts import Kit, read_kit


def conformance(flags: argparse.Namespace, spawn: object) -> int:
    """0: every rule passed or does not apply, 1: one failed or was not reached, 2: wrong usage."""
    if flags.list:
        halves = [half for half in ("server", "host") if getattr(flags, half) or not (flags.server or flags.host)]
        sys.stdout.write("\n".join(listed(read_kit(half).rules) for half in halves))
        return DONE
    if flags.server is None and flags.host is None:
        raise UsageError("say what to judge: --server COMMAND or --host COMMAND; --list shows the rules")
    half, line = ("server", flags.server) if flags.host is None else ("host", flags.host)
    kit = _chosen(read_kit(half), flags.rule)
    command = _command(line, f"--{half}")
    if half == "server":
        judging = judge_server(command, kit, bound_secs=flags.patience)
    else:
        judging = judge_host(command, kit, bound_secs=flags.patience)
    try:
        report = asyncio.run(judging)
    except CannotStartError as error:
        raise UsageError(f"--{half}: {error}") from None
    return _delivered(report, flags)


def _chosen(kit: Kit, rule_ids: list[str]) -> Kit:
    unknown = set(rule_ids) - {rule.id for rule in kit.rules}
    if unknown:
        raise UsageError(f"--rule: there is no rule {', '.join(sorted(unknown))}; --list shows them")
    return kit.only(frozenset(rule_ids)) if rule_ids else kit


def _command(line: str, flag: str) -> list[str]:
    """The words of a command line, as a shell of this system takes them apart."""
    try:
        words = shlex.split(line, posix=os.name != "nt")
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None
    if not words:
        raise UsageError(f"{flag}: the command is empty")
    return words


def _delivered(report: Report, flags: argparse.Namespace) -> int:
    """Writes the report wherever it is wanted."""
    if flags.json != "-":
        sys.stdout.write(as_text(report))
    for target, flag, write in (
        (flags.json, "--json", lambda: json.dumps(as_json(report), indent=2) + "\n"),
        (flags.junit, "--junit", lambda: as_junit(report)),
    ):
        if target is not None:
            _write(target, flag, write)
    return DONE if all_passed(report.verdicts) else FAILED


def _write(target: str, flag: str, write: Callable[[], str]) -> None:
    if target == "-":
        sys.stdout.write(write())
        return
    try:
        Path(target).write_text(write(), "utf-8")
    except OSError as error:
        raise UsageError(f"{flag}: {target!r} cannot be written: {error.strerror}") from None
