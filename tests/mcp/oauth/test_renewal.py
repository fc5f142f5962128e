"""Tokens that end, are revoked or rotated; sign-ins that are kept; several requests and sidecars at once.

Source: MCP 2025-11-25 and 2026-07-28, basic/authorization; OAuth 2.1, 4.3; one refresh at a time is own choice.
"""

import asyncio
import time
from pathlib import Path

import pytest

from sidecar.mcp.transport import NeedsAuthorizationError
from sidecar.protocol.errors import ToolError
from tests.harness.http_site import Request, Response
from tests.harness.oauth_client import Browser, nobody, store_in
from tests.harness.oauth_server import AuthorizationServer, GuardedServer, IssuedToken
from tests.mcp.oauth.conftest import OpenCaller


def grants(issuer: AuthorizationServer) -> list[str]:
    """The grants of all token requests, in short."""
    short = {"authorization_code": "code", "refresh_token": "refresh"}
    return [short.get(form["grant_type"], form["grant_type"]) for form in issuer.forms]


async def test_a_token_that_has_ended_is_renewed_before_the_request(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    issuer.token_answers = [Response(200, {"access_token": "first", "expires_in": 0, "refresh_token": "again"})]
    client = await open_caller()
    issuer.tokens["first"] = IssuedToken((), "registered-1", guarded.url)
    issuer.refresh_tokens["again"] = issuer.tokens["first"]
    assert await client.call() == 200
    assert grants(issuer) == ["code", "refresh"] and guarded.refused == [None]
    assert await client.call() == 200 and len(issuer.forms) == 2
    assert issuer.forms[1]["resource"] == guarded.url and issuer.forms[1]["client_id"] == "registered-1"


async def test_many_refused_requests_refresh_once(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    issuer.revoke_all()
    statuses = await asyncio.gather(*(client.call() for _ in range(10)))
    assert statuses == [200] * 10
    assert grants(issuer) == ["code", "refresh"] and len(browser.pages) == 1


async def test_a_refusal_that_comes_after_the_renewal_renews_nothing(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    issuer.revoke_all()
    refuse, held, renewed = guarded.routes["POST", guarded.path], asyncio.Event(), asyncio.Event()

    async def hold_the_first(request: Request) -> Response:
        answer = refuse(request)
        assert isinstance(answer, Response)
        if not held.is_set():
            held.set()
            await renewed.wait()
        return answer

    guarded.routes["POST", guarded.path] = hold_the_first
    late = asyncio.create_task(client.call())
    await asyncio.wait_for(held.wait(), 10)
    assert await client.call() == 200
    renewed.set()
    assert await late == 200 and grants(issuer) == ["code", "refresh"]


async def test_many_first_requests_sign_in_once(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    assert await asyncio.gather(*(client.call() for _ in range(10))) == [200] * 10
    assert len(browser.pages) == len(issuer.registrations) == 1


async def test_a_refresh_that_is_refused_leads_to_a_new_sign_in(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    issuer.revoke_all()
    issuer.forget_refresh_tokens()
    assert await client.call() == 200
    assert grants(issuer) == ["code", "refresh", "code"] and len(browser.pages) == 2
    assert len(issuer.registrations) == 1


async def test_a_token_endpoint_that_is_down_costs_no_sign_in(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    issuer.revoke_all()
    issuer.token_answers = [Response(503)]
    with pytest.raises(ToolError, match="answered with status 503") as failure:
        await client.call()
    assert "needsAuth" not in failure.value.data
    assert await client.call() == 200 and len(browser.pages) == 1


async def test_an_early_renewal_that_fails_leaves_the_old_token_to_the_server(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    issuer.expires_in = 0
    issuer.revoke_all()
    await client.call()
    issuer.token_answers = [Response(500)]
    assert await client.call() == 200 and grants(issuer) == ["code", "refresh", "refresh", "refresh"]


async def test_a_token_that_cannot_be_renewed_is_used_to_its_end(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.gives_refresh = False
    issuer.expires_in = 0
    client = await open_caller()
    assert [await client.call(), await client.call()] == [200, 200]
    assert grants(issuer) == ["code"] and len(browser.pages) == 1


async def test_a_refusal_to_renew_early_is_no_reason_to_bother_anybody(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.expires_in = 0
    issuer.token_answers = []
    client = await open_caller()
    await client.call()
    issuer.forget_refresh_tokens()
    assert [await client.call(), await client.call()] == [200, 200]
    assert grants(issuer)[-1] == "refresh" and len(browser.pages) == 1


async def test_renewed_tokens_that_are_refused_at_once_lead_to_a_new_sign_in(
    issuer: AuthorizationServer, guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    """As where a server comes to want tokens that are bound to a key, which no refresh makes of those it has."""
    client = await open_caller()
    await client.call()
    issuer.binds_tokens = guarded.is_dpop = True
    issuer.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    assert await client.call() == 200
    assert grants(issuer) == ["code", "refresh", "code"] and len(browser.pages) == 2


async def test_without_a_refresh_token_somebody_signs_in_again(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.gives_refresh = False
    issuer.expires_in = None
    client = await open_caller()
    await client.call()
    issuer.revoke_all()
    assert await client.call() == 200 and len(browser.pages) == 2


async def test_a_refresh_token_that_is_not_replaced_stays_good(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    issuer.revoke_all()
    issuer.tokens["again"] = IssuedToken((), "registered-1")
    issuer.token_answers = [Response(200, {"access_token": "again", "token_type": "bearer"})]
    assert await client.call() == 200
    issuer.revoke_all()
    assert await client.call() == 200
    assert issuer.forms[1]["refresh_token"] == issuer.forms[2]["refresh_token"]


async def test_a_sign_in_is_kept_for_the_next_start(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller, browser: Browser, tmp_path: Path
) -> None:
    await (await open_caller()).call()
    later = await open_caller(show_page=nobody, store=store_in(tmp_path))
    assert await later.call() == 200
    assert grants(issuer) == ["code"] and len(browser.pages) == 1
    issuer.revoke_all()
    much_later = await open_caller(show_page=nobody, store=store_in(tmp_path))
    assert await much_later.call() == 200
    assert grants(issuer) == ["code", "refresh"]


async def test_two_sidecars_with_one_sign_in_do_not_waste_each_others_refresh_token(
    issuer: AuthorizationServer, open_caller: OpenCaller, browser: Browser, tmp_path: Path
) -> None:
    one = await open_caller(store=store_in(tmp_path))
    await one.call()
    other = await open_caller(show_page=nobody, store=store_in(tmp_path))
    await other.call()
    issuer.revoke_all()
    assert await asyncio.gather(*(c.call() for c in (one, other, one, other))) == [200] * 4
    assert grants(issuer) == ["code", "refresh"] and len(browser.pages) == 1


async def test_another_issuer_gets_another_client_and_no_token_of_the_first(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller, browser: Browser
) -> None:
    client = await open_caller()
    await client.call()
    async with AuthorizationServer() as second:
        guarded.issuer = second
        assert await client.call() == 200
        assert len(second.registrations) == 1
        seen = repr(second.requests)
        assert "refresh-" not in repr(second.forms) and grants(second) == ["code"]
        assert not any(token in seen for token in issuer.tokens)
    assert len(browser.pages) == 2


async def test_a_server_with_other_metadata_of_the_same_issuer_signs_in_for_itself(
    issuer: AuthorizationServer, open_caller: OpenCaller, browser: Browser
) -> None:
    await (await open_caller()).call()
    async with GuardedServer(issuer, path="/other") as other:
        client = await open_caller(other)
        assert await client.call() == 200
    resources = {token.resource for token in issuer.tokens.values()}
    assert len(resources) == len(browser.pages) == 2


async def test_a_client_whose_secret_has_ended_registers_again(
    issuer: AuthorizationServer, open_caller: OpenCaller, tmp_path: Path
) -> None:
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    issuer.registered_as = {"client_secret": "s", "client_secret_expires_at": time.time() - 1}
    await (await open_caller()).call()
    later = await open_caller(store=store_in(tmp_path))
    assert await later.call() == 200 and len(issuer.registrations) == 2


async def test_a_step_up_beyond_what_was_registered_registers_again(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    guarded.challenge_scopes = ("read",)
    guarded.needs["tools/call"] = ("write",)
    client = await open_caller()
    assert [await client.call(), await client.call("tools/call")] == [200, 200]
    assert [registration["scope"] for registration in issuer.registrations] == ["read", "read write"]


async def test_a_server_that_takes_its_time_is_waited_for_once_by_all(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    go, asked = asyncio.Event(), asyncio.Event()
    token = issuer.routes["POST", "/token"]

    async def slowly(request: Request) -> Response:
        asked.set()
        await go.wait()
        answer = token(request)
        return answer if isinstance(answer, Response) else await answer

    issuer.routes["POST", "/token"] = slowly
    client = await open_caller()
    calls = [asyncio.create_task(client.call()) for _ in range(3)]
    await asyncio.wait_for(asked.wait(), 10)
    calls[0].cancel()
    go.set()
    assert await asyncio.gather(*calls[1:]) == [200, 200] and len(issuer.token_requests) == 1


async def test_whoever_is_closed_in_the_middle_leaves_nothing_behind(open_caller: OpenCaller) -> None:
    asked, withdrawn = asyncio.Event(), asyncio.Event()

    async def waits(server: str, url: str) -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()

    client = await open_caller(show_page=waits, sign_in_limit_secs=30)
    call = asyncio.create_task(client.call())
    await asyncio.wait_for(asked.wait(), 10)
    await client.authorization.aclose()
    await asyncio.wait({call})
    assert withdrawn.is_set() and call.cancelled()


async def test_a_token_is_in_no_error_and_no_representation(
    issuer: AuthorizationServer, open_caller: OpenCaller, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    client = await open_caller(clientId="ours", clientSecret="hush-hush")
    issuer.clients["ours"] = {"client_secret": "hush-hush", "token_endpoint_auth_method": "client_secret_post"}
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    await client.call()
    issuer.revoke_all()
    issuer.forget_refresh_tokens()
    issuer.answers_with = {"error": "access_denied", "code": None}
    with pytest.raises(NeedsAuthorizationError) as failure:
        await client.call()
    shown = caplog.text + repr(failure.value) + repr(client.authorization._source.grant)
    secrets = [*issuer.tokens, "hush-hush", *(form.get("code_verifier", "hush-hush") for form in issuer.forms)]
    assert not any(secret in shown for secret in secrets)
