"""What a connection needs of whatever carries its messages."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sidecar.mcp.framing import Line
from sidecar.protocol.errors import SidecarError
from sidecar.protocol.values import JsonObject


class Outgoing(NamedTuple):
    """One message to a server. Beside its bytes stands what a transport needs that sends each message apart.

    `id` is there for a request of ours alone, `method` for a request or a notification.
    """

    body: bytes
    id: int | None = None
    method: str | None = None
    params: JsonObject | None = None


class FailedRequest(NamedTuple):
    """A request of ours that the transport could not carry, or whose answer was lost, while the others go on."""

    id: int
    error: SidecarError


class Transport(Protocol):
    """Carries whole messages to one server and back."""

    @property
    def pid(self) -> int | None:
        """The server's process, where the transport has one."""

    @property
    def unsent_bytes(self) -> int:
        """How much was sent that the server has not taken yet."""

    def send(self, message: Outgoing) -> None:
        """Hands one message over; never waits, since whoever sends a request waits for its answer."""

    def withdraw(self, request_id: int) -> bool:
        """Lets go of a request that nobody waits for; false where a message has to tell the server."""

    def speaks(self, revision: str) -> None:
        """Told once both sides have settled which revision of MCP they speak."""

    async def receive(self) -> Sequence[Line | FailedRequest]:
        """What has come since the last time, at least one; none once the server has ended."""

    async def why_ended(self) -> str:
        """After `receive` gave none: what became of the server, as the end of a sentence about it."""

    async def close(self) -> None:
        """Ends the server and everything it started. May be called at any time, and again."""

    def kill(self) -> None:
        """Ends everything at once, for when there is no time left for `close`."""
