"""OpenAI's Chat Completions API, as OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter and others speak it.

The request is built by `openai_messages` and `lowering`, the stream read by `openai_chunks`; here is what
ties them to HTTP, and what adapts the request to servers that know fewer parameters.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from attrs import frozen

from sidecar import __version__
from sidecar.protocol.errors import ConfigurationError, ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import JsonObject, ToolDefinition
from sidecar.providers.base import ModelPiece, ModelRequest, WarningPiece
from sidecar.providers.failures import Endpoint, is_refused_parameter, unreadable
from sidecar.providers.http_client import Answer, Connection, StreamEvent, open_connection
from sidecar.providers.lowering import LoweredTools, lower_tools
from sidecar.providers.openai_chunks import ChunkReader
from sidecar.providers.openai_messages import wire_messages
from sidecar.providers.options import ProviderOptions, key_origin, resolve_api_key

TRAILER_SECS = 5.0
"""How long usage and `[DONE]` are waited for once the model has said that it stops (own choice).

Some servers send neither and keep the stream open; the answer itself is complete by then.
"""

MIN_SECRET_CHARACTERS = 6
"""Anything shorter is a stand-in such as `none`, and taking it out of messages would garble them."""

_OPTIONAL_PARAMETERS = ("stream_options", "max_tokens", "max_completion_tokens", "temperature")
"""What a server may refuse, to be asked again without it."""


class OpenAIChat:
    """A provider that speaks Chat Completions. One per configured name; it keeps its connections open."""

    def __init__(self, name: str, options: ProviderOptions) -> None:
        if options.base_url is None:
            path = f"providers.{name}.baseUrl"
            raise ConfigurationError(f"{path}: is required for the API 'openai-chat'", path=path)
        self.name = name
        self.context_tokens = options.context_tokens
        self._options = options
        self._base_url = options.base_url
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._last_tools = _Tools.of(())
        self._refused: dict[str, set[str]] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """See `Provider.stream`. Raises ConfigurationError, too: keys are looked up when they are needed."""
        tools = self._tools(request.tools)
        lowered = tools.lowered
        written = wire_messages(request, provider=self.name, wire_name=lowered.wire_name)
        connection = await self._connected()
        reader = ChunkReader(connection.endpoint, model=request.model, registry_names=lowered.registry_names)
        answer = await self._asked(connection, request, written.messages, tools)
        async with aclosing(answer):
            for warning in (*lowered.warnings, *written.warnings, *self._left_out(request)):
                yield warning
            while not reader.is_over and (event := await self._next(answer, reader)) is not None:
                read = (
                    reader.read_whole(event.data) if event.is_whole else reader.read(event.data, event=event.name)
                )
                for piece in read:
                    yield piece
            if reader.is_over:
                await answer.drain()
        for piece in reader.ending():
            yield piece

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """What `GET /models` tells, with the context's size where the server says it."""
        connection = await self._connected()
        listed = await connection.get_json(endpoint_url(self._base_url, "models"))
        entries = listed.get("data") or listed.get("models") if isinstance(listed, dict) else listed
        if not isinstance(entries, list):
            said = json.dumps(listed)
            raise unreadable(connection.endpoint, "JSON that is no list of models", said, retryable=False)
        return tuple(self._model(entry) for entry in entries if isinstance(entry, dict) and entry.get("id"))

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._connection is not None:
            await self._connection.aclose()
            self._connection = None

    # The request ----------------------------------------------------------------------------------------

    async def _asked(
        self, connection: Connection, request: ModelRequest, messages: list[JsonObject], tools: "_Tools"
    ) -> Answer:
        """The answer to the request, made again without a parameter that the server refuses to know.

        What a model refused is remembered, so that this costs one request in the life of the provider.
        """
        url = endpoint_url(self._base_url, "chat/completions")
        while True:
            body = self._body(request, messages)
            try:
                return await connection.post(url, _encoded(body, tools), model=request.model)
            except ModelError as error:
                refused = [name for name in _OPTIONAL_PARAMETERS if name in body and _refuses(error, name)]
                if not refused:
                    raise
                self._refused.setdefault(request.model, set()).add(refused[0])

    def _body(self, request: ModelRequest, messages: list[JsonObject]) -> JsonObject:
        """All of the request but the tools, which `_encoded` adds."""
        body: JsonObject = {"model": request.model, "messages": messages, "stream": True}
        optional: dict[str, Any] = {"stream_options": {"include_usage": True}, "temperature": request.temperature}
        if name := self._limit_parameter(request.model):
            optional[name] = request.max_output_tokens
        refused = self._refused.get(request.model, set())
        body.update({n: value for n, value in optional.items() if value is not None and n not in refused})
        return body

    def _limit_parameter(self, model: str) -> str | None:
        """What limits the output. Nearly every server takes `max_tokens`, many of them nothing else.

        OpenAI itself takes `max_completion_tokens` for all its models, and refuses the older name for those
        that reason. Whichever is refused, the other one is tried.
        """
        host = urlsplit(self._base_url).hostname or ""
        is_openai = host == "api.openai.com" or host.endswith(".openai.azure.com")
        names = ("max_completion_tokens", "max_tokens") if is_openai else ("max_tokens", "max_completion_tokens")
        refused = self._refused.get(model, set())
        return next((name for name in names if name not in refused), None)

    def _left_out(self, request: ModelRequest) -> Iterator[WarningPiece]:
        refused = self._refused.get(request.model, set())
        missing = {
            "temperature": request.temperature is not None and "temperature" in refused,
            "maxOutputTokens": request.max_output_tokens is not None
            and self._limit_parameter(request.model) is None,
            "stream_options": "stream_options" in refused,
        }
        for name in (name for name, is_missing in missing.items() if is_missing):
            effect = ", so it may not count tokens" if name == "stream_options" else ""
            yield WarningPiece(
                code="parameterLeftOut",
                message=f"{self.name} does not take {name} for {request.model!r}; it was left out{effect}",
            )

    def _tools(self, definitions: tuple[ToolDefinition, ...]) -> "_Tools":
        if definitions != self._last_tools.definitions:
            self._last_tools = _Tools.of(definitions)
        return self._last_tools

    # The answer -----------------------------------------------------------------------------------------

    async def _next(self, answer: Answer, reader: ChunkReader) -> StreamEvent | None:
        idle_secs = self._options.idle_limit_secs
        try:
            return await answer.next_event(min(TRAILER_SECS, idle_secs) if reader.is_finished else idle_secs)
        except ModelError:
            if reader.is_finished:
                return None  # All that is lost is what some servers send after the end.
            raise

    def _model(self, entry: JsonObject) -> ModelInfo:
        # OpenRouter, vLLM and Groq, in this order.
        said = (entry.get(name) for name in ("context_length", "max_model_len", "context_window"))
        context_tokens = next((size for size in said if type(size) is int and size > 0), None)
        return ModelInfo(
            model=f"{self.name}/{entry['id']}",
            provider=self.name,
            context_tokens=self.context_tokens or context_tokens,
        )

    # The connection -------------------------------------------------------------------------------------

    async def _connected(self) -> Connection:
        async with self._opening:
            if self._connection is None:
                key = resolve_api_key(self.name, self._options, os.environ)
                self._connection = await asyncio.to_thread(
                    open_connection, self._options, self._endpoint(key), self._headers(key)
                )
            return self._connection

    def _headers(self, key: str | None) -> dict[str, str]:
        own = {"authorization": f"Bearer {key}"} if key else {}
        given = {name.lower(): value for name, value in (self._options.headers or {}).items()}
        return {"user-agent": f"agent-sidecar/{__version__}", **own, **given}

    def _endpoint(self, key: str | None) -> Endpoint:
        parts = urlsplit(endpoint_url(self._base_url))
        passwords = [unquote(parts.password)] if parts.password else []
        secrets = [key or "", *(self._options.headers or {}).values(), *passwords]
        return Endpoint(
            provider=self.name,
            url=urlunsplit(parts._replace(netloc=_host_of(parts), query="")),
            key_origin=key_origin(self.name, self._options) if key else None,
            secrets=tuple(secret for secret in secrets if len(secret) >= MIN_SECRET_CHARACTERS),
        )


