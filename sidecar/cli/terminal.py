"""What a terminal can show: its width and colours, and making foreign text safe and short enough for it."""

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TextIO

FALLBACK_COLUMNS = 80
MIN_COLUMNS = 20
"""Below this nothing readable fits; lines are then longer than the terminal. Own choice."""

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e"  # invisible, or turning text around
    "\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f"
    "\ud800-\udfff]"  # halves of surrogate pairs, which no encoding takes
)

_SGR = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """What the two output streams are. With both off it is plain text, nothing is ever drawn twice."""

    answers: bool = False
    """stdout is a terminal."""
    notes: bool = False
    """stderr is a terminal that can move its cursor."""
    colour: bool = False
    unicode: bool = True
    columns: int = FALLBACK_COLUMNS
    rows: int = 24
    descriptor: int | None = None
    """Of the terminal behind the notes; its size is looked up there."""

    def style(self, text: str, *names: str) -> str:
        """The text in these styles, where there are colours."""
        if not self.colour or not text or not names:
            return text
        return f"\x1b[{';'.join(_SGR[name] for name in names)}m{text}\x1b[0m"

    def symbol(self, fancy: str, plain: str) -> str:
        """The fancy one where the encoding has it."""
        return fancy if self.unicode else plain

    def mark(self, fancy: str, plain: str) -> str:
        """The fancy one on a terminal that has it; elsewhere words are kinder to whoever reads a log."""
        return fancy if self.notes and self.unicode else plain

    def resized(self) -> "Terminal":
        """The same terminal at its present size."""
        if self.descriptor is None:
            return self
        columns, rows = _size_of(self.descriptor) or (self.columns, self.rows)
        said = os.environ.get("COLUMNS", "")
        return replace(self, columns=max(int(said) if said.isdecimal() else columns, MIN_COLUMNS), rows=rows)


def _size_of(descriptor: int) -> tuple[int, int] | None:
    try:
        return os.get_terminal_size(descriptor)
    except OSError:  # It is no terminal, or none any more.
        return None


def terminal_of(stdout: TextIO, stderr: TextIO, environ: Mapping[str, str] = os.environ) -> Terminal:
    """The streams as they are, with NO_COLOR (no-color.org) and TERM taken at their word."""
    notes = stderr.isatty() and environ.get("TERM", "") != "dumb" and _moves_cursor(environ)
    encodings = (stdout.encoding or "ascii", stderr.encoding or "ascii")
    return Terminal(
        answers=stdout.isatty(),
        notes=notes,
        colour=notes and not environ.get("NO_COLOR"),
        unicode=all(_can_encode("✓⠋│…", encoding) for encoding in encodings),
        descriptor=stderr.fileno() if notes else None,
    ).resized()


def _moves_cursor(environ: Mapping[str, str]) -> bool:
    """Whether escape sequences work: Windows' old console shows them as text, newer ones say who they are."""
    return os.name != "nt" or any(environ.get(name) for name in ("WT_SESSION", "TERM_PROGRAM", "TERM"))


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


# Foreign text -------------------------------------------------------------------------------------------


def safe(text: str) -> str:
    """Text from a model or a tool with what could act on a terminal written out: `\\x1b`, `\\u202e`."""
    return _UNSAFE.sub(_written_out, text.replace("\r\n", "\n"))


def safe_line(text: str) -> str:
    """The same on one line."""
    return safe(" ".join(text.split()))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    letter, digits = ("x", 2) if code < 0x100 else ("u", 4) if code < 0x10000 else ("U", 8)
    return f"\\{letter}{code:0{digits}x}"


# Width --------------------------------------------------------------------------------------------------


def width(text: str) -> int:
    """Columns that the text takes, without styles in it."""
    return sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, columns: int, *, ellipsis: str = "…") -> str:
    """The text, cut to at most so many columns with a mark where it was cut."""
    if width(text) <= columns:
        return text
    kept, left = [], columns - width(ellipsis)
    for character in text:
        left -= _columns_of(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + ellipsis


def wrap(words: Iterable[str], columns: int, *, indent: str = "", gap: str = " ") -> list[str]:
    """Words, each kept whole, on as few lines as their width needs."""
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]}{gap}{word}" if lines else ""
        if lines and width(longer) <= columns:
            lines[-1] = longer
        else:
            lines.append(indent + word)
    return lines
