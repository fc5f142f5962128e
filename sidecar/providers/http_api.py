"""One provider's HTTP API: its address, how its key is sent, and a connection that is opened when first needed."""

import asyncio
import os
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import SplitResult, unquote, urlencode, urlsplit, urlunsplit

from sidecar import __version__
from sidecar.protocol.errors import ConfigurationError
from sidecar.providers.failures import Endpoint
from sidecar.providers.http_client import Connection, open_connection
from sidecar.providers.options import ProviderOptions, key_origin, resolve_api_key

MIN_SECRET_CHARACTERS = 6
"""Anything shorter is a stand-in such as `none`, and taking it out of messages would garble them."""


class Authorization(Protocol):
    """How an API wants its key: the headers that carry it."""

    def __call__(self, key: str, base_url: str) -> Mapping[str, str]: ...


class HttpApi:
    """Where an API is and who we are there. `what` names the kind of API in errors, `headers` are its own."""

    def __init__(
        self,
        name: str,
        options: ProviderOptions,
        *,
        what: str,
        base_url: str,
        authorization: Authorization,
        headers: Mapping[str, str] = {},
    ) -> None:
        self._name = name
        self._options = options
        self._what = what
        self.base_url = base_url
        self._authorization = authorization
        self._own_headers = headers
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()

    def url(self, path: str, **query: str) -> str:
        """The address of `path` below the base, whose own query (Azure) is kept."""
        parts = urlsplit(self.base_url)
        pairs = "&".join(text for text in (parts.query, urlencode(query)) if text)
        return urlunsplit(parts._replace(path=f"{parts.path}/{path}", query=pairs))

    async def connected(self) -> Connection:
        """The connection, opened with the key as it is now.

        Raises ConfigurationError for a key, a proxy or certificates that cannot be used.
        """
        async with self._opening:
            if self._connection is None:
                key = resolve_api_key(self._name, self._options, os.environ)
                self._connection = await asyncio.to_thread(
                    open_connection, self._options, self._endpoint(key), self._headers(key)
                )
            return self._connection

    async def aclose(self) -> None:
        """Closes the connection, if there is one."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    def _headers(self, key: str | None) -> dict[str, str]:
        own = self._authorization(key, self.base_url) if key else {}
        given = {name.lower(): value for name, value in (self._options.headers or {}).items()}
        return {"user-agent": f"agent-sidecar/{__version__}", **self._own_headers, **own, **given}

    def _endpoint(self, key: str | None) -> Endpoint:
        parts = urlsplit(self.base_url)
        passwords = [unquote(parts.password)] if parts.password else []
        secrets = [key or "", *(self._options.headers or {}).values(), *passwords]
        return Endpoint(
            provider=self._name,
            url=urlunsplit(parts._replace(netloc=_host_of(parts), query="")),
            what=self._what,
            key_origin=key_origin(self._name, self._options) if key else None,
            secrets=tuple(secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS),
        )


def required_base_url(name: str, options: ProviderOptions) -> str:
    """The base URL of an API that cannot do without. Raises ConfigurationError where there is none."""
    if options.base_url is None:
        path = f"providers.{name}.baseUrl"
        raise ConfigurationError(f"{path}: is required for the API {options.api or 'openai-chat'!r}", path=path)
    return options.base_url.strip()


def _host_of(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]
