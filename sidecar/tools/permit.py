"""Whether one call may run: the decision, the question where it is to be asked, and what the answer changes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionDecision
from sidecar.protocol.codec import encode
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ApprovalRequested, ApprovalResolved, Warned
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import JsonObject, ToolCall
from sidecar.tools.approval import (
    ApprovalAnswer,
    ApprovalQuestion,
    allows,
    kept_rule,
    question_about,
    rule_to_keep,
)
from sidecar.tools.base import BaseTool, ToolContext
from sidecar.tools.limits import Stragglers
from sidecar.tools.output import compact
from sidecar.tools.scope import InvocationScope

WITHDRAWAL_SECS = 1.0
"""How long a cancelled call waits for the host to take the event that withdraws its question (own choice)."""

PREVIEW_SECS = 3.0
"""How long a tool may take to say what it would change, before the question is asked without (own choice)."""

LONGEST_HINT_CHARS = 300

logger = logging.getLogger("sidecar.tools")

Check = Callable[[object], Awaitable[JsonObject]]


class OpenQuestions:
    """The questions of a registry that nobody has answered yet."""

    def __init__(self) -> None:
        self._waiting: set[Callable[[], None]] = set()

    def reconsider(self) -> None:
        """Permissions have changed: whatever is decided now need not be asked any more."""
        for reconsider in tuple(self._waiting):
            reconsider()

    def add(self, reconsider: Callable[[], None]) -> None:
        """A question is open; `reconsider` is called whenever permissions change."""
        self._waiting.add(reconsider)

    def discard(self, reconsider: Callable[[], None]) -> None:
        """The question is over."""
        self._waiting.discard(reconsider)


async def seen_by_rules(tool: BaseTool, arguments: JsonObject, scope: InvocationScope) -> JsonObject:
    """The arguments as permission rules see them. Raises ToolError."""
    if type(tool).rule_arguments is BaseTool.rule_arguments:
        return arguments
    try:
        async with asyncio.timeout(scope.timeout_secs):  # A disk that hangs must not hang the call.
            return await tool.rule_arguments(arguments, scope.workspace)
    except TimeoutError:
        message = f"the arguments of {tool.name} could not be looked at within {scope.timeout_secs:g} s"
        raise ToolError("timeout", message, tool=tool.name, timeoutSecs=scope.timeout_secs) from None
    except ToolError as error:
        error.data.setdefault("tool", tool.name)
        raise
    except Exception as error:  # a user's own tool may break here as it may in execute
        raise ToolError("executionFailed", f"{tool.name} failed: {error!r}", tool=tool.name) from error


def decided(
    tool: BaseTool, name: str, permissions: PermissionChecker, rule_arguments: JsonObject
) -> PermissionDecision:
    """What the permissions say of a call."""
    return permissions.check(
        name,
        tool.required_permissions,
        requires_approval=tool.requires_approval,
        arguments=rule_arguments,
    )


class Permit:
    """Gets one call permitted, or raises ToolError `permissionDenied`.

    `check` checks arguments that somebody gave in place of the call's own.
    """

    def __init__(
        self,
        tool: BaseTool,
        scope: InvocationScope,
        permissions: PermissionChecker,
        *,
        check: Check,
        questions: OpenQuestions,
        stragglers: Stragglers,
    ) -> None:
        self._tool = tool
        self._scope = scope
        self._permissions = permissions
        self._check = check
        self._questions = questions
        self._stragglers = stragglers

    async def obtain(self, call: ToolCall) -> tuple[ToolCall, JsonObject]:
        """The call that may run, this one or what somebody made of it, and its arguments as rules saw them."""
        seen = await seen_by_rules(self._tool, call.input, self._scope)
        while True:
            decision = self._decision(call, seen)
            if decision.decision != "ask":
                self._scope.audit(call, decision, None)
                if decision.decision == "deny":
                    raise _denied(call, decision)
                return call, seen
            question = question_about(
                self._tool,
                call,
                seen,
                decision,
                session_id=self._scope.session_id,
                run_id=self._scope.run_id,
                diff=await self._preview(call),
            )
            self._scope.audit(call, decision, None)
            answer = await self._ask(question, call, seen)
            if answer.by != "rule":  # Else a rule decides now, so look again which.
                self._scope.audit(call, decision, answer)
                return await self._follow(answer, question, call, seen, decision)

    async def _preview(self, call: ToolCall) -> str | None:
        """What the call would change, if the tool can say so in time."""
        if type(self._tool).preview is BaseTool.preview:
            return None
        ctx = ToolContext(workspace=self._scope.workspace, documents=self._scope.documents)
        try:
            async with asyncio.timeout(PREVIEW_SECS):
                return await self._tool.preview(call.input, ctx)
        except Exception as error:  # noqa: BLE001  a question without a preview is still a question
            logger.debug("no preview of a call of %s: %s", call.tool_name, type(error).__name__)
            return None

    def _decision(self, call: ToolCall, seen: JsonObject) -> PermissionDecision:
        return decided(self._tool, call.tool_name, self._permissions, seen)

    # Asking ---------------------------------------------------------------------------------------------

    async def _ask(self, question: ApprovalQuestion, call: ToolCall, seen: JsonObject) -> ApprovalAnswer:
        requested = ApprovalRequested(
            request_id=question.request_id,
            call_id=question.call_id,
            tool_name=question.tool_name,
            permissions=question.permissions,
            reason=question.reason,
        )
        try:
            await self._scope.emit(requested)
            answer = await self._answer(question, call, seen)
        except asyncio.CancelledError:
            with suppress(TimeoutError):
                async with asyncio.timeout(WITHDRAWAL_SECS):
                    await self._scope.emit(_resolved(question, ApprovalAnswer(decision="deny", by="cancel")))
            raise
        await self._scope.emit(_resolved(question, answer))
        return answer

    async def _answer(self, question: ApprovalQuestion, call: ToolCall, seen: JsonObject) -> ApprovalAnswer:
        """Somebody's answer, or that of a rule which came to be while they were asked."""
        by_rule: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()

        def reconsider() -> None:
            decision = self._decision(call, seen).decision
            if decision != "ask" and not by_rule.done():
                answer = "allowOnce" if decision == "allow" else "deny"
                by_rule.set_result(ApprovalAnswer(decision=answer, by="rule"))  # type: ignore[arg-type]

        asking = asyncio.create_task(self._put(question), name=f"approval of {call.tool_name}")
        self._questions.add(reconsider)
        try:
            await asyncio.wait({asking, by_rule}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else by_rule.result()
        finally:
            self._questions.discard(reconsider)
            await self._stragglers.end(asking)

    async def _put(self, question: ApprovalQuestion) -> ApprovalAnswer:
        try:
            return await self._scope.approve(question)
        except Exception as error:  # noqa: BLE001  a question that cannot be asked is a denial, not a crash
            logger.warning("a question about %s could not be asked: %s", question.tool_name, type(error).__name__)
            return ApprovalAnswer(
                decision="deny",
                by="deadline",
                explanation="the question could not be asked; allow it by a permission or a rule",
            )

    # Following ------------------------------------------------------------------------------------------

    async def _follow(
        self,
        answer: ApprovalAnswer,
        question: ApprovalQuestion,
        call: ToolCall,
        seen: JsonObject,
        decision: PermissionDecision,
    ) -> tuple[ToolCall, JsonObject]:
        if answer.decision in ("deny", "denyAndStop"):
            raise _refused(call, answer, decision, kept_rule(self._tool, seen))
        rule = rule_to_keep(answer, question, call, seen)
        if answer.updated_input is not None:
            call, seen = await self._edited(call, answer.updated_input)
            # A rule that was shown beside the old arguments is not what they have allowed now.
            brought = answer.rule if answer.rule and allows(answer.rule, call, seen) else None
            rule = brought or kept_rule(self._tool, seen)
        if answer.decision in ("allowSession", "allowAlways"):
            await self._remember(rule, answer)
        return call, seen

    async def _edited(self, call: ToolCall, updated: JsonObject) -> tuple[ToolCall, JsonObject]:
        edited = ToolCall(call_id=call.call_id, tool_name=call.tool_name, input=await self._check(updated))
        seen = await seen_by_rules(self._tool, edited.input, self._scope)
        decision = self._decision(edited, seen)
        if decision.decision == "deny":
            self._scope.audit(edited, decision, None)
            raise _denied(edited, decision)
        return edited, seen

    async def _remember(self, rule: PermissionRule | None, answer: ApprovalAnswer) -> None:
        if rule is None:
            message = f"this call of {self._tool.name} was allowed once; no rule could be kept that fits it"
            await self._scope.emit(Warned(code="approvalNotRemembered", message=message))
            return
        self._scope.remember(rule, "session" if answer.decision == "allowSession" else "workspace")
        self._questions.reconsider()


def _resolved(question: ApprovalQuestion, answer: ApprovalAnswer) -> ApprovalResolved:
    return ApprovalResolved(request_id=question.request_id, decision=answer.decision, by=answer.by)


def _denied(call: ToolCall, decision: PermissionDecision) -> ToolError:
    return ToolError(
        "permissionDenied",
        f"{call.tool_name} is not permitted: {decision.rule}; change that entry of the permissions to allow it",
        tool=call.tool_name,
        **_reasons(decision),
    )


def _refused(
    call: ToolCall, answer: ApprovalAnswer, decision: PermissionDecision, rule: PermissionRule | None
) -> ToolError:
    data = {**_reasons(decision), "decidedBy": answer.by}
    if answer.reason:
        data["reason"] = answer.reason
    if answer.by == "host":
        said = answer.reason or answer.explanation
        return ToolError(
            "permissionDenied",
            f"{call.tool_name} was denied by the user{f': {said}' if said else ''}",
            tool=call.tool_name,
            action="stop" if answer.decision == "denyAndStop" else "tellModel",
            **data,
        )
    why = answer.explanation or "nobody answered in time; allow it by a permission or a rule"
    return ToolError(
        "permissionDenied",
        f"{call.tool_name} was not approved: {why}; this rule would allow it: {_hint(call.tool_name, rule)}",
        tool=call.tool_name,
        **data,
    )


def _reasons(decision: PermissionDecision) -> JsonObject:
    about = {"permission": decision.permission} if decision.permission is not None else {}
    return {**about, "rule": decision.rule}


def _hint(tool_name: str, rule: PermissionRule | None) -> str:
    whole = compact(encode(rule)) if rule is not None else ""
    if whole and len(whole) <= LONGEST_HINT_CHARS:
        return whole
    return compact({"tool": tool_name, "decision": "allow"})
