"""Whole characters from pieces of text.

Servers that count text in UTF-16 may cut it within a character, and send half a pair of surrogates in each of two
pieces. Every piece reaches a host by itself, and half a character is no text.
"""

from collections.abc import Iterator

from attrs import evolve

from sidecar.providers.base import ModelPiece, ReasoningPiece, TextPiece


class WholeCharacters:
    """Passes on pieces; the first half of a character waits for the piece with the second."""

    def __init__(self) -> None:
        self._half: TextPiece | ReasoningPiece | None = None

    def add(self, piece: ModelPiece) -> Iterator[ModelPiece]:
        """What can be passed on now that this piece has come."""
        if self._half is not None and type(piece) is type(self._half):
            piece = evolve(piece, text=_joined(self._half.text + piece.text))
            self._half = None
        yield from self.rest()
        if isinstance(piece, TextPiece | ReasoningPiece) and "\ud800" <= piece.text[-1:] <= "\udbff":
            self._half = evolve(piece, text=piece.text[-1])
            piece = evolve(piece, text=piece.text[:-1])
        yield piece

    def rest(self) -> Iterator[ModelPiece]:
        """The half that no other will follow."""
        if self._half is not None:
            half, self._half = self._half, None
            yield half


def _joined(text: str) -> str:
    """The same text with its pairs of surrogates as the characters that they stand for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
