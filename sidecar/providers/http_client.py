"""HTTP as the providers need it: one request, a stream of events back, every wait limited.

Imported when a provider is first used, never before: httpx takes longer to load than the whole sidecar has
to start. httpx's exceptions end here; what leaves is ModelError, ConfigurationError or an `io` SidecarError.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
from attrs import frozen
from httpx_sse import EventSource, ServerSentEvent

from sidecar.protocol.errors import ConfigurationError, ModelError, SidecarError
from sidecar.providers.failures import Endpoint, failed_status, unreadable
from sidecar.providers.options import ProviderOptions
from sidecar.providers.presets import START_COMMANDS
from sidecar.web.environment import Proxy, proxy_for, trusted_certificates
from sidecar.web.reasons import root_of

DRAIN_SECS = 0.2
"""How long the rest of a finished answer is waited for, so that its connection can be used again."""

KEEP_ALIVE_SECS = 60.0
"""A turn's tools often run longer than httpx's five seconds; the next turn should not shake hands again."""

ERROR_BODY_SECS = 10.0
"""How long an error's own words are waited for. Own choice: the status is known already."""

HTTP_FAILURES = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ssl.SSLError, RuntimeError)
"""What httpx raises. RuntimeError is how it says that its client was closed meanwhile."""

_STREAMING = {"content-type": "application/json", "accept": "text/event-stream, application/json"}


@frozen(kw_only=True)
class StreamEvent:
    """One server-sent event; or, when `is_whole`, the JSON body of a server that did not stream."""

    name: str
    data: str
    is_whole: bool = False


class Answer:
    """The body of one answer, read event by event. Whoever has it closes it, which ends the request."""

    def __init__(self, response: httpx.Response, connection: "Connection", *, first_by: float | None) -> None:
        self._response = response
        self._connection = connection
        self._first_by = first_by
        self._loop = asyncio.get_running_loop()
        self._is_whole = _is_json(response)
        self._body = _TimedBody(response.stream)
        response.stream = self._body
        self._events = _server_sent(response)

    async def next_event(self, limit_secs: float) -> StreamEvent | None:
        """The next event that carries data, or None at the end.

        Raises ModelError: `modelTimeout` when none comes within `limit_secs`, which comments, pings and empty
        events do not extend; `modelError` when the connection is lost.
        """
        deadline = self._loop.time() + limit_secs
        is_late = self._first_by is not None and self._first_by < deadline
        self._body.deadline = self._first_by if is_late else deadline
        try:
            event = await (self._whole() if self._is_whole else self._streamed())
        except TimeoutError:
            connection = self._connection
            raise (connection.did_not_begin() if is_late else connection.fell_silent(limit_secs)) from None
        except HTTP_FAILURES as error:
            raise self._connection.translated(error) from error
        self._first_by = None
        return event

    async def drain(self) -> None:
        """Reads what little is left after the answer's end, so that the connection can be used again."""
        with suppress(ModelError):
            while not self._is_whole and await self.next_event(DRAIN_SECS) is not None:
                pass

    async def aclose(self) -> None:
        """Ends the request, whether the answer is complete or not."""
        await self._events.aclose()
        await self._response.aclose()

    async def _streamed(self) -> StreamEvent | None:
        async for event in self._events:
            if event.data and event.event != "ping":  # Anthropic's; it says that the line is open and no more.
                return StreamEvent(name=event.event, data=event.data)
        return None

    async def _whole(self) -> StreamEvent | None:
        if self._response.is_stream_consumed:
            return None
        body = await self._response.aread()
        return StreamEvent(name="", data=body.decode("utf-8", "replace"), is_whole=True)


