"""What is made of the words of servers over HTTP. Source: RFC 9110, 10.2.3; own choice."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sidecar.mcp.http_failures import MAX_QUOTED_CHARACTERS, Endpoint, answer_in, retry_after_secs, said, shown_url

NOW = datetime(2026, 7, 28, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "secs"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Tue, 28 Jul 2026 12:00:30 GMT", 30.0),
        ("Tue, 28 Jul 2026 11:00:00 GMT", 0.0),
        ("Tue, 28 Jul 2026 12:01:00 -0000", 60.0),
        ("soon", None),
        ("-1", None),
        ("1" * 400, None),
        ("", None),
    ],
)
def test_a_wait_is_given_in_seconds_or_as_a_date(value: str, secs: float | None) -> None:
    assert retry_after_secs({"retry-after": value}, NOW) == secs


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error":{"message":"no such tool"}}', "no such tool"),
        (b'{"error":"invalid_token","error_description":"it is old"}', "invalid_token: it is old"),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not so"}}', "not so"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"title":"Gone","status":410}', "Gone"),
        (b'{"reason":7}', '{"reason":7}'),
        (b"[" * 100_000, "[" * 100_000),
        (b"<html><style>a{}</style><p>Bad&nbsp;Gateway</p>", "Bad Gateway"),
        (b"\xff out", "\ufffd out"),
        (b"", ""),
    ],
)
def test_the_words_for_people_are_found(body: bytes, words: str) -> None:
    assert said(body) == words


def test_words_are_shown_in_one_line_cut_and_without_secrets() -> None:
    endpoint = Endpoint(server="s", url="https://me:pass@a.example:8443/mcp?key=k#f", secrets=("s3cr3t-token",))
    assert endpoint.place == "https://a.example:8443/mcp"
    assert endpoint.clean("no\n\n s3cr3t-token here") == "no *** here"
    assert len(endpoint.clean("x" * 10_000)) == MAX_QUOTED_CHARACTERS + 2
    assert "pass" not in repr(endpoint) + shown_url(endpoint.url)
    assert shown_url("http://[broken") == "no URL"


@pytest.mark.parametrize(
    ("status", "body", "request_id", "answer"),
    [
        (
            400,
            '{"jsonrpc":"2.0","id":null,"error":{"code":1}}',
            7,
            '{"jsonrpc": "2.0", "id": 7, "error": {"code": 1}}',
        ),
        (404, '{"jsonrpc":"2.0","error":{"code":1}}', 7, '{"jsonrpc": "2.0", "error": {"code": 1}, "id": 7}'),
        (400, '{"jsonrpc":"2.0","id":7,"error":{"code":1}}', None, None),
        (401, '{"jsonrpc":"2.0","id":7,"error":{"code":1}}', 7, None),
        (429, '{"jsonrpc":"2.0","id":7,"error":{"code":1}}', 7, None),
        (500, '{"jsonrpc":"2.0","id":7,"error":{"code":1}}', 7, None),
        (400, '{"error":{"code":1}}', 7, None),
        (400, '{"jsonrpc":"2.0","id":7,"result":{}}', 7, None),
        (400, "no", 7, None),
    ],
)
def test_an_error_of_json_rpc_is_the_answer_to_the_request_that_it_came_for(
    status: int, body: str, request_id: Any, answer: str | None
) -> None:
    found = answer_in(status, body.encode(), request_id)
    assert (found and found.decode()) == answer
