"""Plays conversations with a process and gathers what they show. Knows neither half of the kit."""

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from sidecar.conformance.bystanders import HostInPlace, is_gone_within
from sidecar.conformance.frames import as_body, framed
from sidecar.conformance.matching import (
    ABSENT,
    Names,
    NotCapturedError,
    addressed,
    fill,
    matches,
    mismatch,
    shown,
    wire_id,
)
from sidecar.conformance.rules import Evidence, Failure
from sidecar.conformance.subject import Arrived, Subject
from sidecar.conformance.transcripts import (
    Check,
    Conversation,
    Count,
    Exit,
    Expect,
    Gone,
    Joined,
    Order,
    Reading,
    Send,
    SendBytes,
    Step,
    Stop,
    Wait,
    rule_of,
)
from sidecar.conformance.watches import Watches
from sidecar.protocol.values import JsonObject

MOST_UNREAD_SHOWN = 4

OVER: JsonObject = {"code": -32800, "message": "the conversation is over", "data": {"kind": "requestCancelled"}}
"""The answer to what was asked and is not answered by the conversation."""


class StuckError(Exception):
    """The conversation cannot go on: nothing came in time, or the process ended."""


@define
class Player:
    """Plays conversations with one process, one after the other.

    `given` are the names that are known from the start, `bound_secs` limits each wait that names no limit.
    `host` is there where a conversation has the host's process die.
    """

    subject: Subject
    evidence: Evidence
    watches: Watches
    given: Mapping[str, Any]
    bound_secs: float
    host: HostInPlace | None = None
    trouble: str | None = None
    """Why the last conversation was not played to its end."""
    _conversation: str = ""
    _names: Names = field(factory=dict)
    _seen: int = 0
    _step_began_secs: float = 0.0
    _was_stopped: bool = False
    _may_end: bool = False
    _questions: dict[str, Any] = field(factory=dict)

    async def play(self, conversation: Conversation) -> bool:
        """Whether the process can be used for another conversation."""
        self._begin(conversation)
        for number, step in enumerate(conversation.steps, 1):
            self.trouble = await self._played(number, step)
            if self.trouble is not None:
                self._give_up(conversation, number, self.trouble)
                return False
        await self._settle()
        return not self._was_stopped and self.subject.inbox.ended is None

    def _begin(self, conversation: Conversation) -> None:
        self._look()
        self.subject.inbox.clear()
        self._seen = 0
        self._conversation = conversation.name
        self._may_end = any(isinstance(step, Exit) for step in conversation.steps)
        self._names = dict(self.given)

    async def _played(self, number: int, step: Step) -> str | None:
        """Plays one step; why the conversation cannot go on, where it cannot."""
        rule, stuck = rule_of(step), False
        began = time.monotonic()
        try:
            why = await self._do(step)
        except NotCapturedError as missing:
            return f"step {number} needs {missing}, which was never captured"
        except StuckError as error:
            why, stuck = str(error), True
        self._step_began_secs = began
        self._look()
        if stuck and self._has_gone():
            return why
        place = f"{self._conversation}, step {number}"
        if rule is None:
            return None if why is None else f"{place}: {why}"
        if why is None:
            self.evidence.passed(rule)
        else:
            self.evidence.failed(rule, Failure(conversation=self._conversation, step=number, why=why))
        return f"{place}: {why}" if stuck else None

    def _give_up(self, conversation: Conversation, number: int, trouble: str) -> None:
        rest = {rule for step in conversation.steps[number - 1 :] if (rule := rule_of(step))}
        self.evidence.unreached(rest, trouble)
        self._tell_watches()

    async def _settle(self) -> None:
        """Waits for the answers that are due, and answers what was asked beside the conversation."""
        deadline = time.monotonic() + self.bound_secs
        inbox = self.subject.inbox
        if not self._was_stopped:
            while self.watches.open_requests and inbox.ended is None and await inbox.wait(deadline):
                self._look()
            if inbox.ended is None:
                self._complain(self.watches.settled())
                for question in list(self._questions.values()):
                    await self._send_frame({"id": question, "error": OVER})
        self._tell_watches()

    def _tell_watches(self) -> None:
        self._look()
        if self._has_gone():
            self._complain(self.watches.ended(self.subject.inbox.ended or ""))
            self._was_stopped = True
        for rule in self.watches.proven():
            self.evidence.passed(rule)

    def _has_gone(self) -> bool:
        """Whether it ended of its own: that breaks one rule, and keeps others from being reached."""
        return self.subject.inbox.ended is not None and not self._was_stopped and not self._may_end

    def _look(self) -> None:
        """Shows the watches what they have not seen."""
        for entry in self.subject.inbox.entries[self._seen :]:
            self._seen += 1
            if entry.frame is None:
                self._complain(self.watches.odd(entry.fault or ""))
            else:
                if "method" in entry.frame and "id" in entry.frame:
                    self._questions[shown(entry.frame["id"])] = entry.frame["id"]
                self._complain(self.watches.received(entry.frame))

    def _complain(self, complaints: list[tuple[str, str]]) -> None:
        for rule, why in complaints:
            self.evidence.failed(rule, Failure(conversation=self._conversation, why=why))

    # Steps ---------------------------------------------------------------------------------------------------

    async def _do(self, step: Step) -> str | None:
        """What of a step did not come out as it should. Raises StuckError and NotCapturedError."""
        match step:
            case Send():
                await self._send(step)
            case SendBytes():
                await self._send_bytes(step)
            case Expect():
                return await self._expect(step)
            case Count():
                count = len(self._matching(step.frame))
                return _led(f"frames like {shown(step.frame)}", mismatch(step.times, count, self._names))
            case Order():
                return self._in_order(step)
            case Joined():
                text = "".join(_at(frame, step.path) for frame in self._matching(step.frame))
                return mismatch(step.matches, text, self._names)
            case Check():
                return mismatch(step.matches, fill(step.value, self._names), self._names)
            case Stop():
                await self._stop(step)
            case Exit():
                return await self._exit(step)
            case Gone():
                return await self._gone(step)
            case Wait():
                await asyncio.sleep(step.for_ms / 1000)
            case Reading():
                self.subject.read_on(step.on)
        return None

    async def _send(self, step: Send) -> None:
        frame = fill(step.frame, self._names)
        is_literal = isinstance(step.frame, dict) and "$literal" in step.frame
        if not isinstance(frame, dict) or is_literal:
            await self._write(framed(as_body(frame)))
            return
        if "method" in frame and isinstance(frame.get("id"), str):
            label = frame["id"]
            frame["id"] = self._names[f"id:{label}"] = f"{self._conversation}/{label}"
        elif "method" in frame and "id" in frame:
            self._names[f"id:{frame['id']}"] = frame["id"]
        if frame.get("method") == "exit":
            self._was_stopped = True
        await self._send_frame(frame)

    async def _send_frame(self, frame: JsonObject) -> None:
        if "method" not in frame:
            self._questions.pop(shown(frame.get("id")), None)
        self._look()
        self._complain(self.watches.sent(frame))
        await self._write(framed(as_body({"jsonrpc": "2.0", **frame})))

    async def _send_bytes(self, step: SendBytes) -> None:
        text, body = fill(step.text, self._names), fill(step.body, self._names)
        if isinstance(body, dict):
            self._complain(self.watches.sent(body))
            data = as_body(body)
        else:
            data = str(body or "").encode(step.encoding)
        head = str(text).replace("{length}", str(len(data))).encode(step.encoding)
        await self._write((head + data) * step.times)

    async def _write(self, data: bytes) -> None:
        if not await self.subject.send(data, self.bound_secs):
            raise StuckError(f"it does not read what it is sent within {self.bound_secs:g} s")

    async def _expect(self, step: Expect) -> str | None:
        limit_secs = self.bound_secs if step.within_ms is None else step.within_ms / 1000
        entry = await self._next(step, limit_secs)
        assert entry.frame is not None
        entry.is_read = True
        pattern = dict(step.frame)
        if "method" not in pattern:
            pattern["id"] = wire_id(pattern.get("id"), self._names)
        why = mismatch(pattern, entry.frame, self._names)
        if step.reply is not None:
            reply = fill(step.reply, self._names)
            await self._send_frame({"id": entry.frame.get("id"), **reply})
        waited_ms = (entry.at_secs - self._step_began_secs) * 1000
        if why is None and step.after_ms is not None and waited_ms < step.after_ms:
            return f"it came after {waited_ms:.0f} ms, and not after {step.after_ms} ms"
        return why

    async def _next(self, step: Expect, limit_secs: float) -> Arrived:
        """The frame that is meant, once it is there."""
        inbox, deadline = self.subject.inbox, time.monotonic() + limit_secs
        looked_at = 0
        while True:
            for entry in inbox.entries[looked_at:]:
                looked_at += 1
                if not entry.is_read and entry.frame is not None and self._is_meant(step, entry.frame):
                    return entry
            if inbox.ended is not None and looked_at == len(inbox.entries):
                raise StuckError(f"{_sought(step.frame)} did not come: {inbox.ended}")
            if not await inbox.wait(deadline) and looked_at == len(inbox.entries):
                raise StuckError(f"{_sought(step.frame)} did not come within {limit_secs:g} s{self._unread()}")

    def _is_meant(self, step: Expect, frame: JsonObject) -> bool:
        return addressed(step.frame, frame, self._names) and (
            step.where is None or matches(step.where, frame, self._names)
        )

    def _unread(self) -> str:
        unread = [entry.frame for entry in self.subject.inbox.entries if entry.frame and not entry.is_read]
        return f"; unread: {'; '.join(map(shown, unread[-MOST_UNREAD_SHOWN:]))}" if unread else ""

    def _matching(self, pattern: JsonObject) -> list[JsonObject]:
        frames = [entry.frame for entry in self.subject.inbox.entries if entry.frame is not None]
        return [frame for frame in frames if self._is_like(pattern, frame)]

    def _is_like(self, pattern: JsonObject, frame: JsonObject) -> bool:
        if "method" not in pattern and "id" in pattern:
            pattern = {**pattern, "id": wire_id(pattern["id"], self._names)}
            if pattern["id"] is ABSENT:
                return False
        return matches(pattern, frame, self._names)

    def _in_order(self, step: Order) -> str | None:
        frames = iter([entry.frame for entry in self.subject.inbox.entries if entry.frame is not None])
        for number, pattern in enumerate(step.frames, 1):
            if not any(self._is_like(pattern, frame) for frame in frames):
                return f"frame {number} of the order is not there, or not after the one before: {shown(pattern)}"
        return None

    async def _stop(self, step: Stop) -> None:
        self._was_stopped = True
        match step.how:
            case "closeInput":
                self.subject.close_input()
            case "terminate":
                self.subject.terminate()
            case "kill":
                self.subject.kill()
            case "hostDies" if self.host is not None:
                await self.host.die()
            case how:
                raise NotImplementedError(f"no way to stop: {how}")

    async def _gone(self, step: Gone) -> str | None:
        pids = fill(step.pids, self._names)
        gone = await asyncio.gather(*(is_gone_within(pid, step.within_ms / 1000) for pid in pids))
        left = [pid for pid, is_gone in zip(pids, gone, strict=True) if not is_gone]
        return f"of the processes {shown(pids)} there are still {shown(left)}" if left else None

    async def _exit(self, step: Exit) -> str | None:
        self._was_stopped = True
        status = await self.subject.exit_status(step.within_ms / 1000)
        if status is None:
            raise StuckError(f"it did not end within {step.within_ms} ms")
        return _led("its status", mismatch(step.status, status, self._names))


def runs_here(conversation: Conversation) -> bool:
    """Whether this system can play it: there is no SIGTERM on Windows."""
    return os.name != "nt" or not any(step == Stop(how="terminate") for step in conversation.steps)


def _sought(pattern: JsonObject) -> str:
    if "method" not in pattern:
        return f"the answer to {shown(pattern.get('id'))}"
    event = pattern.get("params", {}).get("event", {}) if pattern["method"] == "agent/event" else {}
    kind = event.get("type") if isinstance(event, dict) else None
    return f"the event {kind}" if kind else str(pattern["method"])


def _led(what: str, why: str | None) -> str | None:
    return None if why is None else f"{what}: {why.removeprefix('it: ')}"


def _at(frame: JsonObject, path: str) -> str:
    value: Any = frame
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
