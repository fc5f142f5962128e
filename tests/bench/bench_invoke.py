"""How long many calls at once take: the registry runs them side by side, so hardly longer than one.

A script: `python -m tests.bench.bench_invoke [CALLS]`. Each call takes 100 ms: an async tool that waits, a plain
function that blocks its thread, a tool somebody is asked about, a stream. Prints a table; the target is our
own choice. The floor is `asyncio.gather` over the same waits, without a registry.
"""

import asyncio
import statistics
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from sidecar import ApprovalAnswer, ApprovalQuestion, InvocationScope, ToolRegistry, tool

CALL_SECS = 0.1
ROUNDS = 10
TARGET_MS = 150.0


async def pause(secs: float = CALL_SECS) -> None:
    """The work of a call."""
    await asyncio.sleep(secs)


@tool
async def asynchronous(number: int) -> int:
    """Waits on the event loop."""
    await pause()
    return number


@tool
def plain(number: int) -> int:
    """Blocks a thread of its own."""
    threading.Event().wait(CALL_SECS)
    return number


@tool(requires_approval=True)
async def asked_about(number: int) -> int:
    """Waits, after somebody was asked."""
    await pause()
    return number


@tool
async def streamed(number: int) -> AsyncIterator[str]:
    """Gives ten parts."""
    for part in range(10):
        await pause(CALL_SECS / 10)
        yield str(part)


async def allow(question: ApprovalQuestion) -> ApprovalAnswer:
    return ApprovalAnswer(decision="allowOnce", by="host")


async def floor(count: int) -> None:
    await asyncio.gather(*(pause() for _ in range(count)))


async def invoked(registry: ToolRegistry, name: str, count: int) -> None:
    calls = [(name, {"number": number}) for number in range(count)]
    made = await registry.invoke_all(calls, InvocationScope(approve=allow))
    assert all(invocation.error is None for invocation in made)


async def timed_ms(work: Callable[[], Awaitable[Any]]) -> list[float]:
    """The rounds, less the first, which imports and compiles."""
    durations_ms = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        await work()
        durations_ms.append((time.perf_counter() - began) * 1000)
    return durations_ms[1:]


def row(name: str, durations_ms: list[float], target: str) -> str:
    return f"| {name} | {statistics.median(durations_ms):.0f} | {max(durations_ms):.0f} | {target} |"


async def main(count: int) -> None:
    registry = ToolRegistry()
    entries = registry.register_all([asynchronous, plain, asked_about, streamed])
    rows = [f"| {count} calls of {CALL_SECS * 1000:.0f} ms | median ms | worst ms | target |", "|---|---|---|---|"]
    rows.append(row("by hand (asyncio.gather)", await timed_ms(lambda: floor(count)), ""))
    for entry in entries:

        async def work(name: str = entry.name) -> None:
            await invoked(registry, name, count)

        rows.append(row(entry.name, await timed_ms(work), f"{TARGET_MS:.0f}"))
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
