"""An MCP server over stdio whose good and bad behaviour a test chooses by option and by tool name.

Standard library only; run as a process: `python mcp_server.py --help`. `server_entry` makes the entry for it in
`mcpServers`. The bad answers are those that servers in the field were seen to give.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def server_entry(*options: str, **fields: Any) -> Json:
    """The `mcpServers` entry that runs this file with `options`; `fields` are more fields of the entry."""
    return {"command": sys.executable, "args": ["-I", __file__, *options], **fields}


# The wire -----------------------------------------------------------------------------------------------

_writing = threading.Lock()


def write(data: bytes) -> None:
    """Writes bytes to stdout, whole."""
    with _writing:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def send(message: Any) -> None:
    """Writes one message as it should be."""
    write(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def say(words: str) -> None:
    """Writes a line to stderr."""
    sys.stderr.write(words + "\n")
    sys.stderr.flush()


def answer(request_id: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request_id, "result": result})


def refuse(request_id: Any, code: int, message: str) -> None:
    send({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def notify(method: str, params: Json | None = None) -> None:
    send({"jsonrpc": "2.0", "method": method, "params": params or {}})


def text(value: str) -> Json:
    """The result of a call that answers with text."""
    return {"content": [{"type": "text", "text": value}]}


# Tools --------------------------------------------------------------------------------------------------


class Call:
    """A call of a tool: its id, its arguments, and whether the client has cancelled it."""

    def __init__(self, request: Json) -> None:
        params = request.get("params") or {}
        self.id = request["id"]
        self.name = params.get("name")
        self.arguments: Json = params.get("arguments") or {}
        self.token = (params.get("_meta") or {}).get("progressToken")
        self.cancelled = threading.Event()

    def get(self, name: str, default: Any) -> Any:
        return self.arguments.get(name, default)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        params = {"progressToken": self.token, "progress": done, "total": total, "message": message}
        notify("notifications/progress", {key: value for key, value in params.items() if value is not None})


def echo(call: Call) -> Json:
    return text(str(call.get("text", "")))


def add(call: Call) -> Json:
    total = call.get("a", 0) + call.get("b", 0)
    return {**text(str(total)), "structuredContent": {"sum": total}}


def slow(call: Call) -> Json | None:
    """Takes `secs`, in `steps` steps with a progress report each; silent when cancelled."""
    steps = int(call.get("steps", 4))
    for step in range(1, steps + 1):
        if call.cancelled.wait(float(call.get("secs", 1.0)) / steps):
            return None
        if call.token is not None:
            call.progress(step, steps, f"step {step}")
    return text("slept")


def chatter(call: Call) -> Json:
    """Sends `reports` progress reports as fast as it can, then answers."""
    for number in range(1, int(call.get("reports", 1000)) + 1):
        call.progress(number)
    return text("said it all")


def silent(call: Call) -> None:
    """Never answers."""


def fail(call: Call) -> Json:
    return {**text(str(call.get("text", "it failed"))), "isError": True}


def refused(call: Call) -> None:
    refuse(call.id, int(call.get("code", -32000)), str(call.get("message", "not today")))


def die(call: Call) -> None:
    """Exits in the middle of the call, with some last words."""
    say("dying words")
    os._exit(int(call.get("status", 3)))


def die_by_signal(call: Call) -> None:
    os.kill(os.getpid(), int(call.get("signal", 9)))


def close_stdout(call: Call) -> None:
    """Closes stdout and lives on."""
    os.close(sys.stdout.fileno())


def close_stdin(call: Call) -> None:
    """Closes stdin and lives on."""
    os.close(sys.stdin.fileno())
    threading.Event().wait()


def environment(call: Call) -> Json:
    return text(json.dumps({"environ": dict(os.environ), "cwd": str(Path.cwd()), "argv": sys.argv[1:]}))


def pid(call: Call) -> Json:
    return text(str(os.getpid()))


def huge(call: Call) -> Json:
    return text("x" * int(call.get("bytes", 1_000_000)))


def size(call: Call) -> Json:
    return text(str(len(call.get("text", ""))))


def stderr_flood(call: Call) -> Json:
    sys.stderr.buffer.write(b"noise " * (int(call.get("bytes", 2_000_000)) // 6))
    sys.stderr.flush()
    return text("flooded")


def banner(call: Call) -> Json:
    """Writes `lines` lines of talk on stdout before the answer, some of which look like messages."""
    talk = ("Handling a request", '{"level":30,"msg":"handling"}', f'got {{"jsonrpc":"2.0","id":{call.id}}}', "42")
    for number in range(int(call.get("lines", 4))):
        write(talk[number % 4].encode() + b"\n")
    return text("after the banner")


def unstructured(call: Call) -> Json:
    """Promises structured content in its output schema, and gives none."""
    return text("ok")


def change_tools(call: Call) -> Json:
    """Adds a tool, and says so `times` times, within `secs`."""
    with _state.lock:
        _state.extra_tools.append(str(call.get("name", f"extra_{len(_state.extra_tools)}")))
    times = int(call.get("times", 1))
    for _ in range(times):
        call.cancelled.wait(float(call.get("secs", 0)) / times)
        notify("notifications/tools/list_changed")
    return text("changed")


def received(call: Call) -> Json:
    """The params of all messages of one method so far, other than calls."""
    with _state.lock:
        messages = [message for message in _state.received if message["method"] == call.get("method", "")]
    return text(json.dumps([message.get("params") for message in messages]))


def ask_client(call: Call) -> Json:
    """Sends the client a request of `method` and tells what it answered."""
    reply = _state.ask(call.get("method", "ping"), call.get("id", "from-server-1"))
    return text(json.dumps(reply))


def grandchild(call: Call) -> Json:
    """Starts a process that outlives this one, in its own session if `detached`; tells its id."""
    return text(str(start_grandchild(is_detached=bool(call.get("detached", False)))))


def start_grandchild(*, is_detached: bool) -> int:
    """A process that ignores SIGTERM and keeps our stdout open.

    It is either in our process group, with an environment of its own, or in a session of its own.
    """
    ours, theirs = os.pipe()
    command = (sys.executable, "-I", "-S", "-c", GRANDCHILD, str(theirs))
    environ = dict(os.environ) if is_detached else {}
    process = subprocess.Popen(command, start_new_session=is_detached, env=environ, pass_fds=(theirs,))
    os.close(theirs)
    os.read(ours, 1)  # By then it ignores SIGTERM.
    os.close(ours)
    return process.pid


GRANDCHILD = """
import os, signal, sys, threading
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(int(sys.argv[1]), b".")
threading.Event().wait(120)
"""


def garbage(call: Call) -> None:
    """Answers with the broken or odd message `kind`."""
    GARBAGE[call.get("kind", "")](call.id)


Tool = Callable[[Call], Json | None]
TOOLS: dict[str, Tool] = {
    tool.__name__: tool
    for tool in (
        echo,
        add,
        slow,
        chatter,
        silent,
        fail,
        refused,
        die,
        die_by_signal,
        close_stdout,
        close_stdin,
        environment,
        pid,
        huge,
        size,
        stderr_flood,
        banner,
        unstructured,
        change_tools,
        received,
        ask_client,
        grandchild,
        garbage,
    )
}
IN_THREADS = (slow, chatter, ask_client, change_tools)
"""Tools that take time or wait for the client: meanwhile other calls go on."""


# Answers that are no good -------------------------------------------------------------------------------


def _raw(template: str) -> Callable[[Any], None]:
    """Writes `template` as it stands, with the id in place of ID."""
    return lambda request_id: write(
        template.replace("ID", str(request_id)).encode("utf-8", "surrogateescape") + b"\n"
    )


def _content(content: str) -> Callable[[Any], None]:
    return _raw('{"jsonrpc":"2.0","id":ID,"result":' + content + "}")


_OK = '{"content":[{"type":"text","text":"ok"}]}'


def _byte_by_byte(request_id: Any) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "result": text("ünï\u2028✓")}
    for byte in json.dumps(message, ensure_ascii=False).encode() + b"\n":
        write(bytes((byte,)))


def _no_newline_then_exit(request_id: Any) -> None:
    write(b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (request_id, _OK.encode()))
    os._exit(0)


def _oversized(request_id: Any) -> None:
    """One line of 65 MiB."""
    write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % request_id)
    for _ in range(65):
        write(b"x" * 1024 * 1024)
    write(b'"}]}}\n')


def _pretty(request_id: Any) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "result": json.loads(_OK)}
    write(json.dumps(message, indent=2).encode() + b"\n")


def _storm(request_id: Any) -> None:
    """2000 notifications, and then the answer."""
    for number in range(2000):
        notify("notifications/message", {"level": "debug", "data": f"line {number}"})
    answer(request_id, json.loads(_OK))


def _python_repr(request_id: Any) -> None:
    write(repr({"jsonrpc": "2.0", "id": request_id, "result": {"content": []}}).encode() + b"\n")


GARBAGE: dict[str, Callable[[Any], None]] = {
    # Without sense: the call must fail, at once.
    "result null": _content("null"),
    "result text": _content('"ok"'),
    "result number": _content("7"),
    "neither result nor error": _raw('{"jsonrpc":"2.0","id":ID}'),
    "error text": _raw('{"jsonrpc":"2.0","id":ID,"error":"broken"}'),
    "error code text": _raw('{"jsonrpc":"2.0","id":ID,"error":{"code":"E_FAIL","message":"broken"}}'),
    "error without message": _raw('{"jsonrpc":"2.0","id":ID,"error":{"code":-32000}}'),
    "error without id": _raw('{"jsonrpc":"2.0","error":{"code":-32700,"message":"broken"}}'),
    "error with id null": _raw('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"broken"}}'),
    "deep": lambda request_id: _content('{"content":' + "[" * 3000 + "]" * 3000 + "}")(request_id),
    "pretty": _pretty,
    "python repr": _python_repr,
    "cut off": _raw('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"te'),
    "cut off before id": _raw('{"jsonrpc":"2.0","result":{"content":[{"type":"te'),
    "oversized": _oversized,
    "id true": _raw('{"jsonrpc":"2.0","id":true,"result":' + _OK + "}"),
    "control character": _content('{"content":[{"type":"text","text":"a\x01b"}]}'),
    "endless number": _content('{"content":[],"structuredContent":' + "7" * 5000 + "}"),
    # Odd but clear: the call must succeed.
    "no jsonrpc": _raw('{"id":ID,"result":' + _OK + "}"),
    "float id": _raw('{"jsonrpc":"2.0","id":ID.0,"result":' + _OK + "}"),
    "text id": _raw('{"jsonrpc":"2.0","id":"ID","result":' + _OK + "}"),
    "error null": _raw('{"jsonrpc":"2.0","id":ID,"error":null,"result":' + _OK + "}"),
    "batch": _raw(
        '[{"jsonrpc":"2.0","method":"notifications/message"},{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}]"
    ),
    "two on a line": _raw(
        '{"jsonrpc":"2.0","method":"notifications/message"} {"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "talk behind it": _raw('{"jsonrpc":"2.0","id":ID,"result":' + _OK + "} done in 3 ms"),
    "carriage return": _raw('{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}\r"),
    "surrogate": _content('{"content":[{"type":"text","text":"half \\ud800 pair"}]}'),
    "bad utf-8": _raw('{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"bad \udcff byte"}]}}'),
    "nan": _content('{"content":[{"type":"text","text":"ok"}],"structuredContent":{"value":NaN}}'),
    "line separators": _content('{"content":[{"type":"text","text":"a\u2028b\u2029c\u0085d"}]}'),
    "byte by byte": _byte_by_byte,
    "unknown id first": _raw(
        '{"jsonrpc":"2.0","id":99999,"result":{}}\n{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "twice": _raw("\n".join(['{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"] * 2)),
    "bad progress": _raw(
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"x"}}\n'
        '{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "notifications nobody knows": _raw(
        '{"jsonrpc":"2.0","method":"notifications/of/the/future","params":[1]}\n'
        '{"jsonrpc":"2.0","method":"notifications/message","params":null}\n'
        '{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "requests nobody knows": _raw(
        '{"jsonrpc":"2.0","id":"q1","method":"no/such","params":{}}\n{"jsonrpc":"2.0","id":null,"method":"no/such"}\n'
        '{"jsonrpc":"2.0","id":ID,"method":"no/such"}\n{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "invented progress token": _raw(
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":1}}\n'
        '{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "cancels what it answers": _raw(
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":ID}}\n'
        '{"jsonrpc":"2.0","id":ID,"result":' + _OK + "}"
    ),
    "storm": _storm,
    "long line": _content('{"content":[{"type":"text","text":"' + "x" * 200_000 + '"}]}'),
    "infinite number": _content(
        '{"content":[{"type":"text","text":"ok"},{"type":"hologram","at":1e999}],"structuredContent":{"value":1e999}}'
    ),
    "nearly too deep": _content(
        '{"content":[{"type":"text","text":"ok"}],"structuredContent":' + '{"a":' * 500 + "1" + "}" * 501
    ),
    "result of another revision": _raw(
        '{"jsonrpc":"2.0","id":ID,"result":{"toolResult":"old","content":[{"type":"text","text":"ok"}],"new":[1]}}'
    ),
    "no newline, then exit": _no_newline_then_exit,
    "content missing": _content("{}"),
    "content null": _content('{"content":null}'),
    "content text": _content('{"content":"ok"}'),
    "content of unknown kind": _content('{"content":[{"type":"hologram","data":"…"},{"type":"text"},7]}'),
}


# The server ---------------------------------------------------------------------------------------------


class State:
    """What the server remembers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lock = threading.Lock()
        self.received: list[Json] = []
        self.extra_tools: list[str] = []
        self.running: dict[Any, Call] = {}
        self.replies: dict[Any, Json] = {}
        self.replied = threading.Condition(self.lock)

    def ask(self, method: str, request_id: Any) -> Json:
        """A request to the client, and its whole reply."""
        send({"jsonrpc": "2.0", "id": request_id, "method": method})
        with self.replied:
            self.replied.wait_for(lambda: request_id in self.replies, timeout=10)
            return self.replies.pop(request_id, {"error": "no reply"})