class _TimedBody(httpx.AsyncByteStream):
    """A body whose every read ends at `deadline`, by the clock of the event loop.

    The limit is set where bytes come in, so that the many events of one read cost one timer.
    """

    def __init__(self, body: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        assert isinstance(body, httpx.AsyncByteStream)  # It belongs to an AsyncClient.
        self._body = body
        self.deadline: float | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = aiter(self._body)
        while True:
            try:
                async with asyncio.timeout_at(self.deadline):
                    part = await anext(parts)
            except StopAsyncIteration:
                return
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


class Connection:
    """The HTTP connections of one provider, kept open between turns."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        options: ProviderOptions,
        endpoint: Endpoint,
        proxy: Proxy | None,
    ) -> None:
        self._client = client
        # Merged once: for every request anew, as by `build_request`, that costs a third of making it.
        self._headers = httpx.Headers({**client.headers, **_STREAMING})
        self._extensions = {"timeout": client.timeout.as_dict()}
        self._options = options
        self.endpoint = endpoint
        self._proxy = proxy

    async def post(self, url: str, body: bytes, *, model: str) -> Answer:
        """Sends the request; returns once the status says that the answer follows.

        Raises ModelError for any other status, for time-outs, and when the server cannot be reached.
        """
        limit_secs = self._options.timeout_secs
        first_by = None if limit_secs is None else asyncio.get_running_loop().time() + limit_secs
        request = httpx.Request("POST", url, content=body, headers=self._headers, extensions=self._extensions)
        response = await self._begun(request)
        try:
            await self._check(response, model)
        except BaseException:
            await response.aclose()
            raise
        return Answer(response, self, first_by=first_by)

    async def get_json(self, url: str) -> Any:
        """The decoded body of a GET. Raises ModelError as `post` does, and when the body is not JSON."""
        response = await self._begun(self._client.build_request("GET", url))
        try:
            await self._check(response, None)
            text = await self._text(response, self._options.idle_limit_secs)
        finally:
            await response.aclose()
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise unreadable(self.endpoint, "something that is not JSON", text, retryable=True) from None

    async def aclose(self) -> None:
        """Closes every connection; an answer that is still being read ends with an error."""
        await self._client.aclose()

    def did_not_begin(self) -> ModelError:
        """The error for an answer of which nothing came in time."""
        setting = "idleTimeoutSecs" if self._options.timeout_secs is None else "timeoutSecs"
        return self._timed_out(f"did not begin to answer within {self._options.begin_limit_secs:g} s", setting)

    def fell_silent(self, limit_secs: float) -> ModelError:
        """The error for an answer that began and then stalled."""
        return self._timed_out(f"sent nothing for {limit_secs:g} s", "idleTimeoutSecs")

    def translated(self, error: Exception) -> SidecarError:
        """What one of HTTP_FAILURES means: the one edge where httpx's exceptions become ours."""
        match error:
            case httpx.ConnectTimeout():
                secs = self._options.connect_limit_secs
                what = f"could not be reached: no connection within {secs:g} s"
                return self._timed_out(what, "connectTimeoutSecs")
            case httpx.TimeoutException():
                return self._timed_out("stopped reading the request", "timeoutSecs")
            case httpx.ConnectError() | httpx.ProxyError():
                return self._unreachable(error)
            case httpx.UnsupportedProtocol() | httpx.InvalidURL():
                path = f"providers.{self.endpoint.provider}.baseUrl"
                return ConfigurationError(f"{path}: {self.endpoint.clean(str(error))}", path=path)
            case _:
                return self._lost(error)

    async def _begun(self, request: httpx.Request) -> httpx.Response:
        try:
            async with asyncio.timeout(self._options.begin_limit_secs):
                return await self._client.send(request, stream=True)
        except TimeoutError:
            raise self.did_not_begin() from None
        except HTTP_FAILURES as error:
            raise self.translated(error) from error

    async def _check(self, response: httpx.Response, model: str | None) -> None:
        if not response.is_success:
            body = await self._error_text(response)
            headers = {name.lower(): value for name, value in response.headers.items()}
            raise failed_status(
                self.endpoint, status=response.status_code, body=body, headers=headers, model=model
            )
        if _media_type(response) == "text/html":
            body = await self._error_text(response)
            raise unreadable(self.endpoint, "a web page instead of an answer", body, retryable=False)

    async def _error_text(self, response: httpx.Response) -> str:
        try:
            return await self._text(response, ERROR_BODY_SECS)
        except ModelError:
            return ""  # The status alone says enough.

    async def _text(self, response: httpx.Response, limit_secs: float) -> str:
        try:
            async with asyncio.timeout(limit_secs):
                return (await response.aread()).decode("utf-8", "replace")
        except TimeoutError:
            raise self.fell_silent(limit_secs) from None
        except HTTP_FAILURES as error:
            raise self.translated(error) from error

    def _timed_out(self, what: str, setting: str) -> ModelError:
        provider = self.endpoint.provider
        return ModelError(
            f"{provider}: {self.endpoint.url} {what}; if it needs longer, raise `providers.{provider}.{setting}`",
            provider=provider,
            kind="modelTimeout",
            retryable=True,
        )

    def _unreachable(self, error: httpx.TransportError) -> SidecarError:
        provider, url = self.endpoint.provider, self.endpoint.url
        reason = self.endpoint.clean(root_of(error))
        if self._proxy is not None:
            return SidecarError(
                "io",
                f"{provider}: the proxy that {self._proxy.variable} names, on the way to {url}, cannot be used: "
                f"{reason}; correct or unset it, or add {urlsplit(url).hostname} to NO_PROXY",
                provider=provider,
            )
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            advice = "name the file with its authority in the environment variable SSL_CERT_FILE"
            return ModelError(f"{provider}: {url} is not trusted: {reason}; {advice}", provider=provider)
        if "WRONG_VERSION_NUMBER" in reason:
            advice = f"write http:// in `providers.{provider}.baseUrl` if it is meant to be plain"
            return ModelError(f"{provider}: {url} does not speak TLS: {reason}; {advice}", provider=provider)
        return ModelError(
            f"{provider}: cannot connect to {url}: {reason}; {_what_to_start(provider, url)}",
            provider=provider,
            retryable=True,
        )

    def _lost(self, error: Exception) -> ModelError:
        reason = self.endpoint.clean(root_of(error))
        return ModelError(
            f"{self.endpoint.provider}: the connection to {self.endpoint.url} was lost: {reason}",
            provider=self.endpoint.provider,
            retryable=True,
        )


def open_connection(options: ProviderOptions, endpoint: Endpoint, headers: dict[str, str]) -> Connection:
    """Connects to nothing yet. Raises ConfigurationError for a proxy or certificates that cannot be used.

    Blocks for as long as the certificates take to load (about 0.1 s), so call it in a thread.
    """
    proxy = proxy_for(endpoint.url)
    timeout = httpx.Timeout(
        connect=options.connect_limit_secs, write=options.begin_limit_secs, read=None, pool=None
    )  # Reading is limited here, event by event; httpx would count every comment as an answer.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE_SECS)
    trust = trusted_certificates(endpoint.url, proxy)
    try:
        client = httpx.AsyncClient(
            headers=headers,
            timeout=timeout,
            limits=limits,
            verify=trust,
            proxy=proxy.address if proxy else None,
            trust_env=False,  # Read here, so that a variable that this URL does not need cannot be in the way.
        )
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        variable = proxy.variable if proxy else "HTTP_PROXY"
        raise ConfigurationError(
            f"the proxy in the environment variable {variable} cannot be used ({_reason(error)}): "
            f"correct or unset it, or add {urlsplit(endpoint.url).hostname} to NO_PROXY",
            path=variable,
        ) from error
    return Connection(client, options, endpoint, proxy)


def _reason(error: Exception) -> str:
    """Why a proxy cannot be used, without the address, which may hold a password."""
    if isinstance(error, ImportError):
        return "SOCKS proxies need the package 'socksio'"
    return "it must be a URL that begins with http://, https://, socks5:// or socks5h://"


def _server_sent(response: httpx.Response) -> AsyncGenerator[ServerSentEvent, None]:
    # Servers label their streams text/plain or not at all, and gateways add charsets. A stream of events is
    # UTF-8 whatever they say, perhaps with a byte order mark (HTML standard, 9.2.5).
    response.headers["content-type"] = "text/event-stream"
    response.encoding = "utf-8-sig"
    return EventSource(response).aiter_sse()


def _is_json(response: httpx.Response) -> bool:
    media_type = _media_type(response)
    return media_type == "application/json" or media_type.endswith("+json")


def _media_type(response: httpx.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _what_to_start(provider: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.hostname in ("127.0.0.1", "localhost", "::1"):
        command = START_COMMANDS.get(parts.port or 0)
        start = f"start the server ({command})" if command else "start the server"
        return f"{start}, or correct `providers.{provider}.baseUrl`"
    return f"check the network, and `providers.{provider}.baseUrl`"
