"""Anthropic's Messages API, version 2023-06-01, as Anthropic and others speak it.

The conversation is written by `anthropic_messages`, tools by `lowering`, the stream is read by `anthropic_events`;
here is what ties them to HTTP, and what adapts a request to the model's own limits.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from sidecar.protocol.errors import ModelError
from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.values import JsonObject, ToolDefinition
from sidecar.providers.anthropic_events import EventReader
from sidecar.providers.anthropic_messages import ConversationWriter, WireConversation, cached
from sidecar.providers.base import ModelRequest, WarningPiece
from sidecar.providers.failures import Endpoint, unreadable
from sidecar.providers.http_api import HttpApi, required_base_url
from sidecar.providers.http_client import Answer, Connection
from sidecar.providers.http_provider import HttpProvider
from sidecar.providers.json_text import request_body
from sidecar.providers.lowering import LoweredTools, ProviderLimits, ToolLowering
from sidecar.providers.options import ProviderOptions

API_VERSION = "2023-06-01"
"""Sent with every request; the only one that there is."""

DEFAULT_MAX_TOKENS = 32_000
"""Room for an answer where nobody said how much, thinking aside: the API wants a number (own choice).

Models that allow less say so, and get what they allow from then on.
"""

MIN_ROOM_TOKENS = 1_000
"""Less room than this in the model's context is no room for an answer (own choice)."""

LIMITS = ProviderLimits(
    call_ids=re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    property_names=re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
)
"""The patterns that the API names when it refuses."""

PAGE_SIZE = 1_000
MAX_PAGES = 10
"""More models than anybody offers."""


class Anthropic(HttpProvider[WireConversation]):
    """A provider that speaks the Messages API."""

    def __init__(self, name: str, options: ProviderOptions) -> None:
        api = HttpApi(
            name,
            options,
            what="a Messages API",
            base_url=endpoint_url(required_base_url(name, options)),
            authorization=_authorization,
            headers={"anthropic-version": API_VERSION},
        )
        writer = ConversationWriter(name, LIMITS)
        super().__init__(name, options, api=api, lowering=ToolLowering(LIMITS, written_tool), writer=writer)
        self._most_tokens: dict[str, int] = {}

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """What `GET /v1/models` tells, all pages of it."""
        connection = await self._api.connected()
        models: list[ModelInfo] = []
        query = {"limit": str(PAGE_SIZE)}
        for _ in range(MAX_PAGES):
            page = await connection.get_json(self._api.url("models", **query))
            entries = page.get("data") if isinstance(page, dict) else None
            if not isinstance(entries, list):
                said = json.dumps(page)
                raise unreadable(connection.endpoint, "JSON that is no list of models", said, retryable=False)
            models += [self._model(entry) for entry in entries if isinstance(entry, dict) and entry.get("id")]
            if not page.get("has_more") or not page.get("last_id"):
                break
            query["after_id"] = str(page["last_id"])
        return tuple(models)

    # The request ----------------------------------------------------------------------------------------

    def _reader(self, endpoint: Endpoint, model: str, registry_names: Mapping[str, str]) -> EventReader:
        return EventReader(endpoint, model=model, registry_names=registry_names)

    async def _asked(
        self, connection: Connection, request: ModelRequest, written: WireConversation, tools: LoweredTools
    ) -> Answer:
        """The answer to the request, made again where the model says that it takes less of something."""
        room: int | None = None
        while True:
            parameters = self._parameters(request, room)
            try:
                body = encoded(parameters, written, tools)
                return await connection.post(self._api.url("messages"), body, model=request.model)
            except ModelError as error:
                is_ours = request.max_output_tokens is None and "max_tokens" not in self._added
                if is_ours and room is None and (room := _room(error)) is not None:
                    continue
                if is_ours and self._learn_most_tokens(request.model, error, parameters["max_tokens"]):
                    continue
                optional = () if request.temperature is None else ("temperature",)
                if not self._refusals.note(request.model, error, (n for n in optional if n in parameters)):
                    raise

    def _parameters(self, request: ModelRequest, room: int | None) -> JsonObject:
        """All of the request but system, messages and tools. `room` is how much of the context is left."""
        limit = DEFAULT_MAX_TOKENS + self._thinking_tokens
        if request.model in self._most_tokens:
            limit = min(limit, self._most_tokens[request.model])
        parameters: JsonObject = {"max_tokens": limit if room is None else min(limit, room), **self._added}
        parameters |= {"model": request.model, "stream": True}
        if request.max_output_tokens is not None:
            parameters["max_tokens"] = request.max_output_tokens
        if request.temperature is not None and "temperature" not in self._refusals.of(request.model):
            parameters["temperature"] = request.temperature
        return parameters

    @property
    def _added(self) -> JsonObject:
        return self._options.parameters or {}

    @property
    def _thinking_tokens(self) -> int:
        thinking = self._added.get("thinking")
        budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
        return budget if type(budget) is int else 0

    def _learn_most_tokens(self, model: str, error: ModelError, asked: int) -> bool:
        """Whether the error says that the model gives less than `asked`, which is remembered then."""
        said = _MOST_TOKENS.search(error.message) if error.status == 400 else None
        if said is None or not 0 < int(said[1]) < asked:
            return False
        self._most_tokens[model] = int(said[1])
        return True

    def _left_out(self, request: ModelRequest) -> Iterator[WarningPiece]:
        if request.temperature is not None and "temperature" in self._refusals.of(request.model):
            yield self._refusals.warning(request.model, "temperature")

    def _model(self, entry: JsonObject) -> ModelInfo:
        size = entry.get("max_input_tokens")
        return self._info(entry["id"], size if type(size) is int and size > 0 else None)


def endpoint_url(base_url: str) -> str:
    """The base with its version. `/v1` is added where it is missing, as after ANTHROPIC_BASE_URL."""
    parts = urlsplit(base_url.strip())
    base = parts.path.rstrip("/").removesuffix("/messages")
    if not re.search(r"/v\d\w*$", base):
        base += "/v1"
    return urlunsplit(parts._replace(path=base, fragment=""))


def written_tool(tool: ToolDefinition) -> JsonObject:
    """A tool as the API has it."""
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": tool.parameters}


def encoded(parameters: JsonObject, conversation: WireConversation, tools: LoweredTools) -> bytes:
    """The body of a request."""
    listed: dict[str, Any] = {"messages": conversation.messages}
    if conversation.system:
        listed["system"] = conversation.system
    if tools.texts:
        # The system text comes after the tools, so that its mark covers them, too.
        is_marked = bool(conversation.system)
        listed["tools"] = tools.texts if is_marked else (*tools.texts[:-1], cached(tools.texts[-1]))
    return request_body(parameters, listed)


_MOST_TOKENS = re.compile(r"max_tokens: \d+ > (\d+)")
_TOO_LITTLE_ROOM = re.compile(r"max_tokens` exceed context limit: (\d+) \+ \d+ > (\d+)")


def _room(error: ModelError) -> int | None:
    """How much of the context the input leaves, where the request fails only for the room that it wants."""
    said = _TOO_LITTLE_ROOM.search(error.message)
    room = int(said[2]) - int(said[1]) if said else 0
    return room if room >= MIN_ROOM_TOKENS else None


def _authorization(key: str, base_url: str) -> dict[str, str]:
    own = {"x-api-key": key}
    # Other servers with this API look for their key where OpenAI's clients put it.
    is_anthropic = (urlsplit(base_url).hostname or "").endswith("anthropic.com")
    return own if is_anthropic else {**own, "authorization": f"Bearer {key}"}
