"""Whatever a model, its tools, a person and the host do, and whenever: the history stays valid, and so do events.

Random conversations go through LlmCycle with a provider in this process: calls in every odd shape, tools that
fail, hang, ask and stream, models that break off, context that overflows, words said meanwhile, cancelling at
any moment. Source: protocol.md, decided case 11 and Order and delivery; `sidecar/ARCHITECTURE.md`, Invariants.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from attrs import evolve, frozen
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sidecar.agent.compaction import compact
from sidecar.agent.config import CycleConfig, RunSettings
from sidecar.agent.cycle import LlmCycle
from sidecar.agent.history import user
from sidecar.agent.run import Steering
from sidecar.protocol.errors import ModelError, SidecarError, ToolError
from sidecar.protocol.events import AgentEvent
from sidecar.protocol.values import ImageBlock, Message, TextBlock, ToolResult, Usage
from sidecar.providers import anthropic, anthropic_messages, openai_chat, openai_messages
from sidecar.providers.base import (
    ExtrasPiece,
    FinishPiece,
    ModelRequest,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from sidecar.providers.lowering import ToolLowering
from sidecar.tools.approval import ApprovalAnswer, ApprovalQuestion
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.registry import ToolRegistry
from sidecar.tools.scope import InvocationScope
from tests.harness import anthropic_strictness, model_strictness
from tests.harness.scripted_provider import Pause, ScriptedProvider, Step
from tests.harness.tools import Made

MAX_EXAMPLES = 250
"""About six seconds on one core (own choice)."""

# Tools --------------------------------------------------------------------------------------------------


async def echo(args: Any, ctx: ToolContext) -> ToolOutput:
    return args


async def refuse(args: Any, ctx: ToolContext) -> ToolOutput:
    return ToolResult.error("not like this")


async def crash(args: Any, ctx: ToolContext) -> ToolOutput:
    raise ValueError("broken")


async def lose_disk(args: Any, ctx: ToolContext) -> ToolOutput:
    raise ToolError("io", "the disk is gone")


async def hang(args: Any, ctx: ToolContext) -> ToolOutput:
    await asyncio.Event().wait()


async def ponder(args: Any, ctx: ToolContext) -> ToolOutput:
    for number in range(6):
        await ctx.progress(number, 6)
        await asyncio.sleep(0)
    return "x" * 2000


async def stream(args: Any, ctx: ToolContext) -> ToolOutput:
    async def parts() -> AsyncIterator[str]:
        for part in ("a", "", "b"):
            yield part
            await asyncio.sleep(0)

    return parts()


async def draw(args: Any, ctx: ToolContext) -> ToolOutput:
    return ToolResult.success(content=(TextBlock(text=""), ImageBlock(data="QUJD", mime_type="image/png")))


async def say_nothing(args: Any, ctx: ToolContext) -> ToolOutput:
    return ""


async def nest(args: Any, ctx: ToolContext) -> ToolOutput:
    return await ctx.invoke("ponder", {})


NEEDS_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

TOOLS: tuple[BaseTool, ...] = (
    Made("echo", echo, NEEDS_TEXT),
    Made("risky", echo, requires_approval=True),
    Made("closed", echo, required_permissions=("shell",)),
    Made("tools.with/odd:name", echo),
    *(
        Made(body.__name__, body)
        for body in (refuse, crash, lose_disk, hang, ponder, stream, draw, say_nothing, nest)
    ),
)

# What a model may send ----------------------------------------------------------------------------------

TEXTS = st.sampled_from(["", " ", "word ", "\n", "天气", "\ud83d", "a longer sentence that takes some room. " * 5])
NAMES = st.sampled_from([*(tool.name for tool in TOOLS), *["echo", "ponder", "risky"] * 2])
ODD_NAMES = st.sampled_from(["nothing_like_it", "functions.echo", "<|x|>echo", "", " ", "e" * 80])
ARGUMENTS = st.sampled_from(
    [
        *("{}", '{"text": "hi"}', '{"text": "hi"}', '{"text": 3}', '{"text": "\\ud800"}'),
        *('"{}"', "", "[]", "null", '{"a": NaN}', '{"text": ', '{"text": "', 'hi"}'),
    ]
)
IDS = st.sampled_from([None, None, "c1", "c2", "", "an id with spaces!", "i" * 70])

CALLS = st.builds(
    ToolCallPiece,
    index=st.sampled_from([None, 0, 0, 1, 2]),
    call_id=IDS,
    name=st.one_of(NAMES, NAMES, NAMES, st.none(), ODD_NAMES),
    arguments=ARGUMENTS,
)
PLAIN_CALLS = st.builds(ToolCallPiece, name=NAMES, arguments=st.just('{"text": "hi"}'))
OTHERS = st.one_of(
    st.builds(TextPiece, text=TEXTS),
    st.builds(ReasoningPiece, text=TEXTS),
    st.builds(Pause, st.integers(1, 3)),
    st.just(UsagePiece(usage=Usage(input_tokens=5, output_tokens=3, total_tokens=8))),
    st.just(ExtrasPiece(data={"signature": "abc"})),
)
ENDINGS = st.sampled_from(
    [
        *[FinishPiece(reason=reason) for reason in ("stop", "stop", "toolCalls", "toolCalls", "length", "odd")],
        FinishPiece(reason="contentFilter"),
        Pause(1),
        ModelError("overloaded", provider="scripted", retryable=True),
        ModelError("refused", provider="scripted"),
        ModelError("too long", provider="scripted", kind="contextOverflow"),
    ]
)
STEPS = st.lists(st.one_of(OTHERS, CALLS, PLAIN_CALLS), max_size=7)
TURNS = st.builds(lambda steps, ending: (*steps, ending), STEPS, ENDINGS)

# What else may happen -----------------------------------------------------------------------------------

ANSWERS = st.one_of(
    st.builds(
        ApprovalAnswer,
        decision=st.sampled_from(["allowOnce", "allowSession", "deny", "denyAndStop"]),
        by=st.just("host"),
        updated_input=st.sampled_from([None, None, {}, {"other": 1}]),
    ),
    st.none(),
)


MOMENTS = (
    *("runStarted", "assistantTextDelta", "assistantReasoningDelta", "turnComplete", "retrying", "compacted"),
    *("toolExecutionStarted", "toolExecutionProgress", "toolExecutionCompleted", "approvalRequested"),
)


@frozen(kw_only=True)
class Cancel:
    """The run is cancelled so many ticks after its first event of this type; 0: while the host takes it."""

    event: str
    ticks: int


@frozen(kw_only=True)
class Submit:
    """A run, and what disturbs it: the model, words said at events, a person, a slow host, cancelling."""

    prompt: str
    turns: list[tuple[Step, ...]]
    said_at: frozenset[int]
    answer: ApprovalAnswer | None
    host_ticks: int
    cancel: Cancel | None
    policy: dict[str, Any]
    max_turns: int


class Compact:
    """Compaction on demand."""


TELL_ALL = {"notFound": "tellModel", "permissionDenied": "tellModel", "io": "tellModel"}

SUBMITS = st.builds(
    Submit,
    prompt=st.sampled_from(["go", "a longer prompt " * 40]),
    turns=st.lists(TURNS, min_size=1, max_size=5),
    said_at=st.frozensets(st.integers(0, 25), max_size=2),
    answer=ANSWERS,
    host_ticks=st.sampled_from([0, 0, 1, 2]),
    cancel=st.one_of(st.none(), st.builds(Cancel, event=st.sampled_from(MOMENTS), ticks=st.integers(0, 8))),
    policy=st.sampled_from(
        [{}, *[{"notFound": "tellModel", "permissionDenied": "tellModel", "io": "tellModel"}] * 3]
    ),
    max_turns=st.integers(1, 5),
)
ACTIONS = st.lists(st.one_of(SUBMITS, SUBMITS, SUBMITS, st.builds(Compact)), min_size=1, max_size=4)

# What must hold -----------------------------------------------------------------------------------------


def check_history(messages: Sequence[Message]) -> None:
    """Each call is followed by its result, in order; ids are unique; no assistant message is empty."""
    seen: set[str] = set()
    open_calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert open_calls and message.call_id == open_calls.pop(0), messages
            continue
        assert not open_calls, messages
        if message.role == "assistant":
            assert message.content or message.tool_calls, messages
        for call in message.tool_calls or ():
            assert call.call_id and call.call_id not in seen, messages
            assert isinstance(call.input, dict)
            seen.add(call.call_id)
            open_calls.append(call.call_id)
    assert not open_calls, messages


def check_events(events: Sequence[AgentEvent]) -> None:
    """`runStarted` first, `runCompleted` last; what begins ends, once, and nothing of it comes before or after."""
    types = [event.type for event in events]
    assert types[0] == "runStarted" and types[-1] == "runCompleted", types
    assert (types.count("runStarted"), types.count("runCompleted")) == (1, 1), types
    for begin, end, key in (
        ("toolExecutionStarted", "toolExecutionCompleted", "call_id"),
        ("approvalRequested", "approvalResolved", "request_id"),
    ):
        began = [getattr(event, key) for event in events if event.type == begin]
        ended = [getattr(event, key) for event in events if event.type == end]
        assert Counter(began) == Counter(ended) and len(set(began)) == len(began), events
    running: set[str] = set()
    for event in events:
        match event.type:
            case "toolExecutionStarted":
                running.add(event.call_id)  # type: ignore[union-attr]
            case "toolExecutionCompleted":
                running.remove(event.call_id)  # type: ignore[union-attr]
            case "toolExecutionProgress" | "approvalRequested":
                assert event.call_id in running, events  # type: ignore[union-attr]


def check_heard(events: Sequence[AgentEvent], latest: Sequence[Message]) -> None:
    """What the host has heard the model say in a run is what the history keeps of it."""
    heard = "".join(event.text for event in events if event.type == "assistantTextDelta")  # type: ignore[union-attr]
    assert heard == "".join(str(message.content) for message in latest if message.role == "assistant")


class Providers:
    """The bodies that real providers would send, looked at as their servers look at them."""

    def __init__(self) -> None:
        self._openai_tools = ToolLowering(openai_chat.LIMITS, openai_chat.written_tool)
        self._openai = openai_messages.ConversationWriter("openai", openai_chat.LIMITS)
        self._anthropic_tools = ToolLowering(anthropic.LIMITS, anthropic.written_tool)
        self._anthropic = anthropic_messages.ConversationWriter("anthropic", anthropic.LIMITS)

    def complaints(self, request: ModelRequest) -> list[str]:
        """Why any of them would refuse the request."""
        lowered = self._openai_tools.lower(request.tools)
        written = self._openai.write(request, lowered.wire_name)
        openai = openai_chat.encoded({"model": "m", "stream": True}, written, lowered)
        lowered = self._anthropic_tools.lower(request.tools)
        turns = self._anthropic.write(request, lowered.wire_name)
        messages = anthropic.encoded({"model": "m", "max_tokens": 1, "stream": True}, turns, lowered)
        return [
            *model_strictness.complaints(json.loads(openai)),
            *anthropic_strictness.complaints(json.loads(messages), {"anthropic-version": "2023-06-01"}),
        ]


# The conversations --------------------------------------------------------------------------------------


class Conversation:
    """One conversation under way, with all that is looked at after each action."""

    def __init__(self, context_tokens: int | None, config: CycleConfig) -> None:
        self.provider = ScriptedProvider(context_tokens=context_tokens)
        self.config = config
        self.cycle = LlmCycle()
        self.registry = ToolRegistry()
        self.registry.register_all(TOOLS)
        self.providers = Providers()

    async def submit(self, action: Submit) -> None:
        self.provider.play(action.turns)
        events: list[AgentEvent] = []
        steering = Steering()

        async def emit(event: AgentEvent) -> None:
            if len(events) in action.said_at:
                steering.say("and another thing")
            events.append(event)
            is_first = [e.type for e in events].count(event.type) == 1
            if action.cancel is not None and action.cancel.event == event.type and is_first:
                after(action.cancel.ticks, run.cancel)
            for _ in range(action.host_ticks):
                await asyncio.sleep(0)
            check_history(self.cycle.messages())

        async def approve(question: ApprovalQuestion) -> ApprovalAnswer:
            for _ in range(6):
                await asyncio.sleep(0)
            if action.answer is None:
                raise ConnectionError("the host is gone")
            return action.answer

        config = evolve(self.config, error_policy=action.policy, max_turns=action.max_turns)
        run_settings = RunSettings(
            provider=self.provider, model="any", label="scripted/any", registry=self.registry, config=config
        )
        scope = InvocationScope(session_id="s", emit=emit, approve=approve)
        run = asyncio.create_task(self.cycle.run([user(action.prompt)], run_settings, scope, steering))
        await asyncio.wait([run], timeout=10)
        assert run.done(), "the run hangs"
        if not run.cancelled():
            error = run.exception()
            assert error is None or isinstance(error, SidecarError), repr(error)
        check_events(events)
        latest = self.cycle.messages()[self.cycle.conversation.latest_start :]
        assert latest[0] == user(action.prompt)
        check_heard(events, latest)

    async def compact(self) -> None:
        await compact(self.cycle.conversation, target_tokens=0)

    async def check(self) -> None:
        """All that holds between actions."""
        messages = self.cycle.messages()
        check_history(messages)
        tools = self.registry.definitions()
        coming = ModelRequest(model="any", messages=(*messages, user("and now?")), tools=tools)
        for request in (*self.provider.requests, coming):
            assert self.providers.complaints(request) == []
        self.provider.requests.clear()
        assert self.provider.open == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}


def after(ticks: int, act: Callable[[], Any]) -> None:
    """Calls `act` after so many turns of the event loop, now for none."""
    if ticks == 0:
        act()
    else:
        asyncio.get_running_loop().call_soon(after, ticks - 1, act)


async def converse(actions: Sequence[Submit | Compact], context_tokens: int | None, config: CycleConfig) -> None:
    conversation = Conversation(context_tokens, config)
    for action in actions:
        match action:
            case Submit():
                await conversation.submit(action)
            case Compact():
                await conversation.compact()
        await conversation.check()


CONFIGS = st.builds(
    CycleConfig,
    tool_timeout_secs=st.just(0.002),
    max_tool_result_bytes=st.sampled_from([40, 500]),
    repeat_warning=st.just(2),
    repeat_limit=st.just(3),
    max_retries=st.just(1),
    retry_base_secs=st.just(0.0),
    summary=st.sampled_from(["model", "rule"]),
)


PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
"""Without the one that explains a failure: it traces every line, which takes minutes here."""


@settings(max_examples=MAX_EXAMPLES, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(ACTIONS, st.sampled_from([None, None, 400, 2000]), CONFIGS)
def test_whatever_happens_history_and_events_stay_valid(
    actions: list[Submit | Compact], context_tokens: int | None, config: CycleConfig
) -> None:
    asyncio.run(converse(actions, context_tokens, config))
