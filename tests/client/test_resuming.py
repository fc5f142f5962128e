"""Runs whose events were missed, through the client library.

Source: protocol.md (`session/events`, "Durability") and clients/python/README.md.
"""

import sys
from pathlib import Path
from typing import Any

import pytest
from sidecar_client import ClientError, Position, RequestFailed, RunCancelled, Sidecar, SidecarExited

from tests.harness.frames import listened
from tests.harness.host import clean_environment
from tests.harness.scripted_host import sidecar
from tests.harness.scripted_sidecar import received

END = {"type": "runCompleted", "stopReason": "stop", "usage": {"totalTokens": 3}}
STARTED = Position(session_id="s-1", run_id="r-1")


def numbered(seq: int, event: dict[str, Any]) -> dict[str, Any]:
    return {"sessionId": "s-1", "runId": "r-1", "seq": seq, "event": event}


def delta(seq: int, text: str) -> dict[str, Any]:
    return numbered(seq, {"type": "assistantTextDelta", "text": text})


def sends(params: dict[str, Any]) -> dict[str, Any]:
    return {"notify": {"method": "agent/event", "params": params}}


def gives(*events: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"events": events}}


def runs(*statuses: str) -> dict[str, Any]:
    return {
        "result": {
            "sessionId": "s-1",
            "messages": [],
            "runs": [{"runId": "r-1", "status": status} for status in statuses],
        }
    }


async def test_a_run_is_resumed_with_what_was_missed_up_to_its_last_event(tmp_path: Path) -> None:
    script = {"session/events": [gives(delta(1, "one "), delta(2, "two "), numbered(3, END))]}
    async with sidecar(tmp_path, script) as host:
        run = host.resume(Position(session_id="s-1", run_id="r-1", after_seq=1))
        assert [notification["seq"] async for notification in run.notifications()] == [2, 3]
        ended = {"sessionId": "s-1", "runId": "r-1", "stopReason": "stop", "usage": {"totalTokens": 3}}
        assert await run.result() == ended
    (asked,) = [message for message in received(tmp_path) if message["method"] == "session/events"]
    assert asked["params"] == {"sessionId": "s-1", "runId": "r-1", "afterSeq": 0}


async def test_events_that_come_meanwhile_follow_those_that_were_missed(tmp_path: Path) -> None:
    script = {
        "session/events": [
            sends(delta(2, "two ")),
            sends(delta(3, "three")),
            gives(delta(1, "one "), delta(2, "two ")),
        ],
        "session/get": [runs("running"), sends(numbered(4, END))],
    }
    async with sidecar(tmp_path, script) as host:
        run = host.resume(STARTED)
        with pytest.raises(ValueError, match="running already"):
            host.resume(STARTED)
        assert [notification["seq"] async for notification in run.notifications()] == [1, 2, 3, 4]
        assert await run.text() == "one two three"


@pytest.mark.parametrize(
    ("script", "expected", "why"),
    [
        ({"session/events": [gives()], "session/get": [runs()]}, ClientError, "does not go on"),
        ({"session/events": [gives()], "session/get": [runs("running"), {"exit": 4}]}, SidecarExited, "status 4"),
        (
            {"session/events": [gives(numbered(1, {**END, "stopReason": "cancelled"}))]},
            RunCancelled,
            "was cancelled",
        ),
    ],
)
async def test_what_cannot_be_resumed_to_a_good_end_says_why(
    tmp_path: Path, script: dict[str, Any], expected: type[ClientError], why: str
) -> None:
    async with sidecar(tmp_path, script) as host:
        with pytest.raises(expected, match=why):
            await host.resume(STARTED).result()


async def test_after_a_crash_the_next_sidecar_gives_what_was_missed(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"text": "Let me look.", "calls": [{"tool": "wait"}]}]')
    options = {
        "model": "replay/x",
        "providers": {"replay": {"file": str(script)}},
        "store": {"path": str(tmp_path / "store.sqlite3")},
    }

    def wait() -> None:
        first.kill()

    command, env = listened(tmp_path, (sys.executable, "-m", "sidecar")), clean_environment()
    async with Sidecar(options, command=command, env=env, cwd=tmp_path, tools=[wait]) as first:
        run = first.submit("hi")
        seen = []
        with pytest.raises(SidecarExited):
            async for notification in run.notifications():
                seen.append(notification["seq"])
    async with Sidecar(options, command=command, env=env, cwd=tmp_path) as second:
        resumed = second.resume(run)
        missed = [notification async for notification in resumed.notifications()]
        assert [*seen, *(each["seq"] for each in missed)] == list(range(len(seen) + len(missed)))
        with pytest.raises(RequestFailed) as failure:
            await resumed.result()
        assert failure.value.kind == missed[-1]["event"]["error"]["data"]["kind"] == "io"
