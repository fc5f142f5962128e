"""Bytes to text and back: UTF-8 as a rule, else what a byte order mark or the look of them says."""

import codecs

from attrs import frozen

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # Before UTF-16, whose mark it begins with.
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED_BYTES = 8192
_ASCII = bytes(range(128))
_FEW_BYTES = 16
"""With fewer bytes beyond ASCII a guess is no better than the encoding that most such files have. Own choice."""


class NoTextError(Exception):
    """The bytes are no text that could be written back as it was; the message says why, as in `is …`."""


@frozen(kw_only=True, eq=False)
class Encoding:
    """How a file's text became bytes, byte order mark included."""

    name: str = "utf-8"
    mark: bytes = b""

    def encoded(self, text: str) -> bytes:
        """Raises NoTextError for characters that it does not have."""
        try:
            return self.mark + text.encode(self.name)
        except UnicodeEncodeError as error:
            character = error.object[error.start]
            raise NoTextError(f"is in {self.name}, which has no {character!r} (U+{ord(character):04X})") from None


UTF_8 = Encoding()


def decoded(raw: bytes) -> tuple[str, Encoding]:
    """The text and its encoding. Raises NoTextError."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return _by_mark(raw, Encoding(name=name, mark=mark))
    if b"\0" in raw[:_SNIFFED_BYTES]:
        raise NoTextError("is binary, not text")
    try:
        return raw.decode(), UTF_8
    except UnicodeDecodeError:
        return _guessed(raw)


def _by_mark(raw: bytes, encoding: Encoding) -> tuple[str, Encoding]:
    try:
        return raw[len(encoding.mark) :].decode(encoding.name), encoding
    except UnicodeDecodeError as error:
        where = len(encoding.mark) + error.start
        raise NoTextError(f"begins as {encoding.name}, but byte {where} does not fit") from None


def _guessed(raw: bytes) -> tuple[str, Encoding]:
    name = "cp1252" if len(raw.translate(None, _ASCII)) < _FEW_BYTES else _best_guess(raw)
    try:
        text = raw.decode(name)
        survives = text.encode(name) == raw
    except UnicodeError:
        survives = False
    if not survives:
        raise NoTextError("is text in an encoding that is not known")
    return text, Encoding(name=name)


def _best_guess(raw: bytes) -> str:
    from charset_normalizer import from_bytes  # noqa: PLC0415

    guess = from_bytes(raw).best()
    if guess is None or b"\0" in raw:
        raise NoTextError("is binary, not text")
    return guess.encoding
