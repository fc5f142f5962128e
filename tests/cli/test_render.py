"""How runs look: events in, text out, on a picture of a terminal and as plain text.

Source: own choice, within protocol.md ("Events") and the rule that the answer alone goes to stdout.
"""

import io
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from sidecar.cli.render import JsonView, RunView
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import Terminal
from tests.harness.terminal import Picture

ON_TERMINAL = Terminal(answers=True, notes=True, columns=60)
PIPED = Terminal()

Show = Callable[..., None]


class Stage:
    """A view on streams in memory, and a clock that moves when it is told to."""

    def __init__(self, terminal: Terminal, *, totals: bool = False) -> None:
        self.now = 0.0
        self.stdout = io.StringIO()
        # A terminal shows both streams in the order of writing, which is what one buffer for both gives.
        self.stderr = self.stdout if terminal.answers else io.StringIO()
        screen = Screen(self.stdout, self.stderr, terminal)
        self.view = RunView(screen, show_totals=totals, clock=lambda: self.now)
        self.columns = terminal.columns
        self.view.begin()

    def show(self, kind: str, **fields: Any) -> None:
        self.view.show({"event": {"type": kind, **fields}})

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.view.tick()

    @property
    def picture(self) -> list[str]:
        return Picture(self.columns).feed(self.stdout.getvalue().replace("\n", "\r\n")).lines


def started(stage: Stage, call_id: str, name: str, **given: Any) -> None:
    stage.show("toolExecutionStarted", callId=call_id, toolName=name, input=given)


def completed(stage: Stage, call_id: str, name: str, output: Any, **fields: Any) -> None:
    known = {"isError": False, "durationMs": 12, "truncated": False}
    stage.show("toolExecutionCompleted", callId=call_id, toolName=name, output=output, **{**known, **fields})


def a_run(stage: Stage) -> None:
    stage.show("runStarted", model="m/one")
    stage.show("assistantReasoningDelta", text="Let me think.")
    for text in ("Reading ", "both."):
        stage.show("assistantTextDelta", text=text)
    started(stage, "1", "read_file", path="a.md")
    started(stage, "2", "delete_file", path="b c.md")
    stage.show("turnComplete", turn=1, reason="toolCalls", usage={"totalTokens": 1000})
    completed(stage, "2", "delete_file", "error: no", isError=True, durationMs=0)
    completed(stage, "1", "read_file", "# A\nmore", durationMs=1234)
    stage.show("warning", code="x", message="a schema was mended")
    stage.show("assistantTextDelta", text="All read.")
    stage.show("turnComplete", turn=2, reason="stop", usage={"totalTokens": 234})
    stage.show("runCompleted", stopReason="stop", usage={})
    stage.view.end()


def test_a_run_on_a_terminal_reads_from_top_to_bottom() -> None:
    stage = Stage(ON_TERMINAL, totals=True)
    a_run(stage)
    assert stage.picture == [
        "Let me think.",
        "",
        "Reading both.",
        "",
        '✗ delete_file  0 ms  path="b c.md"',
        "  error: no",
        "✓ read_file  1.2 s  path=a.md  → # A more",
        "! a schema was mended",
        "",
        "All read.",
        "",
        "0 ms · 2 turns · 2 calls · 1,234 tokens",
    ]


def test_piped_the_answer_alone_is_on_stdout() -> None:
    stage = Stage(PIPED, totals=True)
    a_run(stage)
    assert stage.stdout.getvalue() == "Reading both.\n\nAll read.\n"
    assert stage.stderr.getvalue() == (
        "Let me think.\n"
        'failed delete_file  0 ms  path="b c.md"  -> error: no\n'
        "ok read_file  1.2 s  path=a.md  -> # A more\n"
        "! a schema was mended\n"
    )


def test_an_answer_to_a_file_leaves_the_terminal_its_live_lines() -> None:
    stage = Stage(Terminal(notes=True, columns=60))
    a_run(stage)
    assert stage.stdout.getvalue() == "Reading both.\n\nAll read.\n"
    assert "✓ read_file" in stage.stderr.getvalue()


def test_parallel_calls_are_live_lines_until_each_is_over() -> None:
    stage = Stage(ON_TERMINAL)
    started(stage, "1", "first", n=1)
    started(stage, "2", "second")
    stage.wait(2.5)
    assert stage.picture == ["⠴ first  2.5 s  n=1", "⠴ second  2.5 s"]
    completed(stage, "2", "second", "2")
    assert stage.picture == ["✓ second  12 ms  → 2", "⠴ first  2.5 s  n=1"]
    completed(stage, "1", "first", "1")
    assert stage.picture == ["✓ second  12 ms  → 2", "✓ first  12 ms  n=1  → 1"]


def test_progress_replaces_the_arguments_while_a_call_runs() -> None:
    stage = Stage(ON_TERMINAL)
    started(stage, "1", "sum", numbers=[1, 2])
    stage.show("toolExecutionProgress", callId="1", done=1, total=2, message="adding")
    assert stage.picture == ["⠋ sum  ━━━━━━────── 1/2  adding"]
    stage.show("toolExecutionProgress", callId="1", done=5)
    assert stage.picture == ["⠋ sum  5"]


def test_piped_progress_takes_a_line_every_few_seconds() -> None:
    stage = Stage(PIPED)
    started(stage, "1", "sum")
    for done in range(1, 13):
        stage.now += 1
        stage.show("toolExecutionProgress", callId="1", done=done)
    assert stage.stderr.getvalue() == "... sum  5\n... sum  10\n"


