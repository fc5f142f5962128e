"""A small MCP server for the demo: stdio, standard library only, two tools, one of them slow and talkative.

Speaks MCP 2025-06-18: JSON-RPC, one message a line. Each call runs in a thread of its own, so that a slow one
holds up nothing and can be cancelled.
"""

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

JsonObject = dict[str, Any]

PROTOCOL_VERSION = "2025-06-18"
STEP_SECS = 0.35
"""How long `slow_sum` thinks about each number: long enough to be seen."""

TOOLS: list[JsonObject] = [
    {
        "name": "count_words",
        "description": "Counts the words of a text.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "slow_sum",
        "description": "Adds numbers, slowly, and tells how far it is.",
        "inputSchema": {
            "type": "object",
            "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
            "required": ["numbers"],
        },
        "annotations": {"readOnlyHint": True},
    },
]

Report = Callable[[float, float, str], None]


def count_words(arguments: JsonObject, report: Report, cancelled: threading.Event) -> str:
    """The number of words in `text`."""
    return f"{len(str(arguments['text']).split())} words"


def slow_sum(arguments: JsonObject, report: Report, cancelled: threading.Event) -> str:
    """The sum of `numbers`, reported number by number."""
    numbers = arguments["numbers"]
    for done, number in enumerate(numbers, start=1):
        if cancelled.wait(STEP_SECS):
            break
        report(done, len(numbers), f"added {number}")
    return f"{sum(numbers):g}"


FUNCTIONS = {"count_words": count_words, "slow_sum": slow_sum}


class Server:
    """Reads requests until stdin ends."""

    def __init__(self) -> None:
        self._writing = threading.Lock()
        self._running: dict[Any, threading.Event] = {}

    def serve(self) -> None:
        """Takes message after message; calls that still run then end with the process."""
        for line in sys.stdin.buffer:
            self._take(json.loads(line))

    def _take(self, message: JsonObject) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "notifications/cancelled":
            if cancelled := self._running.get(params.get("requestId")):
                cancelled.set()
        elif "id" not in message:
            return
        elif method == "tools/call":
            cancelled = self._running[message["id"]] = threading.Event()
            threading.Thread(target=self._call, args=(message["id"], params, cancelled), daemon=True).start()
        else:
            self._send({"id": message["id"], **self._answer(str(method))})

    def _answer(self, method: str) -> JsonObject:
        match method:
            case "initialize":
                about = {"name": "demo", "version": "1"}
                capabilities: JsonObject = {"tools": {}}
                said = {"protocolVersion": PROTOCOL_VERSION, "capabilities": capabilities, "serverInfo": about}
                return {"result": said}
            case "tools/list":
                return {"result": {"tools": TOOLS}}
            case "ping":
                return {"result": {}}
            case _:
                return {"error": {"code": -32601, "message": f"unknown method {method}"}}

    def _call(self, request_id: Any, params: JsonObject, cancelled: threading.Event) -> None:
        token = (params.get("_meta") or {}).get("progressToken")

        def report(done: float, total: float, words: str) -> None:
            if token is not None:
                progress = {"progressToken": token, "progress": done, "total": total, "message": words}
                self._send({"method": "notifications/progress", "params": progress})

        function = FUNCTIONS.get(params.get("name", ""))
        if function is None:
            self._send({"id": request_id, "error": {"code": -32602, "message": f"no tool {params.get('name')!r}"}})
            return
        text = function(params.get("arguments") or {}, report, cancelled)
        if not cancelled.is_set():
            self._send({"id": request_id, "result": {"content": [{"type": "text", "text": text}]}})
        del self._running[request_id]

    def _send(self, message: JsonObject) -> None:
        with self._writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    Server().serve()
