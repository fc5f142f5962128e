"""From a model's reply to the calls that are to run: ids made unique, names and arguments read. Pure."""

import re
from collections.abc import Collection, Iterable

from attrs import evolve, frozen

from sidecar.agent.history import new_call_id
from sidecar.agent.reply import Reply, RequestedCall, UnreadableArgumentsError, read_arguments
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import Warned
from sidecar.protocol.values import ToolCall

_CONTROL_TOKEN = re.compile(r"<\|.*?\|>")


@frozen(kw_only=True)
class PlannedCall:
    """A call, and why it cannot run where that is known already."""

    call: ToolCall
    error: ToolError | None = None


@frozen(kw_only=True)
class Plan:
    """The calls of a reply in its order, and what had to be mended."""

    calls: tuple[PlannedCall, ...]
    warnings: tuple[Warned, ...]


def plan_calls(reply: Reply, *, offered: Collection[str], taken_ids: Iterable[str]) -> Plan:
    """Reads every call of `reply`. `offered` are the names the model was given.

    A reply cut by its output limit in the middle of a call keeps none: the run ends there, and a call that
    was never run must not stand in the history.
    """
    used = set(taken_ids)
    calls: list[PlannedCall] = []
    warnings: list[Warned] = []
    for requested in reply.calls:
        planned = _read(requested, offered, used, warnings)
        if planned.error is None and planned.call.tool_name in reply.left_out:
            planned = evolve(planned, error=_left_out(planned.call.tool_name))
        if planned.error is not None and planned.error.kind == "invalidArguments" and reply.finish == "length":
            return Plan(calls=(), warnings=(_cut_off(requested),))
        calls.append(planned)
    return Plan(calls=tuple(calls), warnings=tuple(warnings))


def _read(
    requested: RequestedCall, offered: Collection[str], used: set[str], warnings: list[Warned]
) -> PlannedCall:
    call_id = requested.call_id if requested.call_id and requested.call_id not in used else new_call_id()
    used.add(call_id)
    name = _offered_name(requested.name, offered, warnings)
    try:
        arguments = read_arguments(requested.arguments)
    except UnreadableArgumentsError as error:
        failed = ToolError("invalidArguments", str(error), tool=name)
        return PlannedCall(call=ToolCall(call_id=call_id, tool_name=name, input={}), error=failed)
    if arguments.was_string:
        warnings.append(
            Warned(
                code="argumentsUnquoted",
                message=f"the arguments of {name} came as a JSON string and were read as the object in it",
            )
        )
    return PlannedCall(call=ToolCall(call_id=call_id, tool_name=name, input=arguments.value))


def _offered_name(name: str, offered: Collection[str], warnings: list[Warned]) -> str:
    """The tool that is meant. Only control tokens and a `functions.` prefix are taken off, never guessed at."""
    if name in offered:
        return name
    bare = _CONTROL_TOKEN.sub("", name).strip().removeprefix("functions.")
    if bare not in offered:
        return name
    warnings.append(Warned(code="toolNameCleaned", message=f"the model asked for {name!r}; {bare} was taken"))
    return bare


def _left_out(name: str) -> ToolError:
    return ToolError(
        "notFound",
        f"there is no tool {name!r} for this model: the request left it out, as a warning of the turn says; "
        "offer fewer tools, or mend what the warning names",
        tool=name,
    )


def _cut_off(requested: RequestedCall) -> Warned:
    return Warned(
        code="callCutOff",
        message=f"the model's output limit cut off its call of {requested.name or 'a tool'}; "
        "it was not run, raise maxOutputTokens to let it finish",
    )
