"""What a connection needs of whatever carries its messages."""

from collections.abc import Sequence
from typing import Protocol

from sidecar.mcp.framing import Line


class Transport(Protocol):
    """Carries whole messages to one server and back."""

    @property
    def unsent_bytes(self) -> int:
        """How much was sent that the server has not taken yet."""

    def send(self, message: bytes) -> None:
        """Hands one message over; never waits, since whoever sends a request waits for its answer."""

    async def receive(self) -> Sequence[Line]:
        """The messages that have come since the last time, at least one; none once the server has ended."""

    async def why_ended(self) -> str:
        """After `receive` gave none: what became of the server, as the end of a sentence about it."""

    async def close(self) -> None:
        """Ends the server and everything it started. May be called at any time, and again."""
