"""One submit while it goes on: what was asked, what of it is on disk, and how it comes to its end."""

import asyncio
import logging
import uuid

from attrs import define, evolve, field, frozen

from sidecar.agent.config import RunSettings
from sidecar.agent.cycle import LlmCycle
from sidecar.agent.model_turn import Emit
from sidecar.agent.run import Prepare, RunResult, Steering, nothing_to_prepare
from sidecar.protocol.events import (
    AgentEvent,
    ApprovalResolved,
    EventError,
    RunCompleted,
    StopReason,
    ToolExecutionCompleted,
    TurnComplete,
)
from sidecar.protocol.messages import AgentEventParams, RunStatus
from sidecar.protocol.values import Message
from sidecar.store.errors import StoreError
from sidecar.store.run_log import RunLog
from sidecar.tools.base import CancellationToken
from sidecar.tools.registry import InvocationScope

log = logging.getLogger("sidecar.agent")

CLOSING = (ToolExecutionCompleted, ApprovalResolved, RunCompleted)
"""What a host still hears of a run whose store has failed, so that nothing on its screen stays open."""


@frozen(kw_only=True, eq=False, repr=False)
class RunRequest:
    """A submit, decoded and resolved: what to say, to whom, and what its tools may use."""

    run_id: str
    messages: tuple[Message, ...]
    settings: RunSettings
    scope: InvocationScope
    prepare: Prepare = nothing_to_prepare


@define(eq=False, repr=False)
class Run:
    """One submit while it goes on, and how it ended."""

    run_id: str
    session_id: str
    cycle: LlmCycle
    log: RunLog
    cancellation: CancellationToken = field(factory=CancellationToken)
    steering: Steering = field(factory=Steering)
    failure: StoreError | None = None
    turns: int = 0
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

    def keep(self, event: AgentEventParams) -> bool:
        """Commits an event and the history that it tells of; False where it must not be sent.

        Where that fails, the run ends with the reason, and the host hears of no more than what closes it.
        """
        if self.failure is None:
            try:
                conversation = self.cycle.conversation
                self.log.keep(event, conversation.messages, conversation.latest_start)
                self.turns += isinstance(event.event, TurnComplete)
                return True
            except StoreError as error:
                log.error("run %s ends: %s", self.run_id, error.message)
                self.failure = error
                self.cancel("the store failed")
                if isinstance(event.event, RunCompleted):
                    return False  # It says another end than this; `telling` has another go.
        return isinstance(event.event, CLOSING)

    def end(self, status: RunStatus, stop_reason: StopReason) -> None:
        """Writes down how it ended. Where the store has failed, whoever next looks at the session does that."""
        conversation = self.cycle.conversation
        if self.failure is not None:
            return
        try:
            self.log.end(status, stop_reason, conversation.messages, conversation.latest_start)
        except StoreError as error:
            log.error("the end of run %s could not be kept: %s", self.run_id, error.message)
            self.failure = error

    def telling(self, emit: Emit) -> Emit:
        """`emit`, which tells of the store's failure where it has ended the run."""

        async def tell(event: AgentEvent) -> None:
            had_failed = self.failure is not None
            if not (isinstance(event, RunCompleted) and had_failed):
                await emit(event)
            if isinstance(event, RunCompleted) and self.failure is not None:
                self.failure.data["turns"] = self.turns
                data = {"kind": self.failure.kind, **self.failure.data}
                error = EventError(code=self.failure.code, message=self.failure.message, data=data)
                await emit(evolve(event, stop_reason="error", error=error))

        return tell


def new_run_id() -> str:
    """An id that no other run has."""
    return f"run_{uuid.uuid4().hex}"
