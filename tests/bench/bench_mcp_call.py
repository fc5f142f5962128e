"""What a `tools/call` costs through our client, against a hand-written asyncio loop over the same server.

A script: `python -m tests.bench.bench_mcp_call [--rounds N]`. Both sides run in every round, in turns; the table
shows medians over the rounds, and the median of the ratios within a round. The targets are our own choice.
"""

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from sidecar.mcp.client import Client
from sidecar.mcp.config import StdioServer
from tests.harness.mcp_server import server_entry

SEQUENTIAL_CALLS = 1000
PARALLEL_CALLS = 3000
IN_FLIGHT = 50
WARM_UP_CALLS = 100
HUGE_BYTES = 20_000_000

Call = Callable[[str, dict[str, Any]], Awaitable[Any]]


class HandWritten:
    """The least that a client can be: no checks, no limits, no cancellation."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}

    async def connect(self) -> None:
        entry = server_entry()
        self._process = await asyncio.create_subprocess_exec(
            entry["command"],
            *entry["args"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2 * HUGE_BYTES,
        )
        self._reading = asyncio.create_task(self._read())
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        await self._request("initialize", params)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        return await self._request("tools/call", {"name": name, "arguments": arguments})

    async def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        request_id = next(self._ids)
        self._pending[request_id] = answer = asyncio.get_running_loop().create_future()
        self._write({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return await answer

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            self._pending.pop(message["id"]).set_result(message["result"])


async def _timed(call: Call) -> dict[str, float]:
    for _ in range(WARM_UP_CALLS):
        await call("echo", {"text": "warm"})
    durations = []
    for _ in range(SEQUENTIAL_CALLS):
        began = time.perf_counter()
        await call("echo", {"text": "hello"})
        durations.append(time.perf_counter() - began)
    began, began_cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_some_calls(call, PARALLEL_CALLS // IN_FLIGHT) for _ in range(IN_FLIGHT)))
    took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
    began = time.perf_counter()
    await call("huge", {"bytes": HUGE_BYTES})
    return {
        "call p50 (us)": statistics.median(durations) * 1e6,
        "call p99 (us)": statistics.quantiles(durations, n=100)[98] * 1e6,
        f"calls/s at {IN_FLIGHT} in flight": PARALLEL_CALLS / took,
        "client CPU per call (us)": took_cpu / PARALLEL_CALLS * 1e6,
        "20 MB result (ms)": (time.perf_counter() - began) * 1e3,
    }


async def _some_calls(call: Call, count: int) -> None:
    for _ in range(count):
        await call("echo", {"text": "hello"})


async def _measure(kind: str) -> dict[str, float]:
    entry = server_entry()
    ours = Client("bench", StdioServer(command=entry["command"], args=tuple(entry["args"])))
    client = HandWritten() if kind == "hand-written" else ours
    began = time.perf_counter()
    await client.connect()
    connected = time.perf_counter()
    figures = await _timed(client.call_tool)
    closing = time.perf_counter()
    await client.close()
    closed = time.perf_counter()
    return {"connect (ms)": (connected - began) * 1e3, **figures, "close (ms)": (closed - closing) * 1e3}


def _print(row: str) -> None:
    sys.stdout.write(row + "\n")


TARGETS = {"call p50 (us)": (1.3, max), f"calls/s at {IN_FLIGHT} in flight": (0.6, min)}


def main() -> int:
    """Prints the table; status 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    kinds = ("hand-written", "ours")
    figures: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in kinds if number % 2 else reversed(kinds):
            figures[kind].append(asyncio.run(_measure(kind)))
    _print(f"{'median of ' + str(rounds) + ' rounds':32}{kinds[0]:>14}{kinds[1]:>12}{'ratio':>8}  target")
    is_missed = False
    for name in figures["ours"][0]:
        plain, ours = ([result[name] for result in figures[kind]] for kind in kinds)
        ratio = statistics.median(mine / other for mine, other in zip(ours, plain, strict=True))
        target, worse = TARGETS.get(name, (None, max))
        is_missed |= target is not None and worse(ratio, target) == ratio != target
        row = f"{name:32}{statistics.median(plain):14.1f}{statistics.median(ours):12.1f}{ratio:8.2f}"
        _print(row + ("" if target is None else f"  {'at most' if worse is max else 'at least'} {target}"))
    return 1 if is_missed else 0


if __name__ == "__main__":
    sys.exit(main())
