"""Judges a sidecar: the kit is its host, its person, its tools and its model.

Conversations with the same `start` share a process; several processes are talked to side by side. Nothing of the
user's is touched: each process works in a folder of its own, with its own homes for configuration and data.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import define, field

from sidecar.conformance.bystanders import HostInPlace
from sidecar.conformance.playing import Player, runs_here
from sidecar.conformance.question_watches import QUESTION_WATCHES
from sidecar.conformance.report import Report
from sidecar.conformance.rules import Evidence
from sidecar.conformance.run_watches import RUN_WATCHES
from sidecar.conformance.shapes import protocol_version
from sidecar.conformance.subject import GRACE_SECS, CannotStartError, Subject
from sidecar.conformance.transcripts import Conversation, Expect, Kit, Send, Stop
from sidecar.conformance.watches import WIRE_WATCHES, Watch, Watches
from sidecar.protocol.values import JsonObject

SIDE_BY_SIDE = 4
"""Processes at a time. Own choice: more than cores, as those with deadlines mostly wait."""

START_SECS = 30.0
"""For a process to answer `initialize`. Own choice: some start slowly, and nothing is timed before that."""

MOST_STARTS = 3
"""Processes of one kind that may fail to shake hands before their conversations are given up."""

MOST_TROUBLES = 10
"""Conversations in a row that may come to nothing before those with the same start are given up."""

BROKEN_GRACE_SECS = 1.0
"""For a process to go that has not done what it should. Own choice: its end is nothing that is judged."""

WATCHES: Mapping[str, type[Watch]] = {
    watch.name: watch for watch in (*WIRE_WATCHES, *QUESTION_WATCHES, *RUN_WATCHES)
}
"""By the name that a rule has under `watch`."""

MCP_SERVER = Path(__file__).with_name("mcp_server.py")

HANDSHAKE = "handshake"
"""The conversation that comes first and alone: what does not shake hands is not tried further."""


async def judge_server(
    command: Sequence[str], kit: Kit, *, bound_secs: float = 10.0, limit_secs: float = 600.0
) -> Report:
    """What the rules make of the sidecar that `command` starts. Raises CannotStartError.

    `bound_secs` limits each wait for a frame that names no limit of its own, `limit_secs` the whole.
    """
    began = time.monotonic()
    judge = _Judge(_from_here(command), kit, bound_secs)
    try:
        async with asyncio.timeout(limit_secs):
            await judge.judge()
    except* CannotStartError as errors:
        raise errors.exceptions[0] from None
    except* TimeoutError:
        judge.notes.append(f"it took longer than {limit_secs:g} s, and was stopped")
    return Report(
        half="server",
        subject=" ".join(command),
        protocol_version=protocol_version(),
        verdicts=judge.evidence.verdicts(),
        elapsed_secs=time.monotonic() - began,
        notes=tuple(judge.notes),
    )


def _from_here(command: Sequence[str]) -> tuple[str, ...]:
    """The command as it can be run in another folder."""
    program, *words = command
    return (str(Path(program).absolute()) if Path(program).parent != Path() else program, *words)


@define
class _Judge:
    command: tuple[str, ...]
    kit: Kit
    bound_secs: float
    evidence: Evidence = field(init=False)
    notes: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.evidence = Evidence(self.kit.rules)

    async def judge(self) -> None:
        first = [each for each in self.kit.conversations if each.name == HANDSHAKE]
        others = [each for each in self.kit.conversations if each.name != HANDSHAKE and runs_here(each)]
        for conversation in self.kit.conversations:
            if not runs_here(conversation):
                self.evidence.skipped(conversation.rules, "this system has no SIGTERM")
        if first and not await self._group(first):
            self.notes.append("it does not shake hands, so nothing else was tried")
            for conversation in others:
                self.evidence.unreached(conversation.rules, "it does not shake hands")
            return
        room = asyncio.Semaphore(SIDE_BY_SIDE)
        async with asyncio.TaskGroup() as tasks:
            for group in _groups(others):
                tasks.create_task(self._when_there_is_room(room, group))

    async def _when_there_is_room(self, room: asyncio.Semaphore, group: list[Conversation]) -> None:
        async with room:
            await self._group(group)

    async def _group(self, conversations: list[Conversation]) -> bool:
        """Plays conversations with the same start; whether the last of them could be played to its end."""
        waiting, failed_starts, troubles = deque(conversations), 0, 0
        while waiting and failed_starts < MOST_STARTS and troubles < MOST_TROUBLES:
            async with _Place(self, needs_host=_has_the_host_die(waiting[0])) as place:
                if not await place.shake_hands(waiting[0]):
                    failed_starts += 1
                    continue
                is_usable = True
                while waiting and is_usable:
                    is_usable = await place.player.play(waiting.popleft())
                    troubles = troubles + 1 if place.player.trouble else 0
        for conversation in waiting:
            why = (
                "its processes do not shake hands"
                if failed_starts
                else "the conversations before it came to nothing"
            )
            self.evidence.unreached(conversation.rules, why)
        return not waiting and not troubles


class _Place:
    """One process in folders of its own, for the time of a block."""

    def __init__(self, judge: _Judge, *, needs_host: bool) -> None:
        self._judge = judge
        self._needs_host = needs_host
        self._host: HostInPlace | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)

    async def __aenter__(self) -> "_Place":
        try:
            folder, workspace = _furnished(self._folder.name)
            env = {name: str(folder / name.lower()) for name in _HOMES}
            self._host = await HostInPlace.start() if self._needs_host else None
            self._subject = await Subject.start(self._judge.command, cwd=workspace, env=env)
        except BaseException:
            await self._tidy()
            raise
        by_rule = {rule.id: WATCHES[rule.watch]() for rule in self._judge.kit.rules if rule.watch}
        self.player = Player(
            subject=self._subject,
            evidence=self._judge.evidence,
            watches=Watches(by_rule),
            given=_given(folder, workspace, self._host),
            bound_secs=self._judge.bound_secs,
            host=self._host,
        )
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        is_broken = self.player.trouble is not None or error is not None
        try:
            await self._subject.end(BROKEN_GRACE_SECS if is_broken else GRACE_SECS)
        finally:
            await self._tidy()

    async def _tidy(self) -> None:
        self._folder.cleanup()
        if self._host is not None:
            await self._host.die()

    async def shake_hands(self, conversation: Conversation) -> bool:
        """Initializes it as the conversation's `start` says, if that says so at all."""
        params = conversation.start.get("initialize")
        if params is None:
            return True
        greeting = Conversation(
            name="start",
            about="",
            start={},
            steps=(
                Send(frame={"id": "initialize", "method": "initialize", "params": params}),
                Expect(frame={"id": "initialize", "result": {}}, within_ms=int(START_SECS * 1000)),
                Send(frame={"method": "initialized", "params": {}}),
            ),
        )
        return await self.player.play(greeting)