_state: State


def initialize(request: Json) -> None:
    options = _state.options
    if options.never_initialize:
        return
    capabilities: Json = {} if options.no_tools else {"tools": {"listChanged": True}}
    revision = options.revision or request["params"]["protocolVersion"]
    if options.early_messages:
        notify("notifications/tools/list_changed")
        send({"jsonrpc": "2.0", "id": "early", "method": "ping"})
    answer(
        request["id"],
        {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": {"name": "harness", "version": "1"},
        },
    )


def discover(request: Json) -> None:
    """A server that has never heard of it: a refusal, or what `--on-discover` says."""
    match _state.options.on_discover:
        case "exit":
            os._exit(1)
        case "silent":
            return
        case "warn":
            sys.stderr.buffer.write(b"unknown field in params\n" * 20_000)
            sys.stderr.flush()
        case "empty":
            answer(request["id"], {})
            return
    refuse(request["id"], -32601, "unknown method")


def list_tools(request: Json) -> None:
    """One page of tools: `--pages` cuts the list into so many, `--cursor` makes it end oddly."""
    options = _state.options
    with _state.lock:
        entries = (
            [*BROKEN_TOOLS]
            if options.broken_tools
            else [_entry(name, options.describe) for name in (*TOOLS, *_state.extra_tools)]
        )
    page = int((request.get("params") or {}).get("cursor") or 0)
    if options.refuse_page == page:
        refuse(request["id"], -32603, "no such page")
        return
    per_page = -(-len(entries) // options.pages)
    result: Json = {"tools": entries[page * per_page : (page + 1) * per_page]}
    is_last = page + 1 >= options.pages
    match options.cursor:
        case "loop":
            result["nextCursor"] = "0" if is_last else str(page + 1)
        case "endless":
            result["nextCursor"] = str(page + 1)
        case "empty" if is_last:
            result["nextCursor"] = ""
        case _ if not is_last:
            result["nextCursor"] = str(page + 1)
    answer(request["id"], result)


def _entry(name: str, changed: str | None = None) -> Json:
    description = (TOOLS[name].__doc__ or name) if name in TOOLS else name
    if name == changed:
        description += " Now with a twist."
    entry = {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {}}}
    return {**entry, "outputSchema": PROMISED} if name == "unstructured" else entry


