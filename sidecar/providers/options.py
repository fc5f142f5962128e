"""How one provider is reached: `providers.<name>` of the options, its limits, and where its key comes from."""

import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from attrs import field, frozen

from sidecar.protocol.errors import ConfigurationError
from sidecar.protocol.values import JsonObject

Api = Literal["openai-chat", "anthropic", "host", "replay"]

DEFAULT_CONNECT_TIMEOUT_SECS = 10.0
"""A server that is there accepts within seconds, also through a VPN (own choice)."""

DEFAULT_IDLE_TIMEOUT_SECS = 300.0
"""A local model that reads a long prompt, or a hosted one that thinks, is silent for minutes (own choice)."""


OWN_PARAMETERS = frozenset({"model", "messages", "system", "tools", "stream", "stream_options"})
"""What a request is made of; `parameters` cannot replace it."""


@frozen(kw_only=True)
class ProviderOptions:
    """One entry of `providers`. A field left out is taken from the preset of that name, if there is one.

    `base_url` may end in `/v1` or not. The key is `api_key`, else what the variable `api_key_env` holds.
    `timeout_secs` limits the wait for the answer to begin (default: `idle_timeout_secs`), `idle_timeout_secs`
    the silence within it, `connect_timeout_secs` the making of the connection. `context_tokens` is how much
    the model takes. `parameters` are sent with every request, as the API names them. `file` is the script of
    the `replay` provider, `record` the file in which what the model says is written down as such a script.
    """

    api: Api | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    headers: dict[str, str] | None = field(default=None, repr=False)
    timeout_secs: float | None = None
    connect_timeout_secs: float | None = None
    idle_timeout_secs: float | None = None
    context_tokens: int | None = None
    parameters: JsonObject | None = None
    file: str | None = None
    record: str | None = None

    @property
    def connect_limit_secs(self) -> float:
        return self.connect_timeout_secs or DEFAULT_CONNECT_TIMEOUT_SECS

    @property
    def idle_limit_secs(self) -> float:
        return self.idle_timeout_secs or DEFAULT_IDLE_TIMEOUT_SECS

    @property
    def begin_limit_secs(self) -> float:
        return self.timeout_secs or self.idle_limit_secs


def check_options(name: str, options: ProviderOptions) -> None:
    """Raises ConfigurationError naming the first field of `providers.<name>` that cannot be meant."""
    limits = {
        "timeoutSecs": options.timeout_secs,
        "connectTimeoutSecs": options.connect_timeout_secs,
        "idleTimeoutSecs": options.idle_timeout_secs,
        "contextTokens": options.context_tokens,
    }
    for place, limit in limits.items():
        if limit is not None and limit <= 0:
            raise _wrong(name, place, f"must be more than 0, not {limit}")
    if options.base_url is not None and not _is_http_url(options.base_url):
        raise _wrong(name, "baseUrl", "must be a URL such as 'http://127.0.0.1:8080/v1', with http or https")
    if options.api_key is not None and not _is_header_value(options.api_key.strip()):
        raise _wrong(name, "apiKey", "holds characters that no key has, such as a line break")
    if options.record is not None and options.record in ("", options.file):
        raise _wrong(name, "record", "must name a file, and another one than the script that is played")
    for parameter in options.parameters or {}:
        if parameter in OWN_PARAMETERS:
            raise _wrong(name, f"parameters.{parameter}", "is set by every request itself and cannot be set here")
    for header, value in (options.headers or {}).items():
        if not _HEADER_NAME.fullmatch(header):
            raise _wrong(name, "headers", f"{header!r} is no name of an HTTP header")
        if not _is_header_value(value):
            raise _wrong(name, f"headers.{header}", "holds characters that an HTTP header cannot carry")


def resolve_api_key(name: str, options: ProviderOptions, environ: Mapping[str, str]) -> str | None:
    """The key to send, or None when none is configured.

    Raises ConfigurationError when the variable that should hold it is unset or empty, or when the key could
    not be sent.
    """
    key = (options.api_key or "").strip()
    place = "apiKey"
    if not key and options.api_key_env is not None:
        key = environ.get(options.api_key_env, "").strip()
        place = "apiKeyEnv"
        if not key:
            raise _wrong(
                name,
                place,
                f"the environment variable {options.api_key_env} is not set: put the key of {name!r} into it "
                f"(and start the host from that environment), or name another in `providers.{name}.apiKeyEnv`",
            )
    if not _is_header_value(key):
        raise _wrong(name, place, f"the key from {key_origin(name, options)} holds characters that no key has")
    return key or None


def key_origin(name: str, options: ProviderOptions) -> str:
    """Where the key of a provider is written, for a person who has to look there."""
    if options.api_key or options.api_key_env is None:
        return f"`providers.{name}.apiKey`"
    return f"the environment variable {options.api_key_env}"


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2: a token.


def _is_header_value(value: str) -> bool:
    return value.isascii() and (value.isprintable() or not value)


def _is_http_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # A port that is no number, or brackets that do not close.
        return False


def _wrong(name: str, place: str, reason: str) -> ConfigurationError:
    path = f"providers.{name}.{place}"
    return ConfigurationError(f"{path}: {reason}", path=path)
