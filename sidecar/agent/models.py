"""Which models there are: `provider/model` names resolved to providers, made when first needed."""

import asyncio
from collections.abc import Mapping

from sidecar.protocol.errors import ConfigurationError, SidecarError
from sidecar.protocol.messages import ModelInfo
from sidecar.providers import open_provider
from sidecar.providers.base import Provider
from sidecar.providers.host import Complete, nobody_lends
from sidecar.providers.options import ProviderOptions
from sidecar.providers.presets import PRESETS

LIST_TIMEOUT_SECS = 5.0
"""How long `models/list` waits for one provider (own choice)."""

DEFAULT_MODELS: Mapping[str, str] = {"openai": "gpt-4.1-mini", "anthropic": "claude-haiku-4-5"}
"""What a bare key gets: small, cheap, good at calling tools (own choice). The first provider that can be reached
counts; OPENAI_MODEL and ANTHROPIC_MODEL name other models."""


def default_model(environ: Mapping[str, str]) -> str | None:
    """The model of a sidecar that was told none: that of a provider whose variables say how to reach it.

    Which models a server behind a base URL of one's own has, nobody but its owner knows.
    """
    for provider, model in DEFAULT_MODELS.items():
        if named := environ.get(f"{provider.upper()}_MODEL"):
            return f"{provider}/{named}"
        if environ.get(f"{provider.upper()}_API_KEY") and not environ.get(f"{provider.upper()}_BASE_URL"):
            return f"{provider}/{model}"
    return None


class Models:
    """The configured providers, those known by name, and the model of a submit that names none."""

    def __init__(
        self,
        configured: Mapping[str, ProviderOptions],
        *,
        default: str | None,
        complete: Complete = nobody_lends,
    ) -> None:
        """`complete` asks the host for one of its models."""
        self._configured = dict(configured)
        self._complete = complete
        self._providers: dict[str, Provider] = {}
        self.default = default

    def resolve(self, name: str | None) -> tuple[Provider, str, str]:
        """The provider, the model without its provider's name, and the full name.

        Raises ConfigurationError when nothing is configured, the provider is unknown, or the name has no
        provider in it.
        """
        full = name or self.default
        if full is None:
            raise ConfigurationError(
                "no model is configured: set `model` to 'provider/model' (for example 'ollama/qwen3'), "
                "or put a key into OPENAI_API_KEY or ANTHROPIC_API_KEY",
                path="model",
            )
        provider_name, slash, model = full.partition("/")
        if not slash or not model:
            raise ConfigurationError(f"model {full!r} must be written as 'provider/model'", path="model")
        return self._provider(provider_name), model, full

    async def list(self) -> tuple[tuple[ModelInfo, ...], tuple[str, ...]]:
        """The models of every provider, configured or known, that answers in time, by name.

        With them, why configured ones did not: one that cannot be asked must not hide the others.
        """
        names = list({**self._configured, **PRESETS})
        listed = await asyncio.gather(*(self._list_one(name) for name in names))
        models = (model for found in listed if not isinstance(found, str) for model in found)
        reasons = (
            found
            for name, found in zip(names, listed, strict=True)
            if isinstance(found, str) and (name in self._configured or self._is_default(name))
        )
        return tuple(sorted(models, key=lambda model: model.model)), tuple(reasons)

    async def aclose(self) -> None:
        """Lets go of all connections."""
        await asyncio.gather(*(provider.aclose() for provider in self._providers.values()))

    def _provider(self, name: str) -> Provider:
        if name not in self._providers:
            self._providers[name] = open_provider(name, self._configured.get(name), complete=self._complete)
        return self._providers[name]

    def _is_default(self, provider: str) -> bool:
        return self.default is not None and self.default.startswith(f"{provider}/")

    async def _list_one(self, name: str) -> tuple[ModelInfo, ...] | str:
        """The models of a provider, or why there are none."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT_SECS):
                return await self._provider(name).list_models()
        except SidecarError as error:
            return error.message
        except TimeoutError:
            return f"{name}: no list of models within {LIST_TIMEOUT_SECS:.0f} s"
