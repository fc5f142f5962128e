"""A model server that refuses, or fails while it answers, is one clear error with the truth about retrying.

Source: protocol.md, "Errors" and "Model providers"; RFC 9110, 10.2.3 (Retry-After); wordings of OpenAI,
llama.cpp, LM Studio, vLLM, OpenRouter, Mistral and Groq as their users report them.
"""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from sidecar.protocol.errors import ModelError
from sidecar.providers.base import TextPiece
from tests.harness.asking import asks, failure, pieces_of, provider_at
from tests.harness.model_server import Reply, ScriptedModel, fails, raw, refuses, says

KEY = "sk-very-secret-1234"


# Statuses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, False) for status in (400, 401, 402, 403, 404, 422, 501)),
        *((status, True) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
    ],
)
async def test_a_status_says_whether_trying_again_may_help(status: int, retryable: bool) -> None:
    error = await failure(refuses(status, "so it is"))
    assert (error.kind, error.status, error.retryable) == ("modelError", status, retryable)
    assert "so it is" in error.message and str(status) in error.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no way", "type": "x", "code": 7}}, "no way"),
        ({"error": "no way"}, "no way"),
        ([{"error": {"code": 400, "message": "no way", "status": "INVALID_ARGUMENT"}}], "no way"),
        ({"detail": "no way"}, "no way"),
        ({"detail": [{"loc": ["body", "messages"], "msg": "no way"}]}, "no way"),
        ({"object": "error", "message": "no way"}, "no way"),
        ({"message": {"detail": [{"msg": "no way"}]}}, "no way"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "no way"}}}, "no way"),
        ("no way", "no way"),
        ("<html><style>b {}</style><h1>no</h1>\n<p>way</p></html>", "no way"),
        ("", "it gave no reason"),
        ({"error": {}}, '{"error": {}}'),
    ],
    ids=repr,
)
async def test_the_servers_own_words_are_found(body: Any, words: str) -> None:
    assert words in (await failure(refuses(400, body=body))).message


async def test_long_words_are_cut() -> None:
    assert len((await failure(refuses(400, "long " * 10_000))).message) < 1200


