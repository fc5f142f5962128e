"""Questions whether a call may run: what is asked, every answer, what is remembered, how a question ends.

Source: protocol.md, "agent/requestApproval" and "Approvals and questions"; that a rule may answer an open question
is our own choice (`by: "rule"`).
"""

import asyncio
from typing import Any

import pytest

from sidecar.permissions.book import PermissionBook
from sidecar.permissions.checker import PermissionChecker
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ApprovalDecision, ApprovalRequested, ApprovalResolved, Warned
from sidecar.protocol.messages import ApprovalOption, PermissionOptions, PermissionRule
from sidecar.protocol.values import JsonObject
from sidecar.tools.approval import ApprovalAnswer, ApprovalQuestion
from sidecar.tools.base import ToolContext, ToolOutput
from sidecar.tools.registry import InvocationScope, ToolRegistry
from tests.harness.tools import Made, Witness, echo

PATH = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "force": {"type": "boolean"}},
    "required": ["path"],
}


def writing(**more: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(Made("write", echo, PATH, required_permissions=("write",), **more))
    return registry


def said(decision: ApprovalDecision, **more: Any) -> Witness:
    return Witness(ApprovalAnswer(decision=decision, by="host", **more))


async def refusal(witness: Witness, registry: ToolRegistry | None = None) -> ToolError:
    with pytest.raises(ToolError) as failed:
        await (registry or writing()).invoke("write", {"path": "a"}, witness.scope())
    return failed.value


EXACTLY = PermissionRule(tool="write", decision="allow", arguments={"path": "a", "*": ""})


# The question -------------------------------------------------------------------------------------------


async def test_the_question_says_all_that_somebody_needs_to_decide() -> None:
    witness = said("allowOnce")
    await writing().invoke("write", {"path": "a"}, witness.scope(), call_id="c")
    (question,) = witness.questions
    assert question == ApprovalQuestion(
        request_id=question.request_id,
        session_id="ses-1",
        run_id="run-1",
        call_id="c",
        tool_name="write",
        input={"path": "a"},
        permissions=("write",),
        reason='permissions.ask: "write"',
        title='Run write with path: "a"?',
        options=(
            ApprovalOption(decision="allowOnce", label="Allow once"),
            ApprovalOption(
                decision="allowSession",
                label="Allow for this session: write path=a and nothing else",
                rule=EXACTLY,
            ),
            ApprovalOption(
                decision="allowAlways", label="Always allow: write path=a and nothing else", rule=EXACTLY
            ),
            ApprovalOption(decision="deny", label="Deny"),
            ApprovalOption(decision="denyAndStop", label="Deny and stop"),
        ),
    )


async def test_events_frame_the_question_and_name_it() -> None:
    witness = said("allowOnce")
    await writing().invoke("write", {"path": "a"}, witness.scope(), call_id="c")
    request_id = witness.questions[0].request_id
    assert witness.events == [
        ApprovalRequested(
            request_id=request_id,
            call_id="c",
            tool_name="write",
            permissions=("write",),
            reason='permissions.ask: "write"',
        ),
        ApprovalResolved(request_id=request_id, decision="allowOnce", by="host"),
    ]


async def test_a_tool_that_requires_approval_is_asked_about_whatever_it_needs() -> None:
    registry = ToolRegistry()
    registry.register(Made("pay", echo, requires_approval=True))
    witness = said("allowOnce")
    await registry.invoke("pay", {}, witness.scope())
    assert witness.questions[0].reason == "the tool requires approval"


async def test_a_title_is_one_short_line_whatever_the_arguments_hold() -> None:
    registry = ToolRegistry()
    registry.register(Made("say", echo, requires_approval=True))
    witness = said("allowOnce")
    await registry.invoke(
        "say", {"a": "x\n\u202ey", "b": "z" * 1000, "c": [1] * 1000, "d": "e" * 80}, witness.scope()
    )
    title = witness.questions[0].title
    assert title.startswith('Run say with a: "x\\n\\u202ey", b: "zzz')
    assert title.isprintable()
    assert len(title) <= 161


async def test_a_tool_may_say_which_arguments_a_remembered_approval_keeps() -> None:
    witness = said("allowOnce")
    registry = writing(remembered_arguments=("path",))
    await registry.invoke("write", {"path": "a*", "force": True}, witness.scope())
    assert witness.questions[0].options[1].rule == PermissionRule(
        tool="write", decision="allow", arguments={"path": "a[*]"}
    )


async def test_a_call_that_gives_every_argument_is_kept_without_a_word_on_others() -> None:
    witness = said("allowOnce")
    await writing().invoke("write", {"path": "a", "force": True}, witness.scope())
    assert witness.questions[0].options[2].rule == PermissionRule(
        tool="write", decision="allow", arguments={"path": "a", "force": "true"}
    )


async def test_what_cannot_be_remembered_is_not_on_offer() -> None:
    witness = said("allowOnce")
    await writing().invoke("write", {"path": "a" * 3000}, witness.scope())
    await writing().invoke("write", {"path": "a"}, witness.scope(session_id=None))
    offered = [[option.decision for option in question.options] for question in witness.questions]
    assert offered == [
        ["allowOnce", "deny", "denyAndStop"],
        ["allowOnce", "allowAlways", "deny", "denyAndStop"],
    ]


# The answers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "remembered"),
    [
        ("allowOnce", []),
        ("allowSession", [(EXACTLY, "session")]),
        ("allowAlways", [(EXACTLY, "workspace")]),
    ],
)
async def test_an_allowed_call_runs_and_its_option_s_rule_is_kept(
    decision: ApprovalDecision, remembered: list[tuple[PermissionRule, str]]
) -> None:
    witness = said(decision)
    made = await writing().invoke("write", {"path": "a"}, witness.scope())
    assert made.content == '{"path":"a"}'
    assert witness.remembered == remembered
    assert witness.decisions == [("write", "ask", None), ("write", "ask", decision)]


