"""Kills sidecars at random moments of runs, and looks whether the next one finds all that a host had seen.

A run streams text, calls tools that somebody has to allow, and compacts the history now and then. What counts as
seen is every frame that the dead process got out.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field
from sidecar_client import ClientError, Sidecar

from tests.harness.data_home import new_data_home
from tests.harness.host import clean_environment
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, says, stalls

Json = dict[str, Any]

MOST_EVENTS = 16
"""The kill comes after one of so many events; a run that has fewer is killed when it is over."""

AFTERWARDS_SECS = 0.05
"""And so long after it, at most."""

WORDS = "the sidecar is killed while it works and nothing that was seen may be lost "


@define
class Tally:
    """What the rounds have met: `kills` by what went on when they came, and what was wrong."""

    rounds: int = 0
    events_seen: int = 0
    kills: dict[str, int] = field(factory=dict)
    losses: list[str] = field(factory=list)


@define
class Seen:
    """What the host has seen of a run."""

    run_id: str
    session_id: str
    prompt: str
    events: list[Json] = field(factory=list)

    @property
    def moment(self) -> str:
        """What went on last."""
        return self.events[-1]["event"]["type"] if self.events else "nothing yet"


class KillTest:
    """Rounds of: look at what the last process left, go on with it, kill it."""

    def __init__(self, folder: Path, model: ScriptedModel, chance: random.Random) -> None:
        self.tally = Tally()
        self._folder = folder
        self._chance = chance
        self._environment = {**clean_environment(), "XDG_DATA_HOME": new_data_home()}
        self._options = {
            "model": "test/m",
            "providers": {"test": {"baseUrl": model.base_url, "contextTokens": 2500}},
            "cycle": {"summary": "rule", "maxTurns": 6},
            "permissions": {"ask": ["write"], "allowed": ["read", "filesystem"]},
        }
        self._model = model
        self._before: Seen | None = None
        self._kill: Callable[[], None] = lambda: None

    async def round(self) -> None:
        """One process, from its start to its violent end."""
        self.tally.rounds += 1
        async with Sidecar(
            self._options, cwd=self._folder, env=self._environment, on_approval=self._approve
        ) as sidecar:
            if self._before is not None:
                await self._look(sidecar, self._before)
            self._before = await self._run_and_kill(sidecar)
        kind = self._before.moment
        self.tally.kills[kind] = self.tally.kills.get(kind, 0) + 1
        self.tally.events_seen += len(self._before.events)

    async def last_look(self) -> None:
        """At what the last round has left."""
        async with Sidecar(self._options, cwd=self._folder, env=self._environment) as sidecar:
            assert self._before is not None
            await self._look(sidecar, self._before)

    async def _approve(self, question: Json) -> Any:
        if self._chance.random() < 0.5:
            self._kill_soon()
            await asyncio.Event().wait()  # The kill comes while the question is open.
        return self._chance.choice(["allowOnce", "allowOnce", "deny"])

    async def _run_and_kill(self, sidecar: Sidecar) -> Seen:
        prompt = f"go {self.tally.rounds}"
        goes_on = self._before is not None and self._chance.random() < 0.8
        if goes_on and self._before is not None:
            session_id = self._before.session_id
        else:
            session_id = (await sidecar.request("session/create"))["sessionId"]
        self._kill = sidecar.kill
        run = sidecar.submit(prompt, session_id=session_id)
        seen = Seen(run_id=run.run_id, session_id=session_id, prompt=prompt)
        last = self._chance.randint(0, MOST_EVENTS)
        if last == 0:
            self._kill_soon()
        try:
            async for notification in run.notifications():
                seen.events.append(notification)
                if len(seen.events) == last:
                    self._kill_soon()
        except ClientError:
            pass  # It was killed.
        sidecar.kill()
        return seen

    def _kill_soon(self) -> None:
        asyncio.get_running_loop().call_later(self._chance.uniform(0, AFTERWARDS_SECS), self._kill)

    async def _look(self, sidecar: Sidecar, seen: Seen) -> None:
        kept = (await sidecar.request("session/events", {"sessionId": seen.session_id, "runId": seen.run_id}))[
            "events"
        ]
        got = await sidecar.request("session/get", {"sessionId": seen.session_id})
        self.tally.losses += [
            f"round {self.tally.rounds}: {fault}" for fault in _faults(seen, kept, got["messages"])
        ]
        async for event in sidecar.submit("and now?", session_id=seen.session_id, tools={"names": []}):
            last = event
        if last.get("stopReason") != "stop" or self._model.faults:
            self.tally.losses.append(f"round {self.tally.rounds}: not accepted: {last} {self._model.faults}")
            self._model.faults.clear()


def _faults(seen: Seen, kept: Sequence[Json], messages: Sequence[Json]) -> list[str]:
    """What is missing or does not end."""
    if not kept and not seen.events:
        return []  # The submit never arrived.
    faults = []
    if list(kept[: len(seen.events)]) != seen.events:
        faults.append(f"events differ: saw {seen.events}, found {kept}")
    events = [params["event"] for params in kept]
    if [params["seq"] for params in kept] != list(range(len(kept))):
        faults.append("the numbers have a gap")
    if not events or events[-1]["type"] != "runCompleted":
        faults.append("the run has no end")
    asked = {event["requestId"] for event in events if event["type"] == "approvalRequested"}
    resolved = {event["requestId"] for event in events if event["type"] == "approvalResolved"}
    if asked != resolved:
        faults.append("a question hangs")
    return faults + _lost_messages(seen, messages)


def _lost_messages(seen: Seen, messages: Sequence[Json]) -> list[str]:
    """Messages that the host's events tell of and that the history has not."""
    results = {message["callId"]: message["content"] for message in messages if message["role"] == "tool"}
    faults = [
        f"the result of {event['callId']} is lost"
        for event in (params["event"] for params in seen.events)
        if event["type"] == "toolExecutionCompleted" and results.get(event["callId"]) != event["output"]
    ]
    if seen.events and not any(
        message["role"] == "user" and message["content"] == seen.prompt for message in messages
    ):
        faults.append("the prompt is lost")
    said = "".join(
        params["event"]["text"] for params in seen.events if params["event"]["type"] == "assistantTextDelta"
    )
    start = max((i for i, m in enumerate(messages) if m["content"] == seen.prompt), default=0)
    answered = "".join(m["content"] for m in messages[start:] if m["role"] == "assistant")
    if not answered.startswith(said):
        faults.append(f"text is lost: saw {said!r}, found {answered!r}")
    return faults


def answering(chance: random.Random) -> Any:
    """A model that streams, calls tools, and comes to an end."""

    def answer(request: SeenRequest) -> Reply:
        said = request.messages
        last_prompt = max(i for i, message in enumerate(said) if message["role"] == "user")
        turns = sum(message["role"] == "assistant" for message in said[last_prompt:])
        text = " ".join([WORDS] * chance.randint(1, 5))
        if turns >= 3 or not request.tool_names or chance.random() < 0.15:
            return stalls(says(text, piece_characters=9), after=chance.randint(1, 20), secs=chance.random() / 20)
        path = f"file{chance.randint(1, 3)}.txt"
        called = [("write_file", {"path": path, "content": text}), ("read_file", {"path": path})]
        return calls(*called[: chance.randint(1, 2)], text=text[:40], piece_characters=9)

    return answer
