"""Two sidecars that work with one store at once, each with many runs."""

import asyncio
from pathlib import Path
from typing import Any

from attrs import define, field
from sidecar_client import ClientError, Sidecar

from tests.harness.data_home import new_data_home
from tests.harness.host import clean_environment
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, says

Json = dict[str, Any]


@define
class Shared:
    """What came of it: `sessions` as a third sidecar finds them."""

    sessions: int = 0
    errors: list[str] = field(factory=list)
    losses: list[str] = field(factory=list)


def _answer(request: SeenRequest) -> Reply:
    if request.messages[-1]["role"] == "tool":
        return says("it is written", piece_characters=3)
    return calls(("list_directory", {"path": "."}), text="let me look")


async def share_a_store(folder: Path, *, runs_each: int, at_once: int) -> Shared:
    """Runs that many in each of two sidecars, so many at once, and counts what a third one finds."""
    environment = {**clean_environment(), "XDG_DATA_HOME": new_data_home()}
    shared = Shared()
    events: dict[str, list[Json]] = {}
    async with ScriptedModel(answer=_answer) as model:
        options = {
            "model": "test/m",
            "providers": {"test": {"baseUrl": model.base_url}},
            "permissions": {"allowed": ["read", "filesystem"], "ask": []},
        }

        async def drive(sidecar: Sidecar, gate: asyncio.Semaphore) -> None:
            async with gate:
                run = sidecar.submit("go")
                try:
                    seen = [notification async for notification in run.notifications()]
                    await run.result()
                    events[str(run.session_id)] = seen
                except ClientError as error:
                    shared.errors.append(str(error))

        async def work() -> None:
            async with Sidecar(options, cwd=folder, env=environment) as sidecar:
                gate = asyncio.Semaphore(at_once)
                await asyncio.gather(*(drive(sidecar, gate) for _ in range(runs_each)))

        await asyncio.gather(work(), work())
        async with Sidecar(options, cwd=folder, env=environment) as sidecar:
            listed = (await sidecar.request("session/list", {"limit": 1000}))["sessions"]
            shared.sessions = len(listed)
            for session_id, seen in events.items():
                shared.losses += await _lost(sidecar, session_id, seen)
    return shared


async def _lost(sidecar: Sidecar, session_id: str, seen: list[Json]) -> list[str]:
    kept = (await sidecar.request("session/events", {"sessionId": session_id}))["events"]
    got = await sidecar.request("session/get", {"sessionId": session_id})
    roles = [message["role"] for message in got["messages"]]
    faults = [] if kept == seen else [f"{session_id}: {len(seen)} events seen, {len(kept)} kept"]
    return faults if roles == ["user", "assistant", "tool", "assistant"] else [*faults, f"{session_id}: {roles}"]