async def test_a_denial_is_told_to_the_model_with_its_reason() -> None:
    error = await refusal(said("deny", reason="use b instead"))
    assert (error.kind, error.action) == ("permissionDenied", "tellModel")
    assert error.message == "write was denied by the user: use b instead"
    assert error.data == {
        "tool": "write",
        "permission": "write",
        "rule": 'permissions.ask: "write"',
        "decidedBy": "host",
        "reason": "use b instead",
    }


async def test_deny_and_stop_stops_the_run() -> None:
    error = await refusal(said("denyAndStop"))
    assert (error.action, error.message) == ("stop", "write was denied by the user")


async def test_where_nobody_can_be_asked_the_error_says_how_to_allow_the_call() -> None:
    with pytest.raises(ToolError) as failed:
        await writing().invoke("write", {"path": "a"})
    assert (failed.value.kind, failed.value.action) == ("permissionDenied", None)
    assert failed.value.message == (
        "write was not approved: nobody can be asked here; allow it by a permission or a rule; "
        'this rule would allow it: {"tool":"write","decision":"allow","arguments":{"path":"a","*":""}}'
    )
    assert failed.value.data["decidedBy"] == "deadline"


async def test_a_question_that_cannot_be_asked_is_a_denial() -> None:
    async def broken(question: ApprovalQuestion) -> ApprovalAnswer:
        raise OSError("pipe closed")

    witness = Witness()
    with pytest.raises(ToolError, match="the question could not be asked"):
        await writing().invoke("write", {"path": "a"}, witness.scope(approve=broken))
    assert witness.told() == ["approvalRequested", "approvalResolved"]


@pytest.mark.parametrize("rule", [None, EXACTLY])
async def test_an_edited_call_runs_with_the_edited_arguments_and_those_are_remembered(
    rule: PermissionRule | None,
) -> None:
    witness = said("allowSession", updated_input={"path": "b"}, rule=rule)
    made = await writing().invoke("write", {"path": "a"}, witness.scope())
    assert (made.input, made.content) == ({"path": "b"}, '{"path":"b"}')
    kept = PermissionRule(tool="write", decision="allow", arguments={"path": "b", "*": ""})
    assert witness.remembered == [(kept, "session")]


