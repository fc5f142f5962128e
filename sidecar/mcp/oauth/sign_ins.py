"""The right to use servers with a URL, as the manager of servers asks for it. Cheap to import."""

from pathlib import Path

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import Server, StdioServer
from sidecar.mcp.oauth.pages import ShowPage
from sidecar.mcp.person_time import PersonTime


class SignIns:
    """Signs in to servers that want it. What comes of that is kept in the system's keyring, or in `file`.

    `show_page` has a person visit a page, who is given `limit_secs` for it.
    """

    def __init__(self, file: Path, show_page: ShowPage, *, limit_secs: float) -> None:
        self._file = file
        self._show_page = show_page
        self._limit_secs = limit_secs

    def authorize(self, name: str, server: Server, person_time: PersonTime) -> Authorization | None:
        """The right to use a server; None for one that needs none of us, or brings its own header.

        Raises ConfigurationError for options that are wrong.
        """
        if isinstance(server, StdioServer):
            return None
        if server.oauth is None and any(header.lower() == "authorization" for header in server.headers):
            return None
        # httpx, which takes 90 ms to import; only those pay who have such a server.
        from sidecar.mcp.oauth.authorization import open_authorization  # noqa: PLC0415

        return open_authorization(
            name,
            server,
            file=self._file,
            show_page=self._show_page,
            waited_for=person_time.running,
            limit_secs=self._limit_secs,
        )
