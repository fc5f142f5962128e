"""An MCP server over stdio that offers everything beside tools, and asks its client for whatever a test says.

Standard library only; run as a process: `python mcp_offering.py --help`. `offering_entry` makes the entry for it
in `mcpServers`. Its faults are those of offers; those of messages and processes are in `mcp_server`.
"""

import argparse
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

PIXEL = "iVBORw0KGgo="
OFFERS: Json = {
    "tools": {},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
OUTPUT_SCHEMA: Json = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


def offering_entry(*options: str, **fields: Any) -> Json:
    """The `mcpServers` entry that runs this file with `options`; `fields` are more fields of the entry."""
    return {"command": sys.executable, "args": ["-I", __file__, *options], **fields}


class Refused(Exception):
    """The answer is this error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class Server:
    """Answers each request in a thread of its own, so that a call may ask the client and wait."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.received: list[Json] = []
        self.replies: dict[str, Json] = {}
        self.news = threading.Condition()
        self.asked = 0

    def send(self, **message: Any) -> None:
        with self.news:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def take(self, message: Json) -> None:
        with self.news:
            if "method" in message:
                self.received.append(message)
            else:
                self.replies[message["id"]] = message
            self.news.notify_all()
        if "method" in message and "id" in message:
            threading.Thread(target=self.answer, args=(message,), daemon=True).start()

    def answer(self, request: Json) -> None:
        try:
            handle = METHODS.get(request["method"])
            if handle is None:
                raise Refused(-32601, f"unknown method {request['method']}")
            self.send(id=request["id"], result=handle(self, request.get("params") or {}))
        except Refused as refused:
            self.send(id=request["id"], error=refused.error)

    def ask(self, method: str, params: Json) -> Json:
        """The client's whole reply."""
        with self.news:
            self.asked += 1
            request_id = f"ask-{self.asked}"
        self.send(id=request_id, method=method, params=params)
        with self.news:
            self.news.wait_for(lambda: request_id in self.replies, timeout=20)
            return self.replies.pop(request_id, {"error": {"code": 0, "message": "no reply"}})


# Offers -------------------------------------------------------------------------------------------------


def initialize(server: Server, params: Json) -> Json:
    offers = {name: OFFERS.get(name) for name in server.options.offers.split(",") if name}
    if server.options.no_subscribe:
        offers["resources"] = {}
    revision = server.options.revision or params["protocolVersion"]
    return {
        "protocolVersion": revision,
        "capabilities": offers,
        "serverInfo": {"name": "offering", "version": "1"},
    }


def list_resources(server: Server, params: Json) -> Json:
    """One resource a page, for three pages."""
    page = int(params.get("cursor", 1))
    entry: Any = {"uri": f"doc://{page}", "name": f"page {page}", "mimeType": "text/plain", "x-own": [page]}
    return {"resources": [entry, "no resource"], **({"nextCursor": str(page + 1)} if page < 3 else {})}


def list_templates(server: Server, params: Json) -> Json:
    return {"resourceTemplates": [{"uriTemplate": "doc://{number}", "name": "any page"}]}


def read_resource(server: Server, params: Json) -> Json:
    uri = params["uri"]
    match uri:
        case "doc://gone":
            raise Refused(-32002, "Resource not found", {"uri": uri})
        case "doc://gone-since-2026":
            raise Refused(-32602, "no such resource")
        case "doc://forbidden":
            raise Refused(-32603, "not for you")
        case "doc://nothing":
            return {}
        case "doc://never":
            threading.Event().wait()
        case "doc://picture":
            return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]}
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"text of {uri}"}]}


def subscribe(server: Server, params: Json) -> Json:
    if params["uri"] == "doc://gone":
        raise Refused(-32002, "Resource not found")
    return {}


def list_prompts(server: Server, params: Json) -> Json:
    return {"prompts": [{"name": "greet", "arguments": [{"name": "whom", "required": True}]}]}


