"""An MCP server over stdio of the revision without a handshake, 2026-07-28, with faults chosen by option.

Standard library only; run as a process: `python mcp_modern_server.py --help`. `modern_entry` makes the entry for
it in `mcpServers`. Some options make it a legacy server that takes the question what it is badly.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

META = "io.modelcontextprotocol/"
REVISION = "2026-07-28"
STATE = '{"round": 1, "näh\\u2028e": "\\\\ \\" =="} '
"""What the server wants back: text that changes when anybody parses it, trims it or escapes it once more."""

QUESTION: Json = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "which colour?",
        "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}},
    },
}


LEGACY = ("wedge", "garble", "refuse-and-exit")
"""What `--on-discover` may say that makes it a legacy server."""


def modern_entry(*options: str, **fields: Any) -> Json:
    """The `mcpServers` entry that runs this file with `options`; `fields` are more fields of the entry."""
    return {"command": sys.executable, "args": ["-I", __file__, *options], **fields}


# The wire -----------------------------------------------------------------------------------------------

_writing = threading.Lock()


def send(message: Json) -> None:
    with _writing:
        sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
        sys.stdout.buffer.flush()


def answer(request: Json, result: Json) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **result}})


def refuse(request: Json, code: int, message: str, **data: Any) -> None:
    error: Json = {"code": code, "message": message, **({"data": data} if data else {})}
    send({"jsonrpc": "2.0", "id": request["id"], "error": error})


def notify(method: str, params: Json, subscription: Any) -> None:
    meta = {f"{META}subscriptionId": subscription}
    send({"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": meta}})


def text(value: Any) -> Json:
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


# What the server is -------------------------------------------------------------------------------------


class State:
    """What the server remembers, and it remembers nothing of a conversation."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.received: list[Json] = []
        self.discovered = 0
        self.listens: list[Any] = []
        self.tools = [*TOOLS]


_state: State


def discover(request: Json) -> None:
    options = _state.options
    _state.discovered += 1
    match options.on_discover:
        case "garble":
            garble()
        case "wedge":
            threading.Event().wait()
        case "refuse-and-exit":
            refuse(request, -32601, "unknown method")
            os._exit(1)
        case "reject" if _state.discovered == 1:
            refuse(request, -32022, "unsupported protocol version", supported=options.versions, requested="?")
        case "reject":
            describe(request)
        case "need":
            refuse(request, -32021, "too poor a client", requiredCapabilities={"sampling": {}, "roots": {}})
        case "late":
            pass  # Answered once the handshake has been refused.
        case "ignore-once" if _state.discovered == 1:
            pass
        case _:
            describe(request)


def describe(request: Json) -> None:
    changes = {"listChanged": True}
    answer(
        request,
        {
            "supportedVersions": _state.options.versions,
            "capabilities": {
                "tools": changes,
                "prompts": changes,
                "resources": {"subscribe": True},
                "logging": {},
            },
            "instructions": "be kind",
            "_meta": {f"{META}serverInfo": {"name": "modern", "version": "1"}},
            "ttlMs": 0,
            "cacheScope": "private",
        },
    )


def initialize(request: Json) -> None:
    options = _state.options
    if options.on_discover in LEGACY:
        revision = request["params"]["protocolVersion"]
        answer(request, {"protocolVersion": revision, "capabilities": {"tools": {}}, "serverInfo": {}})
        return
    refuse(request, -32022, "no handshake here", supported=options.versions, requested="2025-11-25")
    if options.on_discover == "late":
        describe(next(message for message in _state.received if message["method"] == "server/discover"))


def list_tools(request: Json) -> None:
    """One page or, with `--cursor`, two, of which the second has the empty cursor, or never ends."""
    options = _state.options
    cursor = request["params"].get("cursor")
    entries = [{"name": name, "inputSchema": {"type": "object"}} for name in _state.tools]
    result: Json = {"tools": entries, "cacheScope": "private"}
    if options.ttl_ms is not None:
        result["ttlMs"] = options.ttl_ms
    if options.cursor is not None:
        half = len(entries) // 2
        result["tools"] = entries[:half] if cursor is None else entries[half:]
        if cursor is None or options.cursor == "loop":
            result["nextCursor"] = ""
    answer(request, result)


def listen(request: Json) -> None:
    options = _state.options
    _state.listens.append(request["id"])
    is_first = len(_state.listens) == 1
    if options.listen == "refuse":
        refuse(request, -32601, "unknown method")
        return
    filter_ = request["params"]["notifications"]
    notify("notifications/subscriptions/acknowledged", {"notifications": filter_}, request["id"])
    if is_first and options.listen == "end":
        answer(request, {"_meta": {f"{META}subscriptionId": request["id"]}})
    elif is_first and options.listen == "cancel":
        send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request["id"]}})


# Tools --------------------------------------------------------------------------------------------------


def ask(request: Json, *, state: Any = None, questions: Json | None = None) -> None:
    """Answers a request with the need for input."""
    needed = {"requestState": state, "inputRequests": questions}
    result = {name: value for name, value in needed.items() if value is not None}
    answer(request, {"resultType": "input_required", **result})


def echo(request: Json, params: Json) -> None:
    answer(request, text(params["arguments"].get("text", "")))


