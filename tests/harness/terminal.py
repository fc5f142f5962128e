"""A program on a real pseudo-terminal, and what a person would see there. POSIX only."""

import asyncio
import fcntl
import os
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.harness.data_home import new_data_home

ROOT = Path(__file__).resolve().parents[2]

LIMIT_SECS = 15.0
"""For anything to appear, and for a program to end."""

_SEQUENCE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


def environment(**changes: str) -> dict[str, str]:
    """Ours, with this source tree importable from anywhere and no model or terminal setting left in it."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "clients/python")])
    dropped = ("OPENAI_", "OLLAMA_", "NO_COLOR", "COLUMNS", "LINES", "PYTHONPATH", "TERM", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    ours = {"PYTHONPATH": path, "TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_DATA_HOME": new_data_home()}
    return {**kept, **ours, **changes}


def cli(*arguments: str, sidecar: Sequence[str] | None = None) -> list[str]:
    """The command line, over another sidecar where one is given."""
    if sidecar is None:
        return [sys.executable, "-m", "sidecar", *arguments]
    program = "import sys; from sidecar.cli import main; sys.exit(main({!r}, sidecar={!r}))"
    return [sys.executable, "-c", program.format(list(arguments), list(sidecar))]


class Picture:
    """What stands on a terminal after this text: lines, without styles. Knows what the command line uses."""

    def __init__(self, columns: int = 80) -> None:
        self.columns = columns
        self.rows: list[list[str]] = [[]]
        self._row = self._column = 0

    def feed(self, text: str) -> "Picture":
        position = 0
        while position < len(text):
            if sequence := _SEQUENCE.match(text, position):
                self._control(sequence[1], sequence[2])
                position = sequence.end()
            else:
                self._put(text[position])
                position += 1
        return self

    @property
    def lines(self) -> list[str]:
        """Every line up to the last that is not empty, without spaces at its end."""
        lines = ["".join(row).rstrip() for row in self.rows]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _control(self, number: str, letter: str) -> None:
        if letter == "A":
            self._row = max(0, self._row - int(number or 1))
        elif (letter, number) == ("K", "2"):
            self.rows[self._row] = []
        elif letter not in "mhl":
            raise AssertionError(f"an escape sequence that this picture does not know: {number}{letter}")

    def _put(self, character: str) -> None:
        if character == "\n":
            self._row += 1
            self._column = 0
        elif character == "\r":
            self._column = 0
        elif character != "\a":
            if self._column == self.columns:
                self._row += 1
                self._column = 0
            self._reach()
            row = self.rows[self._row]
            row.extend(" " * (self._column - len(row)))
            row[self._column : self._column + 1] = [character]
            self._column += 1
        self._reach()

    def _reach(self) -> None:
        while len(self.rows) <= self._row:
            self.rows.append([])


class TerminalSession:
    """A program that thinks it talks to a person; `on_terminal` makes one."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int, columns: int) -> None:
        self.process = process
        self.text = ""
        self._terminal = terminal
        self._columns = columns
        self._grown = asyncio.Event()
        self._closed = asyncio.Event()
        asyncio.get_running_loop().add_reader(terminal, self._read)

    @property
    def picture(self) -> list[str]:
        return Picture(self._columns).feed(self.text).lines

    @property
    def attributes(self) -> list[Any]:
        """The terminal's settings, as termios has them."""
        return termios.tcgetattr(self._terminal)

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    async def sees(self, words: str, *, since: int = 0) -> int:
        """Waits until the words stand in what was written after `since`; returns where they end."""
        async with asyncio.timeout(LIMIT_SECS):
            while (place := self.text.find(words, since)) < 0:
                assert not self._closed.is_set(), f"{words!r} never came; the terminal shows:\n{self.text}"
                self._grown.clear()
                await self._grown.wait()
        return place + len(words)

    async def ends(self) -> int:
        """Waits for the end; returns the exit status."""
        async with asyncio.timeout(LIMIT_SECS):
            await self._closed.wait()
            return await self.process.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)

    def _read(self) -> None:
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux: the other end is closed.
            data = b""
        self.text += data.decode("utf-8", "replace")
        if not data:
            asyncio.get_running_loop().remove_reader(self._terminal)
            self._closed.set()
        self._grown.set()


@asynccontextmanager
async def on_terminal(
    command: Sequence[str],
    *,
    columns: int = 80,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int | None = None,
) -> AsyncIterator[TerminalSession]:
    """Runs the command with the terminal as its stdin, stdout (unless another is given) and stderr."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    try:
        process = await asyncio.create_subprocess_exec(
            *_in_own_terminal(command),
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            cwd=cwd,
            env=env or environment(),
            start_new_session=True,
        )
    finally:
        os.close(theirs)
    session = TerminalSession(process, ours, columns)
    try:
        yield session
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        session.close()


def _in_own_terminal(command: Sequence[str]) -> list[str]:
    """The command with stdin as its controlling terminal, so that Ctrl-C there becomes a signal.

    A shell that runs the tests in its background has them ignore that signal, which a program takes over.
    """
    program = (
        "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    return [sys.executable, "-c", program, *command]
