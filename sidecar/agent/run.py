"""One run: ask the model, run the tools it calls, feed the results back, repeat.

The only place where the history of a conversation changes. It is valid at every await: an assistant message
with calls joins it together with one result for each.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from attrs import define, evolve, field, frozen

from sidecar.agent.calls import CallBatch, Outcome
from sidecar.agent.compaction import BYTES_PER_TOKEN, compact, size_bytes, tokens_of
from sidecar.agent.config import RunSettings
from sidecar.agent.conversation import Conversation
from sidecar.agent.history import call_ids, interrupted, mended, user
from sidecar.agent.model_turn import Emit, ModelTurn, summariser
from sidecar.agent.plan import Plan, plan_calls
from sidecar.agent.repeats import RepeatCount
from sidecar.agent.reply import Reply
from sidecar.protocol.errors import ModelError, SidecarError
from sidecar.protocol.events import (
    AgentEvent,
    Compacted,
    EventError,
    RunCompleted,
    RunStarted,
    StopReason,
    TurnComplete,
    TurnEnd,
    Warned,
)
from sidecar.protocol.values import Content, Message, ProviderExtras, ToolCall, ToolDefinition, Usage
from sidecar.providers.base import ModelRequest
from sidecar.tools.registry import InvocationScope

COMPACT_ABOVE = 0.8
"""The share of a model's context above which the history is made smaller before the next turn (own choice)."""

COMPACT_TO = 0.5
"""The share that it is brought down to, so that compaction does not happen every turn (own choice)."""

Prepare = Callable[[Emit], Awaitable[None]]
"""What has to happen within a run before its first turn; may emit warnings."""


async def nothing_to_prepare(emit: Emit) -> None:
    """For a run that can start at once."""


@frozen(kw_only=True)
class RunResult:
    """How a run ended well: the last message of the model, why it stopped, the turns and tokens it took."""

    message: Message
    stop_reason: StopReason
    turns: int
    usage: Usage


class Steering:
    """Words said to a run while it goes on; they join the history before its next turn."""

    def __init__(self) -> None:
        self._waiting: deque[Content] = deque()
        self._open = True

    def say(self, prompt: Content) -> bool:
        """False when no turn will follow that could read it."""
        if self._open:
            self._waiting.append(prompt)
        return self._open

    def close(self) -> None:
        """No further turn follows."""
        self._open = False

    def take(self) -> list[Message]:
        """All that waits, as messages."""
        said = [user(prompt) for prompt in self._waiting]
        self._waiting.clear()
        return said

    @property
    def has_more(self) -> bool:
        """Whether something waits to be read."""
        return bool(self._waiting)


@define
class _Tally:
    """What a run has used so far; read when it ends, however it ends."""

    turns: int = 0
    usage: Usage = field(factory=Usage)


