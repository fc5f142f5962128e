"""The only place that knows a vendor's JSON: one file a model API, and the table PROVIDERS.

`open_provider` is the way in: it fills the gaps of the options from the presets and picks the API.
"""

import os
from collections.abc import Callable
from pathlib import Path

from sidecar.protocol.errors import ConfigurationError
from sidecar.providers.base import Provider
from sidecar.providers.host import Complete, HostModels, nobody_lends
from sidecar.providers.options import ProviderOptions, check_options
from sidecar.providers.presets import PRESETS, options_for

ProviderFactory = Callable[[str, ProviderOptions, Complete], Provider]
"""Makes a provider from its name and options; the last argument asks the host for one of its models."""


def open_provider(
    name: str, configured: ProviderOptions | None = None, *, complete: Complete = nobody_lends
) -> Provider:
    """The provider of that name: as configured, as preset, or both together. Connects to nothing yet.

    `complete` asks the host, for a provider whose `api` is `host`.

    Raises ConfigurationError when the name is neither, or a field of its options cannot be meant.
    """
    options = options_for(name, configured, os.environ)
    if options is None:
        raise ConfigurationError(
            f"there is no provider {name!r}; known are {', '.join(sorted(PRESETS))}; "
            f"add another with its `baseUrl` under `providers.{name}`",
            path=f"providers.{name}",
        )
    check_options(name, options)
    make = PROVIDERS[options.api or ("replay" if options.file else "openai-chat")]
    provider = make(name, options, complete)
    return provider if options.record is None else _recorded(provider, options.record)


def _openai_chat(name: str, options: ProviderOptions, _: Complete) -> Provider:
    # httpx takes 90 ms to import, as long as everything else that `initialize` waits for.
    from sidecar.providers.openai_chat import OpenAIChat  # noqa: PLC0415

    return OpenAIChat(name, options)


def _anthropic(name: str, options: ProviderOptions, _: Complete) -> Provider:
    # As above: httpx.
    from sidecar.providers.anthropic import Anthropic  # noqa: PLC0415

    return Anthropic(name, options)


def _replay(name: str, options: ProviderOptions, _: Complete) -> Provider:
    # The shapes of a script cost 5 ms, which only those who replay one should spend.
    from sidecar.providers.replay import Replay  # noqa: PLC0415

    return Replay(name, options)


def _recorded(provider: Provider, file: str) -> Provider:
    # As for a script; few record.
    from sidecar.providers.recording import Recorder  # noqa: PLC0415

    return Recorder(provider, Path(file).expanduser())


PROVIDERS: dict[str, ProviderFactory] = {
    "openai-chat": _openai_chat,
    "anthropic": _anthropic,
    "host": HostModels,
    "replay": _replay,
}
"""What `providers.<name>.api` may be."""
