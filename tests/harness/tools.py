"""Small real tools, and a scope that keeps what it hears: for tests of whatever runs tools."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from attrs import evolve

from sidecar.permissions.model import PermissionDecision
from sidecar.protocol.events import AgentEvent
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import JsonObject, ToolCall
from sidecar.tools.approval import ApprovalAnswer, ApprovalQuestion
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.scope import InvocationScope

Body = Callable[[JsonObject, ToolContext], Awaitable[ToolOutput]]

ANY_OBJECT: JsonObject = {"type": "object"}


class Made(BaseTool):
    """A tool from a coroutine function; `attributes` are those of BaseTool."""

    def __init__(self, name: str, body: Body, parameters: JsonObject = ANY_OBJECT, **attributes: Any) -> None:
        self.name = name
        self.description = f"{name} for tests"
        self.parameters = parameters
        self._body = body
        vars(self).update(attributes)

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return await self._body(args, ctx)


async def echo(args: JsonObject, ctx: ToolContext) -> ToolOutput:
    """Gives its arguments back."""
    return args


def answering(value: Any) -> Body:
    """A body that gives `value` back, or raises it."""

    async def body(args: JsonObject, ctx: ToolContext) -> ToolOutput:
        if isinstance(value, BaseException):
            raise value
        return value

    return body


class Witness:
    """Keeps what a scope is told, and answers approvals with `answer`."""

    def __init__(self, answer: ApprovalAnswer | None = None) -> None:
        self.answer = answer or ApprovalAnswer(decision="allowOnce", by="host")
        self.events: list[AgentEvent] = []
        self.questions: list[ApprovalQuestion] = []
        self.remembered: list[tuple[PermissionRule, str]] = []
        self.decisions: list[tuple[str, str, str | None]] = []

    def scope(self, **more: Any) -> InvocationScope:
        scope = InvocationScope(
            session_id="ses-1",
            run_id="run-1",
            emit=self._emit,
            approve=self._approve,
            remember=self._remember,
            audit=self._audit,
        )
        return evolve(scope, **more)

    def told(self) -> list[str]:
        """The types of the events."""
        return [str(event.type) for event in self.events]

    async def _emit(self, event: AgentEvent) -> None:
        self.events.append(event)

    async def _approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        self.questions.append(question)
        return self.answer

    def _remember(self, rule: PermissionRule, scope: Literal["session", "workspace"]) -> None:
        self.remembered.append((rule, scope))

    def _audit(self, call: ToolCall, decision: PermissionDecision, answer: ApprovalAnswer | None) -> None:
        self.decisions.append((call.tool_name, decision.decision, answer.decision if answer else None))
