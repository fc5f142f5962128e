"""Words of a stream, broken at spaces instead of at the edge of the terminal. Pure: text in, text out."""

from sidecar.cli.terminal import width

FENCE = "```"


class WordWrap:
    """Keeps back a word until its end is known or it is released. Lines between code fences stay as they are."""

    def __init__(self) -> None:
        self._column = 0
        self._word = ""
        self._line = ""
        self._is_code = False

    def feed(self, text: str, columns: int) -> str:
        """What of the text can be shown now, on lines of at most so many columns."""
        shown = []
        for character in text:
            if character in " \n":
                shown.append(self._placed(columns))
                shown.append(self._spaced(character))
            else:
                self._word += character
        if self._is_code:
            shown.append(self._placed(columns))
        return "".join(shown)

    def release(self, columns: int) -> str:
        """The word that was kept back, because nothing has come for a while; its rest, if any, joins it."""
        return self._placed(columns)

    def flush(self, columns: int) -> str:
        """The word that was kept back; what follows begins a line of its own."""
        shown = self._placed(columns)
        self._column = 0
        self._line = ""
        return shown

    def _placed(self, columns: int) -> str:
        """The word kept back, on a new line where it does not fit on this one."""
        word, self._word = self._word, ""
        breaks = not self._is_code and self._column > 0 and self._column + width(word) > columns
        self._column = (0 if breaks else self._column) + width(word)
        self._line += word
        return ("\n" if breaks else "") + word

    def _spaced(self, character: str) -> str:
        if character == "\n":
            if self._line.lstrip().startswith(FENCE):
                self._is_code = not self._is_code
            self._line = ""
            self._column = 0
        else:
            self._line += " "
            self._column += 1
        return character
