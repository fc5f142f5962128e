"""Entries of `mcpServers` with a URL. Source: protocol.md, MCP servers; files of other hosts."""

from typing import Any

import pytest

from sidecar.mcp.config import HttpServer, StdioServer, decode_server, expand_server, texts_of
from sidecar.mcp.placeholders import Surroundings
from sidecar.protocol.errors import ConfigurationError

PATH = "mcpServers.web"
URL = "https://example.com/mcp"


def test_an_entry_with_a_url_becomes_a_value() -> None:
    raw = {
        "url": f" {URL} ",
        "headers": {"Authorization": "Bearer x"},
        "oauth": {"clientId": "me", "scopes": ["a"]},
        "timeoutSecs": 5,
        "startTimeoutSecs": 7.5,
        "disabled": True,
        "permissions": {"*": ["read"]},
        "gallery": "of another host",
    }
    assert decode_server("web", raw) == HttpServer(
        url=URL,
        headers={"Authorization": "Bearer x"},
        oauth={"clientId": "me", "scopes": ["a"]},
        timeout_secs=5.0,
        start_timeout_secs=7.5,
        disabled=True,
        permissions={"*": ("read",)},
    )


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"url": URL}, "http"),
        ({"httpUrl": URL}, "http"),
        ({"serverUrl": URL}, "http"),
        ({"httpUrl": URL, "url": "https://example.com/sse"}, "http"),
        ({"type": "http", "url": URL}, "http"),
        ({"type": "streamable-http", "url": URL}, "http"),
        ({"type": "streamableHttp", "url": URL}, "http"),
        ({"transport": "streamable_http", "url": URL}, "http"),
        ({"type": "SSE", "url": URL}, "sse"),
        ({"transport": "sse", "serverUrl": URL}, "sse"),
        ({"type": None, "url": URL, "command": None}, "http"),
    ],
)
def test_every_host_spells_it_another_way(raw: Any, kind: Any) -> None:
    assert decode_server("web", raw) == HttpServer(url=URL, type=kind)


def test_the_type_decides_where_there_is_both_a_command_and_a_url() -> None:
    assert isinstance(decode_server("web", {"type": "stdio", "command": "x", "url": URL}), StdioServer)
    assert isinstance(decode_server("web", {"type": "http", "command": "x", "url": URL}), HttpServer)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"url": 3}, ".url"),
        ({"serverUrl": ""}, ".serverUrl"),
        ({"type": "http"}, ".url"),
        ({"type": "websocket", "url": URL}, ".type"),
        ({"transport": ["http"], "url": URL}, ".transport"),
        ({"url": URL, "command": "x"}, ".url"),
        ({"url": URL, "headers": ["a"]}, ".headers"),
        ({"url": URL, "headers": {"A": 1}}, ".headers.A"),
        ({"url": URL, "oauth": True}, ".oauth"),
        ({"url": URL, "timeoutSecs": 0}, ".timeoutSecs"),
        ({"url": URL, "permissions": {"*": "read"}}, ".permissions.*"),
    ],
)
def test_a_fault_is_named_by_its_path(raw: Any, path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        decode_server("web", raw)
    assert caught.value.path == PATH + path


def test_placeholders_are_replaced_in_the_url_the_headers_and_oauth() -> None:
    server = HttpServer(
        url="https://${HOST:-example.com}/mcp",
        headers={"Authorization": "Bearer ${input:token}", "X": "plain"},
        oauth={"clientSecret": "${env:SECRET}", "scopes": ["${SECRET}"]},
    )
    surroundings = Surroundings(environ={"SECRET": "s"}, inputs={"token": "t"})
    assert expand_server(server, surroundings, path=PATH) == HttpServer(
        url=URL,
        headers={"Authorization": "Bearer t", "X": "plain"},
        oauth={"clientSecret": "s", "scopes": ["${SECRET}"]},
    )
    assert "Bearer ${input:token}" in list(texts_of(server))


@pytest.mark.parametrize(
    ("server", "place"),
    [
        (HttpServer(url="${NO}"), "url"),
        (HttpServer(url=URL, headers={"X": "${NO}"}), "headers.X"),
        (HttpServer(url=URL, oauth={"clientId": "${NO}"}), "oauth.clientId"),
    ],
)
def test_an_unset_placeholder_is_named_with_its_place(server: HttpServer, place: str) -> None:
    with pytest.raises(ConfigurationError, match="environment variable NO is not set") as caught:
        expand_server(server, Surroundings(), path=PATH)
    assert caught.value.path == f"{PATH}.{place}"


def test_nothing_secret_shows() -> None:
    server = HttpServer(url=f"{URL}?key=s3cr3t", headers={"X": "s3cr3t"}, oauth={"clientSecret": "s3cr3t"})
    assert "s3cr3t" not in repr(server)
