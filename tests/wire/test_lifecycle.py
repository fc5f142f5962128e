"""The life of the process: what is valid when, and how it ends.

Source: protocol.md, ground rules 2.4 and 7, Lifecycle; LSP 3.17, "Server lifecycle".
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.harness.wire import Wire, notification, request
from tests.wire.conftest import Spawn

GONE_WITHIN_SECS = 5.0


def code_and_kind(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["error"]["code"], answer["error"]["data"]["kind"]


# What is valid when ------------------------------------------------------------------------------------


def test_before_initialize_only_initialize_is_answered_and_afterwards_only_once(spawn: Spawn) -> None:
    with spawn() as server:
        for method in ("tools/list", "shutdown", "no/such", "workspace/executeCommand"):
            assert code_and_kind(server.answer(server.ask(method))) == (-32002, "serverNotInitialized")
        server.notify("initialized")
        server.notify("textDocument/didOpen", {"textDocument": {}})
        server.send(request("first", "initialize"), request("second", "initialize"))
        server.send(request("early", "tools/list"))
        answers = {answer["id"]: answer for answer in (server.read() for _ in range(3))}
        assert "result" in answers["first"]
        assert code_and_kind(answers["second"]) == (-32600, "invalidRequest")
        assert code_and_kind(server.answer(server.ask("initialize", {}))) == (-32600, "invalidRequest")
        assert server.result("tools/list") == {"tools": []}


def test_shutdown_answers_what_runs_and_refuses_what_follows(spawn: Spawn, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with spawn() as server:
        server.initialize(initializationOptions={"closeFile": str(closed)})
        waiting = [server.begin("wait") for _ in range(3)]
        stubborn = server.begin("stubborn")
        assert server.call("echo") == {}
        shutdown = server.ask("shutdown")
        answers = [server.read() for _ in range(5)]
        assert {answer["id"] for answer in answers[:4]} == {*waiting, stubborn}
        assert {code_and_kind(answer) for answer in answers[:4]} == {(-32800, "requestCancelled")}
        assert answers[4] == {"jsonrpc": "2.0", "id": shutdown, "result": None}
        for method in ("tools/list", "initialize", "shutdown"):
            assert code_and_kind(server.answer(server.ask(method))) == (-32600, "invalidRequest")
        server.send_odd(notification("no/such"))
        server.notify("exit")
        assert server.exit_status() == 0
        assert closed.read_text() == "closed"


# How it ends -------------------------------------------------------------------------------------------


def say_exit(server: Wire) -> None:
    server.notify("exit")


def end_input(server: Wire) -> None:
    server.end_input()


def say_shutdown_and_end_input(server: Wire) -> None:
    server.result("shutdown")
    server.end_input()


def say_all_at_once(server: Wire) -> None:
    running = server.begin("wait")
    server.send(request("s", "shutdown"), notification("$/cancelRequest", {"id": "s"}), notification("exit"))
    server.end_input()
    assert code_and_kind(server.answer(running)) == (-32800, "requestCancelled")
    assert server.answer("s")["result"] is None


def sent(number: int) -> Callable[[Wire], None]:
    return lambda server: server.process.send_signal(number)


@pytest.mark.parametrize(
    ("leave", "status"),
    [
        (say_exit, 1),
        (end_input, 1),
        (say_shutdown_and_end_input, 0),
        (say_all_at_once, 0),
        (sent(signal.SIGTERM), 143),
        (sent(signal.SIGINT), 130),
        (sent(getattr(signal, "SIGHUP", signal.SIGTERM)), 129),
    ],
    ids=["exit", "eof", "shutdown-eof", "shutdown-exit-eof", "sigterm", "sigint", "sighup"],
)
def test_the_exit_status_says_why_and_services_are_closed_first(
    spawn: Spawn, tmp_path: Path, leave: Callable[[Wire], None], status: int
) -> None:
    closed = tmp_path / "closed"
    with spawn() as server:
        server.initialize(initializationOptions={"closeFile": str(closed)})
        server.call("print_much", bytes=10)
        leave(server)
        assert server.exit_status() == status
        assert closed.read_text() == "closed"
    for printed in (b"x" * 10, b"y" * 10, b"ending with status"):
        assert printed in server.printed, "what was printed last is not lost"


@pytest.mark.parametrize("leave", [end_input, sent(signal.SIGTERM)], ids=["eof", "sigterm"])
def test_it_also_ends_before_initialize(spawn: Spawn, leave: Callable[[Wire], None]) -> None:
    with spawn() as server:
        server.error("tools/list")
        leave(server)
        assert server.exit_status() in (1, 143)


def test_the_end_of_input_ends_it_at_once_whatever_runs(spawn: Spawn) -> None:
    with spawn() as server:
        server.initialize({"experimental": {"agentSidecar": {"approvals": True}}})
        running = [server.begin("wait"), server.begin("approve"), server.begin("block_a_thread", secs=30)]
        question = server.read_until("agent/requestApproval")
        assert server.call("seen") == ["waiting", "blocked"]
        server.end_input()
        began = time.monotonic()
        assert server.exit_status() == 1
        assert time.monotonic() - began < 2
        frames = [server.read() for _ in range(4)]
        (withdrawn,) = (frame for frame in frames if "method" in frame)
        assert withdrawn["params"] == {"id": question["id"]}
        answers = {frame["id"]: code_and_kind(frame) for frame in frames if "method" not in frame}
        assert answers == dict.fromkeys(running, (-32800, "requestCancelled"))


def test_nothing_that_hangs_keeps_it_for_five_seconds(spawn: Spawn) -> None:
    """Services that do not close, requests that do not end, an event loop that is blocked, a host that reads
    nothing: side by side, as each takes its time."""
    with ExitStack() as stack:
        servers = [stack.enter_context(spawn(leftovers=True)) for _ in range(5)]
        deaf_services, deaf_requests, blocked, blocked_too, unread = servers
        deaf_services.initialize(initializationOptions={"hangAtClose": True})
        for server in servers[1:]:
            server.initialize()
        deaf_requests.begin("stubborn")
        deaf_requests.call("echo")
        for server in (blocked, blocked_too):
            server.begin("block", secs=60)
            server.wait_until_printed("blocking")
        unread.pause_reading()
        unread.begin("give_much", bytes=5_000_000)
        unread.begin("give_much", bytes=5_000_000)
        began = time.monotonic()
        for server in (deaf_services, deaf_requests, blocked, unread):
            server.end_input()
        blocked_too.process.terminate()
        assert [server.exit_status() for server in servers] == [1, 1, 1, 143, 1]
        assert time.monotonic() - began < GONE_WITHIN_SECS


def test_it_ends_when_the_host_closes_its_reading_end(spawn: Spawn) -> None:
    with spawn(leftovers=True) as server:
        server.initialize()
        server.stop_reading()
        if sys.platform != "linux":  # Others notice when they write.
            server.ask("tools/list")
        assert server.exit_status() == 1


def test_it_ends_when_the_process_of_the_host_is_gone_though_its_pipes_are_open(spawn: Spawn) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stand_in, spawn() as server:
        server.initialize(processId=stand_in.pid)
        assert server.call("introduction")["processId"] == stand_in.pid
        stand_in.kill()
        stand_in.wait()
        assert server.exit_status() == 1
        server.wait_until_printed("is gone")


def test_it_ends_when_the_process_of_the_host_was_gone_before(spawn: Spawn) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as stand_in:
        stand_in.wait()
    with spawn() as server:
        assert "capabilities" in server.result("initialize", {"processId": stand_in.pid, "capabilities": {}})
        assert server.exit_status() == 1
