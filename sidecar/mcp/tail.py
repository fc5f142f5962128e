"""The last words of a server, kept for error messages."""

from collections.abc import Iterable

TAIL_BYTES = 4096
"""How much of a server's stderr an error shows. Own choice: a traceback fits, a log does not."""


class Tail:
    """A bounded memory of what a server wrote where no message belongs; `secrets` never show in it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self._bytes = bytearray()
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        """More `secrets` that never show."""
        self._secrets = sorted((*self._secrets, *secrets), key=len, reverse=True)

    def add(self, data: bytes) -> None:
        """Takes the next bytes in; all but the last are forgotten."""
        self._bytes += data
        # Twice as much as is shown, so that a secret is whole in here wherever the shown part begins.
        if len(self._bytes) > 4 * TAIL_BYTES:
            del self._bytes[: -2 * TAIL_BYTES]

    def text(self) -> str | None:
        """What was written last, from the start of a line where there is one; None for nothing."""
        text = self._bytes.decode(errors="replace")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        shown = text[-TAIL_BYTES:]
        if len(shown) < len(text):
            shown = shown[shown.find("\n") + 1 :]
        return shown.strip() or None
