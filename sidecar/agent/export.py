"""A session as a document: JSON for programs, Markdown for people, or a script that `replay` plays. Pure."""

import json
import time
from collections.abc import Sequence

from attrs import frozen

from sidecar.agent.compaction import text_of as words_of
from sidecar.protocol.codec import encode
from sidecar.protocol.messages import AgentEventParams, ExportFormat, RunSummary, SessionSummary
from sidecar.protocol.values import JsonObject, Message, ToolCall


@frozen(kw_only=True, eq=False, repr=False)
class Exported:
    """All of a session. `events` are wanted for JSON alone."""

    summary: SessionSummary
    messages: Sequence[Message]
    runs: Sequence[RunSummary]
    events: Sequence[AgentEventParams] = ()


def text_of(exported: Exported, format: ExportFormat) -> str:
    """The document."""
    match format:
        case "json":
            return _pretty(_document(exported))
        case "replay":
            return _pretty(_script(exported))
        case "markdown":
            return _markdown(exported)


def _pretty(document: JsonObject) -> str:
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode()
    except UnicodeEncodeError:  # Half a pair of surrogates is text to JSON, and to no file.
        text = json.dumps(document, indent=2)
    return f"{text}\n"


def _document(exported: Exported) -> JsonObject:
    runs = [
        {**encode(run), "events": [_numbered(event) for event in exported.events if event.run_id == run.run_id]}
        for run in exported.runs
    ]
    return {**encode(exported.summary), "messages": encode(tuple(exported.messages)), "runs": runs}


def _numbered(event: AgentEventParams) -> JsonObject:
    return {"seq": event.seq, "event": encode(event.event)}


# A script -----------------------------------------------------------------------------------------------


def _script(exported: Exported) -> JsonObject:
    """One turn for each answer in the history, so that the same prompts lead through the same turns again."""
    named = exported.summary.title or exported.summary.session_id
    turns = [_turn(message) for message in exported.messages if message.role == "assistant"]
    return {"description": f"exported from the session {named!r}", "turns": turns}


def _turn(message: Message) -> JsonObject:
    turn: JsonObject = {}
    if message.reasoning:
        turn["reasoning"] = message.reasoning
    turn["text"] = words_of(message)
    if message.tool_calls:
        turn["calls"] = [
            {"tool": call.tool_name, "input": call.input, "callId": call.call_id} for call in message.tool_calls
        ]
    if message.provider_extras is not None:
        turn["extras"] = message.provider_extras.data
    return turn


# For people ---------------------------------------------------------------------------------------------


def _markdown(exported: Exported) -> str:
    summary = exported.summary
    parts = [
        f"# {summary.title or 'A session'}",
        f"Session {summary.session_id}, from {_day(summary.created_ms)} to {_day(summary.updated_ms)}.",
    ]
    for message in exported.messages:
        parts += _section(message)
    parts += [f"*Run {run.run_id}: {run.stop_reason or run.status}.*" for run in exported.runs]
    return _whole("\n\n".join(parts) + "\n")


def _section(message: Message) -> list[str]:
    match message.role:
        case "tool":
            failed = ", which failed" if message.is_error else ""
            return [f"### Result of {message.tool_name}{failed}", _fenced(words_of(message))]
        case role:
            parts = [f"## {role.capitalize()}"]
            if message.reasoning:
                parts.append("\n".join(f"> {line}" for line in message.reasoning.splitlines()))
            if words := words_of(message):
                parts.append(words)
            for call in message.tool_calls or ():
                parts += _call(call)
            return parts


def _call(call: ToolCall) -> list[str]:
    return [f"### Call of {call.tool_name}", _fenced(json.dumps(call.input, ensure_ascii=False, indent=2), "json")]


def _fenced(text: str, language: str = "") -> str:
    """A block of code; its fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _day(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(time_ms / 1000))


def _whole(text: str) -> str:
    """Text that a file can take: half a pair of surrogates becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
