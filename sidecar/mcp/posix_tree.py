"""Ending a server with everything it started, on POSIX systems.

Each server leads a session and process group of its own, so that one signal reaches what its launcher (npx, uvx,
a shell) started. On Linux each also carries a mark in its environment, which finds descendants that have moved
to a session of their own. `Watchdog` does the same for all of them when this process is killed.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

assert sys.platform != "win32"

logger = logging.getLogger("sidecar.mcp")

MARK_VARIABLE = "AGENT_SIDECAR_TREE"
"""Marks of the trees that a process belongs to; a sidecar inside another's server adds its own to the list.

A server that wants something to outlive it, such as a browser, has to start that without this variable.
"""

_PROC = Path("/proc")
_SEARCHES = 5
"""How often marked processes are looked for: each round may find children of the one before."""

_END_SECS = 0.1
"""How long the end of those that were killed is waited for, in each round. Own choice: all fit into 3 s."""

_WATCHDOG_SCRIPT = """
trap '' HUP INT TERM
groups=
while read -r order group; do
    case $order in
        guard) groups="$groups $group" ;;
        release)
            others=
            for guarded in $groups; do [ "$guarded" = "$group" ] || others="$others $guarded"; done
            groups=$others ;;
    esac
done
[ -n "$groups" ] || exit 0
sleep 1
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
for environ in $(grep -lsF -- "$1" /proc/[0-9]*/environ); do
    pid=${environ#/proc/}
    kill -s KILL -- "${pid%/environ}"
done
"""
"""Reads which groups to guard until its input ends, as it does when we are gone. It waits for polite servers."""


class ProcessTree:
    """One server process and its descendants."""

    spawn_options: Mapping[str, Any] = {"start_new_session": True}

    def __init__(self) -> None:
        self.mark = _watchdog.next_mark()
        self._group: int | None = None

    @property
    def environ(self) -> dict[str, str]:
        """What the server's environment must hold."""
        around = os.environ.get(MARK_VARIABLE)
        return {MARK_VARIABLE: f"{around},{self.mark}" if around else self.mark}

    def prepare(self) -> None:
        """Call before the server is started; `release` must follow, also if it does not start."""
        _watchdog.expect(self.mark)

    def adopt(self, pid: int) -> None:
        """Takes charge of the tree below the process `pid`, just started with `spawn_options`."""
        self._group = pid
        _watchdog.guard(self.mark, pid)

    def terminate(self) -> None:
        """Asks every member of the group to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Ends every member of the group at once; `release` ends the others."""
        self._signal(signal.SIGKILL)

    def is_alive(self) -> bool:
        """Whether the group has members. Zombies that nobody reaps count too."""
        return self._signal(0)

    async def release(self) -> None:
        """Ends what has left the group, and lets go of the tree. Call after `kill`."""
        await asyncio.to_thread(_strays.kill, self.mark)
        self._group = None
        await _watchdog.release(self.mark)

    def _signal(self, number: int) -> bool:
        if self._group is None:
            return False
        try:
            os.killpg(self._group, number)
        except (ProcessLookupError, PermissionError):  # macOS refuses where only zombies are left.
            return False
        return True


class Watchdog:
    """A small shell that outlives this process, should it be killed, and then ends the servers left behind.

    It runs while there are servers to guard. A server's stdin ends by itself when we die, which polite servers
    understand; the watchdog is for the others, and for what they started.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._groups: dict[str, int | None] = {}
        self._shell: subprocess.Popen[bytes] | None = None

    @cached_property
    def _mark(self) -> str:
        """This process' own; made at its first use, so that those forked before have others."""
        return os.urandom(8).hex()

    def next_mark(self) -> str:
        """A mark for one tree, which holds this process' own."""
        return f"{self._mark}.{next(self._numbers)}"

    def expect(self, mark: str) -> None:
        """Makes sure that the shell runs before the server does, so that none is ever unguarded."""
        self._groups[mark] = None
        if self._shell is not None and self._shell.poll() is None:
            return
        try:
            self._shell = _start_shell(self._mark)
        except OSError as error:
            logger.warning("servers may outlive this process if it is killed: no shell to watch them: %s", error)
        for group in self._groups.values():
            self._order("guard", group)

    def guard(self, mark: str, group: int) -> None:
        """Adds a process group to those that must not outlive us."""
        self._groups[mark] = group
        self._order("guard", group)

    async def release(self, mark: str) -> None:
        """Takes a tree's group off the list. With the last one the shell ends too."""
        self._order("release", self._groups.pop(mark, None))
        if not self._groups and self._shell is not None:
            shell, self._shell = self._shell, None
            await asyncio.to_thread(shell.communicate, timeout=5)

    def _order(self, word: str, group: int | None) -> None:
        if group is not None and self._shell is not None and self._shell.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # Somebody killed it; the next start makes a new one.
                self._shell.stdin.write(f"{word} {group}\n".encode())
                self._shell.stdin.flush()


def _start_shell(mark: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        ("/bin/sh", "-c", _WATCHDOG_SCRIPT, "agent-sidecar-watchdog", mark),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # Ours may be a pipe whose end somebody waits for.
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},
        cwd="/",
        start_new_session=True,
    )


class Strays:
    """Marked processes that have left their group. One look through /proc serves all trees that end meanwhile."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._searching = threading.Lock()

    def kill(self, mark: str) -> None:
        """Ends every process that carries `mark`. Blocks: call it in a thread."""
        self._wanted.add(mark)
        with self._searching:
            if mark in self._wanted:  # Else another thread began its search after we had asked.
                marks = set(self._wanted)
                self._wanted -= marks
                _kill_marked(marks)


_watchdog = Watchdog()
_strays = Strays()


def _kill_marked(marks: set[str]) -> None:
    for _ in range(_SEARCHES):
        strays = [pid for pid in _processes() if _marks_of(pid) & marks]
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not strays:
            return
        _await_end(strays)


def _await_end(pids: list[int]) -> None:
    """A process that was killed goes on for a moment, without the environment that it could be known by."""
    deadline = time.monotonic() + _END_SECS
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.002)


def _runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _processes() -> list[int]:
    """Everybody but us; nobody where there is no /proc."""
    try:
        return [
            int(entry.name)
            for entry in _PROC.iterdir()
            if entry.name.isdecimal() and int(entry.name) != os.getpid()
        ]
    except OSError:
        return []


def _marks_of(pid: int) -> set[str]:
    """The marks in the environment that a process was started with."""
    name = MARK_VARIABLE.encode() + b"="
    try:
        environ = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:  # It has ended meanwhile, or belongs to somebody else.
        return set()
    if name not in environ:
        return set()
    values = [entry.removeprefix(name) for entry in environ.split(b"\0") if entry.startswith(name)]
    return {mark for value in values for mark in value.decode(errors="replace").split(",")}