PROMISED: Json = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}


BROKEN_TOOLS: list[Any] = [
    {"name": "good", "inputSchema": {"type": "object", "properties": {"any": True}, "x-own": [1]}},
    {"name": "no_schema"},
    {"name": "null_schema", "inputSchema": None},
    {"name": "true_schema", "inputSchema": True},
    {"name": "empty_schema", "inputSchema": {}},
    {"name": "untyped_schema", "inputSchema": {"properties": {"a": {}}}},
    {"name": "nullable_schema", "inputSchema": {"type": ["object", "null"], "required": ["a"]}},
    {"name": "text_schema", "inputSchema": {"type": "string"}},
    {"name": "bad_output_schema", "inputSchema": {"type": "object"}, "outputSchema": "yes"},
    {"name": "odd_extras", "inputSchema": {"type": "object"}, "title": 7, "description": None, "annotations": []},
    {"name": "task_only", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
    {"name": "good", "description": "a second one", "inputSchema": {"type": "object"}},
    {"name": ""},
    {"inputSchema": {"type": "object"}},
    "not a tool",
    None,
]


def call_tool(request: Json) -> None:
    call = Call(request)
    tool = TOOLS.get(call.name)
    if tool is None:
        refuse(call.id, -32602, f"unknown tool {call.name!r}")
    elif tool in IN_THREADS:
        with _state.lock:
            _state.running[call.id] = call
        threading.Thread(target=_run, args=(tool, call), daemon=True).start()
    else:
        _run(tool, call)


def _run(tool: Tool, call: Call) -> None:
    result = tool(call)
    with _state.lock:
        _state.running.pop(call.id, None)
    if result is not None:
        answer(call.id, result)


def handle(message: Json) -> None:
    """Whatever the client sends."""
    method = message.get("method")
    if method is None:
        with _state.replied:
            _state.replies[message.get("id")] = message
            _state.replied.notify_all()
        return
    if method == "tools/call":
        call_tool(message)
        return
    with _state.lock:
        _state.received.append(message)
    if method == "notifications/cancelled":
        call = _state.running.get((message.get("params") or {}).get("requestId"))
        if call is not None:
            call.cancelled.set()
    if "id" in message:
        handlers = {"initialize": initialize, "server/discover": discover, "tools/list": list_tools}
        handlers.get(method, lambda request: refuse(request["id"], -32601, "unknown method"))(message)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--banner", help="write this to stdout first")
    parser.add_argument("--bom", action="store_true", help="begin stdout with a byte order mark")
    parser.add_argument("--say", help="write this to stderr first")
    parser.add_argument("--stderr-flood", type=int, default=0, metavar="BYTES")
    parser.add_argument("--exit", type=int, metavar="STATUS", help="exit at once")
    parser.add_argument("--exit-unless", metavar="FILE", help="exit with status 4 where FILE is not there")
    parser.add_argument("--never-initialize", action="store_true", help="do not answer initialize")
    parser.add_argument(
        "--on-discover",
        choices=("exit", "silent", "warn", "empty"),
        help="what to do on server/discover, instead of refusing it",
    )
    parser.add_argument(
        "--early-messages", action="store_true", help="notify and ask before the initialize answer"
    )
    parser.add_argument("--revision", help="answer initialize with this revision")
    parser.add_argument("--no-tools", action="store_true", help="do not offer tools")
    parser.add_argument("--describe", metavar="TOOL", help="describe this tool in other words")
    parser.add_argument("--pages", type=int, default=1)
    parser.add_argument("--cursor", choices=("empty", "loop", "endless"))
    parser.add_argument("--refuse-page", type=int, metavar="PAGE")
    parser.add_argument("--broken-tools", action="store_true")
    parser.add_argument("--junk", action="store_true", help="write lines that are no messages, for ever")
    parser.add_argument("--ignore-eof", action="store_true", help="live on after stdin has ended")
    parser.add_argument("--ignore-term", action="store_true", help="ignore SIGTERM")
    parser.add_argument("--never-read", action="store_true", help="do not read stdin after initialize")
    parser.add_argument(
        "--grandchild", choices=("group", "detached"), help="start a process that outlives this one"
    )
    parser.add_argument("--pids", metavar="FILE", help="append the ids of this process and its child to FILE")
    return parser.parse_args()


def prepare(options: argparse.Namespace) -> None:
    """What happens before the first message."""
    pids = [os.getpid()]
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.grandchild:
        pids.append(start_grandchild(is_detached=options.grandchild == "detached"))
    if options.pids:
        with Path(options.pids).open("a") as file:
            file.write("".join(f"{pid}\n" for pid in pids))
    if options.say:
        say(options.say)
    if options.stderr_flood:
        sys.stderr.buffer.write(b"x" * options.stderr_flood)
        sys.stderr.flush()
    if options.exit is not None:
        sys.exit(options.exit)
    if options.exit_unless and not Path(options.exit_unless).exists():
        sys.exit(4)
    if options.bom:
        write(b"\xef\xbb\xbf")
    if options.banner:
        write(options.banner.encode() + b"\n")
    while options.junk:
        write(b"still no message\n")


def main() -> None:
    """Serves until stdin ends."""
    global _state
    options = parse_options()
    _state = State(options)
    prepare(options)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        handle(message)
        if options.never_read and message.get("method") == "notifications/initialized":
            threading.Event().wait()
    if options.ignore_eof:
        threading.Event().wait()


if __name__ == "__main__":
    main()
