"""What servers in the field were seen to do wrong over stdio, and what a caller then gets.

A table for tests of the client and of the whole sidecar; `mcp_server` shows each fault. The rule behind it: a
call ends at once, with what its answer holds where that is clear, else with an error that says what was wrong.
"""

import signal
from typing import Any

from attrs import field, frozen

from sidecar.mcp.results import McpCallResult
from sidecar.protocol.values import TextBlock, UnknownBlock

OK = McpCallResult(content=(TextBlock(text="ok"),))


def nested(depth: int) -> Any:
    """An object in an object, and so on."""
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def text(words: str) -> McpCallResult:
    """A result that is only words."""
    return McpCallResult(content=(TextBlock(text=words),))


ANSWERS: dict[str, McpCallResult | str] = {
    # Without sense: the error of the call, as it goes on behind the server's name.
    "result null": "failed at tools/call: the result in its answer is null instead of an object",
    "result text": "failed at tools/call: the result in its answer is a string instead of an object",
    "result number": "failed at tools/call: the result in its answer is a number instead of an object",
    "neither result nor error": "failed at tools/call: its answer has neither a result nor an error",
    "error text": "refused 'garbage': broken",
    "error code text": "refused 'garbage': broken",
    "error without message": "refused 'garbage': an error without a message",
    "error without id": "refused 'garbage': broken",
    "error with id null": "refused 'garbage': broken",
    "deep": "failed at tools/call: its answer is nested too deeply",
    "pretty": "failed at tools/call: its answer is spread over several lines",
    "python repr": "failed at tools/call: its answer is no JSON",
    "cut off": "failed at tools/call: its answer is no JSON",
    "cut off before id": "failed at tools/call: its answer is no JSON",
    "oversized": "failed at tools/call: its answer is longer than this client takes",
    "id true": "failed at tools/call: its answer has no usable id",
    "control character": "failed at tools/call: its answer is no JSON",
    "endless number": "failed at tools/call: its answer is no JSON",
    # Odd but clear: its result.
    "no jsonrpc": OK,
    "float id": OK,
    "text id": OK,
    "error null": OK,
    "batch": OK,
    "two on a line": OK,
    "talk behind it": OK,
    "carriage return": OK,
    "surrogate": text("half � pair"),
    "bad utf-8": text("bad � byte"),
    "nan": McpCallResult(content=OK.content, structured_content={"value": None}),
    "line separators": text("a\u2028b\u2029c\u0085d"),
    "byte by byte": text("ünï\u2028✓"),
    "unknown id first": OK,
    "twice": OK,
    "bad progress": OK,
    "notifications nobody knows": OK,
    "requests nobody knows": OK,
    "invented progress token": OK,
    "cancels what it answers": OK,
    "storm": OK,
    "long line": text("x" * 200_000),
    "result of another revision": OK,
    "content missing": McpCallResult(),
    "content null": McpCallResult(),
    "content text": OK,
    "content of unknown kind": McpCallResult(
        content=(
            UnknownBlock(raw={"type": "hologram", "data": "…"}),
            TextBlock(text='{"type": "text"}'),
            UnknownBlock(raw={"type": "unknown", "value": 7}),
        )
    ),
    "infinite number": McpCallResult(
        content=(TextBlock(text="ok"), UnknownBlock(raw={"type": "hologram", "at": None})),
        structured_content={"value": None},
    ),
    "nearly too deep": McpCallResult(content=OK.content, structured_content=nested(500)),
    "no newline, then exit": OK,
}
"""By kind of `garbage`: the result, or the beginning of the error."""


@frozen(kw_only=True)
class Ending:
    """How a call brings its server down, and what is then said of the server."""

    tool: str
    arguments: dict[str, Any] = field(factory=dict)
    said: str


ENDINGS: dict[str, Ending] = {
    "exits in a call": Ending(tool="die", arguments={"status": 3}, said="exited with status 3"),
    "is killed": Ending(
        tool="die_by_signal", arguments={"signal": int(signal.SIGKILL)}, said="was ended by SIGKILL"
    ),
    "crashes": Ending(
        tool="die_by_signal", arguments={"signal": int(signal.SIGSEGV)}, said="was ended by SIGSEGV"
    ),
    "closes stdout and lives on": Ending(tool="close_stdout", said="closed its stdout"),
    "closes stdin and lives on": Ending(tool="close_stdin", said="closed its stdin"),
}
"""Servers that end in the middle of a call, or are as good as gone."""


@frozen(kw_only=True)
class Start:
    """How a server starts: its options, more fields of its entry, and why it does not come up, if it does not."""

    options: tuple[str, ...]
    fields: dict[str, Any] = field(factory=dict)
    error: str | None = None


STARTS: dict[str, Start] = {
    # It comes up, and its calls work.
    "byte order mark": Start(options=("--bom",)),
    "banner": Start(options=("--banner", "Server 1.0 on stdio")),
    "banner that is JSON": Start(options=("--banner", '{"level":30,"msg":"listening"}')),
    "much on stderr": Start(options=("--stderr-flood", "2000000")),
    "notifies and asks before its first answer": Start(options=("--early-messages",)),
    "exits on a request it does not know": Start(options=("--on-discover", "exit")),
    "says nothing to a request it does not know": Start(options=("--on-discover", "silent")),
    "warns at length of a request it does not know": Start(options=("--on-discover", "warn")),
    "answers a request it does not know with nothing": Start(options=("--on-discover", "empty")),
    "tools without a sensible schema": Start(options=("--broken-tools",)),
    "pages that go in a circle": Start(options=("--pages", "3", "--cursor", "loop")),
    "an empty cursor at the end": Start(options=("--pages", "3", "--cursor", "empty")),
    "a page that is refused": Start(options=("--pages", "3", "--refuse-page", "1")),
    # It does not.
    "exits at once": Start(options=("--say", "no such option", "--exit", "2"), error="exited with status 2"),
    "never answers": Start(
        options=("--never-initialize",), fields={"startTimeoutSecs": 0.5}, error="did not answer"
    ),
    "writes no messages": Start(options=("--junk",), error="writes on its stdout what is no MCP message"),
    "a revision of the future": Start(options=("--revision", "2099-01-01"), error="speaks MCP revision"),
    "its first page is refused": Start(options=("--refuse-page", "0"), error="refused tools/list"),
}
"""Servers whose start is odd or fails."""
