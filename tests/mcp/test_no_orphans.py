"""After any way of ending, nothing that a server started is left, at the latest after 5 s. Source: own choice.

The watchdog that sees to it when we are killed is a child of ours too, and must go as well.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.protocol.errors import ToolError
from tests.harness.processes import descendants, living, no_process_left, still_there_after
from tests.mcp.conftest import connected, new_client

BOUND_SECS = 5.0
STUBBORN = ("--ignore-eof", "--ignore-term")

SERVERS = {
    "polite": (),
    "ignores the end of stdin": ("--ignore-eof",),
    "ignores SIGTERM too": STUBBORN,
    "leaves a grandchild": ("--grandchild", "group"),
    "leaves a grandchild in its own session": ("--grandchild", "detached"),
    "stubborn and leaves a grandchild in its own session": (*STUBBORN, "--grandchild", "detached"),
}


def options_of(kind: str, pids: Path) -> tuple[str, ...]:
    return (*SERVERS[kind], "--pids", str(pids))


def started(pids: Path) -> set[int]:
    """The server and its child, while they live."""
    return living(map(int, pids.read_text().split()))


async def test_closing_ends_the_whole_tree_within_3_s(tmp_path: Path) -> None:
    async def left_by(number: int, kind: str) -> set[int]:
        pids = tmp_path / str(number)
        async with connected(*options_of(kind, pids)) as client:
            tree = started(pids)
            assert client.pid in tree
            await asyncio.wait_for(client.close(), 3)
        return living(tree)

    with no_process_left():
        left = await asyncio.gather(*(left_by(number, kind) for number, kind in enumerate(SERVERS)))
    assert dict(zip(SERVERS, left, strict=True)) == {kind: set() for kind in SERVERS}


@pytest.mark.parametrize("detached", [False, True])
async def test_a_server_that_dies_takes_what_it_started_along(tmp_path: Path, detached: bool) -> None:
    pids = tmp_path / "pids"
    async with connected("--grandchild", "detached" if detached else "group", "--pids", str(pids)) as client:
        tree = started(pids)
        with pytest.raises(ToolError):
            await client.call_tool("die", {})
        assert await asyncio.to_thread(still_there_after, tree, BOUND_SECS) == set()


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_server_that_does_not_come_up_leaves_nothing(tmp_path: Path, is_cancelled: bool) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    options = ("--never-initialize", "--grandchild", "detached", "--pids", str(pids))
    client = new_client(*options, startTimeoutSecs=30 if is_cancelled else 0.5)
    with no_process_left():
        connecting = asyncio.create_task(client.connect())
        tree = set(map(int, (await asyncio.to_thread(pids.read_text)).split()))
        assert len(tree) == 2
        if is_cancelled:
            connecting.cancel()
        with pytest.raises(asyncio.CancelledError if is_cancelled else ToolError):
            await connecting
        assert living(tree) == set()


async def test_giving_up_on_closing_does_not_keep_the_server_alive(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with connected(*STUBBORN, "--pids", str(pids)) as client:
        tree = started(pids)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.close(), 0.1)
        assert await asyncio.to_thread(still_there_after, tree, BOUND_SECS) == set()


async def test_killing_ends_the_tree_at_once(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with connected(*STUBBORN, "--grandchild", "detached", "--pids", str(pids)) as client:
        tree = started(pids)
        client.kill()
        assert await asyncio.to_thread(still_there_after, tree, 2.0) == set()


async def test_when_we_are_killed_the_tree_ends_within_5_s(tmp_path: Path) -> None:
    async def left_by(kind: str, number: signal.Signals) -> set[int]:
        pids = tmp_path / f"{kind} {number}"
        driver = await run_driver(*options_of(kind, pids))
        tree = started(pids) | descendants(driver.pid)
        assert len(tree) >= 2, "at least the server and the watchdog"
        driver.send_signal(number)
        await driver.wait()
        return await asyncio.to_thread(still_there_after, tree, BOUND_SECS)

    cases = [(kind, signal.SIGKILL) for kind in SERVERS] + [("leaves a grandchild", signal.SIGTERM)]
    left = await asyncio.gather(*(left_by(kind, number) for kind, number in cases))
    assert dict(zip(cases, left, strict=True)) == {case: set() for case in cases}


async def test_what_has_nothing_to_do_with_us_is_left_alone() -> None:
    bystander = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        async with connected("--grandchild", "detached"):
            pass
        assert living({bystander.pid}) == {bystander.pid}
    finally:
        await bystander.communicate(b"\n")


async def run_driver(*options: str) -> Any:
    """A process that has connected to a server with `options`."""
    driver = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.harness.mcp_driver",
        *options,
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    assert driver.stdout is not None
    try:
        assert await asyncio.wait_for(driver.stdout.readline(), 30) == b"ready\n"  # Many start at once.
    except BaseException:
        driver.kill()
        await driver.wait()
        raise
    return driver
