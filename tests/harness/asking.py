"""Short ways to ask a provider and to look at what came."""

from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from sidecar.protocol.errors import ModelError, SidecarError
from sidecar.protocol.values import Message, ToolCall, ToolDefinition
from sidecar.providers import open_provider
from sidecar.providers.base import ModelPiece, ModelRequest, Provider, ReasoningPiece, TextPiece, ToolCallPiece
from sidecar.providers.options import ProviderOptions
from tests.harness.model_server import Reply, ScriptedModel


@asynccontextmanager
async def provider_at(model: ScriptedModel, name: str = "local", **options: Any) -> AsyncIterator[Provider]:
    """A real provider that talks to the scripted model."""
    provider = open_provider(name, ProviderOptions(base_url=model.base_url, **options))
    try:
        yield provider
    finally:
        await provider.aclose()


def anthropic_at(
    model: ScriptedModel, name: str = "claude", **options: Any
) -> AbstractAsyncContextManager[Provider]:
    """A real provider that speaks the Messages API to the scripted model."""
    return provider_at(model, name, api="anthropic", **options)


def asks(*messages: Message | str, model: str = "scripted", **fields: Any) -> ModelRequest:
    """A request; a plain string is the user's message."""
    history = tuple(Message(role="user", content=m) if isinstance(m, str) else m for m in messages or ("hello",))
    return ModelRequest(model=model, messages=history, **fields)


async def pieces_of(provider: Provider, request: ModelRequest | None = None) -> list[ModelPiece]:
    """The whole answer, piece by piece."""
    return [piece async for piece in provider.stream(request or asks())]


def text_of(pieces: Iterable[ModelPiece]) -> str:
    """The answer's text."""
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def reasoning_of(pieces: Iterable[ModelPiece]) -> str:
    """The answer's reasoning."""
    return "".join(piece.text for piece in pieces if isinstance(piece, ReasoningPiece))


def calls_of(pieces: Iterable[ModelPiece]) -> list[ToolCallPiece]:
    """The parts of calls, as they came."""
    return [piece for piece in pieces if isinstance(piece, ToolCallPiece)]


def tool(name: str, **properties: Any) -> ToolDefinition:
    """A tool definition with these properties."""
    return ToolDefinition(
        name=name, description=f"does {name}", parameters={"type": "object", "properties": properties}
    )


def called(tool_name: str, call_id: str = "c1", text: str = "", **input: Any) -> Message:
    """An assistant message with one call."""
    call = ToolCall(call_id=call_id, tool_name=tool_name, input=input)
    return Message(role="assistant", content=text, tool_calls=(call,))


def result(content: Any, call_id: str = "c1", tool_name: str = "look", **fields: Any) -> Message:
    """A tool message."""
    return Message(role="tool", content=content, call_id=call_id, tool_name=tool_name, **fields)


async def failure(reply: Reply, **options: Any) -> ModelError:
    """The error that a provider makes of one scripted reply."""
    async with ScriptedModel(reply) as model, provider_at(model, **options) as provider:
        with pytest.raises(ModelError) as raised:
            await pieces_of(provider)
    assert raised.value.provider == "local"
    return raised.value


async def failure_at(base_url: str, **options: Any) -> SidecarError:
    """The error of a provider that cannot get through to its server."""
    provider = open_provider("local", ProviderOptions(base_url=base_url, **options))
    try:
        with pytest.raises(SidecarError) as raised:
            await pieces_of(provider)
    finally:
        await provider.aclose()
    return raised.value


async def read(reply: Reply, **server: Any) -> list[ModelPiece]:
    """What a provider makes of one scripted reply."""
    async with ScriptedModel(reply, **server) as model, provider_at(model) as provider:
        return await pieces_of(provider)
