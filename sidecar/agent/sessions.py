"""Sessions and their runs: which exist, which run is going on, who ends it.

A session holds one LlmCycle and the events of its runs. One run at a time per session. Sessions live in
memory and end with the process.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress

from attrs import define, evolve, field, frozen

from sidecar.agent.compaction import Compaction, compact
from sidecar.agent.config import RunSettings
from sidecar.agent.cycle import LlmCycle
from sidecar.agent.model_turn import summariser
from sidecar.agent.run import Prepare, RunResult, Steering, nothing_to_prepare
from sidecar.protocol.errors import RequestError, SidecarError, invalid_params
from sidecar.protocol.events import StopReason
from sidecar.protocol.messages import AgentEventParams, RunStatus, RunSummary, SessionChangedParams, SessionSummary
from sidecar.protocol.values import Message
from sidecar.tools.base import CancellationToken
from sidecar.tools.registry import InvocationScope

log = logging.getLogger("sidecar.agent")

CANCEL_GRACE_SECS = 2.0
"""How long a cancelled run may take to tidy up when the process ends (own choice)."""


@frozen(kw_only=True)
class RunRequest:
    """A submit, decoded and resolved: what to say, to whom, and what its tools may use."""

    run_id: str
    messages: tuple[Message, ...]
    settings: RunSettings
    scope: InvocationScope
    prepare: Prepare = nothing_to_prepare


@define
class Run:
    """One submit while it goes on, and how it ended."""

    run_id: str
    session_id: str
    cancellation: CancellationToken = field(factory=CancellationToken)
    steering: Steering = field(factory=Steering)
    status: RunStatus = "running"
    stop_reason: StopReason | None = None
    events: list[AgentEventParams] = field(factory=list)
    task: asyncio.Task[RunResult] | None = None

    def cancel(self, reason: str) -> bool:
        """Ends the run as cancelled; False when it is over already."""
        if self.task is None or self.task.done():
            return False
        if not self.cancellation.cancelled:
            self.cancellation.cancel(reason)
            # Not at once: a task that is cancelled before its first step would never report its end.
            asyncio.get_running_loop().call_soon(self.task.cancel)
        return True

    def summary(self) -> RunSummary:
        """The run as `session/get` shows it."""
        return RunSummary(run_id=self.run_id, status=self.status, stop_reason=self.stop_reason)


@define
class Session:
    """A conversation and its runs."""

    session_id: str
    created_ms: int
    updated_ms: int
    title: str | None = None
    cycle: LlmCycle = field(factory=LlmCycle)
    runs: dict[str, Run] = field(factory=dict)
    is_compacting: bool = False

    @property
    def active(self) -> Run | None:
        """The run that goes on, if one does."""
        return next((run for run in reversed(self.runs.values()) if run.status == "running"), None)

    def summary(self) -> SessionSummary:
        """The session as `session/list` shows it."""
        return SessionSummary(
            session_id=self.session_id,
            title=self.title,
            created_ms=self.created_ms,
            updated_ms=self.updated_ms,
            message_count=len(self.cycle.messages()),
        )


class Sessions:
    """All sessions of the process. `on_change` hears of those that come, change and go."""

    def __init__(
        self,
        *,
        on_change: Callable[[SessionChangedParams], None] = lambda change: None,
        on_run_end: Callable[[str, str], None] = lambda session_id, run_id: None,
    ) -> None:
        self._sessions: dict[str, Session] = {}
        self._runs: dict[str, Run] = {}
        self._on_change = on_change
        self._on_run_end = on_run_end

    def create(self, title: str | None = None, messages: Sequence[Message] = ()) -> Session:
        """A new session."""
        now_ms = _now_ms()
        session = Session(
            session_id=f"ses_{uuid.uuid4().hex}",
            created_ms=now_ms,
            updated_ms=now_ms,
            title=title,
            cycle=LlmCycle(messages=messages),
        )
        self._sessions[session.session_id] = session
        self._on_change(SessionChangedParams(session_id=session.session_id, change="created", title=title))
        return session

    def get(self, session_id: str) -> Session:
        """Raises RequestError sessionNotFound."""
        if session_id not in self._sessions:
            raise RequestError(
                "sessionNotFound",
                f"there is no session {session_id!r}; session/list names those there are",
                sessionId=session_id,
            )
        return self._sessions[session_id]

    def all(self) -> list[Session]:
        """The last touched first."""
        return sorted(self._sessions.values(), key=lambda s: (s.updated_ms, s.created_ms), reverse=True)

    def fork(self, session_id: str, at_message: int | None = None) -> Session:
        """A new session with the first messages of an old one; a call that loses its result gets one."""
        origin = self.get(session_id)
        messages = origin.cycle.messages()
        if at_message is not None and not 0 <= at_message <= len(messages):
            raise invalid_params("params.atMessage", f"must be from 0 to {len(messages)}, not {at_message}")
        return self.create(origin.title, messages[:at_message])

    async def delete(self, session_id: str) -> bool:
        """Cancels what runs in it and forgets it; False when there is no such session."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        if run := session.active:
            run.cancel("the session was deleted")
            await self._ended(run)
        for run_id in session.runs:
            self._runs.pop(run_id, None)
        self._on_change(SessionChangedParams(session_id=session_id, change="deleted"))
        return True

    def find_run(self, run_id: str) -> Run | None:
        """A run of this process by its id."""
        return self._runs.get(run_id)

    def check_new(self, run_id: str) -> None:
        """Raises -32602 for a runId in use, before anything is made for the run."""
        if run_id in self._runs:
            raise invalid_params("params.runId", f"{run_id!r} was used before; choose a new one")

    def start(self, session: Session, request: RunRequest) -> Run:
        """Starts a run at once and owns it. Raises RequestError sessionBusy, or -32602 for a runId in use."""
        _refuse_while_busy(session)
        run_id = request.run_id
        self.check_new(run_id)
        run = Run(run_id=run_id, session_id=session.session_id)
        session.runs[run_id] = self._runs[run_id] = run
        run.task = asyncio.create_task(self._drive(session, run, request), name=f"run {run_id}")
        run.task.add_done_callback(_retrieve)
        return run

    async def compact(self, session_id: str, settings: RunSettings | None) -> Compaction:
        """Makes the history of a session as small as it gets, summed up by the model of `settings` if given.

        Raises RequestError sessionNotFound, sessionBusy.
        """
        session = self.get(session_id)
        _refuse_while_busy(session)
        session.is_compacting = True
        try:
            summarise = summariser(settings) if settings is not None else None
            return await compact(session.cycle.conversation, target_tokens=0, summarise=summarise)
        finally:
            session.is_compacting = False
            self._touch(session)

    def record(self, event: AgentEventParams) -> None:
        """Keeps an event that is about to be sent, for `session/events`."""
        if run := self._runs.get(event.run_id):
            run.events.append(event)

    def cancel(self, *, session_id: str | None, run_id: str | None) -> bool:
        """Cancels a run by either id; False when nothing ran."""
        run = self._runs.get(run_id) if run_id is not None else None
        if run is None and run_id is None and session_id in self._sessions:
            run = self._sessions[session_id].active
        if run is None or (session_id is not None and run.session_id != session_id):
            return False
        return run.cancel("cancelled by the host")

    async def aclose(self) -> None:
        """Cancels every run and waits, within a limit, for their ends."""
        running = [run for run in self._runs.values() if run.cancel("the sidecar is stopping")]
        await asyncio.gather(*(self._ended(run) for run in running))

    async def _drive(self, session: Session, run: Run, request: RunRequest) -> RunResult:
        scope = evolve(request.scope, cancellation=run.cancellation)
        try:
            result = await session.cycle.run(
                request.messages, request.settings, scope, run.steering, request.prepare
            )
            run.status, run.stop_reason = "completed", result.stop_reason
            return result
        except asyncio.CancelledError:
            run.status, run.stop_reason = "cancelled", "cancelled"
            raise
        except BaseException:
            run.status, run.stop_reason = "failed", "error"
            raise
        finally:
            self._touch(session)
            self._on_run_end(session.session_id, run.run_id)

    def _touch(self, session: Session) -> None:
        session.updated_ms = _now_ms()
        if session.session_id in self._sessions:
            self._on_change(
                SessionChangedParams(
                    session_id=session.session_id,
                    change="updated",
                    title=session.title,
                    updated_ms=session.updated_ms,
                    message_count=len(session.cycle.messages()),
                )
            )

    async def _ended(self, run: Run) -> None:
        if run.task is not None:
            await asyncio.wait([run.task], timeout=CANCEL_GRACE_SECS)


def _refuse_while_busy(session: Session) -> None:
    if busy := session.active:
        raise RequestError(
            "sessionBusy",
            f"session {session.session_id} is busy with run {busy.run_id}; wait for it, cancel it or steer it",
            sessionId=session.session_id,
            runId=busy.run_id,
        )
    if session.is_compacting:
        raise RequestError(
            "sessionBusy",
            f"session {session.session_id} is being compacted; try again when that has answered",
            sessionId=session.session_id,
        )


def _retrieve(task: "asyncio.Task[RunResult]") -> None:
    """A run that nobody waits for must not complain that its error was never looked at."""
    with suppress(asyncio.CancelledError):
        error = task.exception()
        if error is not None and not isinstance(error, SidecarError):
            log.error("a run failed by our own mistake", exc_info=error)


def new_run_id() -> str:
    """An id that no other run has."""
    return f"run_{uuid.uuid4().hex}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