def test_a_silent_model_is_waited_for_visibly_after_a_moment() -> None:
    stage = Stage(ON_TERMINAL)
    stage.show("runStarted", model="m/one")
    stage.wait(0.2)
    assert stage.picture == []
    stage.wait(2)
    assert stage.picture == ["⠹ m/one  2.2 s"]
    stage.show("assistantTextDelta", text="hi ")
    assert stage.picture == ["hi"]


def test_lines_break_between_words_and_code_stays_as_it_is() -> None:
    stage = Stage(Terminal(answers=True, notes=True, columns=20))
    for text in ("Several words in ", "pie", "ces, and:\n```\n", "x = " + "1" * 20, "\n```\nwell, that is it"):
        stage.show("assistantTextDelta", text=text)
    stage.view.end()
    assert stage.picture == [
        "Several words in",
        "pieces, and:",
        "```",
        "x = 1111111111111111",
        "1111",
        "```",
        "well, that is it",
    ]


def test_half_a_word_is_shown_when_nothing_follows_for_a_moment() -> None:
    stage = Stage(ON_TERMINAL)
    stage.show("assistantTextDelta", text="one tw")
    assert stage.picture == ["one"]
    stage.wait(0.1)
    assert stage.picture == ["one tw"]
    stage.show("assistantTextDelta", text="o three")
    stage.view.end()
    assert stage.picture == ["one two three"]


def test_a_call_that_is_asked_about_is_no_live_line() -> None:
    stage = Stage(ON_TERMINAL)
    started(stage, "1", "write")
    stage.show("approvalRequested", requestId="r", callId="1", toolName="write", permissions=[], reason="")
    assert stage.picture == []
    stage.show("approvalResolved", requestId="r", decision="deny", by="deadline")
    assert stage.picture == ["! nobody answered in time: denied", "⠋ write"]


def test_what_is_cut_says_how_large_it_was() -> None:
    stage = Stage(ON_TERMINAL)
    completed(stage, "1", "read", "x", truncated=True, originalBytes=3 * 1024 * 1024)
    assert stage.picture == ["✓ read  12 ms  → x (cut, from 3.0 MiB)"]


def test_an_event_of_a_newer_sidecar_is_passed_over() -> None:
    stage = Stage(ON_TERMINAL)
    stage.show("somethingNew", text="?")
    stage.view.show({"event": {}})
    assert stage.picture == []


@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "\x9b31m", "\u202eevil", "\x08\x08", "a\rb", "\ud800"])
def test_nothing_from_a_model_or_tool_reaches_the_terminal_unescaped(text: str) -> None:
    stage = Stage(ON_TERMINAL)
    before = len(stage.stdout.getvalue())
    stage.show("assistantTextDelta", text=text)
    started(stage, "1", text, argument=text, **{text: 1})
    stage.show("toolExecutionProgress", callId="1", message=text)
    completed(stage, "1", text, [{"type": "text", "text": text}], isError=True)
    stage.show("warning", code=text, message=text)
    stage.show("retrying", attempt=1, delayMs=5, reason=text)
    stage.view.end()
    written = stage.stdout.getvalue()[before:]
    for sequence in ("\r\x1b[2K", "\x1b[1A\x1b[2K"):  # The live block's own.
        written = written.replace(sequence, "")
    assert all(character == "\n" or character.isprintable() for character in written), written


@pytest.mark.parametrize("columns", [20, 33])
def test_no_line_is_wider_than_a_narrow_terminal(columns: int) -> None:
    stage = Stage(Terminal(answers=True, notes=True, columns=columns), totals=True)
    started(stage, "1", "a_tool_with_quite_a_long_name", text="宽" * 40)
    stage.show("toolExecutionProgress", callId="1", done=1, total=3, message="working on it")
    completed(stage, "1", "a_tool_with_quite_a_long_name", "failed because " + "of this " * 20, isError=True)
    stage.show("warning", code="w", message="something that takes more than one line was mended")
    stage.show("runCompleted", stopReason="stop", usage={})
    rows = stage.stdout.getvalue().replace("\r\x1b[2K", "\n").split("\n")
    assert max(map(len, rows)) < columns


def test_colours_only_where_they_are_wanted() -> None:
    plain, coloured = Stage(ON_TERMINAL), Stage(Terminal(answers=True, notes=True, colour=True, columns=60))
    for stage in (plain, coloured):
        a_run(stage)
    assert "\x1b[31m" not in plain.stdout.getvalue()
    assert "\x1b[31m✗\x1b[0m" in coloured.stdout.getvalue()
    assert plain.picture == coloured.picture


def test_raw_events_are_one_json_object_a_line() -> None:
    stdout = io.StringIO()
    view = JsonView(Screen(stdout, io.StringIO(), PIPED))
    for seq, text in itertools.islice(enumerate(["a\nb", "\x1b"]), 2):
        view.show({"runId": "r", "seq": seq, "event": {"type": "assistantTextDelta", "text": text}})
    view.end()
    assert stdout.getvalue() == (
        '{"runId": "r", "seq": 0, "event": {"type": "assistantTextDelta", "text": "a\\nb"}}\n'
        '{"runId": "r", "seq": 1, "event": {"type": "assistantTextDelta", "text": "\\u001b"}}\n'
    )
