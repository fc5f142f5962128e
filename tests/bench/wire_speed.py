"""How fast the wire is: start-up against bare pygls, events against a hand-written loop, memory. Run as a script.

What is compared runs interleaved, so that a busy machine slows both sides alike; compare ratios, not times.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BARE = [sys.executable, str(HERE / "bare_pygls.py")]
FLOOR = [sys.executable, str(HERE / "floor.py")]
WIRE = [sys.executable, str(HERE.parent / "wire" / "wire_server.py")]
EVENTS = 20_000


def frame(method: str, params: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


INITIALIZE = frame("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
SUBMIT = frame("agent/submit", {"prompt": json.dumps([["progress", "x" * 60, EVENTS]])})


def start(command: list[str]) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0, env=environment
    )


def read_until(process: "subprocess.Popen[bytes]", end: bytes) -> int:
    """Reads until `end` came; returns how many frames began. As cheap as possible."""
    assert process.stdout is not None
    count, tail = 0, b""
    while True:
        data = os.read(process.stdout.fileno(), 1 << 20)
        assert data, "the process ended"
        count += data.count(b"Content-Length")
        if end in tail + data:
            return count
        tail = data[-len(end) :]


def start_up_secs(command: list[str]) -> float:
    """From spawning to the answer to `initialize`."""
    began = time.perf_counter()
    with start(command) as process:
        process.stdin.write(INITIALIZE)
        read_until(process, b'"capabilities"')
        took = time.perf_counter() - began
        process.kill()
    return took


def events_per_second(command: list[str]) -> float:
    with start(command) as process:
        process.stdin.write(INITIALIZE)
        read_until(process, b'"capabilities"')
        began = time.perf_counter()
        process.stdin.write(SUBMIT)
        read_until(process, b'"result"')
        took = time.perf_counter() - began
        process.kill()
    return EVENTS / took


def resident_megabytes(command: list[str]) -> float:
    with start(command) as process:
        process.stdin.write(INITIALIZE)
        read_until(process, b'"capabilities"')
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        process.kill()
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def interleaved(measure: Callable[[list[str]], float], commands: list[list[str]], times: int) -> list[float]:
    rounds = [[measure(command) for command in commands] for _ in range(times)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def main() -> None:
    bare, wire = interleaved(start_up_secs, [BARE, WIRE], 9)
    sys.stdout.write(f"start-up   bare {bare * 1000:.0f} ms  wire {wire * 1000:.0f} ms  ratio {wire / bare:.2f}\n")
    floor, wire = interleaved(events_per_second, [FLOOR, WIRE], 5)
    sys.stdout.write(f"events/s   floor {floor:.0f}  wire {wire:.0f}  ratio {wire / floor:.2f}\n")
    bare, wire = interleaved(resident_megabytes, [BARE, WIRE], 3)
    sys.stdout.write(f"memory     bare {bare:.0f} MB  wire {wire:.0f} MB\n")


if __name__ == "__main__":
    main()
