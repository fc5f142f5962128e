"""A server that wants a sign-in, through the whole sidecar: a question with a page, then tools; else `needsAuth`.

Source: protocol.md, MCP servers, Signing in; `agent/requestInput`. The authorization server, the MCP server and
the browser are real.
"""

import asyncio
from pathlib import Path
from typing import Any

from lsprotocol import types

from tests.harness.host import Host, sidecar
from tests.harness.oauth_client import Browser
from tests.harness.oauth_server import AuthorizationServer, GuardedServer

Json = dict[str, Any]

GREET = {"name": "guarded__greet", "arguments": {}}


def entry(guarded: GuardedServer, **oauth: Any) -> Json:
    """The entry of the guarded server, whose tool may be called unasked."""
    return {"url": guarded.url, "permissions": {"*": ["read"]}, **({"oauth": oauth} if oauth else {})}


def options(guarded: GuardedServer, **oauth: Any) -> Json:
    """Options with that entry."""
    return {"mcpServers": {"guarded": entry(guarded, **oauth)}}


async def settled(host: Host, name: str = "guarded") -> Json:
    """The server once it starts no more."""

    def found() -> Json | None:
        told = [params for method, params in host.notifications if method == "mcp/statusChanged"]
        states = [params for params in told if params["name"] == name]
        return states[-1] if states and states[-1]["status"] != "starting" else None

    server: Json = await host.wait_for(found)
    return server


def lets(host: Host, browser: Browser) -> None:
    """The host shows each page to the person, who signs in."""

    async def visits(params: Json) -> Json:
        await browser.show_page(params["source"], params["url"])
        return {"action": "accept"}

    host.answers["agent/requestInput"] = visits


async def test_the_host_is_asked_to_show_a_page_and_the_sign_in_is_kept_and_renewed(tmp_path: Path) -> None:
    browser, environ = Browser(), {"XDG_DATA_HOME": str(tmp_path)}
    log = tmp_path / "log"
    async with AuthorizationServer() as issuer, GuardedServer(issuer) as guarded:
        async with sidecar(env=environ, args=["--log-file", str(log), "--log-level", "debug"]) as host:
            lets(host, browser)
            server = await host.request("mcp/connect", {"name": "guarded", "config": entry(guarded)})
            assert (server["status"], server["toolCount"]) == ("ready", 1)
            called = await host.request("tools/call", GREET)
            assert called["content"] == [{"type": "text", "text": "hello"}]
            ((_, question),) = host.asked
            assert question["source"] == "MCP server guarded" and "schema" not in question
            assert question["url"].startswith(f"{issuer.origin}/authorize?")
            spoken = repr((host.notifications, called, server)) + log.read_text("utf-8")
        assert not any(secret in spoken for secret in [*issuer.tokens, *(form["code"] for form in issuer.forms)])
        async with sidecar(options(guarded), env=environ) as host:
            assert (await settled(host))["status"] == "ready"
            issuer.revoke_all()
            calls = await asyncio.gather(*(host.request("tools/call", GREET) for _ in range(5)))
            assert all(called["result"]["ok"] for called in calls) and not host.asked
    assert [form["grant_type"] for form in issuer.forms] == ["authorization_code", "refresh_token"]
    assert len(browser.pages) == 1


async def test_a_server_whose_sign_in_is_declined_needs_one_and_gets_it_when_restarted() -> None:
    browser = Browser()
    async with (
        AuthorizationServer() as issuer,
        GuardedServer(issuer) as guarded,
        sidecar(options(guarded)) as host,
    ):
        host.answers["agent/requestInput"] = lambda params: {"action": "decline"}
        server = await settled(host)
        assert server["status"] == "needsAuth" and server["error"]["kind"] == "mcpError"
        assert "needs a sign-in: the sign-in was declined" in server["error"]["message"]
        lets(host, browser)
        assert (await host.request("mcp/restart", {"name": "guarded"}))["status"] == "ready"


async def test_an_editor_that_opens_pages_is_enough() -> None:
    browser, asked = Browser(), []
    can_show = types.ShowDocumentClientCapabilities(support=True)
    lsp = types.ClientCapabilities(window=types.WindowClientCapabilities(show_document=can_show))
    async with AuthorizationServer() as issuer, GuardedServer(issuer) as guarded, sidecar(can={}, lsp=lsp) as host:
        del host.client.protocol.fm.features["window/showDocument"]  # pytest-lsp's own opens nothing.

        @host.client.feature("window/showDocument")
        async def show(params: types.ShowDocumentParams) -> types.ShowDocumentResult:
            asked.append((params.uri.partition("?")[0], params.external))
            await browser.show_page("", params.uri)
            return types.ShowDocumentResult(success=True)

        server = await host.request("mcp/connect", {"name": "guarded", "config": entry(guarded)})
        assert server["status"] == "ready" and asked == [(f"{issuer.origin}/authorize", True)]


async def test_with_nobody_there_each_server_says_what_it_needs() -> None:
    async with AuthorizationServer() as issuer, GuardedServer(issuer) as guarded:
        issuer.clients["robot"] = {"client_secret": "hush", "token_endpoint_auth_method": "client_secret_basic"}
        issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
        robot = {"grantType": "client_credentials", "clientId": "robot", "clientSecret": "${env:SECRET}"}
        servers = {
            "person": entry(guarded),
            "robot": entry(guarded, **robot),
            "wrong": entry(guarded, grantType="password"),
        }
        async with sidecar({"mcpServers": servers}, can={}, env={"SECRET": "hush"}) as host:
            person, wrong = await settled(host, "person"), await settled(host, "wrong")
            assert (await settled(host, "robot"))["status"] == "ready"
    assert person["status"] == "needsAuth" and "mcpServers.person.oauth" in person["error"]["message"]
    assert (wrong["status"], wrong["error"]["kind"]) == ("failed", "invalidConfiguration")
    assert wrong["error"]["message"].startswith("mcpServers.wrong.oauth.grantType: must be one of")
