"""Text of others, made so that a person sees all of it. Whatever is asked or told passes through here. Pure."""

import re
import unicodedata

_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters, marks and symbols that show nothing: fillers and variation selectors (Unicode,
Default_Ignorable_Code_Point), and the empty Braille pattern."""

_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """The text with every character escaped that is no visible one: controls, line ends, invisible formatting."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _is_visible(character) else _escape(character) for character in text)


def _is_visible(character: str) -> bool:
    if character == " " or character.isascii():
        return character.isprintable()
    return unicodedata.category(character)[0] not in "CZ" and not _BLANK.match(character)


def _escape(character: str) -> str:
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
