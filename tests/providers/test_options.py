"""Providers are found by name, their gaps filled from presets, their keys from the environment.

Source: protocol.md, "Options"; OLLAMA_HOST as Ollama reads it; everything else is our own choice.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.errors import ConfigurationError
from sidecar.providers import PROVIDERS, open_provider
from sidecar.providers.anthropic import Anthropic
from sidecar.providers.host import HostModels
from sidecar.providers.openai_chat import OpenAIChat, endpoint_url
from sidecar.providers.options import ProviderOptions, resolve_api_key
from sidecar.providers.presets import PRESETS, options_for
from sidecar.providers.replay import Replay
from tests.harness.asking import pieces_of, provider_at, text_of
from tests.harness.model_server import ScriptedModel, says

ROOT = Path(__file__).resolve().parents[2]
SECRET = "sk-very-secret-1234"


def resolved(name: str, configured: ProviderOptions | None = None, **environ: str) -> ProviderOptions:
    options = options_for(name, configured, environ)
    assert options is not None
    return options


# Options ------------------------------------------------------------------------------------------------


def test_options_are_decoded_from_their_wire_names() -> None:
    wire = {
        "api": "openai-chat",
        "baseUrl": "http://h/v1",
        "apiKeyEnv": "KEY",
        "headers": {"X-A": "b"},
        "timeoutSecs": 1,
        "connectTimeoutSecs": 2.5,
        "idleTimeoutSecs": 3,
        "contextTokens": 4096,
        "parameters": {"top_p": 0.5},
        "file": "script.json",
        "record": "run.json",
    }
    assert decode(wire, ProviderOptions, path="providers.x") == ProviderOptions(
        api="openai-chat",
        base_url="http://h/v1",
        api_key_env="KEY",
        headers={"X-A": "b"},
        timeout_secs=1.0,
        connect_timeout_secs=2.5,
        idle_timeout_secs=3.0,
        context_tokens=4096,
        parameters={"top_p": 0.5},
        file="script.json",
        record="run.json",
    )


def test_an_unknown_api_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        DecodeError, match=r"providers\.x\.api: must be one of 'openai-chat', 'anthropic', 'host', 'replay'"
    ):
        decode({"api": "smoke-signals"}, ProviderOptions, path="providers.x")


def test_every_api_that_may_be_written_has_a_provider() -> None:
    for api in PROVIDERS:
        decode({"api": api}, ProviderOptions, path="providers.x")


def test_secrets_are_not_shown() -> None:
    options = ProviderOptions(api_key=SECRET, headers={"authorization": SECRET})
    assert SECRET not in repr(options)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"timeout_secs": 0.0}, "timeoutSecs"),
        ({"connect_timeout_secs": -1.0}, "connectTimeoutSecs"),
        ({"idle_timeout_secs": -1.0}, "idleTimeoutSecs"),
        ({"context_tokens": 0}, "contextTokens"),
        ({"base_url": "localhost:8080"}, "baseUrl"),
        ({"base_url": "ftp://host/v1"}, "baseUrl"),
        ({"base_url": "http://"}, "baseUrl"),
        ({"base_url": "http://[::1/v1"}, "baseUrl"),
        ({"base_url": "http://host:port/v1"}, "baseUrl"),
        ({"headers": {"X Title": "a"}}, "headers"),
        ({"headers": {"X-Title": "a\nb"}}, "headers.X-Title"),
        ({"headers": {"X-Title": "é"}}, "headers.X-Title"),
        ({"api_key": "sk-secret\nsecond", "base_url": "http://h"}, "apiKey"),
        ({"api": "openai-chat"}, "baseUrl"),
        ({"api": "replay"}, "file"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_by_its_path(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        open_provider("mine", ProviderOptions(**options))
    assert raised.value.path == f"providers.mine.{path}"
    assert raised.value.message.startswith(raised.value.path)
    assert "secret" not in raised.value.message


def test_the_api_follows_from_what_is_given() -> None:
    assert isinstance(open_provider("mine", ProviderOptions(base_url="http://h")), OpenAIChat)
    assert isinstance(open_provider("mine", ProviderOptions(file="script.json")), Replay)


def test_a_name_that_nobody_knows_names_those_that_are_known() -> None:
    with pytest.raises(
        ConfigurationError, match=r"known are anthropic, deepseek, .*openrouter, vllm.*`providers\.nobody`"
    ):
        open_provider("nobody")


# Keys ---------------------------------------------------------------------------------------------------


def test_a_key_in_the_options_wins_over_a_variable() -> None:
    options = ProviderOptions(api_key="written", api_key_env="KEY")
    assert resolve_api_key("x", options, {"KEY": "variable"}) == "written"
    assert resolve_api_key("x", ProviderOptions(api_key_env="KEY"), {"KEY": " variable\n"}) == "variable"
    assert resolve_api_key("x", ProviderOptions(), {"KEY": "variable"}) is None


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}, {"KEY": " "}], ids=repr)
def test_a_variable_that_is_not_set_is_named_with_what_to_do(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"variable KEY is not set: put the key of 'x' into it") as raised:
        resolve_api_key("x", ProviderOptions(api_key_env="KEY"), environ)
    assert raised.value.path == "providers.x.apiKeyEnv"


@pytest.mark.parametrize("key", ["sk-\x00secret", "sk-secret\nsecond", "sk-sécret"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        resolve_api_key("x", ProviderOptions(api_key_env="KEY"), {"KEY": key})
    assert "KEY" in raised.value.message and "cret" not in raised.value.message


async def test_a_missing_key_is_told_when_it_is_needed_and_not_before() -> None:
    async with ScriptedModel() as model, provider_at(model, api_key_env="SURELY_NOT_SET") as provider:
        with pytest.raises(ConfigurationError, match="SURELY_NOT_SET"):
            await pieces_of(provider)


async def test_a_key_that_is_set_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = ScriptedModel(says("hi"), api_key=SECRET)
    async with scripted as model, provider_at(model, api_key_env="LATE_KEY") as provider:
        with pytest.raises(ConfigurationError):
            await pieces_of(provider)
        monkeypatch.setenv("LATE_KEY", SECRET)
        assert text_of(await pieces_of(provider)) == "hi"


# Presets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_works_without_configuration(name: str) -> None:
    provider = open_provider(name)
    assert isinstance(provider, {"anthropic": Anthropic, "host": HostModels}.get(name, OpenAIChat))
    assert provider.name == name


def test_what_is_configured_wins_and_the_preset_fills_the_gaps() -> None:
    options = resolved("ollama", ProviderOptions(context_tokens=8192, idle_timeout_secs=600))
    assert options == ProviderOptions(
        api="openai-chat", base_url="http://127.0.0.1:11434/v1", context_tokens=8192, idle_timeout_secs=600
    )


def test_a_name_without_preset_is_as_configured() -> None:
    configured = ProviderOptions(base_url="http://h")
    assert options_for("mine", configured, {}) is configured
    assert options_for("mine", None, {}) is None


def test_openai_needs_its_key_where_it_is_openai() -> None:
    assert resolved("openai").api_key_env == "OPENAI_API_KEY"
    assert resolved("openai").base_url == "https://api.openai.com/v1"


def test_a_server_of_ones_own_under_openais_name_needs_no_key_but_gets_one_that_is_set() -> None:
    moved = resolved("openai", OPENAI_BASE_URL="http://127.0.0.1:9000/v1")
    assert (moved.base_url, moved.api_key_env) == ("http://127.0.0.1:9000/v1", None)
    keyed = resolved("openai", OPENAI_BASE_URL="http://127.0.0.1:9000/v1", OPENAI_API_KEY="k")
    assert keyed.api_key_env == "OPENAI_API_KEY"
    written = resolved("openai", ProviderOptions(base_url="http://h/v1"), OPENAI_BASE_URL="http://other/v1")
    assert (written.base_url, written.api_key_env) == ("http://h/v1", None)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/v1"),
        (":5000", "http://127.0.0.1:5000/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000/v1"),
        ("[::]:5000", "http://127.0.0.1:5000/v1"),
        ("[fe80::1]:5000", "http://[fe80::1]:5000/v1"),
        ("gpu.local", "http://gpu.local:11434/v1"),
        ("http://gpu.local", "http://gpu.local:80/v1"),
        ("https://gpu.local", "https://gpu.local:443/v1"),
        ("https://gpu.local:5000/ollama/", "https://gpu.local:5000/ollama/v1"),
    ],
)
def test_ollamas_own_variable_moves_it(host: str, url: str) -> None:
    assert resolved("ollama", OLLAMA_HOST=host).base_url == url


@pytest.mark.parametrize("host", ["gpu:port", "ftp://gpu", "[::1"])
def test_a_variable_that_holds_no_address_is_named(host: str) -> None:
    with pytest.raises(ConfigurationError, match="OLLAMA_HOST"):
        resolved("ollama", OLLAMA_HOST=host)


def test_knowing_the_providers_does_not_load_what_they_need() -> None:
    program = "import sys, sidecar.providers; print(*({'httpx', 'httpx_sse'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Addresses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://h", "http://h/v1/chat/completions"),
        ("http://h/", "http://h/v1/chat/completions"),
        (" http://h:8080/v1 ", "http://h:8080/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
        ("https://h/deployments/x?api-version=1", "https://h/deployments/x/chat/completions?api-version=1"),
    ],
)
def test_a_base_url_may_be_written_in_many_ways(base: str, url: str) -> None:
    assert endpoint_url(base, "chat/completions") == url


async def test_what_a_base_url_hides_is_not_in_errors() -> None:
    url = "http://user:hunter2secret@127.0.0.1:9/v1?api-key=abcdef123"
    provider = open_provider("mine", ProviderOptions(base_url=url))
    with pytest.raises(Exception, match=r"http://127\.0\.0\.1:9/v1") as raised:
        await pieces_of(provider)
    await provider.aclose()
    assert "hunter2secret" not in str(raised.value) and "abcdef123" not in str(raised.value)
