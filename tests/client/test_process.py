"""The sidecar's process under the client library: how it starts, dies and is ended.

Source: protocol.md (ground rule 7) and clients/python/README.md.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from sidecar_client import (
    BrokenStream,
    CannotStart,
    ClientError,
    Limits,
    NoAnswer,
    RequestFailed,
    Sidecar,
    SidecarExited,
)

from tests.harness.processes import still_there_after
from tests.harness.scripted_host import SAYS_HELLO, sidecar
from tests.harness.scripted_sidecar import AGENT, received


async def test_the_death_of_the_process_ends_runs_with_its_status_and_last_words(tmp_path: Path) -> None:
    dying = [
        {"event": {"type": "runStarted", "model": "m"}},
        {"stderr": "first\nout of memory"},
        {"exit": 3},
    ]
    async with sidecar(tmp_path, {"agent/submit": dying}) as host:
        run = host.submit("hi")
        with pytest.raises(SidecarExited, match="exited with status 3: out of memory") as death:
            async for _ in run:
                pass
        assert (death.value.status, death.value.stderr_tail) == (3, "first\nout of memory")
        with pytest.raises(SidecarExited):
            await run.result()
        with pytest.raises(SidecarExited):
            await host.request("tools/list")
        with pytest.raises(SidecarExited):
            await host.submit("again").result()


async def test_a_process_that_is_killed_says_by_which_signal(tmp_path: Path) -> None:
    async with sidecar(tmp_path, {"agent/submit": [{"wait": "never"}]}) as host:
        run = host.submit("hi")
        assert host.pid
        os.kill(host.pid, signal.SIGKILL)
        with pytest.raises(SidecarExited, match="ended by signal 9"):
            await run.result()


async def test_a_command_that_does_not_exist_cannot_start() -> None:
    with pytest.raises(CannotStart, match="cannot start '/no/such/sidecar'"):
        async with Sidecar(command=["/no/such/sidecar"]):
            pass


async def test_a_process_that_prints_is_no_sidecar() -> None:
    with pytest.raises(BrokenStream, match="not a sidecar"):
        async with Sidecar(command=[sys.executable, "-c", "print('hello ' * 2000); input()"]):
            pass


async def test_a_stray_print_breaks_the_stream_and_ends_what_waits(tmp_path: Path) -> None:
    script = {"agent/submit": [{"raw": "debug: here\r\n\r\n"}, {"wait": "never"}]}
    async with sidecar(tmp_path, script) as host:
        with pytest.raises(BrokenStream, match="debug: here"):
            await host.submit("hi").result()


async def test_another_language_server_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(BrokenStream, match=r"without experimental\.agentSidecar"):
        async with sidecar(tmp_path, {"initialize": [{"result": {"capabilities": {}}}]}):
            pass


async def test_a_newer_major_version_is_refused(tmp_path: Path) -> None:
    agent = {"capabilities": {"experimental": {"agentSidecar": {**AGENT, "protocolVersion": "2.0"}}}}
    with pytest.raises(BrokenStream, match=r"speaks protocol 2\.0"):
        async with sidecar(tmp_path, {"initialize": [{"result": agent}]}):
            pass


async def test_wrong_options_raise_what_the_sidecar_says(tmp_path: Path) -> None:
    refusal = {"code": -32602, "message": "invalid params: model", "data": {"kind": "invalidParams"}}
    with pytest.raises(RequestFailed, match="invalid params: model"):
        async with sidecar(tmp_path, {"initialize": [{"error": refusal}]}):
            pass


async def test_a_silent_process_does_not_hold_up_the_start(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match=r"initialize within 0\.5 s"):
        async with sidecar(tmp_path, {"initialize": []}, limits=Limits(start_secs=0.5)):
            pass


async def test_closing_ends_runs_and_says_goodbye_in_order(tmp_path: Path) -> None:
    host = sidecar(tmp_path, {"agent/submit": []})
    async with host:
        run = host.submit("hi")
    assert host.status == 0
    with pytest.raises(ClientError):
        await run.result()
    methods = [message["method"] for message in received(tmp_path)]
    assert methods[0] == "initialize"
    assert methods[-2:] == ["shutdown", "exit"]


async def test_a_process_that_ignores_everything_is_killed_with_its_children(tmp_path: Path) -> None:
    program = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, file=sys.stderr, flush=True)
time.sleep(600)
"""
    heard: asyncio.Queue[str] = asyncio.Queue()
    command = [sys.executable, "-c", program]
    host = Sidecar(command=command, on_stderr=heard.put_nowait, limits=Limits(exit_secs=0.3))
    starting = asyncio.create_task(host.__aenter__())
    child = int(await asyncio.wait_for(heard.get(), 5))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    # The start was cancelled, and its clean-up climbs the ladder to its end.
    assert host.status is not None
    assert not await asyncio.to_thread(still_there_after, [child], 5)


async def test_stderr_lines_reach_the_callback_and_a_broken_callback_ends_nothing(tmp_path: Path) -> None:
    lines = []

    def hear(line: str) -> None:
        lines.append(line)
        raise RuntimeError("broken")

    script = {"agent/submit": [{"stderr": "one\ntwo\n"}, *SAYS_HELLO]}
    async with sidecar(tmp_path, script, on_stderr=hear) as host:
        assert await host.submit("hi").text() == "Hello"
    assert lines == ["one", "two"]


async def test_notifications_and_events_of_unknown_runs_reach_the_callback(tmp_path: Path) -> None:
    heard = []
    other = {"method": "agent/event", "params": {"runId": "other", "seq": 0, "event": {"type": "x"}}}
    changed = {"method": "tools/changed", "params": {"added": ["a"], "removed": [], "changed": []}}
    script = {"agent/submit": [{"notify": changed}, {"notify": other, "isOdd": True}, *SAYS_HELLO]}
    async with sidecar(
        tmp_path, script, on_notification=lambda method, params: heard.append((method, params))
    ) as host:
        await host.submit("hi").result()
    assert heard == [("tools/changed", changed["params"]), ("agent/event", other["params"])]


async def test_a_cancelled_request_is_withdrawn(tmp_path: Path) -> None:
    arrived = asyncio.Event()
    arrives = {"method": "tools/changed", "params": {"added": [], "removed": [], "changed": []}}
    script = {"models/list": [{"notify": arrives}]}
    async with sidecar(tmp_path, script, on_notification=lambda method, params: arrived.set()) as host:
        asking = asyncio.create_task(host.request("models/list"))
        await asyncio.wait_for(arrived.wait(), 5)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    sent = received(tmp_path)
    (slow,) = [message for message in sent if message.get("method") == "models/list"]
    assert {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": slow["id"]}} in sent
