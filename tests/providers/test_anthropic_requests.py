"""Requests to the Messages API: where they go, with which key and limits, and what becomes of a refusal.

Source: Anthropic's API reference, version 2023-06-01 (headers, errors, models) and the wordings of its refusals as
users report them; protocol.md, "Options" and "Errors". Limits and defaults are our own choice.
"""

import json
from typing import Any

import pytest

from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.providers import open_provider
from sidecar.providers.anthropic import DEFAULT_MAX_TOKENS, Anthropic, endpoint_url
from sidecar.providers.base import TextPiece, WarningPiece
from sidecar.providers.http_api import HttpApi
from sidecar.providers.options import ProviderOptions
from sidecar.providers.presets import options_for
from tests.harness.asking import anthropic_at, asks, pieces_of, provider_at, text_of, tool
from tests.harness.model_server import (
    Reply,
    ScriptedModel,
    SeenRequest,
    anthropic_error,
    messages_stream,
    raw,
    refuses,
    says,
    typed_events,
)
from tests.harness.tcp import tcp_server

KEY = "sk-ant-very-secret-1234"


async def failure(*replies: Reply, **options: Any) -> ModelError:
    scripted = ScriptedModel(*replies, dialect="anthropic")
    async with scripted as model, anthropic_at(model, **options) as provider:
        with pytest.raises(ModelError) as raised:
            await pieces_of(provider)
    assert raised.value.provider == "claude"
    return raised.value


async def bodies(*replies: Reply, asked: tuple[dict[str, Any], ...] = ({},), **options: Any) -> list[Any]:
    """What was sent for each of these requests, all of which were answered."""
    scripted = ScriptedModel(*replies, dialect="anthropic")
    async with scripted as model, anthropic_at(model, **options) as provider:
        for fields in asked:
            assert text_of(await pieces_of(provider, asks(**fields)))
    return [seen.body for seen in model.requests]


# Where to and who ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
        ("https://api.anthropic.com/", "https://api.anthropic.com/v1"),
        ("https://h/v1/messages", "https://h/v1"),
        ("https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic/v1"),
        (" http://127.0.0.1:8080/v1/ ", "http://127.0.0.1:8080/v1"),
        ("https://h/v2beta", "https://h/v2beta"),
        ("https://h/messages?key=1", "https://h/v1?key=1"),
    ],
)
def test_a_base_url_may_be_written_in_many_ways(base: str, url: str) -> None:
    assert endpoint_url(base) == url


def test_a_query_of_the_base_is_kept() -> None:
    api = HttpApi(
        "x",
        ProviderOptions(),
        what="an API",
        base_url=endpoint_url("https://h/messages?key=1"),
        authorization=lambda key, base_url: {},
    )
    assert api.url("models", limit="5") == "https://h/v1/models?key=1&limit=5"


async def test_key_and_version_are_sent_as_the_api_wants_them() -> None:
    scripted = ScriptedModel(says("hi"), dialect="anthropic", api_key=KEY)
    async with (
        scripted as model,
        anthropic_at(model, api_key=f" {KEY}\n", headers={"X-Title": "Editor"}) as provider,
    ):
        await pieces_of(provider)
    headers = model.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"], headers["x-title"]) == (
        KEY,
        "2023-06-01",
        "Editor",
    )
    assert headers["authorization"] == f"Bearer {KEY}"  # For servers that look for it there; Anthropic gets none.


