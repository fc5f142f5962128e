"""HTTP as the transports to MCP servers need it: requests to one server, answers read piece by piece.

Imported when a server with a URL is first used, never before: httpx takes longer to load than the whole sidecar
has to start. httpx's exceptions end here; what leaves is ToolError or ConfigurationError.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import HttpServer, path_of
from sidecar.mcp.framing import MAX_LINE_BYTES, Line, OversizedLine
from sidecar.mcp.http_client import (
    CONNECT_LIMIT_SECS,
    check_headers,
    checked_url,
    is_same_origin,
    new_client,
    resolved,
    secrets_in,
)
from sidecar.mcp.http_failures import Endpoint, shown_url
from sidecar.mcp.transport import UnreachableError
from sidecar.protocol.errors import ToolError
from sidecar.web.environment import Proxy, proxy_for
from sidecar.web.reasons import root_of

ERROR_BODY_SECS = 5.0
"""How long an error's own words are waited for. Own choice: the status is known already."""

MAX_ERROR_BYTES = 64 * 1024
"""How much of an error's body is read."""

MAX_REDIRECTS = 5
MAX_CHALLENGES = 3
"""How often one request may be sent again with better authorization: a token, then more scope, then once more."""

HTTP_FAILURES = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ssl.SSLError, RuntimeError, UnicodeError)
"""What httpx raises. RuntimeError is how it says that its client was closed, UnicodeError for headers."""

_SHOWN_BYTES = 1024


