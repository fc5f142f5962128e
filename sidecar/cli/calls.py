"""A tool call as lines of a terminal: while it runs and when it is over. Pure: values in, text out."""

import textwrap
from dataclasses import dataclass
from typing import Any

from sidecar.cli import wording
from sidecar.cli.terminal import Terminal, clip, safe_line, width

JsonObject = dict[str, Any]

BAR_CELLS = 12
MAX_REASON_LINES = 4
"""Lines of an error that are shown; the whole of it went to the model. Own choice."""

PLAIN_COLUMNS = 160
"""How much of arguments or output stands in a log, where there is no width to keep to. Own choice."""

Span = tuple[str, str]
"""Text and its style, which may be empty."""


@dataclass
class Call:
    """A call on its way. Times are in seconds, by the renderer's clock."""

    name: str
    input: Any
    started: float
    progress: str = ""
    is_asked_about: bool = False
    """Somebody has to decide first; the question itself is on the screen."""
    told: float = 0.0
    """When its progress was last told, where each telling takes a line."""

    def __post_init__(self) -> None:
        self.told = self.started


def running_line(call: Call, now: float, spinner: str, terminal: Terminal) -> str:
    """Its name, time so far, and its progress or else its arguments."""
    spent = wording.duration(now - call.started) if now - call.started >= 1 else ""
    rest = call.progress or (wording.arguments(call.input) if call.input else "")
    return fitted([(spinner, "cyan"), (f" {safe_line(call.name)}", ""), *_after(spent, rest)], terminal)


def completed_lines(call: Call, event: JsonObject, terminal: Terminal) -> list[str]:
    """State, name, time, arguments, output; on a terminal an error has lines of its own."""
    failed = bool(event.get("isError"))
    gist = wording.output(event.get("output")) + _cut_words(event)
    spent = wording.duration((event.get("durationMs") or 0) / 1000)
    given = wording.arguments(call.input) if call.input else ""
    room = terminal.columns if terminal.notes else 2 * PLAIN_COLUMNS
    head = [_state(failed, terminal), (f" {safe_line(call.name)}", "bold"), *_after(spent, clip(given, room // 2))]
    if failed and terminal.notes:
        reason = wrapped(gist, terminal, indent="  ")[:MAX_REASON_LINES]
        return [fitted(head, terminal), *(terminal.style(line, "red") for line in reason)]
    arrow = terminal.mark("→", "->")
    tail = [(f"  {arrow} {clip(gist, PLAIN_COLUMNS)}", "dim")] if gist else []
    return [fitted([*head, *tail], terminal)]


def progress_words(event: JsonObject, terminal: Terminal) -> str:
    """`━━━━━━────── 3/6  adding`, or what of it is known."""
    done, total = event.get("done"), event.get("total")
    words = [safe_line(str(event["message"]))] if event.get("message") else []
    if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
        words.insert(0, f"{_bar(done / total, terminal)} {done:g}/{total:g}")
    elif isinstance(done, int | float):
        words.insert(0, f"{done:g}")
    return "  ".join(words)


def wrapped(text: str, terminal: Terminal, *, indent: str = "", hanging: str = "  ") -> list[str]:
    """Plain text on as many lines as the terminal needs; one line where there is none."""
    if not terminal.notes:
        return [text]
    columns = terminal.columns - 1
    lines = textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=hanging)
    return [clip(line, columns) for line in lines]


def fitted(spans: list[Span], terminal: Terminal) -> str:
    """The spans on one row, styled, the last of them cut where they do not fit; whole where there are no rows."""
    left = terminal.columns - 1 if terminal.notes else len("".join(text for text, _ in spans)) * 2
    parts = []
    for text, style in spans:
        shown = clip(text, left, ellipsis=terminal.symbol("…", "~")) if left > 0 else ""
        left -= width(shown)
        parts.append(terminal.style(shown, style) if style else shown)
    return "".join(parts)


def _after(spent: str, rest: str) -> list[Span]:
    return [(f"  {text}", style) for text, style in ((spent, "dim"), (rest, "")) if text]


def _state(failed: bool, terminal: Terminal) -> Span:
    return (terminal.mark("✗", "failed"), "red") if failed else (terminal.mark("✓", "ok"), "green")


def _bar(share: float, terminal: Terminal) -> str:
    full = round(BAR_CELLS * min(max(share, 0.0), 1.0))
    return terminal.symbol("━", "#") * full + terminal.symbol("─", "-") * (BAR_CELLS - full)


def _cut_words(event: JsonObject) -> str:
    if not event.get("truncated"):
        return ""
    original = event.get("originalBytes")
    return f" (cut, from {wording.size(original)})" if isinstance(original, int) else " (cut)"
