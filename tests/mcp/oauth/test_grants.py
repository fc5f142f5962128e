"""Tokens without a person: client credentials, workload identity, enterprise-managed authorization; DPoP.

Source: MCP extensions oauth-client-credentials, enterprise-managed-authorization, workload identity federation and
DPoP; RFC 6749, 7523, 8693 and 9449.
"""

import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sidecar.mcp.oauth.options import read_options
from sidecar.mcp.transport import NeedsAuthorizationError
from sidecar.protocol.errors import ConfigurationError, ToolError
from tests.harness.http_site import Response
from tests.harness.oauth_client import Browser, nobody, store_in
from tests.harness.oauth_server import (
    ID_JAG,
    JWT_BEARER,
    AuthorizationServer,
    GuardedServer,
    IdentityProvider,
)
from tests.mcp.oauth.conftest import OpenCaller

KEY = ec.generate_private_key(ec.SECP256R1())


def pem(key: Any) -> str:
    """A private key as users have it."""
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def assertion(audience: str, **claims: Any) -> str:
    """A workload's JWT."""
    return jwt.encode({"aud": audience, "sub": "workload", "exp": time.time() + 60, **claims}, KEY, "ES256")


# Client credentials -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_secret_is_enough(
    method: str, issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    issuer.metadata["token_endpoint_auth_methods_supported"] = [method]
    issuer.clients["robot"] = {"client_secret": "a b+c", "token_endpoint_auth_method": method}
    guarded.challenge_scopes = ("mcp:basic",)
    client = await open_caller(
        show_page=nobody, grantType="client_credentials", clientId="robot", clientSecret="a b+c"
    )
    assert await client.call() == 200
    (form,) = issuer.forms
    assert (form["scope"], form["resource"]) == ("mcp:basic", guarded.url)
    issuer.revoke_all()
    assert await client.call() == 200 and not issuer.registrations


@pytest.mark.parametrize(
    ("key", "algorithm", "said"),
    [
        (KEY, "ES256", None),
        (ec.generate_private_key(ec.SECP384R1()), "ES384", None),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA", None),
        (rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256", None),
        (rsa.generate_private_key(public_exponent=65537, key_size=2048), "PS256", "PS256"),
    ],
    ids=["ES256", "ES384", "EdDSA", "RS256", "PS256"],
)
async def test_a_key_is_enough(
    key: Any, algorithm: str, said: str | None, issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
    issuer.clients["robot"] = {
        "token_endpoint_auth_method": "private_key_jwt",
        "key": key.public_key(),
        "algorithm": algorithm,
    }
    on_one_line = pem(key).replace("\n", "\\n")
    options = {"clientId": "robot", "privateKeyPem": on_one_line, "keyId": "k1"}
    options |= {"signingAlgorithm": said} if said else {}
    client = await open_caller(show_page=nobody, grantType="client_credentials", **options)
    assert await client.call() == 200
    assert jwt.get_unverified_header(issuer.forms[0]["client_assertion"])["kid"] == "k1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"privateKeyPem": "-----BEGIN no key"}, "must be an unencrypted private key in PEM"),
        ({"privateKeyPem": pem(KEY), "signingAlgorithm": "RS256"}, "does not sign RS256"),
    ],
)
async def test_a_key_that_cannot_sign_is_an_error_of_the_configuration(
    options: dict[str, str], said: str, open_caller: OpenCaller
) -> None:
    client = await open_caller(show_page=nobody, grantType="client_credentials", clientId="a", **options)
    with pytest.raises(ConfigurationError, match=said) as fault:
        await client.call()
    assert fault.value.path == "mcpServers.guarded.oauth.privateKeyPem" and "BEGIN" not in str(
        fault.value
    ).replace("(BEGIN PRIVATE KEY)", "")


