"""Nothing but frames on stdout, and nothing that a host does with its pipes freezes the sidecar.

Source: protocol.md, Transport and ground rules 1.2, 6.1 and 6.3.
"""

import json
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.harness.wire import BOUND_SECS, Wire, framed, notification, request
from tests.wire.conftest import COMMAND, ROOT, Spawn

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def call(request_id: str, tool: str, **arguments: object) -> dict[str, object]:
    return request(request_id, "tools/call", {"name": tool, "arguments": arguments})


def test_what_tools_and_children_print_goes_to_stderr_and_none_of_them_reads_our_input(server: Wire) -> None:
    assert server.call("noise") != 0, "a child that reads stdin finds it empty"
    for text in ("Content-Length: 2\r\n\r\n{}", "no line end", "raw bytes", "from a child"):
        server.wait_until_printed(text)
    assert server.call("echo") == {}


def test_a_host_that_never_reads_stderr_freezes_nobody_who_prints(spawn: Spawn) -> None:
    with spawn(drain_stderr=False) as server:
        server.initialize()
        for _ in range(5):
            server.call("print_much", bytes=1_000_000)
        for _ in range(50):
            server.error("tools/call", {"name": "crash"})
        assert server.call("echo") == {}


def test_a_host_that_stops_reading_holds_up_nothing_but_itself(spawn: Spawn) -> None:
    """Timers go on and memory stays bounded; when it reads again, everything is there."""
    with spawn() as server:
        server.initialize()
        before = server.resident_bytes()
        server.pause_reading()
        prompt = json.dumps([["progress", "x" * 1000, 1000], ["text", "word ", 500_000]])
        run = server.ask("agent/submit", {"prompt": prompt, "runId": "slow"})
        watching = server.begin("watch_ticks", ticks=100)
        server.wait_until_printed("ticked 100 times")
        assert server.resident_bytes() - before < 30_000_000
        server.resume_reading()
        server.answer(watching)
        assert server.answer(run)["result"] == {"sessionId": "session", "runId": "slow"}
        events = server.events()
        assert [event["seq"] for event in events] == list(range(len(events)))
        progress = [event for event in events if event["event"]["type"] == "toolExecutionProgress"]
        assert len(progress) == 1000, "nothing but deltas is merged"
        deltas = [event["event"]["text"] for event in events if event["event"]["type"] == "assistantTextDelta"]
        assert "".join(deltas) == "word " * 500_000
        assert max(map(len, deltas)) > 100_000, "what waited was merged"


def test_a_host_that_asks_and_never_reads_is_not_listened_to_for_ever(spawn: Spawn, tmp_path: Path) -> None:
    """Its questions, whose answers would take 160 megabytes, stay in the pipe; that it leaves is noticed."""
    with spawn(leftovers=True) as server:
        server.initialize(initializationOptions={"closeFile": str(tmp_path / "closed")})
        before = server.resident_bytes()
        server.begin("watch_ticks", ticks=100)
        server.pause_reading()
        why = "y" * 500  # So that the questions do not fit what is read ahead.
        questions = b"".join(
            framed(call(f"q{number}", "give_much", bytes=40_000, why=why)) for number in range(4000)
        )
        assert server.send_until_full(questions) < len(questions)
        server.wait_until_printed("ticked 100 times")
        assert server.resident_bytes() - before < 80_000_000
        server.end_input()
        assert server.exit_status() == 1
        assert (tmp_path / "closed").exists()


def test_one_socket_that_does_not_block_may_serve_both_directions() -> None:
    """An empty or a full one is an error to those who read or write it."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with ours, theirs, started(theirs, theirs) as process:
        theirs.close()
        ours.sendall(framed(request(1, "initialize", {})))
        assert b'"id":1,"result"' in read_until(ours.fileno(), b"}")
        ours.sendall(framed(call("much", "give_much", bytes=1_000_000)))
        assert b"x" * 1_000_000 in read_until(ours.fileno(), b'"truncated":false}}')
        ours.sendall(framed(request(2, "shutdown")) + framed(notification("exit")))
        assert b'"id":2,"result":null' in read_until(ours.fileno(), b"}")
        assert process.wait(BOUND_SECS) == 0


def test_input_and_output_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(framed(request(1, "tools/list")) + framed(notification("exit")))
    source, sink = (tmp_path / "in").open("rb"), (tmp_path / "out").open("wb")
    with source, sink, started(source, sink) as process:
        assert process.wait(BOUND_SECS) == 1
    assert b'"id":1' in (tmp_path / "out").read_bytes()


def test_streams_that_were_closed_before_the_start_are_empty() -> None:
    command = ["sh", "-c", 'exec "$0" "$@" <&- >&-', *COMMAND]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, timeout=BOUND_SECS)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"Traceback" not in done.stderr


@contextmanager
def started(stdin: Any, stdout: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """The server on descriptors of the test's own making."""
    with subprocess.Popen(
        COMMAND, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(fd: int, end: bytes) -> bytes:
    """Reads until what came ends so."""
    came = b""
    while not came.endswith(end):
        ready, _, _ = select.select([fd], [], [], BOUND_SECS)
        assert ready, f"nothing came after {came[-100:]!r}"
        came += os.read(fd, 65536)
    return came
