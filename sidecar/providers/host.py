"""Models that the host lends: a request goes out as `model/complete`, its text may come before the answer.

What an editor has in models of its own is used without a key of ours. How the host is asked is passed in.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable

from sidecar.protocol.errors import ModelError
from sidecar.protocol.messages import ModelCompleteParams, ModelCompleteResult, ModelInfo
from sidecar.protocol.values import Message, TextBlock
from sidecar.providers.base import (
    FinishPiece,
    ModelPiece,
    ModelRequest,
    ReasoningPiece,
    TextPiece,
    ToolCallPiece,
    UsagePiece,
)
from sidecar.providers.options import ProviderOptions

OnText = Callable[[str], None]
Complete = Callable[[ModelCompleteParams, OnText], Awaitable[ModelCompleteResult]]
"""Asks the host; `OnText` hears of text that comes before the answer. Raises ModelError."""


async def nobody_lends(params: ModelCompleteParams, on_text: OnText) -> ModelCompleteResult:
    """For processes without a host."""
    raise ModelError("there is no host that could lend a model; choose another provider", provider="host")


class HostModels:
    """The models of the host, as a provider. `idleTimeoutSecs` limits the time without a word from the host."""

    def __init__(self, name: str, options: ProviderOptions, complete: Complete) -> None:
        self.name = name
        self.context_tokens = options.context_tokens
        self._idle_secs = options.idle_limit_secs
        self._complete = complete

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece, None]:
        """One answer of the host's model."""
        heard: asyncio.Queue[str] = asyncio.Queue()
        asking = asyncio.ensure_future(self._complete(_params(request, self._idle_secs), heard.put_nowait))
        said = ""
        try:
            while (text := await self._next(heard, asking)) is not None:
                said += text
                yield TextPiece(text=text)
            result = await asking
        finally:
            asking.cancel()
        for piece in _rest(result, said):
            yield piece

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """None: a host says in its own settings which it has."""
        return ()

    async def aclose(self) -> None:
        """Holds nothing."""

    async def _next(
        self, heard: "asyncio.Queue[str]", asking: "asyncio.Future[ModelCompleteResult]"
    ) -> str | None:
        """The next text; None when the answer is there and all its text was heard."""
        listening = asyncio.ensure_future(heard.get())
        try:
            await asyncio.wait((listening, asking), timeout=self._idle_secs, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                return listening.result()
        finally:
            listening.cancel()
        if not asking.done():
            raise ModelError(
                f"{self.name}: the host's model said nothing for {self._idle_secs:g} s",
                provider=self.name,
                kind="modelTimeout",
                retryable=True,
            )
        return None if heard.empty() else heard.get_nowait()


def _params(request: ModelRequest, idle_secs: float) -> ModelCompleteParams:
    return ModelCompleteParams(
        request_id=f"model_{uuid.uuid4().hex}",
        model=request.model or None,
        system=request.system,
        messages=request.messages,
        tools=request.tools,
        temperature=request.temperature,
        max_output_tokens=request.max_output_tokens,
        idle_timeout_ms=round(idle_secs * 1000),
    )


def _rest(result: ModelCompleteResult, said: str) -> list[ModelPiece]:
    """What the answer holds beyond the text that came before it."""
    message = result.message
    pieces: list[ModelPiece] = []
    text = _text_of(message)
    if message.reasoning:
        pieces.append(ReasoningPiece(text=message.reasoning))
    if text.startswith(said) and len(text) > len(said):
        pieces.append(TextPiece(text=text[len(said) :]))
    for index, call in enumerate(message.tool_calls or ()):
        arguments = json.dumps(call.input, ensure_ascii=False)
        pieces.append(ToolCallPiece(index=index, call_id=call.call_id, name=call.tool_name, arguments=arguments))
    if result.usage is not None:
        pieces.append(UsagePiece(usage=result.usage))
    pieces.append(FinishPiece(reason=result.finish_reason or ("toolCalls" if message.tool_calls else "stop")))
    return pieces


def _text_of(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))
