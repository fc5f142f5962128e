"""What a transport over HTTP asks of whoever holds the tokens of a server."""

from collections.abc import Mapping
from typing import Protocol


class Authorization(Protocol):
    """The right to use one server, as HTTP headers."""

    async def headers(self, method: str, url: str) -> dict[str, str]:
        """What to add to a request, asked before each one; nothing where there is no token yet."""

    async def challenged(self, status: int, headers: Mapping[str, str], body: bytes) -> bool:
        """Told of a 401, or of a 403 for want of scope; true where the request is worth sending again.

        Header names are in lower case. Raises ToolError `mcpError` with `needsAuth` where a person is needed and
        none is there.
        """

    async def aclose(self) -> None:
        """Ends what it still does for the server."""
