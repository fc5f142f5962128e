"""Has the person at the host sign in to an MCP server: a page to visit, shown by whatever this host can do."""

import logging

from sidecar.mcp.oauth.pages import PageAnswer
from sidecar.server.host import Host
from sidecar.server.questions import Questions
from sidecar.server.unanswered import HostError

log = logging.getLogger("sidecar.server")

SHOW_LIMIT_SECS = 30.0
"""How long an editor may take to open a page in the browser. Own choice."""


class SignInPage:
    """Shows sign-in pages: by our own request, else by LSP's `window/showDocument`, else not at all."""

    def __init__(self, host: Host, questions: Questions) -> None:
        self._host = host
        self._questions = questions

    async def show(self, server: str, url: str) -> PageAnswer:
        """What the person did. Raises CancelledError alone; a question is withdrawn then."""
        if self._host.capabilities.input:
            return await self._asked(server, url)
        if self._host.capabilities.show_document:
            return await self._opened(server, url)
        return PageAnswer("nobody")

    async def _asked(self, server: str, url: str) -> PageAnswer:
        answer = await self._questions.put(
            source=f"MCP server {server}",
            message=f"MCP server {server} wants you to sign in. Open this page in your browser",
            url=url,
        )
        if answer.action != "accept":
            return PageAnswer("declined")
        return PageAnswer("shown", answer.content if isinstance(answer.content, str) else None)

    async def _opened(self, server: str, url: str) -> PageAnswer:
        self._host.log_message(f"MCP server {server!r} wants you to sign in; see your browser")
        try:
            shown = await self._host.request(
                "window/showDocument", {"uri": url, "external": True}, SHOW_LIMIT_SECS
            )
        except HostError as error:
            log.warning("the sign-in page of server %r could not be shown: %s", server, error)
            return PageAnswer("nobody")
        is_shown = isinstance(shown, dict) and shown.get("success") is True
        return PageAnswer("shown" if is_shown else "nobody")
