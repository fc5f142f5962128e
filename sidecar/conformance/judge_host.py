"""Judges a host: starts it, plays its sidecar through each conversation, and looks at what it sends and prints.

The contract of the program under test is in `protocol.md`, chapter Conformance.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from attrs import frozen

from sidecar.conformance.host_process import HostProcess
from sidecar.conformance.host_steps import (
    Answered,
    Cancelled,
    Die,
    Finish,
    HostStep,
    Kill,
    Lost,
    Printed,
    Silence,
    Stderr,
    Submit,
    Tell,
    Wire,
)
from sidecar.conformance.lives import News
from sidecar.conformance.matching import (
    ABSENT,
    Mismatch,
    NotCapturedError,
    addressed,
    fill,
    matches,
    mismatch,
    shown,
)
from sidecar.conformance.played_sidecar import PlayedSidecar
from sidecar.conformance.report import Report
from sidecar.conformance.rules import Evidence, Failure
from sidecar.conformance.shapes import protocol_version
from sidecar.conformance.transcripts import (
    Check,
    Conversation,
    Count,
    Exit,
    Expect,
    Kit,
    Order,
    Reading,
    Send,
    Step,
    rule_of,
)
from sidecar.protocol.values import JsonObject

START_BOUNDS = 3
"""For the first that comes of a host, so many times the usual bound: an editor may have to start. Own choice."""

SIDE_BY_SIDE = 4
"""Conversations at a time: they mostly wait."""

LAST_NEWS_SECS = 0.5
"""How long news of what a host did may take when the host itself has ended: they come another way. Own choice."""

USUAL = {"usual": True}
"""As a `reply`: what is answered where no step is about it."""

Found = TypeVar("Found")


async def judge_host(
    command: Sequence[str], kit: Kit, *, bound_secs: float = 5.0, side_by_side: int = SIDE_BY_SIDE
) -> Report:
    """What the rules make of the host that `command` starts. Raises CannotStartError.

    `bound_secs` limits each wait that names no limit of its own.
    """
    began = time.monotonic()
    evidence = Evidence(kit.rules)
    turnstile = asyncio.Semaphore(side_by_side)

    async def play(conversation: Conversation) -> None:
        async with turnstile:
            await _play(command, conversation, evidence, bound_secs * 1000)

    await _all(play(conversation) for conversation in kit.conversations)
    return Report(
        half="host",
        subject=" ".join(command),
        protocol_version=protocol_version(),
        verdicts=evidence.verdicts(),
        elapsed_secs=time.monotonic() - began,
    )


async def _all(plays: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Side by side, and all of them ended when the first has raised."""
    tasks = [asyncio.create_task(play) for play in plays]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _NothingCameError(Exception):
    """What a step waited for did not come; the conversation cannot go on."""


class _UnsupportedError(Exception):
    """The host says that it cannot do what the scenario asks for."""


async def _play(command: Sequence[str], conversation: Conversation, evidence: Evidence, bound_ms: float) -> None:
    names: dict[str, Any] = {}
    news = News()
    played = PlayedSidecar(conversation.name, conversation.start.get("sidecar", {}), names, news)
    async with played as sidecar:
        sidecar.want(_wanted(conversation.steps))
        host = await HostProcess.start(command, sidecar.command, conversation.start.get("scenario", {}), news)
        try:
            await _Play(conversation, evidence, names, news, sidecar, host, bound_ms).through()
        finally:
            await host.end()


