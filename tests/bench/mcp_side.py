"""One side of `bench_mcp` in a process of its own: the same work through one of three clients.

`python mcp_side.py {turns|many} {floor|ours|sdk} COMMAND...` runs the server COMMAND and writes lines of JSON.
With `turns` it does one piece of work for each name that it reads, so that the sides can take turns. It is run by
path, since the official SDK has an interpreter of its own that knows nothing of this project.
"""

import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

CALLS_OF_A_BATCH = 250
PARALLEL_CALLS = 1500
IN_FLIGHT = 50
HUGE_BYTES = 20_000_000
TICK_SECS = 0.005
MANY_SERVERS = 99
MANY_LIMIT_SECS = 60.0

Call = Callable[[str, dict[str, Any]], Awaitable[Any]]


class Floor:
    """A hand-written loop."""

    def __init__(self, command: list[str]) -> None:
        from tests.bench.mcp_floor import HandWritten

        self._client = HandWritten(command)
        self.call, self.list_tools = self._client.call_tool, self._client.list_tools
        self.open, self.close = self._client.connect, self._client.close


class Ours:
    """The client of this project."""

    def __init__(self, command: list[str]) -> None:
        from sidecar.mcp.client import Client
        from sidecar.mcp.config import StdioServer

        self._client = Client("bench", StdioServer(command=command[0], args=tuple(command[1:])))
        self.call, self.list_tools = self._client.call_tool, self._client.tools
        self.open, self.close = self._client.connect, self._client.close


class Sdk:
    """The official SDK, as its README shows it."""

    def __init__(self, command: list[str]) -> None:
        from mcp import Client, StdioServerParameters

        self._client = Client(StdioServerParameters(command=command[0], args=command[1:]))
        self._stack = AsyncExitStack()
        self.call, self.list_tools = self._client.call_tool, self._client.list_tools

    async def open(self) -> None:
        """Enters the client."""
        await self._stack.enter_async_context(self._client)

    async def close(self) -> None:
        """Leaves it."""
        await self._stack.aclose()


SIDES: dict[str, Any] = {"floor": Floor, "ours": Ours, "sdk": Sdk}


async def turns(kind: str, command: list[str]) -> None:
    """What opening costs, then the figures of each piece of work that is asked for, until stdin ends."""
    began = time.perf_counter()
    side = SIDES[kind](command)
    imported = time.perf_counter()
    await side.open()
    connected = time.perf_counter()
    await side.list_tools()
    listed = time.perf_counter()
    write(
        {
            "import (ms)": (imported - began) * 1e3,
            "spawn and connect (ms)": (connected - imported) * 1e3,
            "tools/list (ms)": (listed - connected) * 1e3,
        }
    )
    works = {"one by one": one_by_one, "side by side": side_by_side, "one huge": one_huge}
    while work := await asyncio.to_thread(sys.stdin.readline):
        write(await works[work.rstrip()](side.call))
    closing = time.perf_counter()
    await side.close()
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    write({"close (ms)": (time.perf_counter() - closing) * 1e3, "most memory (MB)": memory_mb})


def write(figures: dict[str, float]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


async def one_by_one(call: Call) -> dict[str, float]:
    """A batch of calls, of which none begins before the last has ended."""
    took = [await timed(call) for _ in range(CALLS_OF_A_BATCH)]
    return {
        "call p50 (us)": statistics.median(took) * 1e6,
        "call p99 (us)": statistics.quantiles(took, n=100)[98] * 1e6,
    }


async def timed(call: Call) -> float:
    began = time.perf_counter()
    await call("echo", {"text": "hello"})
    return time.perf_counter() - began


async def side_by_side(call: Call) -> dict[str, float]:
    async def some_calls() -> None:
        for _ in range(PARALLEL_CALLS // IN_FLIGHT):
            await call("echo", {"text": "hello"})

    began, began_cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(some_calls() for _ in range(IN_FLIGHT)))
    took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    return {
        f"calls/s at {IN_FLIGHT} in flight": PARALLEL_CALLS / took,
        "client CPU per call (us)": took_cpu / PARALLEL_CALLS * 1e6,
    }


async def one_huge(call: Call) -> dict[str, float]:
    """A result of 20 MB, and the longest time for which nothing else could run meanwhile."""
    gaps: list[float] = []

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(TICK_SECS)
            gaps.append(time.perf_counter() - began - TICK_SECS)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(TICK_SECS)
    began = time.perf_counter()
    await call("huge", {"bytes": HUGE_BYTES})
    took = time.perf_counter() - began
    await asyncio.sleep(2 * TICK_SECS)
    ticking.cancel()
    return {"20 MB result (ms)": took * 1e3, "longest stall meanwhile (ms)": max(gaps) * 1e3}


async def many(kind: str, command: list[str]) -> None:
    """So many servers at once, beside one that never answers: until each of the others has listed its tools."""
    end = asyncio.Event()

    async def life(side: Any, ready: asyncio.Event) -> None:
        # The SDK must be closed by the task that opened it.
        await side.open()
        await side.list_tools()
        ready.set()
        await end.wait()
        await side.close()

    began = time.perf_counter()
    silent = asyncio.create_task(life(SIDES[kind]([*command, "--never-initialize"]), asyncio.Event()))
    events = [asyncio.Event() for _ in range(MANY_SERVERS)]
    lives = [asyncio.create_task(life(SIDES[kind](command), ready)) for ready in events]
    async with asyncio.timeout(MANY_LIMIT_SECS):
        await asyncio.gather(*(ready.wait() for ready in events))
    took = time.perf_counter() - began
    assert not silent.done()
    silent.cancel()
    end.set()
    await asyncio.gather(*lives)
    await asyncio.gather(silent, return_exceptions=True)
    write({f"{MANY_SERVERS} servers ready beside a silent one (ms)": took * 1e3})


def main() -> None:
    """Measures, and writes JSON."""
    work, kind, *command = sys.argv[1:]
    if kind != "sdk":
        sys.path.insert(0, str(ROOT))
    asyncio.run({"turns": turns, "many": many}[work](kind, command))


if __name__ == "__main__":
    main()
