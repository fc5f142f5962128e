"""Two streams that may be one terminal: the answer on stdout, everything else on stderr, and a live block.

The live block is what is going on right now: a few lines at the bottom that are drawn anew. It exists only on a
terminal, and never stands in the way of text.
"""

from collections.abc import Sequence
from typing import Literal, TextIO

from sidecar.cli.terminal import Terminal, clip
from sidecar.cli.wrapping import WordWrap

_CLEAR_LINE = "\r\x1b[2K"
_UP_AND_CLEAR = "\x1b[1A\x1b[2K"

Kind = Literal["answer", "aside", "line", "question"]


class Screen:
    """Writes; knows what stands where. `terminal` says what the streams are."""

    def __init__(self, answers: TextIO, notes: TextIO, terminal: Terminal) -> None:
        self.terminal = terminal
        self._answers = answers
        self._notes = notes
        self._wrap = WordWrap()
        self._live: tuple[str, ...] = ()
        self._drawn_lines = 0
        self._last: Kind | None = None
        self._answer_open = False
        self._note_open = False
        self._has_answered = False
        self._answer_begins_anew = False

    @property
    def is_shared(self) -> bool:
        """Both streams show up in one place."""
        return self.terminal.answers and self.terminal.notes

    def answer(self, text: str) -> None:
        """More of the answer, as it comes."""
        if not text:
            return
        if self.is_shared:
            self._make_room("answer")
            text = self._wrap.feed(text, self.terminal.columns - 1)
        else:
            self._close_note()
            text = "\n" + text if self._answer_begins_anew else text
        self._answer_begins_anew = False
        self._has_answered = True
        self._answer_open = not text.endswith("\n")
        _write(self._answers, text)

    def catch_up(self) -> None:
        """Shows what was kept back to break lines between words. For when nothing has come for a moment."""
        columns = self.terminal.columns - 1
        if self._note_open and self.terminal.notes:
            self._write_aside(self._wrap.release(columns))
        elif self._answer_open and self.is_shared:
            _write(self._answers, self._wrap.release(columns))

    def end_answer(self) -> None:
        """What was said so far is whole; what comes is another paragraph."""
        if self._answer_open:
            _write(self._answers, self._wrap.flush(self.terminal.columns - 1) + "\n")
            self._answer_open = False
        self._answer_begins_anew = self._has_answered

    def aside(self, text: str) -> None:
        """More of what is not the answer, as it comes, dimmed."""
        if not text:
            return
        self._make_room("aside")
        self._note_open = not text.endswith("\n")
        self._write_aside(self._wrap.feed(text, self.terminal.columns - 1) if self.terminal.notes else text)

    def line(self, text: str = "", *, kind: Kind = "line") -> None:
        """A whole line beside the answer, or several."""
        self._make_room(kind)
        _write(self._notes, text + "\n")
        self._draw()

    def live(self, lines: Sequence[str]) -> None:
        """Replaces the live block; lines hold styles and fit, see `fitted`."""
        shown = tuple(lines)
        if self.terminal.notes and (shown != self._live or not self._drawn_lines):
            self._erase()
            self._live = shown
            self._draw()

    def end(self) -> None:
        """Leaves the cursor at the start of a line."""
        self.live(())
        self.end_answer()
        self._close_note()
        self._last = None
        self._has_answered = self._answer_begins_anew = False

    def fitted(self, text: str) -> str:
        """Text without styles, short enough to stand on one row."""
        return clip(text, self.terminal.columns - 1, ellipsis=self.terminal.symbol("…", "~"))

    def _make_room(self, kind: Kind) -> None:
        """Text of one kind flows on; on a terminal a blank line stands between one kind and another."""
        self._erase()
        flows_on = kind == self._last and kind in ("answer", "aside")
        if self.is_shared and self._answer_open and not flows_on:
            self.end_answer()
        if not flows_on:
            self._close_note()
        if self.terminal.notes and self._last not in (None, kind):
            _write(self._notes, "\n")
        self._last = kind

    def _close_note(self) -> None:
        if self._note_open:
            self._write_aside(self._wrap.flush(self.terminal.columns - 1) if self.terminal.notes else "")
            _write(self._notes, "\n")
            self._note_open = False

    def _write_aside(self, text: str) -> None:
        _write(self._notes, self.terminal.style(text, "dim"))

    def _draw(self) -> None:
        if self._live and not self._note_open and not (self.is_shared and self._answer_open):
            shown = self._live[-max(1, self.terminal.rows - 2) :]
            _write(self._notes, "\n".join(shown))
            self._drawn_lines = len(shown)

    def _erase(self) -> None:
        if self._drawn_lines:
            _write(self._notes, _CLEAR_LINE + _UP_AND_CLEAR * (self._drawn_lines - 1))
            self._drawn_lines = 0


def _write(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
