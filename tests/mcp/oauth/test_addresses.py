"""What may be asked on the word of a server: no private network for a public one, no redirect to elsewhere.

Source: MCP security best practices (server-side request forgery); RFC 8414, 3; RFC 9728, 3.
"""

import asyncio
from pathlib import Path

import pytest

from sidecar.mcp.oauth.addresses import AddressError, check_url, may_reach, origin_of, realm_of
from sidecar.mcp.oauth.failures import AuthorizationFailure
from sidecar.mcp.oauth.http import AuthorizationHttp
from sidecar.mcp.oauth.metadata import canonical_resource, resource_metadata_urls, server_metadata_urls
from tests.harness.http_site import HttpSite, Response
from tests.harness.tcp import closed_port, self_signed

PUBLIC = "https://93.184.215.14/mcp"


@pytest.mark.parametrize(
    ("address", "realm"),
    [
        ("93.184.215.14", "global"),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", "global"),
        ("10.1.2.3", "private"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "private"),
        ("fd00::1", "private"),
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:10.0.0.1", "private"),
        ("2002:7f00:1::", "loopback"),
        ("169.254.169.254", "linkLocal"),
        ("fe80::1%eth0", "linkLocal"),
        ("0.0.0.0", "none"),
        ("224.0.0.1", "none"),
        ("::", "none"),
    ],
)
def test_each_address_has_its_realm(address: str, realm: str) -> None:
    assert realm_of(address) == realm


@pytest.mark.parametrize(
    ("server", "reached"),
    [
        ("global", {"global"}),
        ("private", {"global", "private"}),
        ("loopback", {"global", "private", "loopback"}),
        ("linkLocal", {"global", "linkLocal"}),
    ],
)
def test_a_server_leads_no_further_in_than_it_is(server: str, reached: set[str]) -> None:
    realms = ("global", "private", "loopback", "linkLocal", "none")
    assert {realm for realm in realms if may_reach(frozenset({server}), realm)} == reached


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.1/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://[::ffff:169.254.169.254]/x",
        "https://169.254.169.254/latest/meta-data",
        "https://0.0.0.0/",
        "https://localhost/",
    ],
)
async def test_a_public_server_cannot_send_us_into_our_own_network(url: str) -> None:
    http = AuthorizationHttp(PUBLIC, limit_secs=2)
    with pytest.raises(AuthorizationFailure, match=r"lies in a private network|cannot be looked up"):
        await http.get(url)
    await http.aclose()


async def test_nothing_at_all_is_sent_there() -> None:
    http = AuthorizationHttp(PUBLIC, limit_secs=2)
    async with HttpSite() as site:
        with pytest.raises(AuthorizationFailure, match="lies in a private network"):
            await http.get(f"{site.origin}/x")
        assert not site.requests
        assert (await http.get(f"{site.origin}/x", is_trusted=True)).status == 404
    await http.aclose()


async def test_a_host_that_is_not_there_is_an_error() -> None:
    http = AuthorizationHttp(f"http://127.0.0.1:{closed_port()}/mcp", limit_secs=2)
    with pytest.raises(AuthorizationFailure, match="cannot be looked up"):
        await http.get("https://no-such-host.invalid/x")
    with pytest.raises(AuthorizationFailure, match="cannot be reached"):
        await http.get(f"http://127.0.0.1:{closed_port()}/x?secret=1")
    await http.aclose()


async def test_a_server_that_says_nothing_is_left_at_the_limit() -> None:
    never = asyncio.Event()
    http = AuthorizationHttp("http://127.0.0.1/mcp", limit_secs=0.2)
    async with HttpSite() as site:
        site.routes["GET", "/slow"] = lambda request: Response(200, "", after=never)
        with pytest.raises(AuthorizationFailure, match=r"/slow did not answer within 0\.2 s"):
            await http.get(f"{site.origin}/slow?secret=1")
        never.set()
    await http.aclose()


@pytest.mark.parametrize("name", ["localhost", "other.example"])
async def test_it_is_the_name_that_a_certificate_must_be_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = self_signed(tmp_path, name=name)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
    async with HttpSite(tls) as site:
        url = site.origin.replace("127.0.0.1", "localhost")
        http = AuthorizationHttp(url)
        if name == "localhost":
            assert (await http.get(url)).status == 404
            assert site.requests[0].headers["host"] == url.removeprefix("https://")
        else:
            with pytest.raises(AuthorizationFailure, match=r"(?i)certificate.verify.failed"):
                await http.get(url)
        await http.aclose()


async def test_redirects_are_followed_at_home_and_nowhere_else() -> None:
    http = AuthorizationHttp("http://127.0.0.1/mcp")
    async with HttpSite() as site, HttpSite() as other:
        site.routes["GET", "/a"] = lambda request: Response(302, "", {"location": "/b"})
        site.routes["GET", "/b"] = lambda request: Response(200, "here")
        site.routes["GET", "/away"] = lambda request: Response(302, "", {"location": f"{other.origin}/b"})
        site.routes["GET", "/odd"] = lambda request: Response(302, "", {"location": "http://["})
        site.routes["POST", "/a"] = lambda request: Response(307, "", {"location": "/b"})
        assert (await http.get(f"{site.origin}/a")).body == b"here"
        assert (await http.get(f"{site.origin}/away")).status == 302 and not other.requests
        assert (await http.get(f"{site.origin}/odd")).status == 302
        assert (await http.post_form(f"{site.origin}/a", {"code": "x"}, headers={})).status == 307
    await http.aclose()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://example.com/", "plain http"),
        ("ftp://example.com/", "no https URL"),
        ("https:///path", "no https URL"),
        ("https://a@example.com/", "user name"),
        ("https://exam\nple.com/", "no URL"),
        ("https://example.com\\@evil.example/", "no URL"),
        ("https://[::1/", "no URL"),
        ("https://example.com:99999/", "no URL"),
        ("", "no https URL"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, said: str) -> None:
    with pytest.raises(AddressError, match=said):
        check_url(url)


@pytest.mark.parametrize(
    "url", ["https://example.com", "http://127.0.0.1:1/x", "http://localhost/", "http://[::1]/"]
)
def test_https_and_this_machine_are_all_right(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    ("url", "origin", "resource"),
    [
        ("https://Example.COM:443/mcp/", "https://example.com", "https://example.com/mcp"),
        ("http://localhost:80", "http://localhost", "http://localhost"),
        ("https://a.example:8443/x?q=1#f", "https://a.example:8443", "https://a.example:8443/x?q=1"),
        ("https://[2001:DB8::1]:8443/", "https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_a_server_has_one_name(url: str, origin: str, resource: str) -> None:
    assert (origin_of(url), canonical_resource(url)) == (origin, resource)


def test_the_places_of_metadata_are_those_of_the_specification_in_their_order() -> None:
    assert resource_metadata_urls("https://a.example/x/mcp/") == (
        "https://a.example/.well-known/oauth-protected-resource/x/mcp",
        "https://a.example/.well-known/oauth-protected-resource",
    )
    assert server_metadata_urls("https://a.example/") == (
        "https://a.example/.well-known/oauth-authorization-server",
        "https://a.example/.well-known/openid-configuration",
    )
    assert server_metadata_urls("https://a.example/t/1") == (
        "https://a.example/.well-known/oauth-authorization-server/t/1",
        "https://a.example/.well-known/openid-configuration/t/1",
        "https://a.example/t/1/.well-known/openid-configuration",
    )