async def test_a_wrong_secret_is_refused_once_and_not_tried_again(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.clients["robot"] = {"client_secret": "right"}
    client = await open_caller(
        show_page=nobody, grantType="client_credentials", clientId="robot", clientSecret="wrong"
    )
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    for _ in range(2):
        with pytest.raises(ToolError, match=r"invalid_client \(who are you\?\)") as refusal:
            await client.call()
    assert len(issuer.token_requests) == 1 and not isinstance(refusal.value, NeedsAuthorizationError)


async def test_a_server_that_is_busy_is_asked_again(issuer: AuthorizationServer, open_caller: OpenCaller) -> None:
    issuer.clients["robot"] = {"client_secret": "s"}
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    issuer.token_answers = [Response(400, {"error": "temporarily_unavailable"})]
    client = await open_caller(
        show_page=nobody, grantType="client_credentials", clientId="robot", clientSecret="s"
    )
    with pytest.raises(ToolError, match="temporarily_unavailable"):
        await client.call()
    assert await client.call() == 200


# Workload identity --------------------------------------------------------------------------------------


async def test_the_jwt_of_a_workload_is_enough(
    issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller, tmp_path: Path
) -> None:
    issuer.assertion_key = KEY.public_key()
    file = tmp_path / "token"
    file.write_text(f"{assertion(issuer.issuer)}\n")
    client = await open_caller(show_page=nobody, grantType="jwt-bearer", assertionFile=str(file))
    assert await client.call() == 200
    file.write_text(assertion(issuer.issuer, jti="second"))
    issuer.revoke_all()
    assert await client.call() == 200
    assert [form["grant_type"] for form in issuer.forms] == [JWT_BEARER] * 2
    assert issuer.forms[1]["assertion"] == file.read_text()


@pytest.mark.parametrize(("audience", "exp"), [("https://wrong.example", 60), (None, -60)])
async def test_a_jwt_that_is_refused_is_not_sent_again_and_nothing_else_is_tried(
    audience: str | None, exp: int, issuer: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    issuer.assertion_key = KEY.public_key()
    token = assertion(audience or issuer.issuer, exp=time.time() + exp)
    client = await open_caller(grantType=JWT_BEARER, assertion=token, clientId="workload")
    issuer.clients["workload"] = {"token_endpoint_auth_method": "none"}
    for _ in range(2):
        with pytest.raises(ToolError, match="invalid_grant") as refusal:
            await client.call()
        assert token not in str(refusal.value)
    assert len(issuer.token_requests) == 1 and not browser.pages


async def test_a_file_that_is_not_there_is_named(open_caller: OpenCaller, tmp_path: Path) -> None:
    client = await open_caller(grantType="jwt_bearer", assertionFile=str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="cannot be read: No such file") as fault:
        await client.call()
    assert fault.value.path == "mcpServers.guarded.oauth.assertionFile"


# Enterprise-managed authorization -----------------------------------------------------------------------


@pytest.mark.parametrize("by_issuer", [True, False])
async def test_the_id_token_of_a_person_is_exchanged_for_one_server(
    by_issuer: bool, issuer: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    issuer.assertion_key = KEY.public_key()
    issuer.clients["ours"] = {"client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"}
    issuer.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    async with IdentityProvider("id-token", KEY) as provider:
        where = {"idpIssuer": provider.origin} if by_issuer else {"idpTokenEndpoint": f"{provider.origin}/token"}
        client = await open_caller(
            show_page=nobody,
            grantType="token_exchange",
            clientId="ours",
            clientSecret="s",
            idToken="id-token",
            idpClientId="us-there",
            **where,
        )
        assert await client.call() == 200
        (form,) = provider.forms
    assert (form["audience"], form["resource"]) == (issuer.issuer, guarded.url)
    assert (form["requested_token_type"], form["client_id"]) == (ID_JAG, "us-there")
    assert issuer.forms[0]["grant_type"] == JWT_BEARER


async def test_what_is_no_grant_for_the_server_is_not_used(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    async with IdentityProvider("id-token", KEY) as provider:
        provider.issued_type = "urn:ietf:params:oauth:token-type:access_token"
        client = await open_caller(
            grantType="token_exchange",
            clientId="ours",
            idToken="id-token",
            idpTokenEndpoint=f"{provider.origin}/token",
        )
        with pytest.raises(ToolError, match="did not exchange the ID token"):
            await client.call()
    assert not issuer.token_requests


# DPoP ---------------------------------------------------------------------------------------------------


@pytest.fixture
def bound(issuer: AuthorizationServer, guarded: GuardedServer) -> AuthorizationServer:
    """The issuer binds tokens to keys, and the server takes no others."""
    issuer.binds_tokens = guarded.is_dpop = True
    issuer.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    return issuer


@pytest.mark.parametrize("nonces", [(None, None), ("as-1", "rs-1")])
@pytest.mark.parametrize("algorithms", [["ES256"], ["RS256", "EdDSA"], None])
async def test_tokens_are_bound_to_a_key_where_the_server_wants_that(
    nonces: tuple[str | None, str | None],
    algorithms: list[str] | None,
    bound: AuthorizationServer,
    guarded: GuardedServer,
    open_caller: OpenCaller,
) -> None:
    bound.nonce, guarded.nonce = nonces
    bound.metadata["dpop_signing_alg_values_supported"] = algorithms
    client = await open_caller()
    assert [await client.call(), await client.call("tools/call")] == [200, 200]
    guarded.nonce = "rs-2" if guarded.nonce else None
    assert await client.call() == 200


async def test_a_bound_sign_in_is_kept_and_refreshed_with_its_key(
    bound: AuthorizationServer, open_caller: OpenCaller, tmp_path: Path
) -> None:
    bound.nonce = "as-1"
    await (await open_caller()).call()
    later = await open_caller(show_page=nobody, store=store_in(tmp_path))
    assert await later.call() == 200
    bound.revoke_all()
    assert await later.call() == 200


async def test_the_metadata_of_the_resource_can_ask_for_it_too(
    bound: AuthorizationServer, guarded: GuardedServer, open_caller: OpenCaller
) -> None:
    guarded.metadata["dpop_bound_access_tokens_required"] = True
    guarded.challenge = "Bearer"
    assert await (await open_caller()).call() == 200


async def test_a_token_that_is_not_bound_is_refused_where_it_must_be(
    bound: AuthorizationServer, open_caller: OpenCaller
) -> None:
    bound.binds_tokens = False
    with pytest.raises(ToolError, match="bound to no key"):
        await (await open_caller()).call()


async def test_an_issuer_that_takes_no_signature_of_ours_is_an_error(
    bound: AuthorizationServer, browser: Browser, open_caller: OpenCaller
) -> None:
    bound.metadata["dpop_signing_alg_values_supported"] = ["none", "HS256"]
    with pytest.raises(ToolError, match="takes no DPoP proof that we can sign, only none HS256"):
        await (await open_caller()).call()
    assert not browser.pages


async def test_an_issuer_that_could_bind_tokens_is_not_asked_to_for_a_server_that_knows_bearers(
    issuer: AuthorizationServer, open_caller: OpenCaller
) -> None:
    issuer.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    issuer.binds_tokens = True
    assert await (await open_caller()).call() == 200
    assert "dpop" not in issuer.token_requests[0].headers


# Options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "path", "said"),
    [
        ({"grantType": "password"}, "grantType", "must be one of"),
        ({"grantType": "client_credentials"}, "clientId", "is required"),
        ({"grantType": "client_credentials", "clientId": "a"}, "clientSecret", "or a privateKeyPem"),
        ({"grantType": "jwt_bearer"}, "assertion", "or an assertionFile"),
        ({"grantType": "token_exchange"}, "clientId", "is required"),
        ({"grantType": "token_exchange", "clientId": "a"}, "idToken", "or an idTokenFile"),
        ({"grantType": "token_exchange", "clientId": "a", "idToken": "b"}, "idpTokenEndpoint", "or an idpIssuer"),
        ({"clientMetadataUrl": "http://a/b"}, "clientMetadataUrl", "must be an https URL with a path"),
        ({"clientMetadataUrl": "https://a.example"}, "clientMetadataUrl", "must be an https URL with a path"),
        ({"redirectUri": "http://example.com:1/x"}, "redirectUri", "must be http://127.0.0.1:PORT/PATH"),
        ({"redirectUri": "http://127.0.0.1:x/"}, "redirectUri", "must be http://127.0.0.1:PORT/PATH"),
        ({"callbackPort": 70000}, "callbackPort", "must be a port"),
        ({"signingAlgorithm": "none"}, "signingAlgorithm", "must be one of"),
        ({"scopes": 7}, "scopes", "must be"),
        ({"clientId": ["a"]}, "clientId", "must be a string"),
    ],
)
def test_a_wrong_option_is_named_by_its_path(options: dict[str, Any], path: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as fault:
        read_options(options, "mcpServers.x.oauth")
    assert fault.value.path == f"mcpServers.x.oauth.{path}"


@pytest.mark.parametrize(
    "spelling", ["client_credentials", "client-credentials", "urn:ietf:params:oauth:grant-type:client_credentials"]
)
def test_a_grant_may_be_spelled_in_several_ways(spelling: str) -> None:
    options = read_options({"grantType": spelling, "clientId": "a", "clientSecret": "b"}, "p")
    assert options.grant == "client_credentials" and "'b'" not in repr(options)
