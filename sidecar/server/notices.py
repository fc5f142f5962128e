"""Things that were mended or left out while no run was there to say so: told to the next run, and logged."""

from collections.abc import Callable

from sidecar.protocol.events import Warned


class Notices:
    """Keeps warnings until a run takes them. `show` tells the host at once, for its log."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._waiting: list[Warned] = []
        self._show = show

    def add(self, code: str, message: str) -> None:
        """The host sees it now in its log, and as a `warning` event of the next run."""
        self._waiting.append(Warned(code=code, message=message))
        self._show(message)

    def take(self) -> list[Warned]:
        """All that waits, once."""
        waiting, self._waiting = self._waiting, []
        return waiting
