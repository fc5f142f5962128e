"""What keeping costs, how fast lists are, and whether anything is lost.

    python -m tests.bench.bench_store commit [EVENTS]      a commit for each event that is no delta
    python -m tests.bench.bench_store list [SESSIONS EVENTS]   the newest 50 of many sessions
    python -m tests.bench.bench_store kill [ROUNDS]        SIGKILL at random moments, then a look at what is there
    python -m tests.bench.bench_store share [RUNS]         two sidecars with so many runs each on one store

Prints a table for each.
"""

import asyncio
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sidecar.protocol.events import ToolExecutionProgress
from sidecar.protocol.messages import AgentEventParams
from sidecar.protocol.values import Message
from sidecar.store.store import Store, StorePlace
from tests.harness.host import sidecar
from tests.harness.killing import KillTest, answering
from tests.harness.model_server import ScriptedModel
from tests.harness.sharing import share_a_store

EVENT = ToolExecutionProgress(call_id="call_1", message="x" * 100)


def commit(events: int) -> None:
    """Each event with a message that joined the history, on a disk."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(StorePlace(file=Path(folder) / "store.sqlite3", is_chosen=True))
        store.sessions.create("ses_1", None)
        held = store.sessions.hold("ses_1", "run_1")
        log = store.sessions.begin_run(held, "run_1", "test/m", [], 0)
        history: list[Message] = []
        took: list[float] = []
        for seq in range(events):
            history.append(Message(role="user", content="y" * 300))
            params = AgentEventParams(session_id="ses_1", run_id="run_1", seq=seq, event=EVENT)
            began = time.perf_counter()
            log.keep(params, history, 0)
            took.append((time.perf_counter() - began) * 1000)
        store.close()
    took.sort()
    _table(
        f"commit before send, {events} events",
        ("median, ms (target at most 1)", f"{statistics.median(took):.3f}"),
        ("99 of 100, ms", f"{took[len(took) * 99 // 100]:.3f}"),
        ("slowest, ms", f"{took[-1]:.1f}"),
    )


async def listing(sessions: int, events: int) -> None:
    """By a host, over the wire."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.sqlite3"
        _fill(file, sessions, events)
        async with sidecar({"store": {"path": str(file)}}) as host:
            took = []
            for _ in range(50):
                began = time.perf_counter()
                page = await host.request("session/list", {"limit": 50})
                took.append((time.perf_counter() - began) * 1000)
                assert len(page["sessions"]) == 50
    _table(
        f"the newest 50 of {sessions:,} sessions with {events:,} events",
        ("first, ms (opens the store)", f"{took[0]:.1f}"),
        ("median, ms (target less than 20)", f"{statistics.median(took):.1f}"),
    )


def _fill(file: Path, sessions: int, events: int) -> None:
    """Straight into the tables, as a million commits would take a while."""
    store = Store(StorePlace(file=file, is_chosen=True))
    store.sessions.create("ses_0", None)
    store.close()
    now_ms = time.time_ns() // 1_000_000
    with sqlite3.connect(file) as connection:
        connection.executemany(
            "INSERT INTO sessions (id, title, created_ms, updated_ms, message_count) VALUES (?, ?, ?, ?, 4)",
            ((f"ses_{n:032x}", f"session {n}", now_ms, now_ms - random.randrange(10**9)) for n in range(sessions)),
        )
        connection.executemany(
            "INSERT INTO runs (id, session, model, status, stop_reason, started_ms) "
            "VALUES (?, ?, 'test/m', 'completed', 'stop', ?)",
            ((f"run_{n}", n + 2, now_ms) for n in range(sessions)),
        )
        connection.executemany(
            "INSERT INTO events VALUES (?, ?, 'toolExecutionProgress', ?)", _events(sessions, events)
        )
    connection.close()


def _events(sessions: int, events: int) -> Iterator[tuple[Any, ...]]:
    body = '{"type":"toolExecutionProgress","callId":"call_1","message":"' + "x" * 100 + '"}'
    each = events // sessions
    return ((run + 1, seq, body) for run in range(sessions) for seq in range(each))


async def kill(rounds: int) -> None:
    """See `tests.harness.killing`."""
    chance = random.Random()
    with tempfile.TemporaryDirectory() as folder:
        async with ScriptedModel(answer=answering(chance), is_strict=False) as model:
            test = KillTest(Path(folder), model, chance)
            for _ in range(rounds):
                await test.round()
            await test.last_look()
    for loss in test.tally.losses:
        sys.stdout.write(f"{loss}\n")
    _table(
        f"killed {test.tally.rounds} times",
        ("events that the hosts had seen", str(test.tally.events_seen)),
        ("losses (target 0)", str(len(test.tally.losses))),
        *((f"killed after: {moment}", str(times)) for moment, times in sorted(test.tally.kills.items())),
    )


async def share(runs: int) -> None:
    """See `tests.harness.sharing`."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        shared = await share_a_store(Path(folder), runs_each=runs, at_once=runs)
        took_secs = time.perf_counter() - began
    for fault in (*shared.errors, *shared.losses):
        sys.stdout.write(f"{fault}\n")
    _table(
        f"two sidecars, {runs} runs each at once on one store",
        ("errors (target 0)", str(len(shared.errors))),
        ("lost (target 0)", str(len(shared.losses))),
        ("sessions found", str(shared.sessions)),
        ("all of it, s", f"{took_secs:.1f}"),
    )


def _table(title: str, *lines: tuple[str, str]) -> None:
    rows = "".join(f"| {name} | {value} |\n" for name, value in lines)
    sys.stdout.write(f"| {title} | |\n|---|---|\n{rows}\n")


def main(words: list[str]) -> None:
    """One measure, or all of them."""
    numbers = [int(word) for word in words[1:]]
    wanted = words[0] if words else "all"
    if wanted in ("commit", "all"):
        commit(*numbers or [5000])
    if wanted in ("list", "all"):
        asyncio.run(listing(*numbers or [10_000, 1_000_000]))
    if wanted in ("kill", "all"):
        asyncio.run(kill(*numbers or [200]))
    if wanted in ("share", "all"):
        asyncio.run(share(*numbers or [50]))


if __name__ == "__main__":
    main(sys.argv[1:])