class HttpAnswer:
    """One answer, its body unread. Whoever has it closes it, which ends the request."""

    def __init__(self, response: httpx.Response, edge: "HttpEdge", asked: str) -> None:
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._edge = edge
        self._asked = asked
        self._words: bytes | None = None

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_event_stream(self) -> bool:
        return self.media_type == "text/event-stream"

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ToolError where the connection is lost."""
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except HTTP_FAILURES as error:
            raise self._edge.translated(error, self._asked) from error

    async def body(self) -> Line:
        """The whole body; of one that is longer than a message may be, the two ends."""
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_LINE_BYTES:
                whole = b"".join(parts)
                return OversizedLine(whole[:_SHOWN_BYTES], whole[-_SHOWN_BYTES:])
        return b"".join(parts)

    async def words(self) -> bytes:
        """The beginning of an error's body, as far as it comes soon."""
        if self._words is None:
            words = bytearray()
            try:
                async with asyncio.timeout(ERROR_BODY_SECS):
                    async for chunk in self.chunks():
                        words += chunk[: MAX_ERROR_BYTES - len(words)]
                        if len(words) >= MAX_ERROR_BYTES:
                            break
            except (TimeoutError, ToolError):
                pass  # The status alone says enough.
            self._words = bytes(words)
        return self._words

    async def close(self) -> None:
        """Ends the request, whether the answer is complete or not."""
        await self._response.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class HttpEdge:
    """The HTTP connections to one server."""

    def __init__(
        self, client: httpx.AsyncClient, endpoint: Endpoint, proxy: Proxy | None, auth: Authorization | None
    ) -> None:
        self._client = client
        self.endpoint = endpoint
        self._proxy = proxy
        self._authorization = auth

    @classmethod
    async def open(
        cls,
        name: str,
        server: HttpServer,
        *,
        secrets: tuple[str, ...] = (),
        authorization: Authorization | None = None,
    ) -> "HttpEdge":
        """Connects to nothing yet; `secrets` are what else no error may show.

        Raises ConfigurationError for a URL, a header, a proxy or certificates that cannot be used.
        """
        path = path_of(name)
        url = checked_url(server.url, f"{path}.url")
        check_headers(server.headers, f"{path}.headers")
        endpoint = Endpoint(
            server=name,
            url=url,
            secrets=secrets_in(server, secrets),
            has_credentials=any(header.lower() == "authorization" for header in server.headers),
        )
        proxy = proxy_for(url)
        client = await asyncio.to_thread(new_client, url, server.headers, proxy)
        return cls(client, endpoint, proxy, authorization)

    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        url: str | None = None,
        asked: str,
    ) -> HttpAnswer:
        """Sends a request; returns with the head of its answer, whatever its status. `asked` names it in errors.

        A challenge for authorization is met where that can be, a redirect followed within the origin. Raises
        ToolError where there is no answer.
        """
        url = url or self.endpoint.url
        for _ in range(MAX_CHALLENGES):
            answer = await self._followed(method, url, headers, body, asked)
            if not await self._is_met(answer):
                return answer
        return await self._followed(method, url, headers, body, asked)

    async def aclose(self) -> None:
        """Closes every connection; an answer that is still being read ends with an error."""
        await self._client.aclose()

    def translated(self, error: Exception, asked: str) -> ToolError:
        """What one of HTTP_FAILURES means: the one edge where httpx's exceptions become ours."""
        endpoint = self.endpoint
        match error:
            case httpx.ConnectTimeout():
                return UnreachableError(
                    f"{endpoint.name} cannot be reached at {endpoint.place}: no connection within "
                    f"{CONNECT_LIMIT_SECS:g} s; check the network, and {endpoint.path}.url",
                    server=endpoint.server,
                )
            case httpx.ConnectError() | httpx.ProxyError():
                return self._unreachable(error)
            case _:
                reason = endpoint.clean(root_of(error))
                return endpoint.error(f"the connection to {endpoint.name} was lost at {asked}: {reason}")

    async def _followed(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, asked: str
    ) -> HttpAnswer:
        for _ in range(MAX_REDIRECTS):
            answer = await self._sent(method, url, headers, body, asked)
            target = answer.headers.get("location")
            if not 300 <= answer.status < 400 or target is None:
                return answer
            await answer.close()
            target = resolved(url, target)
            if answer.status not in (307, 308) or not is_same_origin(url, target):
                raise self._redirected(answer.status, target)
            url = target
        raise self.endpoint.error(
            f"{self.endpoint.name} redirects more than {MAX_REDIRECTS} times; check {self.endpoint.path}.url"
        )

    async def _sent(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, asked: str
    ) -> HttpAnswer:
        if self._authorization is not None:
            headers = {**headers, **await self._authorization.headers(method, url)}
        try:
            request = self._client.build_request(method, url, headers=dict(headers), content=body)
            return HttpAnswer(await self._client.send(request, stream=True), self, asked)
        except HTTP_FAILURES as error:
            raise self.translated(error, asked) from error

    async def _is_met(self, answer: HttpAnswer) -> bool:
        """Whether a challenge was met, so that the request is worth sending again."""
        challenge = answer.headers.get("www-authenticate", "")
        is_challenge = answer.status == 401 or (answer.status == 403 and "insufficient_scope" in challenge)
        if self._authorization is None or not is_challenge:
            return False
        try:
            is_met = await self._authorization.challenged(answer.status, answer.headers, await answer.words())
        except BaseException:
            await answer.close()
            raise
        if is_met:
            await answer.close()
        return is_met

    def _redirected(self, status: int, target: str) -> ToolError:
        return self.endpoint.error(
            f"{self.endpoint.name} redirects to {shown_url(target)} (HTTP {status}), which is not followed, for "
            f"tokens must not go elsewhere; if that is where it is now, write it into {self.endpoint.path}.url"
        )

    def _unreachable(self, error: Exception) -> ToolError:
        endpoint = self.endpoint
        reason = endpoint.clean(root_of(error))
        if self._proxy is not None:
            return ToolError(
                "io",
                f"{endpoint.name}: the proxy that {self._proxy.variable} names, on the way to {endpoint.place}, "
                f"cannot be used: {reason}; correct or unset it, or add {urlsplit(endpoint.url).hostname} to "
                "NO_PROXY",
                server=endpoint.server,
            )
        failed = f"{endpoint.name} cannot be reached at {endpoint.place}: {reason}"
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return endpoint.error(
                f"{failed}; name the file with its authority in the environment variable SSL_CERT_FILE"
            )
        if "WRONG_VERSION_NUMBER" in reason:
            return endpoint.error(f"{failed}; write http:// in {endpoint.path}.url if it is meant to be plain")
        return UnreachableError(f"{failed}; start it, or correct {endpoint.path}.url", server=endpoint.server)
