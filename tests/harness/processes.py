"""Whether processes are there, and waiting for their end."""

import select
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from os import close, getpid, pidfd_open
from pathlib import Path


def living(pids: Iterable[int]) -> set[int]:
    """Those of `pids` that run; zombies have ended, whoever forgot to reap them."""
    return {pid for pid in pids if _state(pid) not in (None, "Z", "X")}


def still_there_after(pids: Iterable[int], limit_secs: float) -> set[int]:
    """Waits for the processes to end, at most so long; those that have not."""
    deadline = time.monotonic() + limit_secs
    with ExitStack() as stack:
        for pid in living(pids):
            try:
                descriptor = pidfd_open(pid)
            except ProcessLookupError:
                continue
            stack.callback(close, descriptor)
            select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
    return living(pids)


@contextmanager
def no_process_left() -> Iterator[None]:
    """Fails where a process below this one is left by the block; other tests may have their own here."""
    before = descendants(getpid())
    yield
    assert descendants(getpid()) - before == set()


def descendants(pid: int) -> set[int]:
    """All processes below `pid`, as far as parents are still there."""
    parents = {int(stat.parent.name): _parent(stat) for stat in Path("/proc").glob("[0-9]*/stat")}
    found = {pid}
    while new := {child for child, parent in parents.items() if parent in found and child not in found}:
        found |= new
    return found - {pid}


def _fields(stat: Path) -> list[str]:
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _state(pid: int) -> str | None:
    return next(iter(_fields(Path(f"/proc/{pid}/stat"))), None)


def _parent(stat: Path) -> int:
    fields = _fields(stat)
    return int(fields[1]) if fields else 0
