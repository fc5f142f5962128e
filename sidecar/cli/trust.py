"""`agent-sidecar trust`: whether the configuration that a workspace brings along may be used."""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import platformdirs

from sidecar.cli.host import DONE, FAILED, Spawn, UsageError, complain, screen_on
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe_line
from sidecar.config_files.shown import shown_files
from sidecar.config_files.trust import FILE_NAME, Entry, TrustBook
from sidecar.config_files.workspace import FILES, WorkspaceFiles, read_workspace


def trust(flags: argparse.Namespace, spawn: Spawn) -> int:
    """Runs the command; returns the exit status. Raises UsageError."""
    book = TrustBook(trust_file())
    screen = screen_on(sys.stdout, sys.stdout)
    if book.fault:
        complain(f"{book.path}: {book.fault}; nothing that it says is believed", is_error=False)
    if flags.list or flags.json:
        return _list(book, screen, as_json=flags.json)
    folder = Path(flags.folder or flags.cwd or ".")
    if flags.revoke:
        return _revoke(folder, book)
    return _trust(folder, book, screen, asks=not flags.yes)


def trust_file() -> Path:
    """Where the sidecar keeps the decisions."""
    return Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False)) / FILE_NAME


def ask_about_workspace(spawn: Spawn) -> Spawn:
    """The spawn, once the person at the terminal has decided about what the workspace brings along.

    Asked before anything is started, since a terminal has no place for a question beside a conversation. Without
    a terminal the sidecar says what it does not use.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return spawn
    found, book = read_workspace(Path(spawn.cwd or ".")), TrustBook(trust_file())
    standing = book.standing(found.folder, found.digests)
    if not found.says_something or standing not in ("unknown", "changed"):
        return spawn
    is_new = (
        "brings configuration of its own" if standing == "unknown" else "has other configuration than you trusted"
    )
    lines = [f"This folder {is_new}:", *shown_files(found)]
    sys.stderr.write("\n".join(lines) + "\n")
    match _typed("use it? [y]es, [n]ot now, ne[v]er: "):
        case "y" | "yes":
            book.record(found.folder, "trust", found.digests)  # The sidecar compares: it may have changed again.
        case "v" | "never":
            book.record(found.folder, "never", found.digests)
        case _:
            return replace(spawn, options={**spawn.options, "trustWorkspace": False})
    return spawn


def _trust(folder: Path, book: TrustBook, screen: Screen, *, asks: bool) -> int:
    """Shows what the folder brings along, and trusts exactly that."""
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is no folder")
    found = read_workspace(folder)
    for line in shown_files(found):
        screen.line(line)
    for warning in (*found.refused, *(warning for file in found.files for warning in file.warnings)):
        complain(warning, is_error=False)
    if not found.says_something:
        complain(f"{found.folder} brings no configuration along ({', '.join(FILES)})", is_error=False)
        return DONE
    if book.standing(found.folder, found.digests) == "trusted":
        complain(f"{found.folder} is trusted as it is", is_error=False)
        return DONE
    if asks and not _agrees(found):
        complain(f"{found.folder} is not trusted", is_error=False)
        return FAILED
    book.record(found.folder, "trust", found.digests)
    complain(f"{found.folder} is trusted until one of these files changes", is_error=False)
    return DONE


def _agrees(found: WorkspaceFiles) -> bool:
    """Asks at the terminal. Raises UsageError where there is nobody."""
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked; say --yes, having read what is shown")
    return _typed(f"trust {safe_line(str(found.folder))} with this? [y]es, [n]o: ") in ("y", "yes")


def _typed(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower()


def _revoke(folder: Path, book: TrustBook) -> int:
    # The folder may be gone by now, and is known by its path without links.
    known = book.forget(folder.resolve())
    complain(f"{folder.resolve()}: {'is asked about again' if known else 'nothing was decided'}", is_error=False)
    return DONE


def _list(book: TrustBook, screen: Screen, *, as_json: bool) -> int:
    entries = {folder: (entry, _now(Path(folder), book)) for folder, entry in sorted(book.entries.items())}
    if as_json:
        workspaces = [
            {
                "folder": folder,
                "decision": entry.decision,
                "standing": standing,
                "decidedMs": entry.decided_ms,
                "files": dict(entry.files),
            }
            for folder, (entry, standing) in entries.items()
        ]
        screen.line(json.dumps({"file": str(book.path), "workspaces": workspaces}))
        return DONE
    for folder, (entry, standing) in entries.items():
        screen.line(f"{standing:8}  {_day(entry)}  {safe_line(folder)}")
    if not entries:
        complain(f"nothing was decided yet (in {book.path})", is_error=False)
    return DONE


def _now(folder: Path, book: TrustBook) -> str:
    """How the folder, as it is now, stands to what was decided about it."""
    standing = book.standing(folder, read_workspace(folder).digests)
    return "not now" if standing == "unknown" else standing


def _day(entry: Entry) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(entry.decided_ms / 1000))
