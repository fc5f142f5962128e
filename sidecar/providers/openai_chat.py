"""OpenAI's Chat Completions API, as OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter and others speak it.

The request is built by `openai_messages` and `lowering`, the stream read by `openai_chunks`; here is what
ties them to HTTP, and what adapts the request to servers that know fewer parameters.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from attrs import evolve

from sidecar.protocol.errors import ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import JsonObject, ToolDefinition
from sidecar.providers.base import ModelRequest, WarningPiece
from sidecar.providers.failures import Endpoint, unreadable
from sidecar.providers.http_api import HttpApi, required_base_url
from sidecar.providers.http_client import Answer, Connection
from sidecar.providers.http_provider import HttpProvider
from sidecar.providers.json_text import request_body
from sidecar.providers.lowering import LoweredTools, ProviderLimits, ToolLowering
from sidecar.providers.openai_chunks import ChunkReader
from sidecar.providers.openai_messages import ConversationWriter, WireMessages
from sidecar.providers.options import ProviderOptions

LIMITS = ProviderLimits(
    call_ids=re.compile(r"[A-Za-z0-9_.:-]{1,40}"),  # OpenAI refuses longer ones; other servers' are twice as long.
    max_tools=128,
)
"""OpenAI's limits, which most servers took over."""

OPENAI_LIMITS = evolve(LIMITS, max_description_characters=1024)
"""OpenAI itself and Azure refuse a longer description (`string_above_max_length`); other servers take it."""

_OPTIONAL_PARAMETERS = ("stream_options", "max_tokens", "max_completion_tokens", "temperature")
"""What a server may refuse, to be asked again without it."""


class OpenAIChat(HttpProvider[WireMessages]):
    """A provider that speaks Chat Completions."""

    def __init__(self, name: str, options: ProviderOptions) -> None:
        api = HttpApi(
            name,
            options,
            what="a Chat Completions API",
            base_url=endpoint_url(required_base_url(name, options)),
            authorization=lambda key, base_url: {"authorization": f"Bearer {key}"},
        )
        self.limits = OPENAI_LIMITS if _is_openai(api.base_url) else LIMITS
        writer = ConversationWriter(name, self.limits)
        super().__init__(name, options, api=api, lowering=ToolLowering(self.limits, written_tool), writer=writer)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """What `GET /models` tells, with the context's size where the server says it."""
        connection = await self._api.connected()
        listed = await connection.get_json(self._api.url("models"))
        entries = listed.get("data") or listed.get("models") if isinstance(listed, dict) else listed
        if not isinstance(entries, list):
            said = json.dumps(listed)
            raise unreadable(connection.endpoint, "JSON that is no list of models", said, retryable=False)
        return tuple(self._model(entry) for entry in entries if isinstance(entry, dict) and entry.get("id"))

    # The request ----------------------------------------------------------------------------------------

    def _reader(self, endpoint: Endpoint, model: str, registry_names: Mapping[str, str]) -> ChunkReader:
        return ChunkReader(endpoint, model=model, registry_names=registry_names)

    async def _asked(
        self, connection: Connection, request: ModelRequest, written: WireMessages, tools: LoweredTools
    ) -> Answer:
        """The answer to the request, made again without a parameter that the server refuses to know.

        What a model refused is remembered, so that this costs one request in the life of the provider.
        """
        url = self._api.url("chat/completions")
        while True:
            body = self._parameters(request)
            try:
                return await connection.post(url, encoded(body, written, tools), model=request.model)
            except ModelError as error:
                sent = (name for name in _OPTIONAL_PARAMETERS if name in body)
                if not self._refusals.note(request.model, error, sent):
                    raise

    def _parameters(self, request: ModelRequest) -> JsonObject:
        """All of the request but messages and tools, which `_encoded` adds."""
        body: JsonObject = {**(self._options.parameters or {}), "model": request.model, "stream": True}
        optional: dict[str, Any] = {"stream_options": {"include_usage": True}, "temperature": request.temperature}
        if name := self._limit_parameter(request.model):
            optional[name] = request.max_output_tokens
        refused = self._refusals.of(request.model)
        body.update({n: value for n, value in optional.items() if value is not None and n not in refused})
        return body

    def _limit_parameter(self, model: str) -> str | None:
        """What limits the output. Nearly every server takes `max_tokens`, many of them nothing else.

        OpenAI itself takes `max_completion_tokens` for all its models, and refuses the older name for those
        that reason. Whichever is refused, the other one is tried.
        """
        names = ("max_tokens", "max_completion_tokens")
        if _is_openai(self._api.base_url):
            names = ("max_completion_tokens", "max_tokens")
        refused = self._refusals.of(model)
        return next((name for name in names if name not in refused), None)

    def _left_out(self, request: ModelRequest) -> Iterator[WarningPiece]:
        refused = self._refusals.of(request.model)
        if request.temperature is not None and "temperature" in refused:
            yield self._refusals.warning(request.model, "temperature")
        if request.max_output_tokens is not None and self._limit_parameter(request.model) is None:
            yield self._refusals.warning(request.model, "maxOutputTokens")
        if "stream_options" in refused:
            yield self._refusals.warning(request.model, "stream_options", ", so it may not count tokens")

    def _model(self, entry: JsonObject) -> ModelInfo:
        # OpenRouter, vLLM and Groq, in this order.
        said = (entry.get(name) for name in ("context_length", "max_model_len", "context_window"))
        context_tokens = next((size for size in said if type(size) is int and size > 0), None)
        return self._info(entry["id"], context_tokens)


def endpoint_url(base_url: str, path: str = "") -> str:
    """The URL below the base. `/v1` is added where the base has no path, and a query (Azure) is kept."""
    parts = urlsplit(base_url.strip())
    base = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    return urlunsplit(parts._replace(path=f"{base}/{path}".rstrip("/"), fragment=""))


def written_tool(tool: ToolDefinition) -> JsonObject:
    """A tool as the API has it."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def encoded(parameters: JsonObject, messages: WireMessages, tools: LoweredTools) -> bytes:
    """The body of a request."""
    listed = {"messages": messages.texts, **({"tools": tools.texts} if tools.texts else {})}
    return request_body(parameters, listed)


def _is_openai(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == "api.openai.com" or host.endswith(".openai.azure.com")
