"""However a sidecar ends, nothing that it started is left after 5 s (ground rule 7)."""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.host import clean_environment
from tests.harness.mcp_server import server_entry
from tests.harness.processes import living, still_there_after
from tests.harness.wire import Wire, request
from tests.harness.wire import wire as started

LIMIT_SECS = 5.0

HOST = textwrap.dedent(
    """
    import json, subprocess, sys
    body = sys.argv[1].encode()
    child = subprocess.Popen([sys.executable, "-m", "sidecar"], stdin=subprocess.PIPE)
    child.stdin.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    child.stdin.flush()
    print(child.pid, flush=True)
    child.wait()
    """
)
"""A host that spawns a sidecar and then waits to be killed."""


def initialize(pids: Path, *options: str) -> dict[str, Any]:
    """An `initialize` with two servers that write down who they started."""
    servers = {
        "one": server_entry("--pids", str(pids), "--grandchild", "group", *options),
        "two": server_entry("--pids", str(pids), "--grandchild", "detached", *options),
    }
    params = {"capabilities": {}, "processId": os.getpid(), "initializationOptions": {"mcpServers": servers}}
    return request(1, "initialize", params)


def ended_by_shutdown(wire: Wire) -> None:
    wire.result("shutdown")
    wire.notify("exit")


ENDINGS: dict[str, Callable[[Wire], None]] = {
    "shutdown and exit": ended_by_shutdown,
    "exit alone": lambda wire: wire.notify("exit"),
    "the end of stdin": lambda wire: wire.end_input(),
    "SIGTERM": lambda wire: wire.process.send_signal(signal.SIGTERM),
    "SIGINT": lambda wire: wire.process.send_signal(signal.SIGINT),
    "SIGKILL": lambda wire: wire.kill(),
}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("stubborn", [(), ("--ignore-eof", "--ignore-term")], ids=["polite", "stubborn"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_no_child_or_grandchild_lives_after(ending: str, stubborn: tuple[str, ...], tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with started([sys.executable, "-m", "sidecar"], env=clean_environment(), leftovers=True) as wire:
        wire.send(initialize(pids, *stubborn))
        wire.answer(1)
        ready = 0
        while ready < 2:
            ready += wire.read_until("mcp/statusChanged")["params"]["status"] == "ready"
        tree = living({wire.process.pid, *map(int, pids.read_text().split())})
        assert len(tree) == 5, "the sidecar, two servers and what they started"
        ENDINGS[ending](wire)
        assert still_there_after(tree, LIMIT_SECS) == set()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_left_when_the_host_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    message = initialize(pids)
    message["params"]["processId"] = None
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(message)], stdout=subprocess.PIPE, env=clean_environment()
    )
    assert host.stdout is not None
    sidecar = int(host.stdout.readline())
    # What the sidecar writes goes to the same pipe: it says when both servers are there.
    seen = b""
    while seen.count(b'"status":"ready"') < 2:
        seen += os.read(host.stdout.fileno(), 65536)
    tree = living({sidecar, *map(int, pids.read_text().split())})
    assert len(tree) == 5
    host.kill()
    host.wait()
    host.stdout.close()
    assert still_there_after(tree, LIMIT_SECS) == set()


def wait_until_idle(pid: int) -> None:
    """Until the main thread sleeps in its event loop, having used no processor time for a while."""
    deadline, used, idle_looks = time.monotonic() + LIMIT_SECS, "", 0
    while idle_looks < 200:
        assert time.monotonic() < deadline, "the sidecar is never idle"
        fields = Path(f"/proc/{pid}/task/{pid}/stat").read_text().rpartition(")")[2].split()
        state, times = fields[0], " ".join(fields[11:13])
        idle_looks = idle_looks + 1 if state == "S" and times == used else 0
        used = times
        select.select([], [], [], 0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="picks a thread by /proc and tgkill")
def test_a_signal_that_the_kernel_gives_to_another_thread_is_heeded_while_the_sidecar_is_idle() -> None:
    with started([sys.executable, "-m", "sidecar"], env=clean_environment(), leftovers=True) as wire:
        wire.initialize(processId=os.getpid())
        pid = wire.process.pid
        wait_until_idle(pid)
        other = next(int(task.name) for task in Path(f"/proc/{pid}/task").iterdir() if int(task.name) != pid)
        ctypes.CDLL(None).tgkill(pid, other, signal.SIGTERM)
        assert wire.process.wait(LIMIT_SECS) == 128 + signal.SIGTERM
