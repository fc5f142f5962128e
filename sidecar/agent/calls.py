"""The calls of one reply: which may run, what came of each, and what the model and the host are told."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from attrs import evolve, frozen

from sidecar.agent.config import CycleConfig
from sidecar.agent.plan import PlannedCall
from sidecar.agent.repeats import RepeatCount, note_for_model
from sidecar.protocol.errors import SidecarError, ToolError
from sidecar.protocol.events import AgentEvent, ToolExecutionCompleted, ToolExecutionStarted
from sidecar.protocol.values import Content, Message, TextBlock, ToolCall, ToolInvocation
from sidecar.tools.registry import InvocationScope, ToolRegistry, not_found


@frozen(kw_only=True)
class Outcome:
    """What came of a call. `content` is what the model is shown."""

    call: ToolCall
    content: Content
    is_error: bool
    error: SidecarError | None = None
    duration_ms: int = 0
    truncated: bool = False
    original_bytes: int | None = None

    def message(self) -> Message:
        """The result in the history."""
        return Message(
            role="tool",
            content=self.content,
            call_id=self.call.call_id,
            tool_name=self.call.tool_name,
            is_error=self.is_error or None,
        )

    def event(self) -> ToolExecutionCompleted:
        """The result for the host."""
        return ToolExecutionCompleted(
            call_id=self.call.call_id,
            tool_name=self.call.tool_name,
            output=self.content,
            is_error=self.is_error,
            error_kind=self.error.kind if self.error else None,
            duration_ms=self.duration_ms,
            truncated=self.truncated,
            original_bytes=self.original_bytes,
        )


OnOutcome = Callable[[Outcome], Awaitable[None]]


class CallBatch:
    """Runs the calls of one reply side by side, inside `announced`; `on_outcome` hears of each as it ends."""

    def __init__(
        self,
        planned: Sequence[PlannedCall],
        *,
        offered: Collection[str],
        config: CycleConfig,
        repeats: RepeatCount,
        on_outcome: OnOutcome,
    ) -> None:
        self._planned = planned
        self._offered = offered
        self._config = config
        self._on_outcome = on_outcome
        self._repetitions = {p.call.call_id: repeats.count(p.call) for p in planned}
        self._errors: dict[str, SidecarError] = {}
        self._open: dict[str, ToolCall] = {}

    @asynccontextmanager
    async def announced(self, emit: Callable[[AgentEvent], Awaitable[None]]) -> AsyncIterator[None]:
        """Tells the host of each call; those that it knows of and that have not ended end with the block."""
        try:
            for planned in self._planned:
                call = self._open[planned.call.call_id] = planned.call
                await emit(ToolExecutionStarted(call_id=call.call_id, tool_name=call.tool_name, input=call.input))
            yield
        finally:
            for call in list(self._open.values()):  # Only a cancelled run leaves any.
                await self._conclude(cancelled(call))

    async def run(self, registry: ToolRegistry | None, scope: InvocationScope) -> None:
        """Raises the first error, in the order of the calls, whose policy is to stop the run."""
        runnable = [call for planned in self._planned if (call := await self._admit(planned))]
        if runnable and registry is not None:
            await registry.invoke_all(runnable, scope, on_done=self._invoked)
        self._raise_first_that_stops()

    async def _admit(self, planned: PlannedCall) -> ToolCall | None:
        """The call, unless it is known already that it cannot run."""
        error = planned.error or self._refusal(planned.call)
        if error is None:
            return planned.call
        await self._conclude(failed(planned.call, error))
        return None

    def _refusal(self, call: ToolCall) -> SidecarError | None:
        repetitions = self._repetitions[call.call_id]
        if repetitions >= self._config.repeat_limit:
            return SidecarError(
                "repeatedToolCalls",
                f"the model called {call.tool_name} with the same arguments {repetitions} times in a row",
                tool=call.tool_name,
                repetitions=repetitions,
            )
        if call.tool_name not in self._offered:
            return not_found(call.tool_name, self._offered)
        return None

    async def _invoked(self, invocation: ToolInvocation) -> None:
        call = self._open[invocation.call_id]
        await self._conclude(
            Outcome(
                call=call,
                content=invocation.content,
                is_error=invocation.is_error,
                error=invocation.error,
                duration_ms=invocation.duration_ms,
                truncated=invocation.truncated,
                original_bytes=invocation.original_bytes,
            )
        )

    async def _conclude(self, outcome: Outcome) -> None:
        call_id = outcome.call.call_id
        del self._open[call_id]
        if outcome.error is not None:
            self._errors[call_id] = outcome.error
        await self._on_outcome(self._noted(outcome))

    def _noted(self, outcome: Outcome) -> Outcome:
        repetitions = self._repetitions[outcome.call.call_id]
        if not self._config.repeat_warning <= repetitions < self._config.repeat_limit:
            return outcome
        return with_note(outcome, note_for_model(repetitions))

    def _raise_first_that_stops(self) -> None:
        for planned in self._planned:
            error = self._errors.get(planned.call.call_id)
            if isinstance(error, ToolError) and self._config.action_for(error) == "tellModel":
                continue
            if error is not None:
                raise error


def failed(call: ToolCall, error: SidecarError) -> Outcome:
    """The outcome of a call that was not run."""
    return Outcome(call=call, content=f"error: {error.message}", is_error=True, error=error)


def cancelled(call: ToolCall) -> Outcome:
    """The outcome of a call that the end of its run broke off."""
    return failed(call, SidecarError("requestCancelled", "the run was cancelled before this call ended"))


def with_note(outcome: Outcome, note: str) -> Outcome:
    """The outcome with a sentence more for the model."""
    match outcome.content:
        case str(text):
            content: Content = f"{text}\n\n{note}"
        case blocks:
            content = (*blocks, TextBlock(text=note))
    return evolve(outcome, content=content)