_HOMES = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
"""Where a sidecar keeps what is the user's; there is nothing yet in those that it is given."""


def _furnished(name: str) -> tuple[Path, Path]:
    """The folder and the workspace in it."""
    folder = Path(name).resolve()
    workspace = folder / "workspace"
    workspace.mkdir()
    return folder, workspace


def _has_the_host_die(conversation: Conversation) -> bool:
    return any(isinstance(step, Stop) and step.how == "hostDies" for step in conversation.steps)


def _given(folder: Path, workspace: Path, host: HostInPlace | None) -> JsonObject:
    """The names that transcripts may use from the start."""
    return {
        "workspace": str(workspace),
        "workspaceUri": workspace.as_uri(),
        "folder": str(folder),
        "pid": os.getpid(),
        "nowhere": str(folder / "nowhere"),
        "python": sys.executable,
        "mcpServer": str(MCP_SERVER),
        **({"hostPid": host.pid} if host else {}),
    }


def _groups(conversations: list[Conversation]) -> Iterator[list[Conversation]]:
    """Those that share a process, the largest groups first, as they take longest."""
    groups: dict[str, list[Conversation]] = {}
    for conversation in conversations:
        key = conversation.name if conversation.alone else json.dumps(conversation.start, sort_keys=True)
        groups.setdefault(key, []).append(conversation)
    yield from sorted(groups.values(), key=len, reverse=True)