@frozen(kw_only=True)
class _Tools:
    """Tools as they go out, kept from turn to turn: with many of them they are most of a request."""

    definitions: tuple[ToolDefinition, ...]
    lowered: LoweredTools
    text: str

    @classmethod
    def of(cls, definitions: tuple[ToolDefinition, ...]) -> "_Tools":
        lowered = lower_tools(definitions)
        text = _as_json([_tool(tool) for tool in lowered.tools])
        return cls(definitions=definitions, lowered=lowered, text=text)


def endpoint_url(base_url: str, path: str = "") -> str:
    """The URL below the base. `/v1` is added where the base has no path, and a query (Azure) is kept."""
    parts = urlsplit(base_url.strip())
    base = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urlunsplit(parts._replace(path=f"{base}/{path}".rstrip("/"), fragment=""))


def _host_of(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _tool(tool: ToolDefinition) -> JsonObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _encoded(body: JsonObject, tools: _Tools) -> bytes:
    text = _as_json(body)
    if tools.lowered.tools:
        text = f'{text[:-1]},"tools":{tools.text}}}'
    # A lone surrogate, which a tool's output may hold, is no Unicode; servers refuse the whole request for it.
    return text.encode("utf-8", "replace")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _refuses(error: ModelError, parameter: str) -> bool:
    return error.status in (400, 422) and is_refused_parameter(error.message, parameter)
