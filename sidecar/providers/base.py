"""What the loop knows of a model: one request out, a stream of pieces back.

Vendor JSON stays inside this package. `agent/reply.py` folds the pieces into one message, and is where
everything that streams do in the wild (indexes missing, arguments before names) is put in order.
"""

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from attrs import frozen

from sidecar.protocol.messages import ModelInfo
from sidecar.protocol.value import Value
from sidecar.protocol.values import Message, ToolDefinition, Usage


@frozen(kw_only=True, repr=False, eq=False)
class ModelRequest(Value):
    """One turn: the whole conversation and the tools on offer. `model` is without the provider's name.

    `messages` is valid history: each call is followed by its result, no assistant message is empty. System
    text is in `system`, not among the messages, except where a host put it there.
    """

    model: str
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    temperature: float | None = None
    max_output_tokens: int | None = None


@frozen(kw_only=True, repr=False, eq=False)
class TextPiece(Value):
    """More text of the answer."""

    text: str


@frozen(kw_only=True, repr=False, eq=False)
class ReasoningPiece(Value):
    """More of the model's thinking, not part of the answer."""

    text: str


@frozen(kw_only=True, repr=False, eq=False)
class ToolCallPiece(Value):
    """A part of a tool call, as it came: any field may be missing, and `index` may be wrong.

    `name` is already the registry's name where the provider needed another. `arguments` is a fragment of
    JSON text.
    """

    index: int | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str = ""


@frozen(kw_only=True, repr=False, eq=False)
class UsagePiece(Value):
    """Tokens of this turn as the provider counts them; the last one counts."""

    usage: Usage


@frozen(kw_only=True, repr=False, eq=False)
class FinishPiece(Value):
    """Why the provider says it stopped: `stop`, `length`, `toolCalls`, `contentFilter`, or its own word."""

    reason: str


@frozen(kw_only=True, repr=False, eq=False)
class ExtrasPiece(Value):
    """What this provider wants back with the message, byte for byte."""

    data: Any


@frozen(kw_only=True, repr=False, eq=False)
class WarningPiece(Value):
    """Something was mended on the way to or from the provider.

    `left_out` are tools, by the registry's names, that the model was not told of.
    """

    code: str
    message: str
    left_out: tuple[str, ...] = ()


ModelPiece = TextPiece | ReasoningPiece | ToolCallPiece | UsagePiece | FinishPiece | ExtrasPiece | WarningPiece
"""A part of a model's answer, in the order in which it comes."""


class Provider(Protocol):
    """A way to reach models; `PROVIDERS[api](name, options)` makes one, which lives as long as the app."""

    name: str
    context_tokens: int | None

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """One answer, piece by piece. Closing the generator ends the request at once.

        Raises ModelError (modelError, modelTimeout, contextOverflow) with `retryable` set truthfully, before
        or between pieces; ConfigurationError or an `io` SidecarError for a key, proxy, certificate or script
        that cannot be used. Returning without a FinishPiece, which is always the last, means the stream broke off.
        """
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The models it offers; raises ModelError when it cannot be asked."""
        ...

    async def aclose(self) -> None:
        """Lets go of connections."""
        ...
