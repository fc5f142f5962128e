"""What a host still hears of a run whose store has failed.

Source: protocol.md, "Durability" 5.
"""

import sqlite3
from pathlib import Path

import pytest

from sidecar.agent.cycle import LlmCycle
from sidecar.agent.runs import Run
from sidecar.protocol.events import AgentEvent, AssistantTextDelta, RunCompleted, ToolExecutionCompleted
from sidecar.protocol.messages import AgentEventParams
from sidecar.protocol.values import Usage
from sidecar.store.store import Store, StorePlace

TEXT = AssistantTextDelta(text="hello")
LAST = RunCompleted(stop_reason="stop", usage=Usage())
COMPLETED = ToolExecutionCompleted(
    call_id="c1", tool_name="t", output="x", is_error=False, duration_ms=1, truncated=False
)


@pytest.mark.parametrize("fails_at", [TEXT, LAST], ids=lambda event: str(event.type))
async def test_after_a_failure_calls_and_the_run_are_closed_and_the_last_event_says_why(
    tmp_path: Path, fails_at: AgentEvent
) -> None:
    file = tmp_path / "store.sqlite3"
    store = Store(StorePlace(file=file, is_chosen=True))
    store.sessions.create("ses_1", None)
    log = store.sessions.begin_run(store.sessions.hold("ses_1", "run_1"), "run_1", "test/m", [], 0)
    run = Run(run_id="run_1", session_id="ses_1", cycle=LlmCycle(), log=log)
    sent: list[AgentEvent] = []

    async def emit(event: AgentEvent) -> None:
        if run.keep(AgentEventParams(session_id="ses_1", run_id="run_1", seq=len(sent), event=event)):
            sent.append(event)

    tell = run.telling(emit)
    await tell(TEXT)
    locker = sqlite3.connect(file, isolation_level=None)
    locker.execute("BEGIN IMMEDIATE")
    for event in (TEXT, COMPLETED, LAST) if fails_at is TEXT else (LAST,):
        await tell(event)
    locker.close()
    assert sent[:-1] == ([TEXT, COMPLETED] if fails_at is TEXT else [TEXT])
    last = sent[-1]
    assert isinstance(last, RunCompleted) and last.error is not None
    assert (last.stop_reason, last.error.data["kind"]) == ("error", "io")
    assert [params.event for params in store.sessions.events("ses_1")] == [TEXT]
    store.close()
