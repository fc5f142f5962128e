"""Asks the person at the host to choose: by our own request, else by LSP's message with buttons."""

import logging
import uuid
from collections.abc import Mapping

from sidecar.protocol.messages import RequestInputParams, RequestInputResult
from sidecar.protocol.values import JsonObject
from sidecar.server.host import Host
from sidecar.server.unanswered import HostError

log = logging.getLogger("sidecar.server")

_WARNING = 2


def can_choose(host: Host) -> bool:
    """Whether there is a way to ask."""
    return host.capabilities.input or host.capabilities.show_message


async def ask_choice(
    host: Host, *, source: str, message: str, choices: Mapping[str, str], deadline_secs: float
) -> str | None:
    """The choice, a key of `choices`, which has the words for each; None without a clear answer in time."""
    try:
        if host.capabilities.input:
            return await _by_input(host, source, message, choices, deadline_secs)
        if host.capabilities.show_message:
            return await _by_buttons(host, message, choices, deadline_secs)
    except HostError as error:
        log.warning("nobody chose for %s: %s", source, error)
    return None


async def _by_input(
    host: Host, source: str, message: str, choices: Mapping[str, str], deadline_secs: float
) -> str | None:
    wanted: JsonObject = {"type": "string", "enum": list(choices), "enumNames": list(choices.values())}
    params = RequestInputParams(
        request_id=f"input_{uuid.uuid4().hex}",
        message=message,
        schema={"type": "object", "properties": {"decision": wanted}, "required": ["decision"]},
        source=source,
        deadline_ms=round(deadline_secs * 1000),
    )
    answer = await host.request("agent/requestInput", params, deadline_secs)
    assert isinstance(answer, RequestInputResult)
    match answer:
        case RequestInputResult(action="accept", content={"decision": str(choice)}) if choice in choices:
            return choice
        case _:
            return None


async def _by_buttons(host: Host, message: str, choices: Mapping[str, str], deadline_secs: float) -> str | None:
    params = {"type": _WARNING, "message": message, "actions": [{"title": words} for words in choices.values()]}
    chosen = await host.request("window/showMessageRequest", params, deadline_secs)
    title = chosen.get("title") if isinstance(chosen, dict) else None
    return next((choice for choice, words in choices.items() if words == title), None)
