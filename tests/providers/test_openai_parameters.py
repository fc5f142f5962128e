"""Parameters that a server does not know are left out, and its models are listed.

Source: OpenAI's API reference; refusals of OpenAI's reasoning models and of Mistral as their users report them.
"""

from typing import Any

import pytest

from sidecar.protocol.errors import ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.providers import open_provider
from sidecar.providers.base import WarningPiece
from sidecar.providers.options import ProviderOptions
from tests.harness.asking import asks, pieces_of, provider_at, text_of
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, events, raw, refuses, says, whole
from tests.harness.tcp import tcp_server

# Parameters ---------------------------------------------------------------------------------------------

LIMITED: dict[str, Any] = {"max_output_tokens": 50, "temperature": 0.2}


async def test_limits_go_out_under_the_name_that_most_servers_take() -> None:
    async with ScriptedModel(says("hi"), says("hi")) as model, provider_at(model) as provider:
        await pieces_of(provider, asks(**LIMITED))
        await pieces_of(provider, asks())
    body = model.requests[0].body
    assert (body["max_tokens"], body["temperature"], body["stream_options"]) == (50, 0.2, {"include_usage": True})
    assert model.requests[1].body.keys() == {"model", "messages", "stream", "stream_options"}


async def test_the_newer_name_is_used_where_the_older_is_refused_and_remembered() -> None:
    refusal = refuses(
        400,
        "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
        type="invalid_request_error",
        param="max_tokens",
        code="unsupported_parameter",
    )
    async with ScriptedModel(refusal, says("a"), says("b")) as model, provider_at(model) as provider:
        assert [text_of(await pieces_of(provider, asks(max_output_tokens=50))) for _ in "ab"] == ["a", "b"]
    assert [seen.body.get("max_tokens") for seen in model.requests] == [50, None, None]
    assert [seen.body.get("max_completion_tokens") for seen in model.requests] == [None, 50, 50]


REFUSALS = {
    "temperature": refuses(400, "Unsupported value: 'temperature' does not support 0.2 with this model."),
    "stream_options": refuses(
        422, body={"message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}}
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_parameter_that_a_server_refuses_is_left_out_with_a_warning(name: str) -> None:
    async with ScriptedModel(REFUSALS[name], says("hi"), says("hi")) as model, provider_at(model) as provider:
        for _ in range(2):
            pieces = await pieces_of(provider, asks(**LIMITED))
            (warning,) = (piece for piece in pieces if isinstance(piece, WarningPiece))
            assert warning.code == "parameterLeftOut" and name in warning.message
            assert text_of(pieces) == "hi"
    assert [name in seen.body for seen in model.requests] == [True, False, False]


async def test_a_server_that_refuses_everything_optional_is_asked_without() -> None:
    def strict(seen: SeenRequest) -> Reply:
        unknown = sorted(seen.body.keys() - {"model", "messages", "stream"})
        return refuses(400, f"Unrecognized request argument supplied: {unknown[0]}") if unknown else says("hi")

    async with ScriptedModel(answer=strict) as model, provider_at(model) as provider:
        assert text_of(await pieces_of(provider, asks(**LIMITED))) == "hi"
        assert len(model.requests) == 5
        assert text_of(await pieces_of(provider, asks(**LIMITED))) == "hi"
        assert len(model.requests) == 6


async def test_a_value_that_is_too_large_is_not_taken_for_a_refused_parameter() -> None:
    reply = refuses(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens")
    async with ScriptedModel(reply) as model, provider_at(model) as provider:
        with pytest.raises(ModelError, match="too large"):
            await pieces_of(provider, asks(max_output_tokens=100_000))
    assert len(model.requests) == 1


# Listing ------------------------------------------------------------------------------------------------


async def test_models_are_listed_with_the_context_that_servers_tell() -> None:
    models = ("a", {"id": "b", "context_length": 1000}, {"id": "c", "max_model_len": 2000}, {"id": "", "x": 1})
    async with ScriptedModel(models=models) as model, provider_at(model) as provider:
        assert await provider.list_models() == (
            ModelInfo(model="local/a", provider="local"),
            ModelInfo(model="local/b", provider="local", context_tokens=1000),
            ModelInfo(model="local/c", provider="local", context_tokens=2000),
        )


async def test_configured_context_wins_over_what_the_server_tells() -> None:
    scripted = ScriptedModel(models=({"id": "b", "context_length": 1000},))
    async with scripted as model, provider_at(model, context_tokens=500) as provider:
        assert (await provider.list_models())[0].context_tokens == provider.context_tokens == 500


async def test_models_that_cannot_be_listed_are_an_error() -> None:
    error: ModelError | None = None
    async with tcp_server(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n") as (url, _):
        provider = open_provider("local", ProviderOptions(base_url=url))
        with pytest.raises(ModelError, match="there is nothing at http://127") as raised:
            await provider.list_models()
        error = raised.value
        await provider.aclose()
    assert error.status == 404


@pytest.mark.parametrize("body", ["not json", '"text"', '{"models": 3}'])
async def test_a_list_of_models_that_is_none_is_an_error(body: str) -> None:
    answer = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    async with tcp_server(answer) as (url, _):
        provider = open_provider("local", ProviderOptions(base_url=url))
        with pytest.raises(ModelError, match=r"providers\.local\.baseUrl"):
            await provider.list_models()
        await provider.aclose()


async def test_a_scripted_server_that_is_asked_once_too_often_says_so() -> None:
    async with ScriptedModel(whole(calls(("look", {}))), is_strict=False) as model, provider_at(model) as provider:
        await pieces_of(provider)
        with pytest.raises(ModelError, match="the script has no reply for request 2"):
            await pieces_of(provider)
        assert model.faults
    assert events() == raw("data: [DONE]\n\n")
