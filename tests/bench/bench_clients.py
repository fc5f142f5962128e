"""What the client libraries add to an event, over frames read and parsed by hand in the same language.

Both readers get the same flood from processes of their own, in turns in one run; what counts is the CPU time of
the reader, so that a busy machine does not blur it. Prints a table. The library for Node has to be built.

    python -m tests.bench.bench_clients [ROUNDS [EVENTS]]
"""

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sidecar_client import Sidecar

from tests.bench.event_source import frame

HERE = Path(__file__).parent
NODE_LIBRARY = HERE.parents[1] / "clients/node/dist/esm/index.js"
TARGETS_MICROSECONDS = {"Python": 60.0, "Node": 20.0}
Took = dict[str, list[float]]


def source(events: int) -> tuple[str, ...]:
    """The command of the process that sends so many events a run."""
    return (sys.executable, "-P", str(HERE / "event_source.py"), str(events))


async def by_hand(process: asyncio.subprocess.Process) -> int:
    """Reads frames and parses them until the answer comes; how many were events."""
    assert process.stdin is not None and process.stdout is not None
    params = {"prompt": "go", "runId": "run_5f2c9a1b7d3e4c8fa0b6d2e9c1a7f384"}
    process.stdin.write(frame({"id": 1, "method": "agent/submit", "params": params}))
    count, rest = 0, b""
    while data := await process.stdout.read(1 << 18):
        buffer, at = rest + data, 0
        while (end := buffer.find(b"\r\n\r\n", at)) >= 0:
            body_end = end + 4 + int(buffer[at + 16 : end])
            if body_end > len(buffer):
                break
            message = json.loads(buffer[end + 4 : body_end])
            at = body_end
            if message.get("method") == "agent/event":
                count += 1
            else:
                return count
        rest = buffer[at:]
    raise EOFError("the source ended")


async def through_the_library(host: Sidecar) -> int:
    count = 0
    async for _ in host.submit("go"):
        count += 1
    return count


async def microseconds_an_event(read: Callable[[], Awaitable[int]], events: int) -> float:
    began = time.process_time()
    count = await read()
    assert count == events, f"{count} events came"
    return (time.process_time() - began) / events * 1e6


async def python_took(rounds: int, events: int) -> Took:
    took: Took = {"floor": [], "client": []}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*source(events), stdin=pipe, stdout=pipe, limit=1 << 20)
    async with Sidecar(command=source(events)) as host:
        for _ in range(rounds):
            took["floor"].append(await microseconds_an_event(lambda: by_hand(process), events))
            took["client"].append(await microseconds_an_event(lambda: through_the_library(host), events))
    process.kill()
    await process.wait()
    return took


def node_took(rounds: int, events: int) -> Took:
    command = ["node", HERE / "bench_clients.mjs", NODE_LIBRARY, str(rounds), str(events), *source(events)]
    took: Took = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=600).stdout)
    return took


def main(rounds: int, events: int) -> None:
    languages = {"Python": asyncio.run(python_took(rounds, events))}
    if shutil.which("node") and NODE_LIBRARY.exists():
        languages["Node"] = node_took(rounds, events)
    sys.stdout.write("| µs an event | by hand | library | added | target |\n|---|---|---|---|---|\n")
    for language, took in languages.items():
        floor, client = (statistics.median(took[kind][1:]) for kind in ("floor", "client"))
        target = TARGETS_MICROSECONDS[language]
        sys.stdout.write(
            f"| {language} | {floor:.1f} | {client:.1f} | {client - floor:.1f} | at most {target:.0f} |\n"
        )


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(11, 20_000)[len(given) :])