@frozen
class _Play:
    """One conversation on its way through its steps."""

    conversation: Conversation
    evidence: Evidence
    names: dict[str, Any]
    news: News
    sidecar: PlayedSidecar
    host: HostProcess
    bound_ms: float

    async def through(self) -> None:
        """Takes every step, as far as the host lets it."""
        steps = self.conversation.steps
        for position, step in enumerate(steps):
            self.sidecar.want(_wanted(steps[position:]))
            try:
                why = await self._take(step)
            except _UnsupportedError as error:
                self.evidence.declined(_rules(steps[position:]), f"the host does not support {error}")
                break
            except _NothingCameError as error:
                self._note(step, position, str(error))
                self._give_up(step, position, str(error) + self.host.last_words)
                break
            except NotCapturedError as error:
                self.evidence.unreached(_rules(steps[position:]), f"there was no {error}")
                break
            self._note(step, position, why)
        else:
            self.sidecar.want(frozenset())
            if not self.host.was_killed:
                await self._watch_the_end()
        self._watch()

    def _note(self, step: Step, position: int, why: Mismatch) -> None:
        rule = rule_of(step)
        if rule is None:
            return
        if why is None:
            self.evidence.passed(rule)
        else:
            self._fail(rule, why, position + 1)

    def _fail(self, rule: str, why: str, step: int | None = None) -> None:
        told = why + self.host.last_words
        self.evidence.failed(rule, Failure(conversation=self.conversation.name, step=step, why=told))

    def _give_up(self, step: Step, position: int, why: str) -> None:
        ended = f"{self.conversation.name} ended at step {position + 1}"
        self.evidence.broke_off(ended, why, rule_of(step), _rules(self.conversation.steps[position + 1 :]))

    # Watches -----------------------------------------------------------------------------------------------

    async def _watch_the_end(self) -> None:
        """After its last run a host ends the sidecar and then itself."""
        with suppress(_NothingCameError, _UnsupportedError):
            await self._until(lambda: self.host.has_ended or None, "the host's end", START_BOUNDS * self.bound_ms)
        self.sidecar.seen.add("status")
        status = self.host.process.returncode
        if status != 0:
            how = "still runs" if status is None else f"ended with status {status}"
            self._watched("status", f"the host {how}")

    def _watch(self) -> None:
        for complaint in self.sidecar.complaints:
            self._watched(complaint.watch, complaint.why)
        for rule in self.evidence.rules:
            if rule.watch in self.sidecar.seen:
                self.evidence.passed(rule.id)

    def _watched(self, watch: str, why: str) -> None:
        for rule in self.evidence.rules:
            if rule.watch == watch:
                self._fail(rule.id, why)

    # Steps -------------------------------------------------------------------------------------------------

    async def _take(self, step: Step) -> Mismatch:
        """What is wrong with what came. Raises _NothingCameError, _UnsupportedError, NotCapturedError."""
        match step:
            case Send(frame=frame):
                self.sidecar.send(frame)
            case Expect():
                return await self._expect(step)
            case Count(frame=frame, times=times):
                count = sum(matches(frame, each, self.names) for each in self.sidecar.frames)
                return mismatch(times, count, self.names, "count")
            case Order(frames=frames):
                return self._order_fault(frames)
            case Check(value=value, matches=pattern):
                return mismatch(pattern, fill(value, self.names), self.names)
            case Reading(on=on):
                self._order(reads=on)
            case Exit(status=status, within_ms=within_ms):
                await self._until(lambda: self.host.has_ended or None, "the host's end", within_ms)
                return mismatch(status, self.host.process.returncode, self.names, "status")
            case HostStep():
                return await self._take_own(step)
            case _:
                raise NotImplementedError(f"no step for hosts: {step}")
        return None

    async def _take_own(self, step: HostStep) -> Mismatch:
        match step:
            case Submit():
                return await self._submit(step)
            case Tell(run=run, event=event, beside=beside, missed=missed):
                self.sidecar.tell(run, event, beside, missed=missed)
            case Finish(run=run, event=event, answer=answer, missed=missed):
                self.sidecar.accept(run)
                self.sidecar.finish(run, event, answer, missed=missed)
            case Wire():
                if self.sidecar.life:
                    self.sidecar.life.rewire(step)
            case Stderr(text=text, times=times):
                self._order(stderr=text * times)
            case Die(status=status, unfinished=unfinished):
                if unfinished is not None:
                    self.sidecar.cut_off(unfinished)
                self._order(exit=status)
            case Kill():
                self.host.kill_alone()
            case _:
                return await self._wait_for(step)
        return None

    async def _wait_for(self, step: HostStep) -> Mismatch:
        match step:
            case Answered(label=label, matches=pattern, within_ms=within_ms):
                return await self._answered(label, pattern, within_ms)
            case Cancelled(run=run, within_ms=within_ms):
                return await self._cancelled(run, within_ms)
            case Printed(run=run, matches=pattern, within_ms=within_ms):
                printed = await self._until(lambda: self._printed_of(run), f"a line about run {run}", within_ms)
                return mismatch(pattern, printed, self.names)
            case Silence(for_ms=for_ms, but=but):
                return await self._silence(for_ms, but)
            case Lost(what=what, within_ms=within_ms):
                await self._lost(what, within_ms)
        return None

    async def _expect(self, step: Expect) -> Mismatch:
        def find() -> JsonObject | None:
            for frame in self.sidecar.unread:
                if addressed(step.frame, frame, self.names) and (
                    step.where is None or matches(step.where, frame, self.names)
                ):
                    return frame
            return None

        bound_ms = step.within_ms or self.bound_ms * (1 if self.sidecar.frames else START_BOUNDS)
        frame = await self._until(find, shown(step.frame), bound_ms)
        self.sidecar.read(frame)
        fault = mismatch(step.frame, frame, self.names)
        if step.reply == USUAL:
            self.sidecar.answer_as_usual(frame)
        elif step.reply is not None:
            self.sidecar.reply(frame.get("id"), step.reply)
        return fault

    async def _submit(self, step: Submit) -> Mismatch:
        def find() -> JsonObject | None:
            submits = [frame for frame in self.sidecar.unread if frame["method"] == "agent/submit"]
            fitting = [frame for frame in submits if matches(step.params, frame.get("params"), self.names)]
            return next(iter(fitting or submits), None)

        frame = await self._until(find, "agent/submit", step.within_ms or START_BOUNDS * self.bound_ms)
        self.sidecar.read(frame)
        fault = mismatch(step.params, frame.get("params", ABSENT), self.names, "params")
        self.sidecar.begin_run(step.run, frame)
        if not step.late:
            self.sidecar.accept(step.run)
        return fault

    async def _answered(self, label: Any, pattern: Any, within_ms: int | None) -> Mismatch:
        wire_id = self.names[f"id:{label}"]
        answer = await self._until(
            lambda: self.sidecar.answers.get(wire_id), f"an answer to {shown(wire_id)}", within_ms
        )
        return mismatch(pattern, answer, self.names)

    async def _cancelled(self, name: str, within_ms: int | None) -> Mismatch:
        run = self.sidecar.runs[name]

        def find() -> JsonObject | None:
            ways = ("$/cancelRequest", "agent/cancel")
            return next((frame for frame in self.sidecar.unread if frame["method"] in ways), None)

        frame = await self._until(find, "$/cancelRequest or agent/cancel", within_ms)
        self.sidecar.read(frame)
        params = frame.get("params") or {}
        if frame["method"] == "agent/cancel":
            self.sidecar.reply(frame.get("id"), {"result": {"cancelled": True}})
            means_it = params.get("runId") == run.run_id or (
                "runId" not in params and params.get("sessionId") == run.session_id
            )
        else:
            means_it = params.get("id") == run.request_id
        return None if means_it else f"it names another run: {shown(frame)}"

    async def _silence(self, for_ms: int, but: tuple[str, ...]) -> Mismatch:
        known = self.sidecar.read_up_to
        await asyncio.sleep(for_ms / 1000)
        heard = [frame for frame in self.sidecar.frames[known:] if frame.get("method") not in but]
        return f"meanwhile came {shown(heard[0])}" if heard else None

    async def _lost(self, what: str, within_ms: int | None) -> None:
        life = self.sidecar.life
        if life is None:
            raise _NothingCameError("no sidecar was started")
        if what == "input":
            await self._until(lambda: life.input_closed or None, "the end of stdin", within_ms)
        else:
            await self._until(lambda: life.gone or None, "the end of the process", within_ms)

    def _order_fault(self, patterns: Sequence[JsonObject]) -> Mismatch:
        position = 0
        for pattern in patterns:
            rest = self.sidecar.frames[position:]
            found = next((n for n, each in enumerate(rest) if matches(pattern, each, self.names)), None)
            if found is None:
                return f"{shown(pattern)} did not come, or not in this order"
            position += found + 1
        return None

    def _printed_of(self, run: int) -> JsonObject | None:
        return next((line for line in self.host.printed if line.get("run") == run), None)

    def _order(self, **order: Any) -> None:
        if self.sidecar.life:
            self.sidecar.life.order(**order)

    async def _until(self, look: Callable[[], Found | None], what: str, within_ms: float | None) -> Found:
        """Waits until there is something to be seen, for as long as the host may still bring it about."""
        loop = asyncio.get_running_loop()
        bound_ms = within_ms or self.bound_ms
        deadline = loop.time() + bound_ms / 1000
        while (found := look()) is None:
            if self.host.unsupported is not None:
                raise _UnsupportedError(self.host.unsupported)
            if self.host.has_ended and self.sidecar.is_deserted:
                deadline = min(deadline, loop.time() + LAST_NEWS_SECS)
            if loop.time() >= deadline and self.host.has_ended:
                status = self.host.process.returncode
                raise _NothingCameError(f"waited for {what}; the host ended with status {status}")
            if loop.time() >= deadline:
                raise _NothingCameError(f"waited {bound_ms:g} ms in vain for {what}")
            await self.news.wait(deadline - loop.time())
        return found


def _wanted(steps: Sequence[Step]) -> frozenset[str]:
    """The methods that these steps wait for."""
    methods: set[str] = set()
    for step in steps:
        match step:
            case Expect(frame=frame) if "method" in frame:
                methods.add(frame["method"])
            case Submit():
                methods.add("agent/submit")
            case Cancelled():
                methods |= {"$/cancelRequest", "agent/cancel"}
    return frozenset(methods)


def _rules(steps: Sequence[Step]) -> list[str]:
    return [rule for step in steps if (rule := rule_of(step))]
