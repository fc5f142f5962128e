"""A person signs in: discovery, registration, the browser, the token, and everything that can be wrong on the way.

Source: MCP 2025-11-25 and 2026-07-28, basic/authorization, with the RFCs they name; the cases follow the scenarios
of the MCP conformance suite. Each drives a real authorization server and a real resource over HTTP.
"""

import asyncio
from pathlib import Path

import httpx
import pytest

from sidecar.mcp.oauth.pages import PageAnswer
from sidecar.mcp.transport import NeedsAuthorizationError
from sidecar.protocol.errors import ConfigurationError, ToolError
from tests.harness.http_site import Request, Response
from tests.harness.oauth_client import Browser, caller, nobody
from tests.harness.oauth_server import (
    OAUTH_METADATA,
    OPENID_METADATA,
    RESOURCE_METADATA,
    AuthorizationServer,
    GuardedServer,
)
from tests.mcp.oauth.conftest import OpenCaller

SCOPES = ("mcp:basic",)


async def test_a_401_leads_to_a_sign_in_and_the_call_goes_through(
    issuer: AuthorizationServer, guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    caller = await open_caller()
    assert await caller.call() == 200
    (asked,) = browser.asked
    assert asked["resource"] == issuer.forms[0]["resource"] == guarded.url
    assert asked["code_challenge_method"] == "S256" and len(issuer.forms[0]["code_verifier"]) >= 43
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    (registration,) = issuer.registrations
    assert registration["application_type"] == "native"
    assert registration["grant_types"] == ["authorization_code", "refresh_token"]
    assert registration["token_endpoint_auth_method"] == "none"
    assert await caller.call("tools/call") == 200
    assert len(browser.pages) == 1 and guarded.refused == [None]


async def test_the_page_at_the_end_is_plain_and_keeps_nothing(open_caller: OpenCaller, browser: Browser) -> None:
    await (await open_caller()).call()
    page = await browser.last_page()
    assert page.status_code == 200 and "close this page" in page.text
    assert page.headers["cache-control"] == "no-store" and page.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "code-" not in page.text


@pytest.mark.parametrize(
    ("prefix", "metadata_at", "resource_at", "announces"),
    [
        ("", OAUTH_METADATA, f"{RESOURCE_METADATA}/mcp", True),
        ("", OAUTH_METADATA, f"{RESOURCE_METADATA}/mcp", False),
        ("", OPENID_METADATA, RESOURCE_METADATA, False),
        ("/tenant", f"{OAUTH_METADATA}/tenant", RESOURCE_METADATA, False),
        ("/tenant", f"{OPENID_METADATA}/tenant", "/custom/metadata.json", True),
        ("/tenant", f"/tenant{OPENID_METADATA}", "/custom/metadata.json", True),
    ],
)
async def test_metadata_is_found_in_every_place_it_may_be(
    prefix: str, metadata_at: str, resource_at: str, announces: bool, browser: Browser, tmp_path: Path
) -> None:
    async with AuthorizationServer(prefix, metadata_at=metadata_at) as issuer, GuardedServer(issuer) as guarded:
        guarded.routes.clear()
        guarded.metadata_at, guarded.announces = resource_at, announces
        guarded.routes = {
            ("POST", guarded.path): guarded._post,
            ("GET", resource_at): guarded._metadata,
        }
        async with caller(guarded, tmp_path, show_page=browser.show_page) as client:
            assert await client.call() == 200
        tried = [path for path in issuer.paths("GET") if ".well-known" in path]
    in_order = [
        f"{OAUTH_METADATA}{prefix}",
        f"{OPENID_METADATA}{prefix}",
        *([f"{prefix}{OPENID_METADATA}"] if prefix else []),
    ]
    assert tried == in_order[: in_order.index(metadata_at) + 1]


@pytest.mark.parametrize("resource", ["{url}", "{url}/", "{origin}", "{origin}/"])
async def test_a_resource_is_ours_with_a_slash_or_as_a_whole_origin(
    resource: str, guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    named = resource.format(url=guarded.url, origin=guarded.origin)
    guarded.metadata["resource"] = named
    assert await (await open_caller()).call() == 200
    assert browser.asked[0]["resource"] == named


@pytest.mark.parametrize(
    "resource", ["https://evil.example.com/mcp", "{origin}/other", "{origin}/m", "{url}/deeper", "", None]
)
async def test_metadata_of_another_resource_is_refused(
    resource: str | None,
    issuer: AuthorizationServer,
    guarded: GuardedServer,
    browser: Browser,
    open_caller: OpenCaller,
) -> None:
    guarded.metadata["resource"] = resource and resource.format(url=guarded.url, origin=guarded.origin)
    with pytest.raises(ToolError, match="resource") as refusal:
        await (await open_caller()).call()
    assert refusal.value.kind == "mcpError" and not browser.pages and not issuer.requests


# Who we are ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "registered"),
    [
        (["client_secret_basic"], {"client_secret": "s: %", "token_endpoint_auth_method": "client_secret_basic"}),
        (["client_secret_post"], {"client_secret": "s: %", "token_endpoint_auth_method": "client_secret_post"}),
        (["none"], {"token_endpoint_auth_method": "none"}),
        (["client_secret_post", "client_secret_basic"], {"client_secret": "s"}),
        (None, {"client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}),
    ],
)
async def test_a_client_says_who_it_is_as_it_was_registered(
    offered: list[str] | None,
    registered: dict[str, str],
    issuer: AuthorizationServer,
    open_caller: OpenCaller,
) -> None:
    issuer.metadata["token_endpoint_auth_methods_supported"] = offered
    issuer.registered_as = registered
    assert await (await open_caller()).call() == 200
    assert issuer.registrations[0]["token_endpoint_auth_method"] in (offered or ["none"])


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
async def test_a_client_that_was_registered_before_registers_no_more(
    method: str, issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    secret = {} if method == "none" else {"client_secret": "hush"}
    issuer.clients["ours"] = {**secret, "token_endpoint_auth_method": method}
    issuer.metadata |= {"token_endpoint_auth_methods_supported": [method], "registration_endpoint": None}
    options = {"clientId": "ours", **({"clientSecret": "hush"} if secret else {})}
    assert await (await open_caller(**options)).call() == 200
    assert not issuer.registrations


async def test_the_url_of_a_document_is_an_id_where_the_server_takes_such(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.metadata["client_id_metadata_document_supported"] = True
    document = "https://client.example/metadata.json"
    assert await (await open_caller(clientMetadataUrl=document)).call() == 200
    assert browser.asked[0]["client_id"] == document and not issuer.registrations


async def test_where_the_server_takes_no_documents_the_client_registers(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    assert await (await open_caller(clientMetadataUrl="https://client.example/metadata.json")).call() == 200
    assert len(issuer.registrations) == 1


async def test_without_any_way_to_be_known_the_error_says_to_configure_an_id(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.metadata["registration_endpoint"] = None
    with pytest.raises(ConfigurationError, match="register one there and give its id here") as fault:
        await (await open_caller()).call()
    assert fault.value.path == "mcpServers.guarded.oauth.clientId" and not browser.pages


async def test_a_refused_registration_says_why_and_what_to_do(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.refuses_registration = Response(
        403, {"error": "access_denied", "error_description": "ask\nus\x00first"}
    )
    with pytest.raises(ToolError, match=r"status 403: access_denied: ask us first.*oauth\.clientId"):
        await (await open_caller()).call()


async def test_the_address_of_a_client_that_was_registered_by_hand_is_used(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    async with AuthorizationServer() as free:
        port = int(free.origin.rpartition(":")[2])
    uri = f"http://localhost:{port}/come/back"
    issuer.clients["ours"] = {"token_endpoint_auth_method": "none", "redirect_uris": [uri]}
    assert await (await open_caller(clientId="ours", redirectUri=uri)).call() == 200
    assert browser.asked[0]["redirect_uri"] == uri


async def test_a_port_that_is_taken_is_an_error_that_names_it(open_caller: OpenCaller) -> None:
    async with AuthorizationServer() as taken:
        port = int(taken.origin.rpartition(":")[2])
        with pytest.raises(ToolError, match=f"cannot come back to http://127.0.0.1:{port}/x"):
            await (await open_caller(clientId="a", redirectUri=f"http://127.0.0.1:{port}/x")).call()


# Scopes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("challenged", "supported", "configured", "asked_for"),
    [
        (("a", "b"), ("c",), None, "a b"),
        ((), ("c", "d"), None, "c d"),
        ((), None, None, None),
        (("a",), ("c",), "mine too", "mine too"),
        (("a",), ("c",), ["mine"], "mine"),
    ],
)
async def test_scopes_are_the_users_then_the_challenges_then_the_resources(
    challenged: tuple[str, ...],
    supported: tuple[str, ...] | None,
    configured: str | list[str] | None,
    asked_for: str | None,
    guarded: GuardedServer,
    browser: Browser,
    open_caller: OpenCaller,
) -> None:
    guarded.challenge_scopes, guarded.scopes_supported = challenged, supported
    options = {} if configured is None else {"scopes": configured}
    assert await (await open_caller(**options)).call() == 200
    assert browser.asked[0].get("scope") == asked_for


@pytest.mark.parametrize("listed", [True, False])
async def test_offline_access_is_asked_for_only_where_it_is_listed(
    listed: bool,
    issuer: AuthorizationServer,
    guarded: GuardedServer,
    browser: Browser,
    open_caller: OpenCaller,
) -> None:
    guarded.scopes_supported = SCOPES
    issuer.metadata["scopes_supported"] = ["mcp:basic", *(["offline_access"] if listed else [])]
    assert await (await open_caller()).call() == 200
    assert browser.asked[0]["scope"] == ("mcp:basic offline_access" if listed else "mcp:basic")
    assert issuer.registrations[0]["grant_types"] == ["authorization_code", "refresh_token"]


async def test_a_step_up_asks_for_what_there_was_and_what_is_wanted(
    guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    guarded.challenge_scopes = SCOPES
    guarded.needs = {"tools/list": SCOPES, "tools/call": ("mcp:write",)}
    client = await open_caller()
    assert [await client.call(), await client.call("tools/call"), await client.call()] == [200, 200, 200]
    assert [asked["scope"] for asked in browser.asked] == ["mcp:basic", "mcp:basic mcp:write"]


async def test_a_step_up_that_is_declined_fails_that_call_alone(
    issuer: AuthorizationServer, guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    guarded.challenge_scopes = SCOPES
    guarded.needs["tools/call"] = ("mcp:write",)
    client = await open_caller()
    assert await client.call() == 200
    issuer.answers_with = {"error": "access_denied", "code": None}
    with pytest.raises(ToolError, match="wants more rights for this") as refusal:
        await client.call("tools/call")
    assert "needsAuth" not in refusal.value.data and refusal.value.action == "tellModel"
    assert await client.call() == 200 and len(browser.pages) == 2


async def test_a_server_that_is_never_content_is_given_up_after_three_attempts(
    issuer: AuthorizationServer, guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    guarded.challenge_scopes = guarded.needs["tools/list"] = ("mcp:admin",)
    issuer.granted_scopes = ()
    client = await open_caller()
    with pytest.raises(ToolError, match=r"still does not let us in after 3 attempts \(scopes: mcp:admin\)"):
        await client.call()
    with pytest.raises(ToolError):
        await client.call()
    assert len(browser.pages) == 3


async def test_a_plain_403_is_nobodys_business_here(guarded: GuardedServer, open_caller: OpenCaller) -> None:
    client = await open_caller()
    assert await client.call() == 200
    refusal = {"www-authenticate": 'Bearer error="invalid_request"'}
    assert not await client.authorization.challenged(403, refusal, b'{"error": "forbidden"}')


# The answer of the sign-in page -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("advertised", "sent", "is_good"),
    [
        (True, "correct", True),
        (None, None, True),
        (None, "correct", True),
        (True, None, False),
        (True, "https://evil.example.com", False),
        (None, "https://evil.example.com", False),
        (True, "normalized", False),
    ],
)
async def test_the_issuer_of_an_answer_is_compared_character_by_character(
    advertised: bool | None,
    sent: str | None,
    is_good: bool,
    issuer: AuthorizationServer,
    open_caller: OpenCaller,
) -> None:
    issuer.metadata["authorization_response_iss_parameter_supported"] = advertised
    issuer.sends_issuer = sent
    client = await open_caller()
    if is_good:
        assert await client.call() == 200
    else:
        with pytest.raises(ToolError, match="issuer") as refusal:
            await client.call()
        assert not issuer.token_requests and "evil" not in str(refusal.value)


async def test_nothing_of_an_error_from_another_issuer_is_shown(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.sends_issuer = "https://evil.example.com"
    issuer.answers_with = {"error": "access_denied", "error_description": "call 555-1234", "code": None}
    with pytest.raises(ToolError) as refusal:
        await (await open_caller()).call()
    assert "555" not in str(refusal.value) and "denied" not in str(refusal.value)


@pytest.mark.parametrize("state", ["another", None, ""])
async def test_an_answer_with_another_state_is_not_used(
    state: str | None, issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.answers_with = {"state": state}
    with pytest.raises(ToolError, match="state that is not ours"):
        await (await open_caller()).call()
    assert not issuer.token_requests


async def test_a_refused_sign_in_needs_a_person_and_is_not_asked_again_at_once(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.answers_with = {"error": "access_denied", "error_description": "not you", "code": None}
    client = await open_caller()
    for _ in range(2):
        with pytest.raises(NeedsAuthorizationError, match="access_denied: not you") as need:
            await client.call()
    assert need.value.data["needsAuth"] is True and need.value.data["server"] == "guarded"
    assert len(browser.pages) == 1 and "not completed" in (await browser.last_page()).text


async def test_with_nobody_there_the_error_says_what_to_do(open_caller: OpenCaller) -> None:
    with pytest.raises(NeedsAuthorizationError, match=r"somebody has to sign in.*grantType") as need:
        await (await open_caller(show_page=nobody)).call()
    assert (need.value.kind, need.value.data["needsAuth"]) == ("mcpError", True)


async def test_somebody_who_declines_is_not_waited_for(open_caller: OpenCaller) -> None:
    async def declines(server: str, url: str) -> PageAnswer:
        return PageAnswer("declined")

    with pytest.raises(NeedsAuthorizationError, match="declined"):
        await (await open_caller(show_page=declines)).call()


async def test_a_page_that_nobody_finishes_ends_at_its_limit_and_takes_the_question_back(
    open_caller: OpenCaller,
) -> None:
    withdrawn = asyncio.Event()

    async def waits(server: str, url: str) -> PageAnswer:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError

    with pytest.raises(NeedsAuthorizationError, match=r"within 0\.2 s"):
        await (await open_caller(show_page=waits, sign_in_limit_secs=0.2)).call()
    assert withdrawn.is_set()


async def test_a_host_that_knows_where_the_page_led_needs_no_listener(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    async def elsewhere(server: str, url: str) -> PageAnswer:
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            return PageAnswer("shown", (await client.get(url)).headers["location"])

    assert await (await open_caller(show_page=elsewhere)).call() == 200


async def test_a_sign_in_outlives_the_request_that_began_it(open_caller: OpenCaller, browser: Browser) -> None:
    asked, go, questions = asyncio.Event(), asyncio.Event(), []

    async def slowly(server: str, url: str) -> PageAnswer:
        questions.append(url)
        asked.set()
        await go.wait()
        return await browser.show_page(server, url)

    client = await open_caller(show_page=slowly)
    first = asyncio.create_task(client.call())
    await asyncio.wait_for(asked.wait(), 5)
    first.cancel()
    await asyncio.wait({first})
    second = asyncio.create_task(client.call())
    go.set()
    assert await second == 200 and len(questions) == 1


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_without_pkce_nobody_signs_in(
    methods: list[str] | None, issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.metadata["code_challenge_methods_supported"] = methods
    with pytest.raises(ToolError, match="PKCE"):
        await (await open_caller()).call()
    assert not browser.pages and not issuer.registrations


# Servers of 2025-03-26 ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("prefix", "has_metadata"), [("", True), ("/oauth", True), ("", False)])
async def test_a_server_that_is_its_own_issuer_is_signed_in_to(
    prefix: str, has_metadata: bool, browser: Browser, tmp_path: Path
) -> None:
    async with AuthorizationServer(prefix, metadata_at=OAUTH_METADATA) as issuer, GuardedServer(issuer) as guarded:
        guarded.routes = {**issuer.routes, ("POST", guarded.path): guarded._post}
        guarded.announces = False
        issuer.origin = guarded.origin
        issuer.metadata["code_challenge_methods_supported"] = None
        if not has_metadata:
            del guarded.routes["GET", OAUTH_METADATA]
        async with caller(guarded, tmp_path, show_page=browser.show_page) as client:
            assert await client.call() == 200
    assert "resource" not in browser.asked[0]


async def test_a_legacy_server_with_the_metadata_of_another_host_is_refused(
    guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    del guarded.routes["GET", str(guarded.metadata_at)]
    metadata = {"issuer": "https://evil.example.com", "token_endpoint": "https://evil.example.com/token"}
    guarded.routes["GET", OAUTH_METADATA] = lambda request: Response(200, metadata)
    with pytest.raises(ToolError, match=r"is the metadata of 'https://evil\.example\.com'"):
        await (await open_caller()).call()
    assert not browser.pages


# Metadata that cannot be used ---------------------------------------------------------------------------


async def test_metadata_of_another_issuer_is_not_used(
    issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.metadata["issuer"] = "https://attacker.example.com"
    with pytest.raises(ToolError, match=r"attacker\.example\.com"):
        await (await open_caller()).call()
    assert not browser.pages and not issuer.registrations


BAD_METADATA = {
    "no endpoint": (Response(200, {"issuer": "{issuer}"}), "names no token_endpoint"),
    "broken": (Response(200, "{", {"content-type": "application/json"}), "is no JSON object"),
    "a list": (Response(200, []), "is no JSON object"),
    "deep": (Response(200, "[" * 100_000, {"content-type": "application/json"}), "is no JSON object"),
    "server error": (Response(503), "answered with status 503"),
    "huge": (Response(200, {"issuer": "x" * 300_000}), "answered more than 256 KB"),
    "gone": (Response(404), "no metadata was found"),
    "a web page": (Response(200, "<html>", {"content-type": "text/html"}), "no metadata was found"),
    "elsewhere": (Response(302, "", {"location": "http://127.0.0.1:1/x"}), "no metadata was found"),
    "circle": (Response(302, "", {"location": OAUTH_METADATA}), "leads in circles"),
    "no HTTP": (Response(raw=b"hello\r\n\r\n"), "cannot be reached"),
    "nothing": (Response(raw=b""), "cannot be reached"),
}


@pytest.mark.parametrize(("answer", "said"), BAD_METADATA.values(), ids=list(BAD_METADATA))
async def test_metadata_that_cannot_be_used_is_an_error_that_names_it(
    answer: Response, said: str, issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    def serve(request: Request) -> Response:
        body = answer.body
        if isinstance(body, dict) and body.get("issuer") == "{issuer}":
            body = {"issuer": issuer.issuer}
        return Response(answer.status, body, answer.headers, raw=answer.raw)

    issuer.routes["GET", OAUTH_METADATA] = serve
    with pytest.raises(ToolError, match=said) as refusal:
        await (await open_caller()).call()
    assert refusal.value.kind == "mcpError" and issuer.origin in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "url", "said"),
    [
        ("token_endpoint", "http://example.com/token", "plain http"),
        ("authorization_endpoint", "javascript:alert(1)", "is no https URL"),
        ("authorization_endpoint", "file:///etc/passwd", "is no https URL"),
        ("authorization_endpoint", "https://user:secret@example.com/", "holds a user name"),
        ("registration_endpoint", "https://exa mple.com/", "is no URL"),
        ("token_endpoint", 7, "is no https URL"),
    ],
)
async def test_an_endpoint_that_is_not_safe_is_refused(
    name: str, url: object, said: str, issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.metadata[name] = url
    with pytest.raises(ToolError, match=said):
        await (await open_caller()).call()
    assert not browser.pages


@pytest.mark.parametrize(
    "url", ["http://example.com", "ftp://example.com", "not a url", "http://[", "https://user@example.com"]
)
async def test_an_issuer_that_is_no_safe_url_is_not_asked(
    url: str, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    guarded.metadata["authorization_servers"] = [url]
    with pytest.raises(ToolError, match="the authorization server"):
        await (await open_caller()).call()


async def test_the_second_issuer_is_taken_where_the_first_has_no_metadata(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    guarded.metadata["authorization_servers"] = [guarded.origin, issuer.issuer]
    assert await (await open_caller()).call() == 200


# The token endpoint -------------------------------------------------------------------------------------

BAD_TOKENS = {
    "server error": (Response(500, "no secret-code"), "answered with status 500"),
    "refused": (
        Response(400, {"error": "invalid_grant", "error_description": "too late"}),
        r"invalid_grant \(too",
    ),
    "error with 200": (Response(200, {"error": "bad_verification_code"}), "bad_verification_code"),
    "no token": (Response(200, {"token_type": "Bearer"}), "without an access_token"),
    "token with a line": (Response(200, {"access_token": "a\r\nX: b"}), "without an access_token"),
    "token of a kind": (Response(200, {"access_token": "a", "token_type": "mac"}), "the kind 'mac'"),
    "bound unasked": (Response(200, {"access_token": "a", "token_type": "DPoP"}), "unasked"),
    "no JSON": (Response(200, "access_token=a"), "did not answer with a JSON object"),
    "elsewhere": (Response(307, "", {"location": "http://127.0.0.1:1/"}), "answered with status 307"),
    "huge": (Response(200, "x" * 300_000), "more than 256 KB"),
}


@pytest.mark.parametrize(("answer", "said"), BAD_TOKENS.values(), ids=list(BAD_TOKENS))
async def test_a_token_endpoint_that_gives_no_token_is_an_error_without_secrets(
    answer: Response, said: str, issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.token_answers = [answer]
    with pytest.raises(ToolError, match=said) as refusal:
        await (await open_caller()).call()
    sent = issuer.forms[0]
    assert not any(sent[name] in str(refusal.value) for name in ("code", "code_verifier"))
    assert "secret-code" not in str(refusal.value)


async def test_a_registration_that_led_nowhere_is_made_anew(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.token_answers = [Response(401, {"error": "invalid_client"})]
    client = await open_caller()
    with pytest.raises(ToolError, match="invalid_client"):
        await client.call()
    assert await client.call() == 200 and len(issuer.registrations) == 2


async def test_tokens_go_to_the_servers_own_origin_alone(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    client = await open_caller()
    await client.call()
    assert await client.authorization.headers("POST", issuer.origin) == {}
    assert "authorization" in await client.authorization.headers("GET", f"{guarded.origin}/else")


# Servers that want something else -----------------------------------------------------------------------


async def test_a_server_that_knows_nothing_of_oauth_is_told_a_token_by_its_headers(
    guarded: GuardedServer, browser: Browser, open_caller: OpenCaller
) -> None:
    guarded.routes = {("POST", guarded.path): guarded.routes["POST", guarded.path]}
    guarded.challenge = "Bearer"
    with pytest.raises(
        ToolError, match=r'write it into mcpServers\.guarded\.headers \({"Authorization": "Bearer …"}\)'
    ):
        await (await open_caller()).call()
    assert not browser.pages


async def test_a_server_that_wants_a_password_is_left_alone(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    guarded.challenge = 'Basic realm="x"'
    assert await (await open_caller()).call() == 401
    assert not issuer.requests and guarded.paths() == [guarded.path]
