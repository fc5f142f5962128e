"""The loop and what hangs on it, in process: each row of the design that no other folder tests by itself.

Source: protocol.md (Errors, Events, Order and delivery, Decided cases), and the design's tables of errors, of
defaults and of the order of events.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Literal, get_args

import pytest
from attrs import evolve

from sidecar import (
    ApprovalAnswer,
    ApprovalQuestion,
    BaseTool,
    CycleConfig,
    FinishPiece,
    ImageBlock,
    InvocationScope,
    LlmCycle,
    Message,
    ModelError,
    ModelInfo,
    ModelPiece,
    ModelRequest,
    RunSettings,
    SidecarError,
    Steering,
    Step,
    TextBlock,
    TextPiece,
    ToolCall,
    ToolCallPiece,
    ToolChain,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolResult,
    ToolSelector,
    ToolSource,
    Usage,
    tool,
)
from tests.harness.embedding import IMPATIENT, Heard, talk, types_of
from tests.harness.model_server import (
    Reply,
    breaks_off,
    calls,
    disconnects,
    fails,
    refuses,
    resets,
    says,
    stalls,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@tool
async def look(at: str = "") -> str:
    """Looks at a place."""
    return f"saw {at}"


def registry_of(*tools: BaseTool) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_all(tools or (look,))
    return registry


# Errors -------------------------------------------------------------------------------------------------

Action = Literal["tellModel", "stop"]

ERRORS: dict[str, Action] = {
    "executionFailed": "tellModel",
    "invalidArguments": "tellModel",
    "timeout": "tellModel",
    "other": "tellModel",
    "notFound": "stop",
    "permissionDenied": "stop",
    "mcpError": "stop",
    "mcpNotInitialized": "stop",
    "mcpTimeout": "stop",
    "io": "stop",
}
"""What each kind of error does to its run, unless a policy says otherwise."""


def raising(error: ToolError) -> BaseTool:
    @tool(name="fails")
    async def fails_always() -> None:
        raise error

    return fails_always


@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("policy", [None, *get_args(Action)])
async def test_a_failed_call_does_to_its_run_what_its_kind_or_the_policy_says(kind: Any, policy: Any) -> None:
    error = ToolError(kind, "it broke")
    config = evolve(IMPATIENT, error_policy={kind: policy} if policy else {})
    heard = Heard()
    async with talk(calls(("fails", {})), says("I see."), config=config) as spoken:
        run = spoken.cycle.submit_with_tools("go", registry_of(raising(error)), heard.scope())
        if (policy or ERRORS[kind]) == "tellModel":
            assert (await run).message.content == "I see."
            assert spoken.results(2) == ["error: it broke"]
        else:
            with pytest.raises(ToolError) as raised:
                await run
            assert (raised.value.kind, raised.value.data) == (kind, {"tool": "fails", "turns": 1})
            assert heard.events[-1].error.data == {"kind": kind, "tool": "fails", "turns": 1}  # type: ignore[union-attr]
        assert [message.content for message in spoken.cycle.messages() if message.role == "tool"] == [
            "error: it broke"
        ]
    assert error.is_recoverable == (ERRORS[kind] == "tellModel")
    (completed,) = heard.of("toolExecutionCompleted")
    assert (completed.is_error, completed.error_kind) == (True, kind)


@pytest.mark.parametrize(("decision", "ends"), [("deny", False), ("denyAndStop", True)])
@pytest.mark.parametrize("policy", get_args(Action))
async def test_a_person_s_denial_wins_over_the_policy(decision: Any, ends: bool, policy: Action) -> None:
    async def approve(question: ApprovalQuestion) -> ApprovalAnswer:
        return ApprovalAnswer(decision=decision, by="host", reason="not today")

    @tool(requires_approval=True)
    def risk() -> None: ...

    config = evolve(IMPATIENT, error_policy={"permissionDenied": policy})
    async with talk(calls(("risk", {})), says("Well."), config=config) as spoken:
        run = spoken.cycle.submit_with_tools("go", registry_of(risk), InvocationScope(approve=approve))
        if ends:
            with pytest.raises(ToolError, match="risk was denied by the user: not today"):
                await run
        else:
            assert (await run).message.content == "Well."


# The ways to submit -------------------------------------------------------------------------------------


async def test_a_prompt_without_tools_offers_none_and_the_next_goes_on_from_it() -> None:
    async with talk(says("Hello."), says("Again."), system="Be brief.") as spoken:
        first = await spoken.cycle.submit("hi")
        await spoken.cycle.submit([TextBlock(text="and now?")])  # type: ignore[arg-type]
        assert [request.tool_names for request in spoken.model.requests] == [[], []]
        sent = spoken.model.requests[1].messages
    assert (first.message.content, first.turns, first.stop_reason) == ("Hello.", 1, "stop")
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert sent[0]["content"] == "Be brief."
    assert spoken.roles == ["user", "assistant", "user", "assistant"]


async def test_messages_of_any_role_join_and_are_mended_first() -> None:
    call = ToolCall(call_id="c1", tool_name="look", input={})
    given = [
        Message(role="user", content="look"),
        Message(role="assistant", content="", tool_calls=(call,)),
        Message(role="assistant", content=""),
        Message(role="user", content="and?"),
    ]
    async with talk(says("Nothing there.")) as spoken:
        await spoken.cycle.submit_messages(given)
    assert spoken.roles == ["user", "assistant", "tool", "user", "assistant"]
    assert (spoken.cycle.messages()[2].call_id, spoken.cycle.messages()[2].is_error) == ("c1", True)


async def test_a_conversation_is_given_out_as_a_value_and_taken_up_again() -> None:
    async with talk(says("One.")) as spoken:
        await spoken.cycle.submit("first")
        kept = spoken.cycle.messages()
    assert isinstance(kept, tuple)
    async with talk(says("Two."), messages=kept) as spoken:
        await spoken.cycle.submit("second")
    assert [message.content for message in spoken.cycle.messages()] == ["first", "One.", "second", "Two."]
    assert len(kept) == 2


async def test_a_stream_without_tools_ends_with_the_error_of_its_run() -> None:
    async with talk(refuses(400, "no such model")) as spoken:
        events = []
        with pytest.raises(ModelError, match="no such model"):
            async for event in spoken.cycle.submit_stream("hi"):
                events.append(event)
    assert types_of(events) == ["runStarted", "runCompleted"]
    assert events[-1].error.data["kind"] == "modelError"  # type: ignore[union-attr]


async def test_leaving_a_stream_cancels_its_run_and_the_conversation_goes_on() -> None:
    slow = stalls(says("a long answer", piece_characters=1), after=3)
    async with talk(slow, says("Short.")) as spoken:
        async with aclosing(spoken.cycle.submit_stream_with_tools("hi", registry_of())) as events:
            async for event in events:
                if event.type == "assistantTextDelta":
                    break
        async with asyncio.timeout(5):
            await spoken.model.requests[0].disconnected.wait()
        await spoken.cycle.submit("go on")
    assert spoken.roles == ["user", "assistant", "user", "assistant"]
    assert "a long answer".startswith(str(spoken.cycle.messages()[1].content))


async def test_leaving_a_stream_while_tools_run_gives_each_call_a_result() -> None:
    running = asyncio.Event()

    @tool
    async def wait() -> None:
        running.set()
        await asyncio.Event().wait()

    both = calls(("wait", {}, "c1"), ("look", {"at": "x"}, "c2"))
    async with talk(both, says("Fine.")) as spoken:
        stream = spoken.cycle.submit_stream_with_tools("hi", registry_of(wait, look))
        async with aclosing(stream) as events:
            async for event in events:
                if event.type == "toolExecutionCompleted":
                    await running.wait()
                    break
        await spoken.cycle.submit("go on")  # The strict model accepts the history.
        told = spoken.results(2)
    assert told == ["error: the run was cancelled before this call ended", "saw x"]


async def test_any_class_with_the_methods_of_a_provider_is_one() -> None:
    class Parrot:
        name = "parrot"
        context_tokens: int | None = None

        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
            last = request.messages[-1]
            if last.role == "user":
                yield ToolCallPiece(name="look", arguments=f'{{"at": "{last.content}"}}')
                yield FinishPiece(reason="toolCalls")
            else:
                yield TextPiece(text=f"It {last.content}.")
                yield FinishPiece(reason="stop")

        async def list_models(self) -> tuple[ModelInfo, ...]:
            return ()

        async def aclose(self) -> None: ...

    cycle = LlmCycle(Parrot(), model="any")
    assert (await cycle.submit_with_tools("moon", registry_of())).message.content == "It saw moon."


# The order of events ------------------------------------------------------------------------------------

CALL = calls(("look", {}), text="Let me see.")

ORDERS: dict[str, tuple[tuple[Reply, ...], list[str]]] = {
    "an answer": (
        (says("Hi."),),
        ["runStarted", "assistantTextDelta", "turnComplete", "runCompleted"],
    ),
    "thoughts before an answer": (
        (says("Hi.", reasoning="Hm."),),
        ["runStarted", "assistantReasoningDelta", "assistantTextDelta", "turnComplete", "runCompleted"],
    ),
    "a call": (
        (CALL, says("Seen.")),
        [
            "runStarted",
            *("assistantTextDelta", "toolExecutionStarted", "turnComplete", "toolExecutionCompleted"),
            *("assistantTextDelta", "turnComplete", "runCompleted"),
        ],
    ),
    "two calls": (
        (calls(("look", {"at": "a"}), ("look", {"at": "b"})), says("Seen.")),
        [
            "runStarted",
            *("toolExecutionStarted", "toolExecutionStarted", "turnComplete"),
            *("toolExecutionCompleted", "toolExecutionCompleted"),
            *("assistantTextDelta", "turnComplete", "runCompleted"),
        ],
    ),
    "a retry": (
        (refuses(503), says("Hi.")),
        ["runStarted", "retrying", "assistantTextDelta", "turnComplete", "runCompleted"],
    ),
    "a failure": (
        (breaks_off(says("Half.", piece_characters=2), after=2),),
        ["runStarted", "assistantTextDelta", "runCompleted"],
    ),
}
"""What the model does, and the events of the run."""


@pytest.mark.parametrize("case", ORDERS)
async def test_events_come_in_their_order(case: str) -> None:
    script, expected = ORDERS[case]
    heard = Heard()
    async with talk(*script, dialect="vllm") as spoken:
        run = spoken.cycle.submit_with_tools("go", registry_of(), heard.scope())
        if case == "a failure":
            with pytest.raises(ModelError):
                await run
        else:
            await run
    assert heard.types == expected
    turns = heard.of("turnComplete")
    assert [turn.turn for turn in turns] == list(range(1, len(turns) + 1))
    assert [turn.reason for turn in turns] == ["toolCalls"] * (len(turns) - 1) + ["stop"] * min(len(turns), 1)


# Turns --------------------------------------------------------------------------------------------------


async def test_results_join_in_the_order_of_the_calls_whatever_ends_first() -> None:
    second_ended = asyncio.Event()

    @tool
    async def first() -> str:
        await second_ended.wait()
        return "one"

    @tool
    async def second() -> str:
        second_ended.set()
        return "two"

    heard = Heard()
    async with talk(calls(("first", {}, "c1"), ("second", {}, "c2")), says("Both.")) as spoken:
        await spoken.cycle.submit_with_tools("go", registry_of(first, second), heard.scope())
        assert spoken.results(2) == ["one", "two"]
    assert [event.call_id for event in heard.of("toolExecutionCompleted")] == ["c2", "c1"]


@pytest.mark.parametrize(
    ("first", "turns"),
    [(calls(("look", {}), finish="stop"), 2), (says("Done.", finish="tool_calls"), 1)],
    ids=["calls and stop", "tool_calls and none"],
)
async def test_what_counts_is_whether_an_answer_holds_calls(first: Reply, turns: int) -> None:
    async with talk(first, says("Seen.")) as spoken:
        assert (await spoken.cycle.submit_with_tools("go", registry_of())).turns == turns


async def test_the_same_call_again_is_noted_and_then_ends_the_run() -> None:
    assert (CycleConfig().repeat_warning, CycleConfig().repeat_limit) == (3, 5)
    config = evolve(IMPATIENT, repeat_warning=2, repeat_limit=3)
    same = [calls(("look", {"at": "x"})) for _ in range(3)]
    async with talk(*same, config=config) as spoken:
        with pytest.raises(SidecarError, match="called look with the same arguments 3 times in a row") as failed:
            await spoken.cycle.submit_with_tools("go", registry_of())
        told = spoken.results(3)
    assert failed.value.kind == "repeatedToolCalls"
    assert told[0] == "saw x" and told[1].startswith("saw x\n\nnote: this is the same call")
    assert spoken.roles == ["user", *["assistant", "tool"] * 3]


async def test_shared_state_lives_as_long_as_the_run() -> None:
    @tool
    async def remember(word: str, ctx: ToolContext) -> list[str]:
        words: list[str] = ctx.shared_state.setdefault("words", [])
        words.append(word)
        return list(words)

    script = calls(("remember", {"word": "a"})), calls(("remember", {"word": "b"})), says("Kept.")
    registry = registry_of(remember)
    async with talk(*script, *script) as spoken:
        await spoken.cycle.submit_with_tools("go", registry)
        assert spoken.results(3) == ['["a"]', '["a","b"]']
        await spoken.cycle.submit_with_tools("go", registry)
        assert spoken.results(6)[2:] == ['["a"]', '["a","b"]']


async def test_tools_that_join_and_leave_do_so_for_the_next_turn() -> None:
    registry = registry_of()

    @tool
    async def swap() -> str:
        registry.unregister("swap")
        registry.register(look)
        return "swapped"

    registry.replace(("look",), ())
    registry.register(swap)
    async with talk(calls(("swap", {})), calls(("look", {"at": "x"})), says("Done.")) as spoken:
        await spoken.cycle.submit_with_tools("go", registry)
        assert [request.tool_names for request in spoken.model.requests] == [["swap"], ["look"], ["look"]]


@pytest.mark.parametrize(
    ("selector", "offered"),
    [
        (ToolSelector(names=("l*",)), ["look"]),
        (ToolSelector(tags=("safe",)), ["look", "wave"]),
        (ToolSelector(categories=("greeting",)), ["wave"]),
        (ToolSelector(sources=("builtin",)), ["shout"]),
        (ToolSelector(tags=("safe",), exclude=("look",)), ["wave"]),
        (None, ["look", "shout", "wave"]),
    ],
    ids=str,
)
async def test_a_run_offers_the_tools_that_its_selector_takes(
    selector: ToolSelector | None, offered: list[str]
) -> None:
    @tool(category="greeting", tags=["safe"])
    def wave() -> None: ...

    @tool
    def shout() -> None: ...

    registry = ToolRegistry()
    registry.register(look, tags=["safe"])
    registry.register(wave)
    registry.register(shout, source=ToolSource(type="builtin"))
    async with talk(says("Hi.")) as spoken:
        settings = RunSettings(
            provider=spoken.provider, model="m", label="m", registry=registry, selector=selector
        )
        await LlmCycle().run([Message(role="user", content="go")], settings, InvocationScope())
        assert spoken.model.requests[0].tool_names == offered


async def test_what_is_said_meanwhile_is_heard_before_the_next_turn_and_at_the_end() -> None:
    steering = Steering()

    @tool
    async def mumble() -> None:
        steering.say("speak up")

    class Last(Heard):
        async def emit(self, event: Any) -> None:
            await super().emit(event)
            if event.type == "turnComplete" and event.turn == 2:
                assert steering.say("one more thing")

    heard = Last()
    async with talk(calls(("mumble", {})), says("Yes?"), says("Bye.")) as spoken:
        settings = RunSettings(provider=spoken.provider, model="m", label="m", registry=registry_of(mumble))
        first = [Message(role="user", content="go")]
        result = await spoken.cycle.run(first, settings, heard.scope(), steering)
    assert (result.message.content, result.turns) == ("Bye.", 3)
    said = [message.content for message in spoken.cycle.messages() if message.role == "user"]
    assert said == ["go", "speak up", "one more thing"]
    assert not steering.say("too late")


async def test_a_chain_is_one_call_to_the_model() -> None:
    @tool
    def measure(site: str) -> int:
        """Measures."""
        return len(site)

    @tool
    def book(metres: int) -> str:
        """Books."""
        return f"booked {metres} m"

    steps = [Step(tool="measure"), Step(tool="book", arguments=lambda args, state: {"metres": state["measure"]})]
    chain = ToolChain("book_site", "Measures and books.", steps)
    script = calls(("book_site", {"site": "meadow"})), says("Booked.")
    async with talk(*script) as spoken:
        await spoken.cycle.submit_with_tools("go", registry_of(measure, book, chain))
        assert spoken.results(2) == ["booked 6 m"]


# Failures of the model ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        refuses(429, headers={"retry-after": "0"}),
        refuses(500),
        refuses(503),
        resets(says("x"), after=0),
        disconnects(says("x"), after=0),
        breaks_off(says("x"), after=0),
        fails(says("x"), {"message": "overloaded", "type": "server_error"}, after=0),
    ],
    ids=["429", "500", "503", "reset", "disconnect", "empty stream", "error in the stream"],
)
async def test_a_failure_that_may_pass_is_tried_again_and_no_tool_runs_twice(failure: Reply) -> None:
    ran: list[str] = []

    @tool
    async def act(what: str) -> str:
        ran.append(what)
        return "done"

    heard = Heard()
    async with talk(calls(("act", {"what": "it"})), failure, says("Done.")) as spoken:
        result = await spoken.cycle.submit_with_tools("go", registry_of(act), heard.scope())
        assert len(spoken.model.requests) == 3
    assert (result.message.content, result.turns, ran) == ("Done.", 2, ["it"])
    assert [event.attempt for event in heard.of("retrying")] == [1]


@pytest.mark.parametrize("failure", [refuses(400), refuses(401), refuses(404)], ids=["400", "401", "404"])
async def test_a_failure_that_will_not_pass_is_not_tried_again(failure: Reply) -> None:
    async with talk(failure) as spoken:
        with pytest.raises(ModelError) as raised:
            await spoken.cycle.submit("go")
        assert (raised.value.retryable, len(spoken.model.requests)) == (False, 1)


async def test_tries_end_at_their_number_and_what_has_come_is_never_asked_for_again() -> None:
    config = evolve(IMPATIENT, max_retries=2)
    async with talk(*[refuses(503)] * 3, config=config) as spoken:
        with pytest.raises(ModelError):
            await spoken.cycle.submit("go")
        assert len(spoken.model.requests) == 3
    async with talk(resets(says("Half an answer", piece_characters=4), after=2)) as spoken:
        with pytest.raises(ModelError):
            await spoken.cycle.submit("go")
        assert len(spoken.model.requests) == 1
    assert spoken.roles == ["user", "assistant"]


async def test_a_stream_that_falls_silent_counts_as_lost() -> None:
    silent = stalls(says("Half an answer", piece_characters=4), after=2)
    async with talk(silent, idle_timeout_secs=0.2) as spoken:
        with pytest.raises(ModelError) as raised:
            await spoken.cycle.submit("go")
    assert raised.value.kind == "modelTimeout"


# Size and tokens ----------------------------------------------------------------------------------------


async def test_usage_is_counted_by_turn_and_by_run_with_the_share_of_tools() -> None:
    heard = Heard()
    first = calls(("look", {"at": "x" * 400}), usage=(100, 20))
    async with talk(first, says("Seen.", usage=(250, 5))) as spoken:
        result = await spoken.cycle.submit_with_tools("go", registry_of(), heard.scope())
    one, two = (event.usage for event in heard.of("turnComplete"))
    assert (one.input_tokens, one.output_tokens, one.tool_result_tokens) == (100, 20, 0)
    assert (two.input_tokens, two.output_tokens, two.tool_result_tokens) == (250, 5, 101)
    assert one.tool_definition_tokens == two.tool_definition_tokens > 0
    assert result.usage == one + two == heard.events[-1].usage  # type: ignore[union-attr]
    assert (result.usage.total_tokens, Usage() + one) == (375, one)


async def test_near_the_limit_of_the_context_old_runs_shrink_and_the_latest_stays_whole() -> None:
    @tool
    def read() -> str:
        """Reads a long text."""
        return "word " * 1000

    script = [calls(("read", {})), says("Read.")] * 3
    heard = Heard()
    async with talk(*script, context_tokens=4000, config=evolve(IMPATIENT, summary="rule")) as spoken:
        for number in range(3):
            await spoken.cycle.submit_with_tools(f"run {number}", registry_of(read), heard.scope())
    assert all(event.after_tokens < event.before_tokens for event in heard.of("compacted"))
    assert heard.of("compacted")
    *old, latest = [message for message in spoken.cycle.messages() if message.role == "tool"]
    assert latest.content == "word " * 1000
    assert all("left out" in str(message.content) for message in old)


async def test_a_context_that_overflows_is_asked_again_with_less() -> None:
    too_long = refuses(400, "maximum context length is 100 tokens", code="context_length_exceeded")
    script = says("First."), too_long, says("Second.")
    async with talk(*script, config=evolve(IMPATIENT, summary="rule")) as spoken:
        await spoken.cycle.submit("a long story " * 200)
        assert (await spoken.cycle.submit("go on")).message.content == "Second."
        sizes = [len(str(request.messages)) for request in spoken.model.requests]
    assert sizes[2] < sizes[1]


# Content ------------------------------------------------------------------------------------------------


async def test_images_go_to_the_model_from_the_user_and_from_a_tool() -> None:
    image = ImageBlock(data=PIXEL, mime_type="image/png")

    @tool
    def picture() -> ToolResult:
        """Takes a picture."""
        return ToolResult.success(content=(TextBlock(text="here"), image))

    async with talk(calls(("picture", {})), says("A pixel.")) as spoken:
        await spoken.cycle.submit_with_tools((TextBlock(text="like this"), image), registry_of(picture))
        sent = spoken.model.requests[1].messages
    assert sent[0]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PIXEL}"
    assert PIXEL in str(sent[3:]), "an image of a tool goes along in the user's name"
    assert spoken.cycle.messages()[2].content == (TextBlock(text="here"), image)


async def test_reasoning_is_kept_apart_from_the_answer() -> None:
    heard = Heard()
    async with talk(says("Yes.", reasoning="Let me think."), dialect="vllm") as spoken:
        result = await spoken.cycle.submit_with_tools("go", registry_of(), heard.scope())
    assert (result.message.content, result.message.reasoning) == ("Yes.", "Let me think.")
    assert "".join(event.text for event in heard.of("assistantReasoningDelta")) == "Let me think."
    assert "".join(event.text for event in heard.of("assistantTextDelta")) == "Yes."