def show(request: Json, params: Json) -> None:
    """Tells what the request was like."""
    answer(request, text(params))


def received(request: Json, params: Json) -> None:
    """Tells of the messages so far, of one method where it is given."""
    method = params["arguments"].get("method")
    answer(request, text([message for message in _state.received if method in (None, message.get("method"))]))


def with_state(request: Json, params: Json) -> None:
    if "inputResponses" not in params:
        ask(request, state=STATE, questions={"a": QUESTION, "b": {"method": "roots/list"}})
    else:
        answer(request, text({"same": params.get("requestState") == STATE, **params["inputResponses"]}))


def without_state(request: Json, params: Json) -> None:
    if "inputResponses" not in params:
        ask(request, questions={"q": QUESTION})
    else:
        answer(request, text({"has state": "requestState" in params, **params["inputResponses"]}))


def state_only(request: Json, params: Json) -> None:
    """Wants to be asked again `rounds` times, for nothing but its own state."""
    rounds = int(params.get("requestState", "0"))
    if rounds < params["arguments"]["rounds"]:
        ask(request, state=str(rounds + 1))
    else:
        answer(request, text({"rounds": rounds, "has answers": "inputResponses" in params}))


def nothing_asked(request: Json, params: Json) -> None:
    ask(request)


def asks_for_the_impossible(request: Json, params: Json) -> None:
    ask(request, questions={"q": {"method": "moon/land", "params": {}}})


def of_no_type(request: Json, params: Json) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": text("no type")})


def of_unknown_type(request: Json, params: Json) -> None:
    answer(request, {"resultType": "task", **text("later")})


def asks_on_its_own(request: Json, params: Json) -> None:
    """Sends a request, which no server of this revision may."""
    send({"jsonrpc": "2.0", "id": "mine", "method": "ping"})
    answer(request, text("asked"))


def change_tools(request: Json, params: Json) -> None:
    """Adds a tool, and says so under the id of the newest subscription, or under an `other`."""
    _state.tools.append(f"extra_{len(_state.tools)}")
    subscription = params["arguments"].get("other", _state.listens[-1] if _state.listens else None)
    notify("notifications/tools/list_changed", {}, subscription)
    answer(request, text("changed"))


def forget_revision(request: Json, params: Json) -> None:
    """Refuses the revision the first time that it is called, as a server would that has been replaced."""
    calls = [message for message in _state.received if message.get("method") == "tools/call"]
    if sum(call["params"]["name"] == "forget_revision" for call in calls) == 1:
        refuse(request, -32022, "unsupported protocol version", supported=[REVISION], requested="?")
    else:
        answer(request, text("asked again"))


def garbled(request: Json, params: Json) -> None:
    """Answers nonsense."""
    garble()


def garble() -> None:
    with _writing:
        sys.stdout.buffer.write(b'{"jsonrpc":"2.0","result":{"content":[{"type":"te\n')
        sys.stdout.buffer.flush()


Tool = Callable[[Json, Json], None]
TOOLS: dict[str, Tool] = {
    tool.__name__: tool
    for tool in (
        echo,
        show,
        received,
        with_state,
        without_state,
        state_only,
        nothing_asked,
        asks_for_the_impossible,
        of_no_type,
        of_unknown_type,
        asks_on_its_own,
        change_tools,
        forget_revision,
        garbled,
    )
}


def handle(message: Json) -> None:
    _state.received.append(message)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message or method is None:
        return
    meta = params.get("_meta") or {}
    required = (f"{META}protocolVersion", f"{META}clientCapabilities")
    if method != "initialize" and not all(key in meta for key in required):
        if _state.options.on_discover in LEGACY:
            refuse(message, -32601, "unknown method")
        else:
            refuse(message, -32602, "the request does not say what it is")
    elif method == "tools/call":
        TOOLS[params["name"]](message, params)
    else:
        handlers = {
            "server/discover": discover,
            "initialize": initialize,
            "tools/list": list_tools,
            "subscriptions/listen": listen,
        }
        handlers.get(method, lambda request: refuse(request, -32601, "unknown method"))(message)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", nargs="*", default=[REVISION], help="the revisions it says that it speaks")
    parser.add_argument(
        "--on-discover",
        choices=("reject", "need", "late", "ignore-once", *LEGACY),
        help="reject the revision once, need what no client has, answer after initialize, ignore the first, read "
        "nothing any more, answer nonsense, or exit after a refusal",
    )
    parser.add_argument("--ttl-ms", type=float, help="how long a list of tools may be remembered")
    parser.add_argument("--cursor", choices=("empty", "loop"))
    parser.add_argument("--listen", choices=("refuse", "end", "cancel"), help="how a first subscription ends")
    parser.add_argument("--pids", metavar="FILE", help="append the id of this process to FILE")
    return parser.parse_args()


def main() -> None:
    """Serves until stdin ends."""
    global _state
    options = parse_options()
    _state = State(options)
    if options.pids:
        with open(options.pids, "a") as file:  # noqa: PTH123  pathlib takes 10 ms to import
            file.write(f"{os.getpid()}\n")
    for line in sys.stdin.buffer:
        handle(json.loads(line))


if __name__ == "__main__":
    main()
