"""A client that asks a guarded server as the HTTP transport does, and a browser that a person could be using."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from sidecar.mcp.oauth.authorization import OAuthAuthorization
from sidecar.mcp.oauth.options import read_options
from sidecar.mcp.oauth.pages import PageAnswer, ShowPage
from sidecar.mcp.oauth.store import TokenStore
from tests.harness.oauth_server import GuardedServer

MAX_CHALLENGES = 3
SECOND_LIMIT = 5.0


class Browser:
    """Visits each sign-in page at once and follows it to its end; keeps what it was shown."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self._visits: list[asyncio.Task[httpx.Response]] = []

    async def show_page(self, server: str, url: str) -> PageAnswer:
        """What `OAuthAuthorization` is given. The browser goes on when the question is taken back."""
        self.pages.append(url)
        self._visits.append(asyncio.create_task(_visit(url)))
        await asyncio.shield(self._visits[-1])
        return PageAnswer("shown")

    async def last_page(self) -> httpx.Response:
        """What the last visit ended with."""
        return await self._visits[-1]

    @property
    def asked(self) -> list[dict[str, str]]:
        """The query of each page, in order."""
        return [{name: values[0] for name, values in parse_qs(urlsplit(url).query).items()} for url in self.pages]


async def _visit(url: str) -> httpx.Response:
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False, verify=False) as client:
        return await client.get(url)


async def nobody(server: str, url: str) -> PageAnswer:
    """There is nobody who could visit a page."""
    return PageAnswer("nobody")


class Caller:
    """Sends JSON-RPC to a server; challenges are met as the transport meets them."""

    def __init__(self, server: GuardedServer, authorization: OAuthAuthorization) -> None:
        self.server = server
        self.authorization = authorization

    async def call(self, method: str = "tools/list") -> int:
        """The status in the end. Raises what the authorization raises."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method}
        async with httpx.AsyncClient(trust_env=False, verify=False) as client, asyncio.timeout(20):
            for _ in range(MAX_CHALLENGES + 1):
                headers = await self.authorization.headers("POST", self.server.url)
                response = await client.post(self.server.url, json=body, headers=headers)
                if response.status_code not in (401, 403) or not await self.authorization.challenged(
                    response.status_code, response.headers, response.content
                ):
                    break
        return response.status_code


@asynccontextmanager
async def caller(
    server: GuardedServer,
    folder: Path,
    *,
    show_page: ShowPage = nobody,
    store: TokenStore | None = None,
    sign_in_limit_secs: float = SECOND_LIMIT,
    **options: Any,
) -> AsyncIterator[Caller]:
    """A caller with the `oauth` options of an entry, in camelCase; it keeps its sign-ins in `folder`."""
    authorization = OAuthAuthorization(
        "guarded",
        server.url,
        read_options(options, "mcpServers.guarded.oauth"),
        store=store or store_in(folder),
        show_page=show_page,
        sign_in_limit_secs=sign_in_limit_secs,
    )
    try:
        yield Caller(server, authorization)
    finally:
        await authorization.aclose()


def store_in(folder: Path) -> TokenStore:
    """A store without a keyring."""
    return TokenStore(folder / "sign-ins.json", find_keyring=lambda: None)
