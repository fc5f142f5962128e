"""What tests of the embedding API share: a cycle over a scripted model, and its events."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import frozen

from sidecar import (
    AgentEvent,
    CycleConfig,
    InvocationScope,
    LlmCycle,
    Message,
    Provider,
    ProviderOptions,
    open_provider,
)
from tests.harness.model_dialects import DialectName
from tests.harness.model_server import Reply, ScriptedModel

IMPATIENT = CycleConfig(retry_base_secs=0.001)
"""The defaults, without the wait before a retry."""


@frozen(kw_only=True)
class Talk:
    """A conversation, and the model on its other end."""

    cycle: LlmCycle
    model: ScriptedModel
    provider: Provider

    @property
    def roles(self) -> list[str]:
        return [message.role for message in self.cycle.messages()]

    def results(self, request: int) -> list[Any]:
        """What the model was shown of tool calls in a request, counted from 1."""
        return [m["content"] for m in self.model.requests[request - 1].messages if m["role"] == "tool"]


@asynccontextmanager
async def talk(
    *replies: Reply,
    config: CycleConfig = IMPATIENT,
    system: str | None = None,
    messages: Sequence[Message] = (),
    dialect: DialectName = "openai",
    **provider: Any,
) -> AsyncIterator[Talk]:
    """An LlmCycle whose model plays these replies over HTTP; `provider` are more of its options."""
    async with ScriptedModel(*replies, dialect=dialect) as model:
        opened = open_provider("local", ProviderOptions(base_url=model.base_url, **provider))
        try:
            cycle = LlmCycle(opened, model="scripted", system=system, config=config, messages=messages)
            yield Talk(cycle=cycle, model=model, provider=opened)
        finally:
            await opened.aclose()


class Heard:
    """Keeps events in the order in which they come; `scope` makes a scope that tells them."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    async def emit(self, event: AgentEvent) -> None:
        self.events.append(event)

    def scope(self, **more: Any) -> InvocationScope:
        return InvocationScope(emit=self.emit, **more)

    @property
    def types(self) -> list[str]:
        """The types of the events, neighbouring deltas as one."""
        return types_of(self.events)

    def of(self, *types: str) -> list[Any]:
        """The events of these types."""
        return [event for event in self.events if event.type in types]


def types_of(events: Sequence[AgentEvent]) -> list[str]:
    """The types of events, neighbouring deltas as one."""
    types = [str(event.type) for event in events]
    return [t for i, t in enumerate(types) if not (i and t == types[i - 1] and t.endswith("Delta"))]