async def test_a_header_of_ones_own_wins() -> None:
    headers = {"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "files-api", "X-Api-Key": "other"}
    scripted = ScriptedModel(says("hi"), dialect="anthropic", api_key="other")
    async with scripted as model, anthropic_at(model, api_key=KEY, headers=headers) as provider:
        await pieces_of(provider)
    assert model.requests[0].headers["anthropic-beta"] == "files-api"


def test_the_preset_needs_the_key_and_can_be_moved() -> None:
    here = options_for("anthropic", None, {})
    assert here is not None and (here.api, here.api_key_env) == ("anthropic", "ANTHROPIC_API_KEY")
    moved = options_for("anthropic", None, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"})
    assert moved is not None and (moved.base_url, moved.api_key_env) == ("http://127.0.0.1:1", None)
    assert isinstance(open_provider("anthropic"), Anthropic)


async def test_a_missing_key_names_its_variable() -> None:
    provider = open_provider("anthropic")
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY is not set"):
        await pieces_of(provider)
    await provider.aclose()


def test_a_provider_without_an_address_names_the_option() -> None:
    with pytest.raises(ConfigurationError, match=r"providers\.mine\.baseUrl: is required for the API 'anthropic'"):
        open_provider("mine", ProviderOptions(api="anthropic"))


# Limits -------------------------------------------------------------------------------------------------


async def test_there_is_always_a_limit_for_the_answer() -> None:
    (unasked, asked) = await bodies(
        says("a"), says("b"), asked=({}, {"max_output_tokens": 50, "temperature": 0.2})
    )
    assert unasked.keys() == {"model", "max_tokens", "stream", "messages"}
    assert unasked["max_tokens"] == DEFAULT_MAX_TOKENS
    assert (asked["max_tokens"], asked["temperature"]) == (50, 0.2)


async def test_a_model_that_gives_less_is_asked_for_what_it_gives_from_then_on() -> None:
    words = f"max_tokens: {DEFAULT_MAX_TOKENS} > 4096, which is the maximum allowed number of output tokens for m"
    refusal = anthropic_error(400, "invalid_request_error", words)
    sent = await bodies(refusal, says("a"), says("b"), says("c"), asked=({}, {}, {"model": "other"}))
    assert [body["max_tokens"] for body in sent] == [DEFAULT_MAX_TOKENS, 4096, 4096, DEFAULT_MAX_TOKENS]


async def test_a_limit_that_somebody_asked_for_is_not_changed() -> None:
    words = "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m"
    refusal = anthropic_error(400, "invalid_request_error", words)
    async with ScriptedModel(refusal, dialect="anthropic") as model, anthropic_at(model) as provider:
        with pytest.raises(ModelError, match="64000"):
            await pieces_of(provider, asks(max_output_tokens=100_000))
    assert len(model.requests) == 1


def too_little_room(used: int, size: int = 200_000) -> Reply:
    sum_of = f"{used} + {DEFAULT_MAX_TOKENS} > {size}"
    words = f"input length and `max_tokens` exceed context limit: {sum_of}, decrease input length or `max_tokens`"
    return anthropic_error(400, "invalid_request_error", words)


async def test_the_answer_gets_what_room_the_context_has_left() -> None:
    sent = await bodies(too_little_room(190_000), says("a"), says("b"), asked=({}, {}))
    assert [body["max_tokens"] for body in sent] == [DEFAULT_MAX_TOKENS, 10_000, DEFAULT_MAX_TOKENS]


async def test_a_context_without_room_is_full() -> None:
    error = await failure(too_little_room(199_500))
    assert (error.kind, error.retryable) == ("contextOverflow", False)


async def test_temperature_is_left_out_where_a_model_refuses_it_with_a_warning() -> None:
    refusal = anthropic_error(400, "invalid_request_error", "`temperature` is deprecated for this model.")
    scripted = ScriptedModel(refusal, says("a"), says("b"), dialect="anthropic")
    async with scripted as model, anthropic_at(model) as provider:
        for _ in range(2):
            pieces = await pieces_of(provider, asks(temperature=0.2))
            (warning,) = (piece for piece in pieces if isinstance(piece, WarningPiece))
            assert warning.code == "parameterLeftOut" and "temperature" in warning.message
    assert ["temperature" in seen.body for seen in model.requests] == [True, False, False]


# Parameters of one's own --------------------------------------------------------------------------------


async def test_parameters_of_ones_own_go_out_with_every_request() -> None:
    thinking = {"type": "enabled", "budget_tokens": 40_000}
    (body,) = await bodies(says("a"), parameters={"thinking": thinking})
    assert body["thinking"] == thinking
    assert body["max_tokens"] == DEFAULT_MAX_TOKENS + 40_000
    (body,) = await bodies(says("a"), parameters={"max_tokens": 100, "temperature": 1})
    assert (body["max_tokens"], body["temperature"]) == (100, 1)
    (body,) = await bodies(
        says("a"), parameters={"max_tokens": 100}, asked=({"max_output_tokens": 7, "temperature": 0},)
    )
    assert (body["max_tokens"], body["temperature"]) == (7, 0)


async def test_they_go_to_chat_completions_too() -> None:
    parameters = {"temperature": 0.5, "max_tokens": 9}
    async with ScriptedModel(says("a")) as model, provider_at(model, parameters=parameters) as provider:
        await pieces_of(provider)
    assert (model.requests[0].body["temperature"], model.requests[0].body["max_tokens"]) == (0.5, 9)


async def test_one_that_is_refused_is_an_error_and_not_asked_for_ever() -> None:
    def refuse(seen: SeenRequest) -> Reply:
        return refuses(400, "Unsupported parameter: 'temperature' is not supported with this model.")

    async with (
        ScriptedModel(answer=refuse) as model,
        provider_at(model, parameters={"temperature": 0}) as provider,
    ):
        with pytest.raises(ModelError, match="temperature"):
            await pieces_of(provider)
    assert len(model.requests) == 2


@pytest.mark.parametrize("name", ["model", "messages", "system", "tools", "stream", "stream_options"])
def test_what_a_request_is_made_of_cannot_be_replaced(name: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_provider("mine", ProviderOptions(base_url="http://h", parameters={name: 1}))
    assert raised.value.path == f"providers.mine.parameters.{name}"


# Refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request_error", False),
        (402, "billing_error", False),
        (403, "permission_error", False),
        (404, "not_found_error", False),
        (429, "rate_limit_error", True),
        (500, "api_error", True),
        (504, "timeout_error", True),
        (529, "overloaded_error", True),
    ],
)
async def test_an_error_says_whether_trying_again_may_help(status: int, kind: str, retryable: bool) -> None:
    error = await failure(anthropic_error(status, kind, "so it is"))
    assert (error.kind, error.status, error.retryable) == ("modelError", status, retryable)
    assert "so it is" in error.message and str(status) in error.message


async def test_retry_after_is_told_in_seconds() -> None:
    error = await failure(anthropic_error(429, "rate_limit_error", "slow down", headers={"retry-after": "7"}))
    assert (error.retry_after_secs, error.data["retryAfterSecs"]) == (7, 7)


async def test_a_refused_key_names_the_variable_and_never_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_KEY", KEY)
    reply = anthropic_error(401, "authentication_error", f"invalid x-api-key: {KEY}")
    error = await failure(reply, api_key_env="CLAUDE_KEY")
    assert "the environment variable CLAUDE_KEY" in error.message and "HTTP 401" in error.message
    assert KEY not in error.message and KEY not in json.dumps(error.data)


@pytest.mark.parametrize(
    "reply",
    [
        anthropic_error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        anthropic_error(413, "request_too_large", "Request exceeds the maximum size"),
    ],
    ids=["tokens", "bytes"],
)
async def test_a_conversation_that_is_too_long_is_told_as_such(reply: Reply) -> None:
    error = await failure(reply)
    assert (error.kind, error.retryable) == ("contextOverflow", False)


@pytest.mark.parametrize(
    ("kind", "retryable"),
    [
        ("overloaded_error", True),
        ("api_error", True),
        ("rate_limit_error", True),
        ("invalid_request_error", False),
        ("permission_error", False),
        ("not_found_error", False),
        ("billing_error", False),
    ],
)
async def test_an_error_inside_a_stream_ends_it_with_its_words(kind: str, retryable: bool) -> None:
    broken = {"type": "error", "error": {"type": kind, "message": "so it is"}}
    begun = messages_stream({"type": "text", "text": "hello"}, piece_characters=9).body[:4]
    reply = raw(*begun, *typed_events(broken).body)
    async with ScriptedModel(reply, dialect="anthropic") as model, anthropic_at(model) as provider:
        stream = provider.stream(asks())
        pieces = []
        with pytest.raises(ModelError, match="so it is") as raised:
            async for piece in stream:
                pieces.append(piece)
    assert TextPiece(text="hello") in pieces
    assert raised.value.retryable == retryable


@pytest.mark.parametrize(
    ("reply", "retryable"),
    [
        (raw("event: message_start\ndata: {not json\n\n"), True),
        (raw("data: [1, 2]\n\n"), True),
        (raw("<html><body>Welcome to the web UI</body></html>", content_type="text/html"), False),
        (raw('{"status": "ok"}', content_type="application/json"), False),
        (raw('{"type": "error", "error": {"type": "api_error"}}', content_type="application/json"), True),
    ],
    ids=range(5),
)
async def test_what_is_no_answer_says_so(reply: Reply, retryable: bool) -> None:
    error = await failure(reply)
    assert (error.kind, error.retryable) == ("modelError", retryable)


async def test_what_is_no_answer_says_which_api_was_meant() -> None:
    error = await failure(raw('{"status": "ok"}', content_type="application/json"))
    assert "check that `providers.claude.baseUrl` leads to a Messages API" in error.message


async def test_an_argument_that_the_api_would_refuse_takes_its_tool_along_and_no_other() -> None:
    tools = (tool("list", **{"filter[id]": {}}), tool("look", at={}))
    async with ScriptedModel(says("hi"), dialect="anthropic") as model, anthropic_at(model) as provider:
        pieces = await pieces_of(provider, asks(tools=tools))
    assert model.requests[0].tool_names == ["look"]
    assert [piece.code for piece in pieces if isinstance(piece, WarningPiece)] == ["toolLeftOut"]


async def test_any_number_of_tools_is_offered() -> None:
    tools = tuple(tool(f"t{number}") for number in range(300))
    async with ScriptedModel(says("hi"), dialect="anthropic") as model, anthropic_at(model) as provider:
        await pieces_of(provider, asks(tools=tools))
    assert len(model.requests[0].tool_names) == 300


# Models -------------------------------------------------------------------------------------------------


async def test_models_are_listed_with_their_context() -> None:
    models = ({"id": "a", "type": "model", "max_input_tokens": 200_000}, "b", {"id": ""})
    async with ScriptedModel(models=models, dialect="anthropic") as model, anthropic_at(model) as provider:
        assert await provider.list_models() == (
            ModelInfo(model="claude/a", provider="claude", context_tokens=200_000),
            ModelInfo(model="claude/b", provider="claude"),
        )


async def test_all_pages_of_models_are_read() -> None:
    pages = {
        "/v1/models?limit=1000": {"data": [{"id": "a"}], "has_more": True, "last_id": "a"},
        "/v1/models?limit=1000&after_id=a": {"data": [{"id": "b"}], "has_more": False, "last_id": "b"},
    }
    async with ScriptedModel(model_pages=pages, dialect="anthropic") as model, anthropic_at(model) as provider:
        assert [listed.model for listed in await provider.list_models()] == ["claude/a", "claude/b"]


async def test_a_server_whose_pages_never_end_is_left() -> None:
    page = {"data": [{"id": "a"}], "has_more": True, "last_id": "a"}
    pages = {"/v1/models?limit=1000": page, "/v1/models?limit=1000&after_id=a": page}
    async with ScriptedModel(model_pages=pages, dialect="anthropic") as model, anthropic_at(model) as provider:
        assert len(await provider.list_models()) == 10


async def test_a_list_of_models_that_is_none_is_an_error() -> None:
    async with tcp_server(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as (url, _):
        provider = open_provider("claude", ProviderOptions(api="anthropic", base_url=url))
        with pytest.raises(ModelError, match="no list of models"):
            await provider.list_models()
        await provider.aclose()
