"""Providers that are known by name, so that `ollama/qwen3` works without configuration."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import attrs

from sidecar.protocol.errors import ConfigurationError
from sidecar.providers.options import ProviderOptions

PRESETS: dict[str, ProviderOptions] = {
    "openai": ProviderOptions(
        api="openai-chat", base_url="https://api.openai.com/v1", api_key_env="OPENAI_API_KEY"
    ),
    "anthropic": ProviderOptions(
        api="anthropic", base_url="https://api.anthropic.com", api_key_env="ANTHROPIC_API_KEY"
    ),
    "host": ProviderOptions(api="host"),
    "ollama": ProviderOptions(api="openai-chat", base_url="http://127.0.0.1:11434/v1"),
    "llamacpp": ProviderOptions(api="openai-chat", base_url="http://127.0.0.1:8080/v1"),
    "lmstudio": ProviderOptions(api="openai-chat", base_url="http://127.0.0.1:1234/v1"),
    "vllm": ProviderOptions(api="openai-chat", base_url="http://127.0.0.1:8000/v1"),
    "openrouter": ProviderOptions(
        api="openai-chat", base_url="https://openrouter.ai/api/v1", api_key_env="OPENROUTER_API_KEY"
    ),
    "deepseek": ProviderOptions(
        api="openai-chat", base_url="https://api.deepseek.com/v1", api_key_env="DEEPSEEK_API_KEY"
    ),
}
"""Ports of local servers are the defaults of their documentation."""

START_COMMANDS: dict[int, str] = {
    11434: "`ollama serve`",
    8080: "`llama-server -m MODEL.gguf --jinja`",
    1234: "`lms server start`",
    8000: "`vllm serve MODEL`",
}
"""What starts the server that usually listens on a local port."""


def options_for(
    name: str, configured: ProviderOptions | None, environ: Mapping[str, str]
) -> ProviderOptions | None:
    """`providers.<name>` with the gaps filled from its preset; None when neither is there.

    Raises ConfigurationError when a variable that moves a preset (OLLAMA_HOST) cannot be read.
    """
    preset = PRESETS.get(name)
    if preset is None:
        return configured
    moved_to = configured.base_url if configured and configured.base_url else _base_url(name, environ)
    if moved_to is not None:
        preset = attrs.evolve(preset, base_url=moved_to)
        if preset.api_key_env is not None and not environ.get(preset.api_key_env):
            # A server of one's own behind a well-known name needs no key; one that is set is sent.
            preset = attrs.evolve(preset, api_key_env=None)
    return _filled(configured, preset)


def _filled(configured: ProviderOptions | None, preset: ProviderOptions) -> ProviderOptions:
    if configured is None:
        return preset
    said = {
        a.name: value for a in attrs.fields(ProviderOptions) if (value := getattr(configured, a.name)) is not None
    }
    return attrs.evolve(preset, **said)


def _base_url(name: str, environ: Mapping[str, str]) -> str | None:
    if name in ("openai", "anthropic"):
        return environ.get(f"{name.upper()}_BASE_URL") or None
    if name == "ollama" and environ.get("OLLAMA_HOST", "").strip():
        return _ollama_url(environ["OLLAMA_HOST"].strip())
    return None


def _ollama_url(host: str) -> str:
    """The address in OLLAMA_HOST, which may be a URL, a host, a port, or both of these.

    As Ollama reads it: a URL without a port has the scheme's own, a host without one has 11434.
    """
    has_scheme = "://" in host
    try:
        parts = urlsplit(host if has_scheme else f"http://{host}")
        port = parts.port or ({"http": 80, "https": 443}[parts.scheme] if has_scheme else 11434)
    except (ValueError, KeyError):
        raise ConfigurationError(
            f"the environment variable OLLAMA_HOST holds {host!r}, which is no address: "
            "set it to one such as '127.0.0.1:11434', or unset it",
            path="OLLAMA_HOST",
        ) from None
    # The variable also tells Ollama where to listen; what means "everywhere" there is reached over loopback.
    name = parts.hostname if parts.hostname not in (None, "0.0.0.0", "::") else "127.0.0.1"
    bracketed = f"[{name}]" if name is not None and ":" in name else name
    return f"{parts.scheme}://{bracketed}:{port}{parts.path.rstrip('/')}/v1"
