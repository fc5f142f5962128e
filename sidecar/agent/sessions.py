"""Sessions and their runs: which exist, which run goes on, who ends it, and what of it is on disk.

The store is what is true of a session. In memory are the runs that go on, and the histories that were last used.
One run at a time goes on in a session, whichever sidecar runs it.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from attrs import evolve

from sidecar.agent.compaction import Compaction, compact
from sidecar.agent.config import RunSettings
from sidecar.agent.cycle import LlmCycle
from sidecar.agent.history import mended
from sidecar.agent.lines import Lines
from sidecar.agent.model_turn import summariser
from sidecar.agent.recovery import ending_of, status_of
from sidecar.agent.run import RunResult
from sidecar.agent.runs import Run, RunRequest
from sidecar.protocol.errors import RequestError, SidecarError, invalid_params
from sidecar.protocol.events import StopReason
from sidecar.protocol.messages import AgentEventParams, RunSummary, SessionChangedParams, SessionSummary
from sidecar.protocol.values import Content, Message, TextBlock
from sidecar.store.sessions import COMPACTION, Held, session_busy
from sidecar.store.store import Store

log = logging.getLogger("sidecar.agent")

CANCEL_GRACE_SECS = 2.0
"""How long a cancelled run may take to tidy up when the process ends (own choice)."""

OTHERS_POLL_SECS = 0.1
"""How often a submit in line looks whether another sidecar has left the session (own choice)."""

HISTORIES_KEPT = 16
"""Histories of sessions without a run that stay in memory (own choice): what people go to and fro between."""

TIDY_AFTER_SECS = 1.0
"""How long after a run the store is tidied up (own choice): when its host has got the answer and reads it."""

DELETION = "session/delete"


class Sessions:
    """All sessions of the store. `on_change` hears of those that come, change and go in this process.

    Every method raises StoreError where the store cannot be used.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_change: Callable[[SessionChangedParams], None] = lambda change: None,
        on_run_end: Callable[[str, str], None] = lambda session_id, run_id: None,
    ) -> None:
        self._store = store
        self._table = store.sessions
        self._on_change = on_change
        self._on_run_end = on_run_end
        self._runs: dict[str, Run] = {}
        self._lines = Lines()
        self._in_line: dict[str, asyncio.Task[object]] = {}
        self._histories: dict[str, LlmCycle] = {}
        self._tidying: asyncio.Task[None] | None = None

    # Reading --------------------------------------------------------------------------------------------

    def get(self, session_id: str) -> SessionSummary:
        """Raises RequestError sessionNotFound, as everything here does that takes a session's id."""
        self._settle(session_id)
        return self._table.get(session_id)

    def page(self, after: tuple[int, str] | None, limit: int) -> list[SessionSummary]:
        """The last touched first, from the one after that which was touched at `after[0]` and is `after[1]`."""
        return self._table.page(after, limit)

    def messages(self, session_id: str) -> list[Message]:
        """The history as the host has heard of it."""
        self._settle(session_id)
        return self._table.messages(session_id)[0]

    def runs(self, session_id: str) -> list[RunSummary]:
        """In the order in which they began."""
        self._settle(session_id)
        return self._table.runs(session_id)

    def events(
        self, session_id: str, run_id: str | None = None, after_seq: int | None = None
    ) -> list[AgentEventParams]:
        """As they were sent, or were to be."""
        self._settle(session_id)
        return self._table.events(session_id, run_id, after_seq)

    def find_run(self, run_id: str) -> Run | None:
        """A run that goes on in this process."""
        return self._runs.get(run_id)

    def has_run(self, run_id: str) -> bool:
        """Whether there is or was such a run, here or elsewhere."""
        return run_id in self._runs or run_id in self._in_line or self._table.has_run(run_id)

    def check_new(self, run_id: str) -> None:
        """Raises -32602 for a runId in use, before anything is made for the run."""
        if run_id in (COMPACTION, DELETION) or self.has_run(run_id):
            raise invalid_params("params.runId", f"{run_id!r} was used before; choose a new one")

    # Changing -------------------------------------------------------------------------------------------

    def create(
        self, title: str | None = None, messages: Sequence[Message] = (), latest_start: int = 0
    ) -> SessionSummary:
        """A new session."""
        history = mended(messages)[0]
        session_id = f"ses_{uuid.uuid4().hex}"
        summary = self._table.create(session_id, title, history, latest_start)
        cycle = LlmCycle(messages=history)
        cycle.conversation.latest_start = latest_start
        self._remember(session_id, cycle)
        self._on_change(SessionChangedParams(session_id=session_id, change="created", title=title))
        return summary

    def fork(self, session_id: str, at_message: int | None = None) -> SessionSummary:
        """A new session with the first messages of an old one; a call that loses its result gets one."""
        origin = self.get(session_id)
        messages, latest_start = self._table.messages(session_id)
        if at_message is not None and not 0 <= at_message <= len(messages):
            raise invalid_params("params.atMessage", f"must be from 0 to {len(messages)}, not {at_message}")
        kept = messages[:at_message]
        return self.create(origin.title, kept, min(latest_start, len(kept)))

    async def delete(self, session_id: str) -> bool:
        """Cancels what runs in it and forgets it; False when there is no such session.

        Raises RequestError sessionBusy where another sidecar works in it.
        """
        try:
            self.get(session_id)
        except RequestError:
            return False
        if run := self._active(session_id):
            run.cancel("the session was deleted")
            await self._ended(run)
        if self._lines.in_use_for(session_id) is not None:
            raise session_busy(session_id, str(self._lines.in_use_for(session_id)))
        self._table.hold(session_id, DELETION)
        self._histories.pop(session_id, None)
        for _ in self._table.delete(session_id):
            await asyncio.sleep(0)
        self._on_change(SessionChangedParams(session_id=session_id, change="deleted"))
        return True

    async def start(self, session_id: str, request: RunRequest, *, queue: bool = False) -> Run:
        """Starts a run, whose id is new, and owns it; with `queue`, when all that came before it have ended.

        Raises RequestError sessionBusy.
        """
        run_id = request.run_id
        held = await self._held(session_id, run_id, queue=queue)
        try:
            cycle, saved = self._history(session_id, held)
            run_log = self._table.begin_run(
                held,
                run_id,
                request.settings.label,
                saved,
                cycle.conversation.latest_start,
                opening=_opening_of(request.messages),
            )
        except BaseException:
            self._let_go(session_id, held)
            raise
        run = self._runs[run_id] = Run(run_id=run_id, session_id=session_id, cycle=cycle, log=run_log)
        run.task = asyncio.create_task(self._drive(run, request), name=f"run {run_id}")
        run.task.add_done_callback(_retrieve)
        return run

    async def compact(self, session_id: str, settings: RunSettings | None) -> Compaction:
        """Makes the history of a session as small as it gets, summed up by the model of `settings` if given.

        Raises RequestError sessionBusy.
        """
        held = await self._held(session_id, COMPACTION, queue=False)
        try:
            cycle, saved = self._history(session_id, held)
            summarise = summariser(settings) if settings is not None else None
            done = await compact(cycle.conversation, target_tokens=0, summarise=summarise)
            self._table.replace_messages(held, saved, cycle.conversation.messages, cycle.conversation.latest_start)
            self._remember(session_id, cycle)
            return done
        finally:
            self._let_go(session_id, held)
            self._touch(session_id)

    def keep(self, event: AgentEventParams) -> bool:
        """Commits an event before it is sent; False where it must not be."""
        run = self._runs.get(event.run_id)
        return run is None or run.keep(event)

    def cancel(self, *, session_id: str | None, run_id: str | None) -> bool:
        """Cancels a run by either id, one that waits in line by its own; False when there was none here."""
        if run_id is None:
            run = self._active(session_id or "")
        elif waiting := self._in_line.get(run_id):
            return waiting.cancel()
        else:
            run = self._runs.get(run_id)
        if run is None or (session_id is not None and run.session_id != session_id):
            return False
        return run.cancel("cancelled by the host")

    async def aclose(self) -> None:
        """Cancels every run and waits, within a limit, for their ends."""
        if self._tidying is not None:
            self._tidying.cancel()
        running = [run for run in self._runs.values() if run.cancel("the sidecar is stopping")]
        await asyncio.gather(*(self._ended(run) for run in running))

    # One at a time --------------------------------------------------------------------------------------

    def _active(self, session_id: str) -> Run | None:
        return self._runs.get(self._lines.in_use_for(session_id) or "")

    async def _held(self, session_id: str, work: str, *, queue: bool) -> Held:
        """The session, for `work` alone. Raises RequestError sessionBusy unless `queue`, which waits."""
        in_use_for = self._lines.in_use_for(session_id)
        if in_use_for is not None and not queue:
            raise session_busy(session_id, in_use_for)
        task = asyncio.current_task()
        if queue and task is not None:
            self._in_line[work] = task
        try:
            await self._lines.take(session_id, work)
            try:
                return await self._held_across(session_id, work, queue=queue)
            except BaseException:
                self._lines.give_back(session_id)
                raise
        finally:
            if queue:
                self._in_line.pop(work, None)

    async def _held_across(self, session_id: str, work: str, *, queue: bool) -> Held:
        """The session, against other sidecars, when nobody of this one is in it."""
        while True:
            try:
                return self._table.hold(session_id, work)
            except RequestError as error:
                if error.kind != "sessionBusy":
                    raise
                if self._settle(session_id, is_ours_idle=True):
                    continue
                if not queue:
                    raise
            await asyncio.sleep(OTHERS_POLL_SECS)

    def _let_go(self, session_id: str, held: Held) -> None:
        try:
            self._table.let_go(held)
        finally:
            self._lines.give_back(session_id)

    def _settle(self, session_id: str, *, is_ours_idle: bool | None = None) -> bool:
        """Ends in a session what its process did not live to end; whether there was such a thing."""
        if is_ours_idle is None:
            is_ours_idle = self._lines.in_use_for(session_id) is None
        work = self._table.take_over(session_id, is_ours_idle=is_ours_idle)
        if work is None:
            return False
        model = self._table.model_of(work)
        if model is None:
            self._table.release(session_id)
            return True
        events, (history, _) = self._table.events(session_id, work), self._table.messages(session_id)
        ending = ending_of(events, history, model=model)
        self._histories.pop(session_id, None)
        self._table.conclude(session_id, work, ending.events, ending.messages, ending.status, ending.stop_reason)
        return True

    # Histories ------------------------------------------------------------------------------------------

    def _history(self, session_id: str, held: Held) -> tuple[LlmCycle, list[Message]]:
        """The conversation of a session that is held, and its messages as they are on disk."""
        cycle = self._histories.pop(session_id, None)
        if cycle is not None and not held.is_new:
            return cycle, list(cycle.messages())
        saved, latest_start = self._table.messages(session_id)
        cycle = LlmCycle(messages=saved)
        cycle.conversation.latest_start = min(latest_start, len(cycle.messages()))
        return cycle, saved

    def _remember(self, session_id: str, cycle: LlmCycle) -> None:
        self._histories[session_id] = cycle
        while len(self._histories) > HISTORIES_KEPT:
            del self._histories[next(iter(self._histories))]

    # Runs -----------------------------------------------------------------------------------------------

    async def _drive(self, run: Run, request: RunRequest) -> RunResult:
        emit = run.telling(request.scope.emit)
        scope = evolve(request.scope, cancellation=run.cancellation, emit=emit)
        stop_reason: StopReason = "error"
        try:
            result = await run.cycle.run(request.messages, request.settings, scope, run.steering, request.prepare)
            if run.failure is not None:
                raise run.failure
            stop_reason = result.stop_reason
            return result
        except asyncio.CancelledError:
            if run.failure is not None:
                raise run.failure from None
            stop_reason = "cancelled"
            raise
        finally:
            run.end(status_of(stop_reason), stop_reason)
            self._finish(run)

    def _finish(self, run: Run) -> None:
        del self._runs[run.run_id]
        if run.failure is None:
            self._remember(run.session_id, run.cycle)
        self._lines.give_back(run.session_id)
        self._touch(run.session_id)
        self._on_run_end(run.session_id, run.run_id)
        self._tidy()

    def _touch(self, session_id: str) -> None:
        with suppress(SidecarError):  # It was deleted, or the store failed, which its run has told.
            now = self._table.get(session_id)
            self._on_change(
                SessionChangedParams(
                    session_id=session_id,
                    change="updated",
                    title=now.title,
                    updated_ms=now.updated_ms,
                    message_count=now.message_count,
                )
            )

    def _tidy(self) -> None:
        if self._tidying is None or self._tidying.done():
            is_first = self._tidying is None
            self._tidying = asyncio.create_task(self._tidied(is_first), name="tidying the store")

    async def _tidied(self, is_first: bool) -> None:
        """Deletes what the limits of the store say: after the first run, and as it grows."""
        await asyncio.sleep(TIDY_AFTER_SECS)
        try:
            if is_first or self._store.is_too_large:
                for _ in self._store.tidy():
                    await asyncio.sleep(0)
        except SidecarError as error:  # Another sidecar may do the same at the moment; there is a next time.
            log.warning("the store was not tidied up: %s", error.message)

    async def _ended(self, run: Run) -> None:
        if run.task is not None:
            await asyncio.wait([run.task], timeout=CANCEL_GRACE_SECS)


def _retrieve(task: "asyncio.Task[RunResult]") -> None:
    """A run that nobody waits for must not complain that its error was never looked at."""
    with suppress(asyncio.CancelledError):
        error = task.exception()
        if error is not None and not isinstance(error, SidecarError):
            log.error("a run failed by our own mistake", exc_info=error)


def _opening_of(messages: Sequence[Message]) -> str | None:
    """What a conversation begins with, on one line."""
    said = (message.content for message in messages if message.role == "user")
    texts = (text for content in said for text in _texts(content))
    return " ".join(next(texts, "").split()) or None


def _texts(content: Content) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (block.text for block in content if isinstance(block, TextBlock))