@pytest.mark.parametrize(
    ("headers", "secs"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
    ids=repr,
)
async def test_retry_after_is_told_in_seconds(headers: dict[str, str], secs: float | None) -> None:
    error = await failure(refuses(429, "slow down", headers=headers))
    assert error.retry_after_secs == secs
    assert error.data.get("retryAfterSecs") == secs


async def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    error = await failure(refuses(503, headers={"retry-after": date}))
    assert error.retry_after_secs is not None and 50 < error.retry_after_secs <= 60


async def test_a_used_up_balance_is_not_retried() -> None:
    error = await failure(refuses(429, "You exceeded your current quota", code="insufficient_quota"))
    assert (error.status, error.retryable) == (429, False)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_the_variable_and_never_the_key(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_KEY", KEY)
    error = await failure(refuses(status, f"Incorrect API key provided: {KEY}"), api_key_env="LOCAL_KEY")
    assert "LOCAL_KEY" in error.message and f"HTTP {status}" in error.message
    assert KEY not in error.message and KEY not in json.dumps(error.data)


async def test_a_refused_key_from_the_options_names_the_option() -> None:
    error = await failure(refuses(401, "no"), api_key=KEY)
    assert "`providers.local.apiKey`" in error.message


async def test_without_a_key_the_error_says_how_to_give_one() -> None:
    async with ScriptedModel(says("hi"), api_key=KEY) as model, provider_at(model) as provider:
        with pytest.raises(ModelError, match=r"no key was sent: .*`providers\.local\.apiKeyEnv`"):
            await pieces_of(provider)


async def test_the_key_is_sent_and_other_headers_with_it() -> None:
    async with ScriptedModel(says("hi"), api_key=KEY) as model:
        async with provider_at(model, api_key=f" {KEY}\n", headers={"X-Title": "Editor"}) as provider:
            await pieces_of(provider)
        assert model.requests[0].headers["x-title"] == "Editor"
        assert model.requests[0].headers["user-agent"].startswith("agent-sidecar/")


async def test_an_own_authorization_header_replaces_the_keys() -> None:
    headers = {"Authorization": "Basic abc"}
    async with ScriptedModel(says("hi")) as model, provider_at(model, api_key=KEY, headers=headers) as provider:
        await pieces_of(provider)
    assert model.requests[0].headers["authorization"] == "Basic abc"


async def test_a_secret_header_is_taken_out_of_errors() -> None:
    error = await failure(refuses(400, f"bad header {KEY}"), headers={"X-Api-Key": KEY})
    assert KEY not in error.message


async def test_an_unknown_model_is_named_with_the_address() -> None:
    error = await failure(refuses(404, "model 'scripted' not found, try pulling it first"))
    assert "no model 'scripted' at http://127.0.0.1:" in error.message and "try pulling it" in error.message
    assert "`providers.local.baseUrl`" in error.message


async def test_a_redirect_is_not_followed_and_says_where_to() -> None:
    error = await failure(refuses(308, "moved", headers={"location": "https://elsewhere/v1"}))
    assert "redirects to 'https://elsewhere/v1'" in error.message and not error.retryable


# Context overflow ---------------------------------------------------------------------------------------

OVERFLOWS = [
    refuses(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
    refuses(400, "the request exceeds the available context size. try increasing the context size"),
    refuses(400, "no", type="exceed_context_size_error", n_ctx=256),
    refuses(500, "Context size has been exceeded."),
    refuses(400, body={"error": "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"}),
    refuses(400, "The number of tokens to keep from the initial prompt is greater than the context length."),
    refuses(400, "The model is loaded with context length of only 32768 tokens, which is not enough."),
    refuses(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    refuses(400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    refuses(400, "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."),
    refuses(400, "Please reduce the length of the messages or completion."),
    refuses(400, "Your request exceeded model token limit: 262144"),
    refuses(413, body="<html><h1>413 Request Entity Too Large</h1></html>"),
    fails(says("hi"), {"code": 400, "message": "request (9 tokens) exceeds the available context size (8)"}),
    fails(says("hi"), "Context size has been exceeded."),
]


@pytest.mark.parametrize("reply", OVERFLOWS, ids=range(len(OVERFLOWS)))
async def test_a_conversation_that_is_too_long_is_told_as_such(reply: Reply) -> None:
    error = await failure(reply)
    assert (error.kind, error.retryable) == ("contextOverflow", False)
    assert "compact" in error.message


@pytest.mark.parametrize(
    "reply",
    [
        refuses(
            429, "Request too large for gpt-x: tokens per min. Limit 30000. Please reduce the length of the input"
        ),
        refuses(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
        refuses(400, "unknown field 'context_length'"),
        refuses(400, "image is too large"),
    ],
    ids=range(4),
)
async def test_other_limits_are_no_overflow(reply: Reply) -> None:
    assert (await failure(reply)).kind == "modelError"


# Errors inside a stream ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        ({"code": 500, "message": "The model produced output that does not match the expected format"}, True),
        ({"code": 429, "message": "slow down"}, True),
        ({"code": "503", "message": "overloaded"}, True),
        ({"code": 400, "message": "no"}, False),
        ({"type": "server_error", "message": "Sorry about that!"}, True),
        ({"type": "invalid_request_error", "message": "no"}, False),
        ("Failed to load the model", True),
    ],
    ids=repr,
)
async def test_an_error_object_inside_a_stream_ends_it_with_its_words(error: Any, retryable: bool) -> None:
    async with ScriptedModel(fails(says("hello world"), error, after=2)) as model, provider_at(model) as provider:
        stream = provider.stream(asks())
        assert await anext(stream) == TextPiece(text="hell")
        with pytest.raises(ModelError) as raised:
            await anext(stream)
    words = error if isinstance(error, str) else error["message"]
    assert words in raised.value.message
    assert raised.value.retryable == retryable


async def test_an_event_named_error_is_one_whatever_it_holds() -> None:
    error = await failure(raw('event: error\ndata: {"message": "it broke"}\n\n'))
    assert "it broke" in error.message


async def test_an_error_object_with_a_good_status_and_no_stream_is_an_error() -> None:
    reply = raw('{"error": {"message": "Model is loading"}}', content_type="application/json")
    assert "Model is loading" in (await failure(reply)).message


@pytest.mark.parametrize(
    ("reply", "retryable"),
    [
        (raw("data: {not json\n\n"), True),
        (raw("data: [1, 2]\n\n"), True),
        (raw("data: null\n\n"), True),
        (raw("<html><body>Welcome to the web UI</body></html>", content_type="text/html"), False),
        (raw('{"status": "ok"}', content_type="application/json"), False),
        (raw('{"model": "m"}\n{"model": "m"}\n', content_type="application/json"), True),
        (raw("", content_type="application/json"), True),
    ],
    ids=range(7),
)
async def test_what_is_no_chat_completion_says_so_and_what_to_check(reply: Reply, retryable: bool) -> None:
    error = await failure(reply)
    assert (error.kind, error.retryable) == ("modelError", retryable)
    assert "`providers.local.baseUrl`" in error.message


async def test_the_key_is_not_in_an_excerpt_of_what_could_not_be_read() -> None:
    error = await failure(raw(f"data: {'x' * 190}{KEY}\n\n"), api_key=KEY)
    assert KEY[:10] not in error.message