class RunLoop:
    """One run over a history, which it leaves valid at every await."""

    def __init__(
        self, conversation: Conversation, settings: RunSettings, scope: InvocationScope, steering: Steering
    ) -> None:
        self._conversation = conversation
        self._history = conversation.messages
        self._settings = settings
        self._scope = scope
        self._emit: Emit = scope.emit
        self._steering = steering
        self._tally = _Tally()
        self._repeats = RepeatCount()

    async def drive(self, messages: Sequence[Message], prepare: Prepare) -> RunResult:
        """The run within its first and last event."""
        try:
            notes = self._join(messages)
            await self._tell(
                RunStarted(model=self._settings.label, prompt=_prompt_of(messages)),
                *(Warned(code="historyMended", message=note) for note in notes),
            )
            await prepare(self._emit)
            result = await self._turns()
        except asyncio.CancelledError:
            await self._end("cancelled")
            raise
        except SidecarError as error:
            error.data["turns"] = self._tally.turns
            data = {"kind": error.kind, **error.data}
            await self._end("error", EventError(code=error.code, message=error.message, data=data))
            raise
        except Exception:
            # Our own mistake: the host still gets its last event, the caller the exception.
            broken = SidecarError("internalError", "internal error")
            data = {"kind": broken.kind}
            await self._end("error", EventError(code=broken.code, message=broken.message, data=data))
            raise
        await self._end(result.stop_reason)
        return result

    async def _end(self, stop_reason: StopReason, error: EventError | None = None) -> None:
        self._steering.close()
        await self._emit(RunCompleted(stop_reason=stop_reason, usage=self._tally.usage, error=error))

    def _join(self, messages: Sequence[Message]) -> list[str]:
        """Adds what was said to the history; gives a sentence for everything that had to be mended."""
        joined, notes = mended(messages, taken=call_ids(self._history))
        self._conversation.latest_start = len(self._history)
        self._history += joined
        return notes

    async def _turns(self) -> RunResult:
        config = self._settings.config
        while self._tally.turns < config.max_turns:
            self._tally.turns += 1
            self._history += self._steering.take()
            if self._tally.turns == config.max_turns:
                self._steering.close()
            definitions = self._definitions()
            await self._make_room(definitions)
            reply = await self._ask_within(definitions)
            offered = {definition.name for definition in definitions} - reply.left_out
            plan = plan_calls(reply, offered=offered, taken_ids=call_ids(self._history))
            usage = self._counted(reply.usage, definitions)
            self._tally.usage += usage
            if plan.calls:
                await self._execute(reply, plan, offered, usage)
            elif result := await self._finish(reply, plan, usage):
                return result
        raise SidecarError(
            "maxTurnsExceeded",
            f"the run took {config.max_turns} turns without an end; raise maxTurns to let it go on",
            maxTurns=config.max_turns,
        )

    def _definitions(self) -> tuple[ToolDefinition, ...]:
        registry = self._settings.registry
        return registry.definitions(self._settings.selector) if registry is not None else ()

    async def _make_room(self, definitions: tuple[ToolDefinition, ...]) -> None:
        """Compacts when the next request would come near the limit of the model's context."""
        limit = self._settings.provider.context_tokens
        if limit is None:
            return
        own_tokens = _definition_tokens(definitions)
        if tokens_of(self._history) + own_tokens > limit * COMPACT_ABOVE:
            await self._compact(max(1, int(limit * COMPACT_TO) - own_tokens))

    async def _ask_within(self, definitions: tuple[ToolDefinition, ...]) -> Reply:
        """The reply; where the provider says that the context is too long, once more with a smaller one."""
        before = len(self._history)
        try:
            return await self._ask(definitions)
        except ModelError as error:
            has_begun = len(self._history) > before  # What has come is in the history and is not said twice.
            if error.kind != "contextOverflow" or has_begun:
                raise
            if not await self._compact(tokens_of(self._history) // 2):
                raise
        return await self._ask(definitions)

    async def _compact(self, target_tokens: int) -> bool:
        """Whether the history became smaller."""
        done = await compact(
            self._conversation,
            target_tokens=target_tokens,
            summarise=summariser(self._settings) if self._settings.config.summary == "model" else None,
        )
        if done.after_tokens >= done.before_tokens:
            return False
        await self._emit(Compacted(before_tokens=done.before_tokens, after_tokens=done.after_tokens))
        return True

    async def _ask(self, definitions: tuple[ToolDefinition, ...]) -> Reply:
        settings = self._settings
        turn = ModelTurn(settings, self._emit)
        request = ModelRequest(
            model=settings.model,
            messages=tuple(self._history),
            system=settings.system,
            tools=definitions,
            temperature=settings.temperature,
            max_output_tokens=settings.max_output_tokens,
        )
        try:
            return await turn.ask(request)
        except BaseException:
            # What the host has seen of a broken answer stays; its unfinished calls do not.
            self._keep(turn.partial(), calls=())
            raise

    def _counted(self, usage: Usage | None, definitions: tuple[ToolDefinition, ...]) -> Usage:
        """The provider's count, with our estimate of what definitions and results took of it."""
        results = sum(size_bytes(m.content) for m in self._history if m.role == "tool")
        return evolve(
            usage or Usage(),
            tool_definition_tokens=_definition_tokens(definitions),
            tool_result_tokens=results // BYTES_PER_TOKEN,
        )

    async def _finish(self, reply: Reply, plan: Plan, usage: Usage) -> RunResult | None:
        """The end of the run, unless somebody has said more meanwhile."""
        message = self._keep(reply, calls=())  # At once: the host has seen it, and the run may be cancelled now.
        await self._tell(*plan.warnings, self._turn_complete(_stop_reason(reply), usage))
        if self._steering.has_more:
            return None
        self._steering.close()
        return RunResult(
            message=message, stop_reason=_stop_reason(reply), turns=self._tally.turns, usage=self._tally.usage
        )

    def _turn_complete(self, reason: TurnEnd, usage: Usage) -> TurnComplete:
        return TurnComplete(turn=self._tally.turns, reason=reason, usage=usage)

    async def _tell(self, *events: AgentEvent) -> None:
        for event in events:
            await self._emit(event)

    def _keep(self, reply: Reply, *, calls: tuple[ToolCall, ...]) -> Message:
        message = self._message(reply, calls)
        if message.content or message.tool_calls:
            self._history.append(message)
        return message

    def _message(self, reply: Reply, calls: tuple[ToolCall, ...]) -> Message:
        extras = None
        if reply.extras is not None:
            extras = ProviderExtras(provider=self._settings.provider.name, data=reply.extras)
        return Message(
            role="assistant",
            content=reply.text,
            tool_calls=calls or None,
            reasoning=reply.reasoning or None,
            provider_extras=extras,
        )

    async def _execute(self, reply: Reply, plan: Plan, offered: set[str], usage: Usage) -> None:
        """Runs the calls of a reply side by side; raises the first error whose policy is to stop."""
        calls = tuple(planned.call for planned in plan.calls)
        results = {call.call_id: interrupted(call) for call in calls}
        self._keep(reply, calls=calls)
        start = len(self._history)
        self._history += results.values()

        async def on_outcome(outcome: Outcome) -> None:
            results[outcome.call.call_id] = outcome.message()
            self._history[start : start + len(calls)] = results.values()
            await self._emit(outcome.event())

        batch = CallBatch(
            plan.calls,
            offered=offered,
            config=self._settings.config,
            repeats=self._repeats,
            on_outcome=on_outcome,
        )
        await self._tell(*plan.warnings)
        async with batch.announced(self._emit):
            await self._tell(self._turn_complete("toolCalls", usage))
            await batch.run(self._settings.registry, self._call_scope())

    def _call_scope(self) -> InvocationScope:
        config = self._settings.config
        return evolve(
            self._scope,
            timeout_secs=config.tool_timeout_secs,
            max_result_bytes=config.max_tool_result_bytes,
        )


def _stop_reason(reply: Reply) -> Literal["stop", "length", "contentFilter"]:
    """Why an answer without calls ended; whatever a provider invents counts as `stop`."""
    match reply.finish:
        case "length" | "contentFilter" as known:
            return known
        case _:
            return "stop"


def _definition_tokens(definitions: Sequence[ToolDefinition]) -> int:
    return sum(map(_sizes.of, definitions)) // BYTES_PER_TOKEN


class _Sizes:
    """How large definitions are, each measured once: a registry gives the same ones at every turn of every run."""

    def __init__(self) -> None:
        self._by_identity: dict[int, tuple[ToolDefinition, int]] = {}

    def of(self, definition: ToolDefinition) -> int:
        """In bytes, roughly."""
        known = self._by_identity.get(id(definition))
        if known is None:
            if len(self._by_identity) >= _MAX_SIZES:
                self._by_identity.clear()
            # With the definition, whose identity nothing else can have as long as it is here.
            known = self._by_identity[id(definition)] = (definition, size_bytes(definition))
        return known[1]


_MAX_SIZES = 4096
"""Own choice: as many tools as the providers remember."""

_sizes = _Sizes()


def _prompt_of(messages: Sequence[Message]) -> Content | None:
    """The prompt of a run that was given one."""
    return messages[0].content if len(messages) == 1 and messages[0].role == "user" else None
