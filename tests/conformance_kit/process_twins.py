"""The wrong sidecars of rules about processes: MCP servers that work, hosts that read slowly or go."""

import json
import os
import threading
from collections.abc import Callable
from typing import Any

from tests.conformance_kit.switches import (
    Json,
    Twin,
    Wire,
    answer,
    asks,
    cut,
    event,
    fails,
    has_field,
    of_tool,
    put,
    texts,
    together,
    with_results,
)

LINGERS_SECS = 5.5
ARBITRARY_EVENT = {"type": "warning", "code": "twin", "message": "the twin says so"}

ALWAYS_THERE = 4 if os.name == "nt" else 1
"""The number of a process that never ends."""


def lingers(at: str) -> Twin:
    """The sidecar ends too late in a conversation."""

    def lingering(wire: Wire, code: int) -> int:
        if wire.at == at:
            threading.Event().wait(LINGERS_SECS)
        return code

    return Twin(status=lingering)


def _adds(count: int) -> Callable[[Json, Wire], bool]:
    return lambda frame, wire: len(frame["params"]["added"]) >= count


def _each(**changed: Any) -> Callable[[Any], Any]:
    """In a list of objects, each is otherwise."""
    return lambda objects: [{**each, **changed} for each in objects]


def _inside(**changed: Any) -> Callable[[Any], Any]:
    """In a text that is a JSON object, some fields are otherwise."""
    return lambda text: json.dumps({**json.loads(text), **changed})


def _other_words(at: str, old: str, new: str) -> Twin:
    """The same other words in the deltas of a run and in the message of its answer."""
    return together([event(at, "assistantTextDelta", texts(old, new)), answer(f"{at}/submit", texts(old, new))])


WORKING_SERVERS: dict[str, Twin] = {
    "S279": answer("working-server/connect", cut("result.protocolVersion")),
    "S280": asks(
        "working-server",
        "mcp/statusChanged",
        put("params.status", "ready"),
        when=has_field("params.status", "starting"),
    ),
    "S281": asks(
        "working-server", "tools/changed", put("params.added", lambda names: ["other"] * len(names)), when=_adds(7)
    ),
    "S282": answer("working-server/list", put("result.tools", _each(kind="custom"))),
    "S283": answer("working-server/list", put("result.tools", _each(requiredPermissions=[]))),
    "S284": answer("working-server/echo", put("result.content.0.text", "another")),
    "S285": answer("working-server/fail", put("result.result", {"ok": True})),
    "S286": answer("working-server/read", put("result.contents.0.text", "another")),
    "S287": answer("working-server/look", put("result.content.0.text", _inside(variables=["PATH"]))),
    "S288": asks(
        "working-server",
        "tools/changed",
        put("params.added", ["another"]),
        when=has_field("params.added", ["kit-works__grown"]),
    ),
    "S289": answer("working-server/echo-gone", fails()),
    "S290": asks("server-in-a-run", "model/complete", texts("said by the server", "unsaid"), when=with_results),
    "S291": event(
        "server-in-a-run",
        "toolExecutionCompleted",
        put("event.errorKind", "other"),
        when=of_tool("kit-runs__fail"),
    ),
    "S292": event("server-is-cancelled", "toolExecutionProgress", put("event.total", 3)),
    "S293": answer("server-is-cancelled/look", put("result.content.0.text", _inside(cancelled=0))),
    "S294": answer("server-asks/call", put("result.content.0.text", "{}")),
    "S295": answer("server-ends/crash", fails()),
    "S296": asks(
        "server-ends/crash",
        "mcp/statusChanged",
        put("params.status", "stopped"),
        when=has_field("params.status", "ready"),
    ),
    "S297": answer("server-is-silent/wait", fails()),
}

SLOW_AND_GONE: dict[str, Twin] = {
    "S298": _other_words("slow-host", " and done", " and more"),
    "S299": event("slow-host", "toolExecutionProgress", put("params.event", ARBITRARY_EVENT)),
    "S300": answer("slow-host/meanwhile", fails()),
    "S301": lingers("end-of-stdin-with-all-open"),
    "S302": answer(
        "end-of-stdin-with-all-open/look",
        put("result.content.0.text", _inside(pids=[ALWAYS_THERE, ALWAYS_THERE])),
    ),
    "S303": lingers("host-dies"),
    "S304": answer("killed/look", put("result.content.0.text", _inside(pids=[ALWAYS_THERE, ALWAYS_THERE]))),
}