async def test_edited_arguments_are_checked_against_the_schema_again() -> None:
    error = await refusal(said("allowOnce", updated_input={"path": 3}))
    assert (error.kind, error.message) == (
        "invalidArguments",
        "invalid arguments for write: path must be a string, not 3",
    )


async def test_edited_arguments_are_checked_against_the_permissions_again() -> None:
    book = PermissionBook()
    denies = PermissionRule(tool="write", decision="deny", arguments={"path": "secret"})
    book.set(PermissionOptions(rules=(denies,)), "workspace")
    registry = ToolRegistry(permissions=book.for_session())
    registry.register(Made("write", echo, PATH, required_permissions=("write",)))
    witness = said("allowAlways", updated_input={"path": "secret"})
    error = await refusal(witness, registry)
    assert (error.kind, error.data["rule"]) == ("permissionDenied", "rule 1: write path=secret")
    assert witness.remembered == []


async def test_a_host_may_keep_a_wider_rule_than_the_one_shown() -> None:
    wide = PermissionRule(tool="write", decision="allow", arguments={"path": "**"})
    witness = said("allowAlways", rule=wide)
    await writing().invoke("write", {"path": "a"}, witness.scope())
    assert witness.remembered == [(wide, "workspace")]


@pytest.mark.parametrize(
    "rule",
    [
        PermissionRule(tool="write", decision="allow", arguments={"path": "elsewhere/**"}),
        PermissionRule(tool="other", decision="allow"),
        PermissionRule(tool="write", decision="deny"),
    ],
)
async def test_a_rule_that_would_not_allow_this_very_call_is_not_kept(rule: PermissionRule) -> None:
    witness = said("allowSession", rule=rule)
    await writing().invoke("write", {"path": "a"}, witness.scope())
    assert witness.remembered == []
    assert [event.code for event in witness.events if isinstance(event, Warned)] == ["approvalNotRemembered"]


async def test_an_answer_that_was_not_on_offer_allows_once() -> None:
    witness = said("allowSession")
    await writing().invoke("write", {"path": "a"}, witness.scope(session_id=None))
    assert witness.remembered == []


# Remembering --------------------------------------------------------------------------------------------


async def test_what_was_allowed_for_the_session_is_not_asked_again_and_nothing_else_is_allowed() -> None:
    book = PermissionBook()
    registry = writing()
    witness = said("allowSession")
    scope = witness.scope(
        permissions=book.for_session("ses-1"),
        remember=lambda rule, where: book.remember(rule, where, "ses-1"),
    )
    calls: list[JsonObject] = [
        {"path": "a"},
        {"path": "a"},
        {"path": "b"},
        {"path": "a", "force": True},
        {"path": "a"},
    ]
    for arguments in calls:
        await registry.invoke("write", arguments, scope)
    assert [question.input for question in witness.questions] == [calls[0], calls[2], calls[3]]


