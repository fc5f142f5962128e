"""What a connection needs of whatever carries its messages."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from sidecar.mcp.framing import Line
from sidecar.protocol.errors import SidecarError, ToolError
from sidecar.protocol.values import JsonObject


class HttpStatusError(ToolError):
    """A request was answered with an HTTP status and no JSON-RPC message."""

    def __init__(self, message: str, *, server: str, status: int) -> None:
        super().__init__("mcpError", message, server=server, status=status)
        self.status = status


class UnreachableError(ToolError):
    """Nobody answers where the server should be; it may be there later."""

    def __init__(self, message: str, *, server: str) -> None:
        super().__init__("mcpError", message, server=server)


class SessionLostError(ToolError):
    """The server has forgotten the session that a request belonged to; another can be opened."""

    def __init__(self, message: str, *, server: str) -> None:
        super().__init__("mcpError", message, server=server)


class NeedsAuthorizationError(ToolError):
    """The server wants to know who we are, and that needs a person who is not there."""

    def __init__(self, message: str, *, server: str) -> None:
        super().__init__("mcpError", message, server=server, needsAuth=True)


def needs_authorization(error: SidecarError) -> bool:
    """Whether it is who we are that a server wants to know."""
    return error.data.get("needsAuth") is True


def may_come(error: SidecarError) -> bool:
    """Whether a server that failed so is perhaps only not there yet."""
    match error:
        case UnreachableError():
            return True
        case HttpStatusError(status=status):
            return status in _NOT_THERE
        case _:
            return False


_NOT_THERE = (502, 503, 504)
"""What a gateway answers in place of a server that it cannot reach (RFC 9110, 15.6)."""


class Outgoing(NamedTuple):
    """One message to a server. Beside its bytes stands what a transport needs that sends each message apart.

    `id` is there for a request of ours alone, `method` for a request or a notification. `headers` are for a
    transport that has some. A request of the stateless revisions names its revision in the `_meta` of `params`.
    """

    body: bytes
    id: int | None = None
    method: str | None = None
    params: JsonObject | None = None
    headers: Mapping[str, str] | None = None


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
