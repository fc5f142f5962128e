"""What providers over HTTP have in common: a request is lowered, written and asked, its answer read in pieces."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar

from sidecar.protocol.messages import ModelInfo
from sidecar.providers.answering import AnswerReader, pieces_of
from sidecar.providers.base import ModelPiece, ModelRequest, WarningPiece
from sidecar.providers.failures import Endpoint
from sidecar.providers.http_api import HttpApi
from sidecar.providers.http_client import Answer, Connection
from sidecar.providers.lowering import LoweredTools, ToolLowering
from sidecar.providers.options import ProviderOptions
from sidecar.providers.refusals import Refusals
from sidecar.providers.written import WireName


class WireForm(Protocol):
    """A conversation in the words of an API."""

    @property
    def warnings(self) -> tuple[WarningPiece, ...]:
        """What could not be said in them."""
        ...


Form = TypeVar("Form", bound=WireForm)
Form_co = TypeVar("Form_co", bound=WireForm, covariant=True)


class Writer(Protocol[Form_co]):
    """Puts a conversation into the words of an API."""

    def write(self, request: ModelRequest, wire_name: WireName) -> Form_co:
        """The conversation of a request; `wire_name` gives the name under which the provider knows a tool."""
        ...


class HttpProvider(ABC, Generic[Form]):
    """One per configured name; it keeps its connections open."""

    def __init__(
        self, name: str, options: ProviderOptions, *, api: HttpApi, lowering: ToolLowering, writer: Writer[Form]
    ) -> None:
        self.name = name
        self.context_tokens = options.context_tokens
        self._options = options
        self._api = api
        self._lowering = lowering
        self._writer = writer
        self._refusals = Refusals(name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """See `Provider.stream`. Raises ConfigurationError, too: keys are looked up when they are needed."""
        lowered = self._lowering.lower(request.tools)
        written = self._writer.write(request, lowered.wire_name)
        connection = await self._api.connected()
        reader = self._reader(connection.endpoint, request.model, lowered.registry_names)
        answer = await self._asked(connection, request, written, lowered)
        warnings = (*lowered.warnings, *written.warnings, *self._left_out(request))
        idle_secs = self._options.idle_limit_secs
        async with aclosing(pieces_of(answer, reader, warnings=warnings, idle_secs=idle_secs)) as pieces:
            async for piece in pieces:
                yield piece

    @abstractmethod
    async def list_models(self) -> tuple[ModelInfo, ...]:
        """See `Provider.list_models`."""

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._api.aclose()

    @abstractmethod
    def _reader(self, endpoint: Endpoint, model: str, registry_names: Mapping[str, str]) -> AnswerReader:
        """Reads the answer to one request."""

    @abstractmethod
    async def _asked(
        self, connection: Connection, request: ModelRequest, written: Form, tools: LoweredTools
    ) -> Answer:
        """The answer to the request, made again where the server says that it takes less of something."""

    @abstractmethod
    def _left_out(self, request: ModelRequest) -> Iterable[WarningPiece]:
        """What the request asks for and the model refuses."""

    def _info(self, model: object, context_tokens: int | None) -> ModelInfo:
        """A model that the server lists. What is configured of its context wins."""
        return ModelInfo(
            model=f"{self.name}/{model}",
            provider=self.name,
            context_tokens=self.context_tokens or context_tokens,
        )
