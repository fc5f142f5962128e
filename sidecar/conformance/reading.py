"""JSON objects of transcripts read strictly: a word that nobody takes is an error, so that none is passed over."""

from typing import Any

from sidecar.protocol.values import JsonObject


class TranscriptError(Exception):
    """A transcript is not what the format says; names the file, the conversation and the step."""


class Reader:
    """Takes the fields out of an object, and complains about what nobody took."""

    def __init__(self, content: Any, place: str) -> None:
        if not isinstance(content, dict):
            raise TranscriptError(f"{place}: must be an object")
        self._content: JsonObject = dict(content)
        self.place = place

    def need(self, name: str) -> Any:
        """A field that has to be there."""
        if name not in self._content:
            raise TranscriptError(f"{self.place}: {name} is missing")
        return self._content.pop(name)

    def get(self, name: str, default: Any = None) -> Any:
        """A field that may be there."""
        return self._content.pop(name, default)

    def has(self, name: str) -> bool:
        """Whether a field is there and nobody has taken it."""
        return name in self._content

    def done(self) -> None:
        """Nothing is left that nobody took."""
        if self._content:
            raise TranscriptError(f"{self.place}: unknown: {', '.join(sorted(self._content))}")