class Desk:
    """Approvals that lie there until the test answers them."""

    def __init__(self) -> None:
        self.questions: asyncio.Queue[tuple[ApprovalQuestion, asyncio.Future[ApprovalAnswer]]] = asyncio.Queue()
        self.withdrawn: asyncio.Queue[str] = asyncio.Queue()

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        await self.questions.put((question, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self.withdrawn.put_nowait(question.request_id)
            raise


async def test_a_rule_that_comes_to_be_answers_the_questions_that_are_still_open() -> None:
    book, desk, witness, registry = PermissionBook(), Desk(), Witness(), writing()
    scope = witness.scope(
        approve=desk.approve,
        permissions=book.for_session("ses-1"),
        remember=lambda rule, where: book.remember(rule, where, "ses-1"),
    )
    calls = asyncio.create_task(
        registry.invoke_all([("write", {"path": p}) for p in ("src/a", "src/b", "x")], scope)
    )
    asked = {
        question.input["path"]: (question, answer)
        for question, answer in [await desk.questions.get() for _ in range(3)]
    }
    wide = PermissionRule(tool="write", decision="allow", arguments={"path": "src/**"})
    asked["src/a"][1].set_result(ApprovalAnswer(decision="allowSession", by="host", rule=wide))
    assert await desk.withdrawn.get() == asked["src/b"][0].request_id
    asked["x"][1].set_result(ApprovalAnswer(decision="deny", by="host"))
    assert [made.is_error for made in await calls] == [False, False, True]
    resolved = {event.request_id: event.by for event in witness.events if isinstance(event, ApprovalResolved)}
    assert resolved == {
        asked["src/a"][0].request_id: "host",
        asked["src/b"][0].request_id: "rule",
        asked["x"][0].request_id: "host",
    }


async def test_permissions_that_close_meanwhile_deny_an_open_question() -> None:
    book, desk, witness, registry = PermissionBook(), Desk(), Witness(), writing()
    scope = witness.scope(approve=desk.approve, permissions=book.for_session())
    call = asyncio.create_task(registry.invoke("write", {"path": "a"}, scope))
    await desk.questions.get()
    book.set(PermissionOptions(denied=("write",)), "workspace")
    registry.reconsider()
    with pytest.raises(ToolError) as failed:
        await call
    assert failed.value.data["rule"] == 'permissions.denied: "write"'
    assert witness.events[-1] == ApprovalResolved(
        request_id=desk.withdrawn.get_nowait(), decision="deny", by="rule"
    )


async def test_a_question_is_withdrawn_when_its_call_is_cancelled() -> None:
    desk, witness = Desk(), Witness()
    call = asyncio.create_task(writing().invoke("write", {"path": "a"}, witness.scope(approve=desk.approve)))
    question, _ = await desk.questions.get()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert desk.withdrawn.get_nowait() == question.request_id
    assert witness.events[-1] == ApprovalResolved(request_id=question.request_id, decision="deny", by="cancel")


async def test_the_time_that_an_answer_takes_does_not_count() -> None:
    desk = Desk()
    scope = Witness().scope(approve=desk.approve, timeout_secs=0.5)
    call = asyncio.create_task(writing().invoke("write", {"path": "a"}, scope))
    _, answer = await desk.questions.get()
    done, _ = await asyncio.wait({call}, timeout=1)
    assert not done
    answer.set_result(ApprovalAnswer(decision="allowOnce", by="host"))
    made = await call
    assert made.content == '{"path":"a"}'
    assert made.duration_ms < 1000


async def test_an_approval_inside_a_tool_s_own_call_does_not_count_either() -> None:
    async def outer(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return await ctx.invoke("write", {"path": "a"})

    desk = Desk()
    registry = writing()
    registry.register(Made("outer", outer))
    scope = Witness().scope(approve=desk.approve, timeout_secs=0.05)
    call = asyncio.create_task(registry.invoke("outer", {}, scope))
    _, answer = await desk.questions.get()
    done, _ = await asyncio.wait({call}, timeout=0.2)
    assert not done
    answer.set_result(ApprovalAnswer(decision="allowOnce", by="host"))
    assert (await call).content == '{"path":"a"}'


async def test_without_a_question_nobody_is_told_of_one() -> None:
    registry = ToolRegistry(permissions=PermissionChecker())
    registry.register(Made("read", echo, required_permissions=("read",)))
    witness = Witness()
    await registry.invoke("read", {}, witness.scope())
    assert (witness.questions, witness.events) == ([], [])
    assert witness.decisions == [("read", "allow", None)]
    assert InvocationScope().permissions is None


async def test_no_name_or_text_can_pretend_to_be_something_else_in_a_question() -> None:
    witness = said("allowOnce")
    await writing().invoke(
        "write", {"path": "safe\u202etxt.exe", "ignore\u2066me\u200b": "\x1b[2K\nAllow all?"}, witness.scope()
    )
    (question,) = witness.questions
    shown = [question.title, *(option.label for option in question.options)]
    assert all(text.isprintable() and "\u200b" not in text for text in shown)
    assert r"safe\u202etxt.exe" in question.title
