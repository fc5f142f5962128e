"""The address that the browser comes back to, and who else may knock there.

Source: RFC 8252, 7.3 and 8.3; the limits are our own choice.
"""

import asyncio
from urllib.parse import urlsplit

import pytest

from sidecar.mcp.oauth.listener import listening
from sidecar.mcp.oauth.options import OAuthOptions


async def knock(uri: str, request: bytes) -> bytes:
    """What is answered to these bytes."""
    parts = urlsplit(uri)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def get(target: str, method: str = "GET") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_one_visit_is_taken_and_the_address_is_closed_after_it() -> None:
    async with listening(OAuthOptions()) as listener:
        page = await knock(listener.redirect_uri, get("/callback?code=a%20b&state=s&empty="))
        assert page.startswith(b"HTTP/1.1 200") and b"<title>Almost done</title>" in page
        assert await listener.visit() == {"code": "a b", "state": "s", "empty": ""}
        assert (await knock(listener.redirect_uri, get("/callback?code=b&state=s"))).startswith(b"HTTP/1.1 409")
        assert (await listener.visit())["code"] == "a b"
    with pytest.raises(OSError):
        await knock(listener.redirect_uri, b"")


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/favicon.ico"), b"404"),
        (get("/"), b"404"),
        (get("/callback?code=x", "POST"), b"405"),
        (get("/callback?code=x", "HEAD"), b"405"),
        (b"\x16\x03\x01hello\r\n\r\n", b"404"),
        (b"GET\r\n\r\n", b"404"),
        (get("http://["), b""),
        (get(f"/callback?{'&'.join(f'a{n}=1' for n in range(200))}"), b""),
    ],
)
async def test_whatever_else_knocks_is_turned_away_and_the_visit_still_comes(
    request_bytes: bytes, status: bytes
) -> None:
    async with listening(OAuthOptions()) as listener:
        assert (await knock(listener.redirect_uri, request_bytes))[9:12] == status
        await knock(listener.redirect_uri, get("/callback?code=x"))
        assert await listener.visit() == {"code": "x"}


async def test_a_request_without_an_end_is_dropped() -> None:
    async with listening(OAuthOptions()) as listener:
        assert await knock(listener.redirect_uri, b"GET /callback?code=" + b"x" * 40_000 + b"\r\n\r\n") == b""
        await knock(listener.redirect_uri, get("/callback?code=x"))
        assert await listener.visit() == {"code": "x"}


async def test_what_is_said_twice_is_not_believed() -> None:
    async with listening(OAuthOptions()) as listener:
        await knock(listener.redirect_uri, get("/callback?state=a&state=b&code=x"))
        assert await listener.visit() == {"code": "x"}


async def test_the_address_of_before_is_taken_again_where_it_is_free() -> None:
    async with listening(OAuthOptions()) as first:
        other = listening(OAuthOptions(), preferred_uri=first.redirect_uri)
        async with other as second:
            assert second.redirect_uri != first.redirect_uri
    async with listening(OAuthOptions(), preferred_uri=first.redirect_uri) as third:
        assert third.redirect_uri == first.redirect_uri


async def test_a_port_of_the_options_is_that_of_localhost() -> None:
    async with listening(OAuthOptions()) as free:
        port = urlsplit(free.redirect_uri).port
    async with listening(OAuthOptions(callback_port=port)) as listener:
        assert listener.redirect_uri == f"http://localhost:{port}/callback"
        assert (await knock(f"http://127.0.0.1:{port}", get("/callback?code=x"))).startswith(b"HTTP/1.1 200")
