"""Values that must not show: keys, tokens, what a person typed in for one. Pure.

Whoever learns such a value adds it here; whoever shows, sends or keeps text that comes from outside hides them.
"""

import json
from collections.abc import Iterable
from typing import Any

SHORTEST_CHARACTERS = 6
"""Shorter values are not hidden: they would blot out ordinary words. Own choice."""

HIDDEN = "***"


class Secrets:
    """The secrets of one sidecar. They are kept as long as it runs: what was secret once is secret still."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._spellings: list[str] = []
        self.add(values)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hide."""
        return not self._spellings

    def add(self, values: Iterable[str]) -> None:
        """Values that must not show from now on; of several lines each counts, as each may show alone."""
        known = set(self._spellings)
        for value in values:
            for part in {value, *value.split("\n")}:
                if len(part.strip()) >= SHORTEST_CHARACTERS:
                    known |= {part.strip(), json.dumps(part.strip())[1:-1]}
        # Longer ones first: one may be a part of another.
        self._spellings = sorted(known, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text without them."""
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, HIDDEN)
        return text

    def hide_in(self, value: Any) -> Any:
        """The JSON value without them: in texts, and in the names of fields."""
        match value:
            case str():
                return self.hide(value)
            case dict() if self._spellings:
                return {self.hide(str(name)): self.hide_in(item) for name, item in value.items()}
            case list() | tuple() if self._spellings:
                return [self.hide_in(item) for item in value]
            case _:
                return value

    def __repr__(self) -> str:
        return f"Secrets({len(self._spellings)} spellings)"
