"""LlmCycle: a conversation with a model that may call tools, as a Python object."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

from attrs import evolve

from sidecar.agent.config import CycleConfig, RunSettings
from sidecar.agent.conversation import Conversation
from sidecar.agent.history import mended, user
from sidecar.agent.model_turn import Emit
from sidecar.agent.run import Prepare, RunLoop, RunResult, Steering, nothing_to_prepare
from sidecar.protocol.errors import SidecarError
from sidecar.protocol.events import AgentEvent, Warned
from sidecar.protocol.values import Content, Message
from sidecar.providers.base import Provider
from sidecar.tools.registry import InvocationScope, ToolRegistry


class LlmCycle:
    """A conversation and the loop that carries it on.

    In process: `LlmCycle(provider, model="…")`, then `submit`, `submit_with_tools`, or the `…_stream` twins.
    One run at a time; a second one while the first goes on is the caller's mistake.
    """

    def __init__(
        self,
        provider: Provider | None = None,
        *,
        model: str = "",
        system: str | None = None,
        config: CycleConfig | None = None,
        messages: Sequence[Message] = (),
    ) -> None:
        self._provider = provider
        self._model = model
        self._system = system
        self._config = config or CycleConfig()
        self.conversation = Conversation(messages=mended(messages)[0])

    def messages(self) -> tuple[Message, ...]:
        """The whole conversation so far, calls and results among it."""
        return tuple(self.conversation.messages)

    async def submit(self, prompt: Content) -> RunResult:
        """Asks without tools. Raises ModelError and the other SidecarErrors of a run."""
        return await self.submit_messages([user(prompt)])

    async def submit_messages(self, messages: Sequence[Message]) -> RunResult:
        """As `submit`, with messages of any role; they are mended into valid history first."""
        return await self.run(messages, self._settings(None), InvocationScope())

    async def submit_with_tools(
        self, prompt: Content, registry: ToolRegistry, scope: InvocationScope | None = None
    ) -> RunResult:
        """Asks, runs the calls of each answer, and asks again until the model calls no more.

        Raises SidecarError: `maxTurnsExceeded`, `repeatedToolCalls`, a ToolError whose policy is to stop, or
        what the provider raised. The history stays valid and keeps what was done.
        """
        return await self.run([user(prompt)], self._settings(registry), scope or InvocationScope())

    def submit_stream(self, prompt: Content) -> AsyncGenerator[AgentEvent, None]:
        """As `submit`, as its events. The run's error is raised after the last event.

        Closing the generator cancels the run, as leaving `async with contextlib.aclosing(…) as events` does.
        """
        return self._stream([user(prompt)], self._settings(None), InvocationScope())

    def submit_stream_with_tools(
        self, prompt: Content, registry: ToolRegistry, scope: InvocationScope | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """As `submit_with_tools`, as its events; see `submit_stream`."""
        return self._stream([user(prompt)], self._settings(registry), scope or InvocationScope())

    async def run(
        self,
        messages: Sequence[Message],
        settings: RunSettings,
        scope: InvocationScope,
        steering: Steering | None = None,
        prepare: Prepare = nothing_to_prepare,
    ) -> RunResult:
        """One run, from `runStarted` to `runCompleted`; events go to `scope.emit`.

        `prepare` happens between `runStarted` and the first turn, for example waiting for servers.

        Raises what `submit_with_tools` does, with `turns` in its data, and CancelledError.
        """
        emit = _without_repeated_warnings(scope.emit, self.conversation.warned)
        heard = Steering() if steering is None else steering
        loop = RunLoop(self.conversation, settings, evolve(scope, emit=emit), heard)
        return await loop.drive(messages, prepare)

    def _settings(self, registry: ToolRegistry | None) -> RunSettings:
        if self._provider is None:
            raise ValueError("this cycle has no provider; give one to LlmCycle, or use run() with settings")
        return RunSettings(
            provider=self._provider,
            model=self._model,
            label=f"{self._provider.name}/{self._model}",
            system=self._system,
            registry=registry,
            config=self._config,
        )

    async def _stream(
        self, messages: Sequence[Message], settings: RunSettings, scope: InvocationScope
    ) -> AsyncGenerator[AgentEvent, None]:
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue(maxsize=1)

        async def drive() -> None:
            try:
                await self.run(messages, settings, evolve(scope, emit=events.put))
            finally:
                await events.put(None)

        task = asyncio.create_task(drive())
        try:
            while (event := await events.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()
            while not task.done():  # The run may wait for somebody to take its last events.
                _drain(events)
                await asyncio.wait([task], timeout=0.01)
            with suppress(asyncio.CancelledError, SidecarError):
                task.result()


def _drain(events: "asyncio.Queue[AgentEvent | None]") -> None:
    while not events.empty():
        events.get_nowait()


def _without_repeated_warnings(emit: Emit, seen: set[tuple[str, str]]) -> Emit:
    """Each turn mends the same tools again; the host hears of each mending once a conversation."""

    async def emit_once(event: AgentEvent) -> None:
        if isinstance(event, Warned):
            if (event.code, event.message) in seen:
                return
            seen.add((event.code, event.message))
        await emit(event)

    return emit_once
