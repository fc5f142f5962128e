"""A search by ripgrep, told to see what Python's own would see, and no configuration of the user's."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from attrs import evolve

from sidecar.protocol.values import JsonObject
from sidecar.tools.builtin.found import Found, Match
from sidecar.tools.builtin.search_query import MAX_MATCHES, Search, is_folder
from sidecar.tools.builtin.text_file import MAX_FILE_BYTES
from sidecar.tools.builtin.tree import rules_from_above
from sidecar.tools.threads import in_thread
from sidecar.tools.workspace import Place, folder_at, spot_of

_ALWAYS = (
    "--json",
    "--no-config",
    "--no-messages",
    "--hidden",
    "--glob=!.git",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-parent",
    "--crlf",
)

# And no --max-filesize, for which every file would have to be asked first.

_READ_BYTES = 256 * 1024
_FAILED = 2
"""ripgrep's exit status for a pattern that it does not understand, among others."""


class PatternRefusedError(Exception):
    """ripgrep does not understand the pattern; Python may."""


@cache
def ripgrep_path() -> str | None:
    """Where ripgrep is, if it is installed."""
    return shutil.which("rg")


async def ripgrep_search(program: str, search: Search, place: Place) -> Found:
    """Searches with ripgrep; when cancelled, it is ended. Raises PatternRefusedError and OSError."""
    if is_folder(place):
        with folder_at(place) as folder, _rules_from_above(place, search) as rules:
            arguments = _arguments(program, search, *rules)
            return await _run([*arguments, "./"], _reachable(folder, place.path), search)
    search = evolve(search, glob=None)  # A file that is named is wanted.
    arguments = _arguments(program, search)
    with spot_of(place) as spot:
        found = await _run(
            [*arguments, f"./{place.path.name}"], _reachable(spot.folder, place.path.parent), search
        )
    return Found([match._replace(path="") for match in found.matches], found.is_complete)


def _arguments(program: str, search: Search, *more: str) -> list[str]:
    return [program, *_ALWAYS, *more, *_flags(search), "--regexp", search.pattern, "--"]


@contextmanager
def _rules_from_above(place: Place, search: Search) -> Iterator[list[str]]:
    """The flag that gives the rules of the folders above, in a file; none where there are no rules."""
    rules = "" if search.with_ignored else rules_from_above(place)
    if not rules:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="agent-sidecar-") as folder:
        path = Path(folder, "ignore")
        path.write_text(rules, encoding="utf-8")
        yield [f"--ignore-file={path}"]


def _flags(search: Search) -> list[str]:
    flags = {
        "--fixed-strings": search.is_literal,
        "--ignore-case": search.ignores_case,
        "--no-ignore": search.with_ignored,
        f"--context={search.context_lines}": search.context_lines > 0,
    }
    chosen = [flag for flag, is_chosen in flags.items() if is_chosen]
    if search.glob is not None and search.glob.names is not None:
        # As a type and not by --glob, which would bring back what is ignored.
        chosen += [*(f"--type-add=wanted:{name}" for name in search.glob.names), "--type=wanted"]
    return chosen


def _reachable(folder: int | str | None, path: Path) -> str:
    """A folder to start a program in: on Linux the very one that is held open, whatever became of its path."""
    return f"/proc/{os.getpid()}/fd/{folder}" if isinstance(folder, int) and sys.platform == "linux" else str(path)


async def _run(command: list[str], folder: str, search: Search) -> Found:
    # asyncio starts processes in the same way, and takes some 10 ms more to follow them. Not in the thread: once
    # the caller is cancelled, nobody must start anything in the folder that was open for it.
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(  # noqa: ASYNC220
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, cwd=folder
        )
        try:
            events = _Events(search)
            is_complete, status = await in_thread(_followed, process, events)
            if is_complete and status == _FAILED and not events.matches:
                complaints.seek(0)
                raise PatternRefusedError(complaints.read().decode(errors="replace").strip())
            return Found(sorted(events.matches), is_complete)
        finally:
            process.kill()  # Which ends the thread, too.


def _followed(process: "subprocess.Popen[bytes]", events: "_Events") -> tuple[bool, int]:
    """Reads a search to its end, or until there are too many matches: whether it was whole, and its status."""
    with process:
        assert process.stdout is not None
        is_complete = events.read(process.stdout)
        if not is_complete:
            process.kill()
    return is_complete, process.returncode


class _Events:
    """Makes matches of what ripgrep reports of one file after the other: `begin`, `match`, `context`, `end`."""

    def __init__(self, search: Search) -> None:
        self._glob = search.glob if search.glob is not None and search.glob.names is None else None
        self._around = search.context_lines
        self._found: list[tuple[int, str, int]] = []
        self._lines: dict[int, str] = {}
        self.matches: list[Match] = []

    def read(self, stdout: IO[bytes]) -> bool:
        """Takes in everything; false where there have been too many matches."""
        rest = b""
        while data := os.read(stdout.fileno(), _READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line)
            if len(self.matches) >= MAX_MATCHES:
                return False
        return True

    def _take(self, line: bytes) -> None:
        if line.startswith((b'{"type":"begin"', b'{"type":"summary"')):
            return
        event = json.loads(line)
        data = event["data"]
        match event["type"]:
            case "match":
                self._found.append((data["line_number"], text := _text(data["lines"]), _start(data)))
                self._lines[data["line_number"]] = text
            case "context":
                self._lines[data["line_number"]] = _text(data["lines"])
            case "end":
                if data["binary_offset"] is None and data["stats"]["bytes_searched"] <= MAX_FILE_BYTES:
                    self._keep(_decoded(data["path"]).removeprefix("./"))
                self._found, self._lines = [], {}

    def _keep(self, path: str) -> None:
        if self._glob is None or self._glob.matches(path):
            self.matches += (
                Match(path, number, text, start, self._run_of(number, -1), self._run_of(number, 1))
                for number, text, start in self._found
            )

    def _run_of(self, number: int, step: int) -> tuple[str, ...]:
        """The lines around a line, as far as they are there."""
        numbers = range(number + step, number + step * (self._around + 1), step)
        lines = [self._lines[each] for each in numbers if each in self._lines]
        return tuple(lines[::step])


def _text(field: JsonObject) -> str:
    return _decoded(field).removesuffix("\n").removesuffix("\r")


def _start(data: JsonObject) -> int:
    """Where the line matches first, in characters."""
    offset = data["submatches"][0]["start"] if data["submatches"] else 0
    line = data["lines"]
    raw = line["text"].encode() if "text" in line else base64.b64decode(line["bytes"])
    return len(raw[:offset].decode(errors="replace"))


def _decoded(field: JsonObject) -> str:
    """ripgrep gives what is no UTF-8 as Base64."""
    return field["text"] if "text" in field else base64.b64decode(field["bytes"]).decode(errors="replace")
