"""The MCP server that the kit brings along, so that what a sidecar makes of a working server can be judged.

    python -I -S mcp_server.py [stubborn]

It speaks MCP 2025-11-25 over stdin and stdout, and refuses `server/discover` as servers do that have a handshake.
`stubborn`: it heeds neither the end of its stdin nor SIGTERM, and starts a process of its own; both end by
themselves after LONGEST_LIFE_SECS. What each tool does is in `TOOLS`. It needs the standard library alone.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

JsonObject = dict[str, Any]

REVISION = "2025-11-25"
LONGEST_LIFE_SECS = 30
"""So that nothing is left behind for long by a sidecar that does not end it."""

CRASH_STATUS = 3
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602

PAGE = "kit://guide"
TEXT_SCHEMA: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
COLOUR_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
}


class Server:
    """One client's server: reads requests, answers them, and remembers what it was told."""

    def __init__(self) -> None:
        self._tools = dict(TOOLS)
        self._cancelled = 0
        self._asked: dict[Any, Any] = {}
        self._children: list[int] = []

    def adopt(self, pid: int) -> None:
        """A process that was started from here."""
        self._children.append(pid)

    def serve(self) -> None:
        """Until stdin ends."""
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" not in message:
                self._take_answer(message)
            elif "id" in message:
                self._take_request(message["id"], message["method"], message.get("params") or {})
            elif message["method"] == "notifications/cancelled":
                self._cancelled += 1

    def _take_request(self, request_id: Any, method: str, params: JsonObject) -> None:
        if method == "tools/call":
            self._call(request_id, params)
        elif method == "tools/list":
            tools = [{"name": name, **tool} for name, tool in self._tools.items()]
            _send({"id": request_id, "result": {"tools": tools}})
        elif reply := REPLIES.get(method):
            _send({"id": request_id, "result": reply(params)})
        else:
            error = {"code": METHOD_NOT_FOUND, "message": f"there is no {method}"}
            _send({"id": request_id, "error": error})

    def _call(self, request_id: Any, params: JsonObject) -> None:
        arguments = params.get("arguments") or {}
        match params.get("name"):
            case "echo":
                _send_text(request_id, arguments["text"])
            case "fail":
                _send_text(request_id, "no paper left", is_error=True)
            case "look":
                _send_text(request_id, json.dumps(self._seen()))
            case "wait":
                _report(params, "half way")
            case "ask":
                self._asked[f"ask-{request_id}"] = request_id
                asked = {"message": "Which colour?", "requestedSchema": COLOUR_SCHEMA}
                _send({"id": f"ask-{request_id}", "method": "elicitation/create", "params": asked})
            case "grow":
                self._tools["grown"] = {"description": "Was not there before", "inputSchema": {"type": "object"}}
                _send({"method": "notifications/tools/list_changed"})
                _send_text(request_id, "grown")
            case "crash":
                os._exit(CRASH_STATUS)
            case name:
                error = {"code": INVALID_PARAMS, "message": f"there is no tool {name}"}
                _send({"id": request_id, "error": error})

    def _take_answer(self, message: JsonObject) -> None:
        call = self._asked.pop(message.get("id"), None)
        if call is not None:
            _send_text(call, json.dumps(message.get("result", message.get("error"))))

    def _seen(self) -> JsonObject:
        return {
            "pids": [os.getpid(), *self._children],
            "variables": sorted(os.environ),
            "cancelled": self._cancelled,
        }


TOOLS: Mapping[str, JsonObject] = {
    "echo": {"description": "Gives back the text", "inputSchema": TEXT_SCHEMA},
    "fail": {"description": "Answers with an error", "inputSchema": {"type": "object"}},
    "look": {
        "description": "Tells what the server knows: its processes, its variables, how many calls were cancelled",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
    "wait": {"description": "Reports once, and does not return", "inputSchema": {"type": "object"}},
    "ask": {
        "description": "Asks the person for a colour and gives back the answer",
        "inputSchema": {"type": "object"},
    },
    "grow": {"description": "Adds the tool `grown`", "inputSchema": {"type": "object"}},
    "crash": {"description": "Ends the server", "inputSchema": {"type": "object"}},
}
"""What it offers, and what each does."""

REPLIES: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "initialize": lambda params: {
        "protocolVersion": REVISION,
        "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "kit-mcp-server", "version": "1"},
    },
    "ping": lambda params: {},
    "resources/list": lambda params: {"resources": [{"uri": PAGE, "name": "guide", "mimeType": "text/plain"}]},
    "resources/templates/list": lambda params: {"resourceTemplates": []},
    "resources/read": lambda params: {
        "contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": f"This is {params['uri']}."}]
    },
    "prompts/list": lambda params: {"prompts": [{"name": "explain", "arguments": [{"name": "topic"}]}]},
    "prompts/get": lambda params: {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": f"Explain {params['arguments']['topic']}."}}
        ]
    },
}
"""The requests that it answers beside those about tools."""


def _report(params: JsonObject, message: str) -> None:
    token = (params.get("_meta") or {}).get("progressToken")
    if token is not None:
        said = {"progressToken": token, "progress": 1, "total": 2, "message": message}
        _send({"method": "notifications/progress", "params": said})


def _send_text(request_id: Any, text: str, *, is_error: bool = False) -> None:
    _send({"id": request_id, "result": {"content": [{"type": "text", "text": text}], "isError": is_error}})


def _send(message: JsonObject) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def main(words: list[str]) -> None:
    """Serves; a stubborn one stays for a while."""
    server = Server()
    if "stubborn" not in words:
        server.serve()
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep = f"import time; time.sleep({LONGEST_LIFE_SECS})"
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", sleep], stdin=subprocess.DEVNULL)
    server.adopt(child.pid)
    threading.Timer(LONGEST_LIFE_SECS, os._exit, args=(0,)).start()
    server.serve()


if __name__ == "__main__":
    main(sys.argv[1:])
