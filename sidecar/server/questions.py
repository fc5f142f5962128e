"""Asks the person at the host. Whatever is not a clear answer in time is a no."""

import logging
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sidecar.mcp.elicitation import InputAnswer, with_defaults
from sidecar.protocol.events import ApprovalDecision
from sidecar.protocol.messages import (
    ApprovalOption,
    RequestApprovalParams,
    RequestApprovalResult,
    RequestInputParams,
    RequestInputResult,
)
from sidecar.protocol.values import JsonObject
from sidecar.server.host import Host
from sidecar.server.shown import shown_question
from sidecar.server.unanswered import HostError
from sidecar.tools.approval import ApprovalAnswer, ApprovalQuestion
from sidecar.tools.arguments import ArgumentCheck, BrokenSchemaError

log = logging.getLogger("sidecar.server")

REFUSALS: tuple[ApprovalDecision, ...] = ("deny", "denyAndStop")
"""Decisions that are always taken, offered or not."""

HOW_TO_ALLOW = "allow it by a permission or a rule (option permissions, or permissions/set)"

_WARNING = 2

_ANY_TEXT: JsonObject = {"type": "string"}
"""What is wanted where a question has no schema."""


def new_input_id() -> str:
    """Names a question to a person."""
    return f"input_{uuid.uuid4().hex}"


class Questions:
    """The ways to ask this host, and how long to wait for its answer."""

    def __init__(self, host: Host, *, deadline_secs: float) -> None:
        self._host = host
        self._deadline_secs = deadline_secs

    async def approve(self, question: ApprovalQuestion) -> ApprovalAnswer:
        """Whether a call may run: by our own request, else by LSP's message with buttons, else no.

        Raises CancelledError alone; the question is withdrawn then, as it is when the deadline passes.
        """
        capabilities = self._host.capabilities
        if not capabilities.approvals and not capabilities.show_message:
            return _denied("this host can show no question")
        try:
            if capabilities.approvals:
                return await self._request_approval(question)
            return await self._show_buttons(question)
        except HostError as error:
            log.warning("nobody decided on a call of %s: %s", question.tool_name, error)
            return _denied(str(error))

    async def ask_input(
        self,
        *,
        source: str,
        message: str,
        schema: JsonObject | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
    ) -> Any | None:
        """What the person entered; None when they declined, did not answer in time, or cannot be asked.

        Content that does not fit the schema is no answer either, because whoever asked counts on its shape.
        """
        answer = await self.put(
            source=source, message=message, schema=schema, session_id=session_id, run_id=run_id
        )
        return answer.content if answer.action == "accept" else None

    async def put(
        self,
        *,
        source: str,
        message: str,
        schema: JsonObject | None = None,
        url: str | None = None,
        request_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
    ) -> InputAnswer:
        """What the person did about a question, whose answer is to fit `schema`, or about the page at `url`.

        Whoever cannot be asked, does not answer in time or gives what does not fit has cancelled. Content that
        leaves out what the schema has a default for is filled in.
        """
        if not self._host.capabilities.input:
            return InputAnswer("cancel")
        params = RequestInputParams(
            request_id=request_id or new_input_id(),
            session_id=session_id,
            run_id=run_id,
            message=self._host.secrets.hide(message),
            schema=self._host.secrets.hide_in(schema),
            url=url,
            source=source,
            deadline_ms=self._deadline_ms,
        )
        try:
            answer = await self._host.request("agent/requestInput", params, self._deadline_secs)
        except HostError as error:
            log.warning("no input for %s: %s", source, error)
            return InputAnswer("cancel")
        assert isinstance(answer, RequestInputResult)
        if answer.action != "accept":
            return InputAnswer(answer.action)
        if url is not None:  # Of a page there is to know at most where it led.
            return InputAnswer("accept", answer.content if isinstance(answer.content, str) else None)
        wanted = _ANY_TEXT if schema is None else schema
        content = with_defaults(wanted, answer.content)
        return InputAnswer("accept", content) if await _fits(content, wanted, source) else InputAnswer("cancel")

    @property
    def _deadline_ms(self) -> int:
        return round(self._deadline_secs * 1000)

    async def _request_approval(self, question: ApprovalQuestion) -> ApprovalAnswer:
        params = RequestApprovalParams(
            request_id=question.request_id,
            session_id=question.session_id,
            run_id=question.run_id,
            call_id=question.call_id,
            tool_name=question.tool_name,
            input=question.input,
            permissions=question.permissions,
            reason=question.reason,
            title=question.title,
            options=question.options,
            diff=question.diff and self._host.secrets.hide(question.diff),
            deadline_ms=self._deadline_ms,
        )
        answer = await self._host.request("agent/requestApproval", params, self._deadline_secs)
        assert isinstance(answer, RequestApprovalResult)
        offered = {option.decision: option for option in question.options}
        if answer.decision not in offered and answer.decision not in REFUSALS:
            return _denied(f"the host answered {answer.decision!r}, which was not offered")
        option = offered.get(answer.decision)
        return ApprovalAnswer(
            decision=answer.decision,
            by="host",
            rule=answer.rule or (option.rule if option else None),
            reason=answer.reason,
            updated_input=answer.updated_input,
        )

    async def _show_buttons(self, question: ApprovalQuestion) -> ApprovalAnswer:
        by_title = _titled(question.options)
        params = {
            "type": _WARNING,
            "message": shown_question(question),
            "actions": [{"title": title} for title in by_title],
        }
        chosen = await self._host.request("window/showMessageRequest", params, self._deadline_secs)
        if chosen is None:
            return ApprovalAnswer(
                decision="deny",
                by="host",
                explanation=f"the question was closed without a choice; {HOW_TO_ALLOW}",
            )
        title = chosen.get("title") if isinstance(chosen, dict) else None
        option = by_title.get(title) if isinstance(title, str) else None
        if option is None:
            return _denied("the host answered with a button that was not offered")
        return ApprovalAnswer(decision=option.decision, by="host", rule=option.rule)


async def _fits(content: Any, schema: JsonObject, source: str) -> bool:
    """Whether an answer can be used. The log says where it cannot, and not what it holds: it may be a secret."""
    try:
        faults = await ArgumentCheck(schema).faults(content)
    except BrokenSchemaError as error:
        log.warning("the schema of a question by %s is broken, so its answer goes unchecked: %s", source, error)
        return True
    if faults:
        places = ", ".join(fault.path or "the content as a whole" for fault in faults)
        log.warning("the answer to a question by %s does not fit its schema at: %s", source, places)
    return not faults


def _denied(why: str) -> ApprovalAnswer:
    return ApprovalAnswer(decision="deny", by="deadline", explanation=f"{why}; {HOW_TO_ALLOW}")


def _titled(options: Sequence[ApprovalOption]) -> dict[str, ApprovalOption]:
    """Options by button; where labels are alike, the buttons say the decision too, and a number if need be."""
    alike = Counter(option.label for option in options)
    titled: dict[str, ApprovalOption] = {}
    for option in options:
        title = option.label if alike[option.label] == 1 else f"{option.label} ({option.decision})"
        number = 2
        while title in titled:
            title = f"{option.label} ({option.decision} {number})"
            number += 1
        titled[title] = option
    return titled
