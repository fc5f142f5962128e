"""The time in which a server waited for a person, which counts against none of its limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic


class PersonTime:
    """Adds up the seconds in which a person was asked; waits that overlap count once."""

    def __init__(self) -> None:
        self._before_secs = 0.0
        self._since = 0.0
        self._waits = 0

    @property
    def secs(self) -> float:
        """So far, and growing while a person is asked."""
        return self._before_secs + (monotonic() - self._since if self._waits else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """A person is asked inside."""
        if not self._waits:
            self._since = monotonic()
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits:
                self._before_secs += monotonic() - self._since
