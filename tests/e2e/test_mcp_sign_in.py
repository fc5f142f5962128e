"""A server that wants a sign-in, through the whole sidecar: a question with a page, then tools; else `needsAuth`.

Source: protocol.md, MCP servers, Signing in; `agent/requestInput`. The authorization server, the MCP server and
the browser are real.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.harness.host import Host, sidecar
from tests.harness.oauth_client import Browser
from tests.harness.oauth_server import AuthorizationServer, GuardedServer

Json = dict[str, Any]


NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


def entry(guarded: GuardedServer, **oauth: Any) -> Json:
    """The entry of the guarded server, whose tool may be called unasked."""
    return {"url": guarded.url, "permissions": {"*": ["read"]}, **({"oauth": oauth} if oauth else {})}


def options(guarded: GuardedServer, **oauth: Any) -> Json:
    """Options with that entry."""
    return {"mcpServers": {"guarded": entry(guarded, **oauth)}}


async def settled(host: Host) -> Json:
    """The server once it starts no more."""

    def found() -> Json | None:
        states = [params for method, params in host.notifications if method == "mcp/statusChanged"]
        return states[-1] if states and states[-1]["status"] != "starting" else None

    server: Json = await host.wait_for(found)
    return server


def lets(host: Host, browser: Browser) -> None:
    """The host shows each page to the person, who signs in."""

    async def visits(params: Json) -> Json:
        await browser.show_page(params["source"], params["url"])
        return {"action": "accept"}

    host.answers["agent/requestInput"] = visits


async def test_the_host_is_asked_to_show_a_page_and_the_sign_in_is_kept(tmp_path: Path) -> None:
    browser, environ = Browser(), {"XDG_DATA_HOME": str(tmp_path), **NO_KEYRING}
    async with AuthorizationServer() as issuer, GuardedServer(issuer) as guarded:
        log = tmp_path / "log"
        async with sidecar(env=environ, args=["--log-file", str(log), "--log-level", "debug"]) as host:
            lets(host, browser)
            server = await host.request("mcp/connect", {"name": "guarded", "config": entry(guarded)})
            assert (server["status"], server["toolCount"]) == ("ready", 1)
            called = await host.request("tools/call", {"name": "guarded__greet", "arguments": {}})
            assert called["content"] == [{"type": "text", "text": "hello"}]
            ((_, question),) = host.asked
            assert question["source"] == "MCP server guarded" and "schema" not in question
            assert question["url"].startswith(f"{issuer.origin}/authorize?")
            spoken = repr((host.notifications, called, server)) + log.read_text("utf-8")
        assert not any(secret in spoken for secret in [*issuer.tokens, *(form["code"] for form in issuer.forms)])
        async with sidecar(options(guarded), env=environ) as host:
            assert (await settled(host))["status"] == "ready" and not host.asked
        assert len(browser.pages) == 1


async def test_a_token_that_ends_in_the_middle_is_renewed_without_a_word() -> None:
    browser = Browser()
    async with (
        AuthorizationServer() as issuer,
        GuardedServer(issuer) as guarded,
        sidecar(options(guarded)) as host,
    ):
        lets(host, browser)
        await settled(host)
        issuer.revoke_all()
        calls = [host.request("tools/call", {"name": "guarded__greet", "arguments": {}}) for _ in range(5)]
        assert all(called["result"]["ok"] for called in await asyncio.gather(*calls))
        assert [form["grant_type"] for form in issuer.forms] == ["authorization_code", "refresh_token"]
        assert len(browser.pages) == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_server_whose_sign_in_is_declined_needs_one(action: str) -> None:
    browser = Browser()
    async with (
        AuthorizationServer() as issuer,
        GuardedServer(issuer) as guarded,
        sidecar(options(guarded)) as host,
    ):
        host.answers["agent/requestInput"] = lambda params: {"action": action}
        server = await settled(host)
        assert server["status"] == "needsAuth" and server["error"]["kind"] == "mcpError"
        assert "needs a sign-in" in server["error"]["message"]
        lets(host, browser)
        assert (await host.request("mcp/restart", {"name": "guarded"}))["status"] == "ready"


async def test_an_editor_that_opens_pages_is_enough() -> None:
    browser, asked = Browser(), []
    lsp = types.ClientCapabilities(
        window=types.WindowClientCapabilities(show_document=types.ShowDocumentClientCapabilities(support=True))
    )
    async with (
        AuthorizationServer() as issuer,
        GuardedServer(issuer) as guarded,
        sidecar(can={}, lsp=lsp) as host,
    ):
        del host.client.protocol.fm.features["window/showDocument"]  # pytest-lsp's own opens nothing.

        @host.client.feature("window/showDocument")
        async def show(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            asked.append((params.uri.partition("?")[0], params.external))
            await browser.show_page("", params.uri)
            return types.ShowDocumentResult(success=True)

        server = await host.request("mcp/connect", {"name": "guarded", "config": entry(guarded)})
        assert server["status"] == "ready" and asked == [(f"{issuer.origin}/authorize", True)]


async def test_with_nobody_there_the_server_needs_a_sign_in_and_says_how() -> None:
    async with (
        AuthorizationServer() as issuer,
        GuardedServer(issuer) as guarded,
        sidecar(options(guarded), can={}) as host,
    ):
        server = await settled(host)
        assert server["status"] == "needsAuth"
        assert "mcpServers.guarded.oauth" in server["error"]["message"]
        assert not issuer.token_requests


async def test_a_client_with_a_secret_needs_nobody() -> None:
    async with AuthorizationServer() as issuer, GuardedServer(issuer) as guarded:
        issuer.clients["robot"] = {"client_secret": "hush", "token_endpoint_auth_method": "client_secret_basic"}
        issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
        robot = options(guarded, grantType="client_credentials", clientId="robot", clientSecret="${env:SECRET}")
        async with sidecar(robot, can={}, env={"SECRET": "hush"}) as host:
            assert (await settled(host))["status"] == "ready"


async def test_a_wrong_option_fails_that_server_by_its_path() -> None:
    async with GuardedServer() as guarded, sidecar(options(guarded, grantType="password")) as host:
        server = await settled(host)
        assert (server["status"], server["error"]["kind"]) == ("failed", "invalidConfiguration")
        assert server["error"]["message"].startswith("mcpServers.guarded.oauth.grantType: must be one of")
