"""`fetch_url`: what may be asked, and what is made of the answer.

Source: RFC 6890 (special addresses), RFC 6052 and 4291 (addresses packed into others); the rest is our own choice.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.fetch_url import FetchUrl
from sidecar.tools.builtin.page_text import UnfitPageError, text_of
from sidecar.web.addresses import RefusedAddressError, public_addresses
from sidecar.web.fetching import MAX_BYTES, FetchError, Page, fetch
from tests.harness.http_site import HttpSite, Request, Response

PRIVATE_HOSTS = [
    "127.0.0.1",
    "127.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "169.254.170.2",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a00:1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "[2001:db8::1]",
]


@pytest.fixture
def nothing_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a proxy of this machine in between."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nothing_connects")
@pytest.mark.parametrize("host", PRIVATE_HOSTS)
async def test_no_private_address_is_asked_in_any_spelling(host: str) -> None:
    result: Any = await FetchUrl().execute({"url": f"http://{host}/latest/meta-data"}, ToolContext())
    assert "is not fetched" in result.error or "is no URL" in result.error, result


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
async def test_a_proxy_is_asked_for_no_private_address_either(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with HttpSite() as proxy:
        monkeypatch.setenv("http_proxy", proxy.origin)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(RefusedAddressError):
            await fetch(f"http://{host}/", limit_secs=5)
        assert proxy.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://x/",
        "http://",
        "//x",
        "http://u:p@example.com/",
        "x" * 300,
    ],
)
async def test_what_is_no_web_address_is_told_to_the_model(url: str) -> None:
    result: Any = await FetchUrl().execute({"url": url}, ToolContext())
    assert not result.ok
    assert len(result.error) < 300


async def test_addresses_that_everybody_can_reach_are_let_through() -> None:
    assert await public_addresses(httpx.URL("http://93.184.216.34/")) == ["93.184.216.34"]
    assert await public_addresses(httpx.URL("http://[2606:2800:220:1::]/")) == ["2606:2800:220:1::"]


# A site -------------------------------------------------------------------------------------------------

HOST = "site.test"


class Site:
    """A site of a made-up host, whose name leads to our own server. Other names lead where DNS says."""

    def __init__(self, site: HttpSite) -> None:
        self.site = site
        self.asked: list[str] = []
        self.port = site.origin.rpartition(":")[2]

    def url(self, path: str) -> str:
        return f"http://{HOST}:{self.port}{path}"

    async def addresses(self, url: httpx.URL) -> list[str]:
        self.asked.append(url.host)
        return ["127.0.0.1"] if url.host == HOST else await public_addresses(url)

    async def fetch(self, path: str, limit_secs: float = 10) -> Page:
        return await fetch(self.url(path), limit_secs=limit_secs, addresses_of=self.addresses)

    def serves(self, path: str, body: Any = b"", status: int = 200, **headers: str) -> None:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        self.site.routes["GET", path] = lambda request: Response(status, body, names)


@pytest.fixture
async def site(nothing_connects: None) -> AsyncIterator[Site]:
    async with HttpSite() as http:
        yield Site(http)


async def test_the_connection_goes_to_the_address_that_was_looked_at(site: Site) -> None:
    seen: list[Request] = []

    def answer(request: Request) -> Response:
        seen.append(request)
        return Response(200, "hello", {"content-type": "text/plain"})

    site.site.routes["GET", "/"] = answer
    page = await site.fetch("/")
    assert (page.status, page.body, page.media_type) == (200, b"hello", "text/plain")
    assert seen[0].headers["host"] == f"{HOST}:{site.port}"
    assert site.asked == [HOST]
    with pytest.raises(socket.gaierror):  # It has no other name than the one given above.
        await asyncio.get_running_loop().getaddrinfo(HOST, 80)


async def test_redirects_within_the_host_are_followed(site: Site) -> None:
    site.serves("/old", status=302, location="/new")
    site.serves("/new", "moved", content_type="text/plain")
    page = await site.fetch("/old")
    assert (page.url, page.body) == (site.url("/new"), b"moved")
    assert site.asked == [HOST, HOST]


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/", "http://169.254.169.254/", "http://example.com/", "//localhost/"]
)
async def test_a_redirect_to_another_host_is_told_and_not_followed(site: Site, location: str) -> None:
    site.serves("/", status=307, location=location)
    page = await site.fetch("/")
    assert page.redirect is not None
    assert site.asked == [HOST]


async def test_a_redirect_to_what_is_no_page_is_refused(site: Site) -> None:
    site.serves("/", status=302, location="file:///etc/passwd")
    with pytest.raises(RefusedAddressError):
        await site.fetch("/")


async def test_a_circle_of_redirects_ends(site: Site) -> None:
    site.serves("/", status=302, location="/")
    with pytest.raises(FetchError, match="redirects more than"):
        await site.fetch("/")


async def test_a_name_whose_address_turns_private_between_two_redirects_is_refused(site: Site) -> None:
    site.serves("/", status=302, location="/again")

    async def turning(url: httpx.URL) -> list[str]:
        if site.asked:
            return await public_addresses(httpx.URL("http://127.0.0.1/"))
        return await site.addresses(url)

    with pytest.raises(RefusedAddressError):
        await fetch(site.url("/"), limit_secs=10, addresses_of=turning)


async def test_a_large_body_is_cut_and_says_so(site: Site) -> None:
    site.serves("/", b"x" * (MAX_BYTES + 1), content_type="text/plain")
    page = await site.fetch("/")
    assert (len(page.body), page.is_cut) == (MAX_BYTES, True)


async def test_a_site_that_does_not_answer_is_not_waited_for(site: Site) -> None:
    site.site.routes["GET", "/"] = lambda request: Response(after=asyncio.Event())
    with pytest.raises(FetchError, match="did not answer in full"):
        await site.fetch("/", limit_secs=0.2)


# Text ---------------------------------------------------------------------------------------------------


def page(body: bytes, media_type: str = "text/html", charset: str | None = None) -> Page:
    return Page(url="http://site.test/", status=200, media_type=media_type, charset=charset, body=body)


def test_html_becomes_markdown_without_scripts() -> None:
    html = b"<title>T</title><h1>Head</h1><script>evil()</script><a href='/x'>link</a><style>p{}</style>"
    text = text_of(page(html), is_raw=False)
    assert "# Head" in text
    assert "[link](/x)" in text
    assert "evil" not in text
    assert "p{}" not in text


@pytest.mark.parametrize(
    ("body", "media_type", "charset", "text"),
    [
        ("grün".encode("latin-1"), "text/plain", "iso-8859-1", "grün"),
        (b'{"a": 1}', "application/json", None, '{"a": 1}'),
        (b'<meta charset="windows-1251">' + "да".encode("cp1251"), "text/html", None, "да"),
        ("grün".encode(), "text/plain", "no-such-charset", "grün"),
        ("grün".encode(), "", None, "grün"),
        (b"\xef\xbb\xbfx", "application/ld+json", None, "x"),
    ],
)
def test_text_is_decoded(body: bytes, media_type: str, charset: str | None, text: str) -> None:
    assert text_of(page(body, media_type, charset), is_raw=False).endswith(text)


@pytest.mark.parametrize(
    ("body", "media_type"), [(b"PNG\0", ""), (b"x", "image/png"), (b"a\0", "text/plain")], ids=("", "png", "text")
)
def test_what_is_no_text_says_what_it_is(body: bytes, media_type: str) -> None:
    with pytest.raises(UnfitPageError, match="is no text but"):
        text_of(page(body, media_type), is_raw=False)


async def test_rules_see_the_url_that_is_asked_for() -> None:
    tool = FetchUrl()
    for spelling in ("HTTP://Example.COM:80/a#part", " http://example.com/a "):
        assert await tool.rule_arguments({"url": spelling}, ()) == {"url": "http://example.com/a"}