def get_prompt(server: Server, params: Json) -> Json:
    if params["name"] != "greet":
        raise Refused(-32602, f"unknown prompt {params['name']}")
    words = f"Greet {params['arguments'].get('whom')}."
    return {"description": 7, "messages": [{"role": "user", "content": {"type": "text", "text": words}}]}


def complete(server: Server, params: Json) -> Json:
    if params["ref"]["type"] not in ("ref/prompt", "ref/resource"):
        raise Refused(-32602, "no such ref")
    known = (params.get("context") or {}).get("arguments") or {}
    return {"completion": {"values": [params["argument"]["value"] + "!", *known.values(), 7], "hasMore": False}}


def set_level(server: Server, params: Json) -> Json:
    return {}


# Tools --------------------------------------------------------------------------------------------------


def call_tool(server: Server, params: Json) -> Json:
    return TOOLS[params["name"]](server, params.get("arguments") or {})


def ask(server: Server, arguments: Json) -> Json:
    """Sends the client the request `method` with `params`, and tells what it answered."""
    return text(json.dumps(server.ask(arguments["method"], arguments.get("params") or {})))


def tell(server: Server, arguments: Json) -> Json:
    """Sends the client notifications of `method`, one for each of `params`."""
    for params in arguments["params"]:
        server.send(method=arguments["method"], params=params)
    return text("told")


def received(server: Server, arguments: Json) -> Json:
    """The params of all messages of one method; waits for `count` of them."""
    with server.news:
        find: Callable[[], list[Any]] = lambda: [  # noqa: E731
            message.get("params") for message in server.received if message["method"] == arguments["method"]
        ]
        server.news.wait_for(lambda: len(find()) >= arguments.get("count", 0), timeout=10)
        return text(json.dumps(find()))


def count(server: Server, arguments: Json) -> Json:
    """Has an output schema, and answers with the `result` that it is given."""
    return {"content": [{"type": "text", "text": "counted"}], **arguments.get("result", {})}


def show(server: Server, arguments: Json) -> Json:
    """Every kind of content."""
    return {
        "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "doc://1", "text": "inside"}},
            {"type": "resource_link", "uri": "doc://2", "name": "page 2"},
        ]
    }


def needs_page(server: Server, arguments: Json) -> Json:
    """Refuses with -32042 until a page was visited, and says soon after that it was, where `is_told`."""
    with server.news:
        calls = sum(m["method"] == "tools/call" and m["params"]["name"] == "needs_page" for m in server.received)
    if calls > 1 and not arguments.get("is_never_done"):
        return text("you have been there")
    page = {"mode": "url", "message": "sign in", "url": "https://example.com/in", "elicitationId": "page-1"}
    if arguments.get("is_told", True):
        threading.Timer(0.3, lambda: server.send(method=DONE, params={"elicitationId": "page-1"})).start()
    raise Refused(-32042, "sign in first", {"elicitations": [page]})


DONE = "notifications/elicitation/complete"
TOOLS: dict[str, Callable[[Server, Json], Json]] = {
    tool.__name__: tool for tool in (ask, tell, received, count, show, needs_page)
}


def list_tools(server: Server, params: Json) -> Json:
    entries: list[Json] = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
    next(entry for entry in entries if entry["name"] == "count")["outputSchema"] = OUTPUT_SCHEMA
    return {"tools": entries}


def text(value: str) -> Json:
    return {"content": [{"type": "text", "text": value}]}


METHODS: dict[str, Callable[[Server, Json], Json]] = {
    "initialize": initialize,
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": subscribe,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
    "logging/setLevel": set_level,
}


def main() -> None:
    """Serves until stdin ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--offers", default=",".join(OFFERS), help="the capabilities to declare; unknown ones as null"
    )
    parser.add_argument("--no-subscribe", action="store_true", help="tell of no changes of single resources")
    parser.add_argument("--revision", help="answer initialize with this revision")
    server = Server(parser.parse_args())
    for line in sys.stdin.buffer:
        server.take(json.loads(line))


if __name__ == "__main__":
    main()
