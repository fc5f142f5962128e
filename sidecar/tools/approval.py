"""A question whether a call may run, and its answer. Who asks whom is decided by the `Approve` passed in."""

import json
import uuid
from collections.abc import Awaitable, Callable

from attrs import frozen

from sidecar.permissions.model import PermissionDecision
from sidecar.permissions.rules import described, rule_for, rule_matches
from sidecar.protocol.events import ApprovalDecision, DecidedBy
from sidecar.protocol.messages import ApprovalOption, PermissionRule
from sidecar.protocol.printable import printable
from sidecar.protocol.values import JsonObject, ToolCall
from sidecar.tools.base import BaseTool

LONGEST_TITLE_CHARS = 160
LONGEST_LABEL_CHARS = 100


@frozen(kw_only=True)
class ApprovalQuestion:
    """All that somebody needs to decide; `options` are the answers on offer, with the rule each would keep."""

    request_id: str
    session_id: str | None
    run_id: str | None
    call_id: str
    tool_name: str
    input: JsonObject
    permissions: tuple[str, ...]
    reason: str
    title: str
    options: tuple[ApprovalOption, ...]
    diff: str | None = None


@frozen(kw_only=True)
class ApprovalAnswer:
    """What was decided and by whom; `explanation` says why nobody could decide, and how to allow the call."""

    decision: ApprovalDecision
    by: DecidedBy
    rule: PermissionRule | None = None
    reason: str | None = None
    updated_input: JsonObject | None = None
    explanation: str | None = None


Approve = Callable[[ApprovalQuestion], Awaitable[ApprovalAnswer]]
"""Must answer within its own deadline. Raises CancelledError alone."""


async def nobody_approves(question: ApprovalQuestion) -> ApprovalAnswer:
    """Denies: there is nobody to ask."""
    return ApprovalAnswer(
        decision="deny",
        by="deadline",
        explanation="nobody can be asked here; allow it by a permission or a rule",
    )


def question_about(
    tool: BaseTool,
    call: ToolCall,
    rule_arguments: JsonObject,
    decision: PermissionDecision,
    *,
    session_id: str | None,
    run_id: str | None,
    diff: str | None = None,
) -> ApprovalQuestion:
    """The question that `decision` makes necessary; `rule_arguments` are the arguments as rules see them."""
    return ApprovalQuestion(
        request_id=f"apr_{uuid.uuid4().hex[:16]}",
        session_id=session_id,
        run_id=run_id,
        call_id=call.call_id,
        tool_name=call.tool_name,
        input=call.input,
        permissions=tuple(map(str, tool.required_permissions)),
        reason=decision.rule,
        title=_title(call),
        diff=diff,
        options=_options(kept_rule(tool, rule_arguments), session_id),
    )


def kept_rule(tool: BaseTool, rule_arguments: JsonObject) -> PermissionRule | None:
    """The rule that is remembered when a call is allowed for longer; None where none can be."""
    if tool.remembered_arguments is not None:
        kept = {name: rule_arguments.get(name, "") for name in tool.remembered_arguments}
        return rule_for(tool.name, kept, complete=False)
    declared = tool.parameters.get("properties")
    known = set(declared) if isinstance(declared, dict) else set()
    # Where each known argument was given, no other can turn the call into another one.
    return rule_for(tool.name, rule_arguments, complete=not known or known != set(rule_arguments))


def rule_to_keep(
    answer: ApprovalAnswer, question: ApprovalQuestion, call: ToolCall, rule_arguments: JsonObject
) -> PermissionRule | None:
    """What an answer that allows for longer has us remember: the rule it brings, else its option's.

    None for a rule that would not allow the very call that was asked about: then it is allowed once.
    """
    offered = {option.decision: option.rule for option in question.options}
    rule = answer.rule or offered.get(answer.decision)
    if rule is None or answer.decision not in offered:
        return None
    return rule if allows(rule, call, rule_arguments) else None


def allows(rule: PermissionRule, call: ToolCall, rule_arguments: JsonObject) -> bool:
    """Whether a rule allows this very call."""
    return rule.decision == "allow" and rule_matches(rule, call.tool_name, rule_arguments)


def _title(call: ToolCall) -> str:
    """One line: the tool, and its arguments as far as they are short."""
    told = ", ".join(f"{printable(name)}: {_briefly(value)}" for name, value in call.input.items())
    line = f"Run {call.tool_name}" + (f" with {told}" if told else "")
    return f"{_shortened(line, LONGEST_TITLE_CHARS)}?"


def _briefly(value: object) -> str:
    # Escaped, so that no line break or change of writing direction rearranges what a person reads.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _shortened(printable(text), 60)


def _options(rule: PermissionRule | None, session_id: str | None) -> tuple[ApprovalOption, ...]:
    options = [ApprovalOption(decision="allowOnce", label="Allow once")]
    if rule is not None:
        kept = _shortened(printable(described(rule)), LONGEST_LABEL_CHARS)
        if session_id is not None:
            label = f"Allow for this session: {kept}"
            options.append(ApprovalOption(decision="allowSession", label=label, rule=rule))
        options.append(ApprovalOption(decision="allowAlways", label=f"Always allow: {kept}", rule=rule))
    options.append(ApprovalOption(decision="deny", label="Deny"))
    options.append(ApprovalOption(decision="denyAndStop", label="Deny and stop"))
    return tuple(options)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
