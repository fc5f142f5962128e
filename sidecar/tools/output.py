"""Whatever a tool gives back, as a ToolResult that is JSON, and as what a model is shown of it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from attrs import evolve

from sidecar.protocol.codec import decode, encode
from sidecar.protocol.errors import SidecarError, ToolError
from sidecar.protocol.messages import ToolsExecuteResult
from sidecar.protocol.secrets import Secrets
from sidecar.protocol.values import Content, ContentBlock, TextBlock, ToolResult
from sidecar.tools.base import ToolOutput

OnPart = Callable[[Any], Awaitable[None]]

MAX_STREAMED_BYTES = 64 * 1024 * 1024
"""All the parts of a streamed result together; more is a tool that does not know when to stop (own choice)."""


async def result_of(output: ToolOutput, on_part: OnPart) -> ToolResult:
    """The result that `output` stands for; each part of a streamed one goes to `on_part` as it comes.

    Raises ToolError `executionFailed` for what cannot be written as JSON.
    """
    if isinstance(output, AsyncIterator):
        output = await _joined(output, on_part)
    result = output if isinstance(output, ToolResult) else ToolResult.success(output)
    data, content = _plain(result.data), _plain_blocks(result.content)
    if data is result.data and content is result.content:
        return result
    return evolve(result, data=data, content=content)


def without_secrets(result: ToolResult, secrets: Secrets) -> ToolResult:
    """The result as anybody may see it."""
    if secrets.is_empty:
        return result
    blocks = encode(result.content)
    hidden = secrets.hide_in(blocks)
    content = (
        result.content if hidden == blocks else decode({"ok": True, "content": hidden}, ToolsExecuteResult).content
    )
    message = result.error_message and secrets.hide(result.error_message)
    return evolve(result, data=secrets.hide_in(result.data), error_message=message, content=content)


def error_without_secrets(error: ToolError, secrets: Secrets) -> ToolError:
    """The same error as anybody may see it."""
    error.message = secrets.hide(error.message)
    error.data = secrets.hide_in(error.data)
    return error


def shown(result: ToolResult) -> Content:
    """What a model is shown: its blocks, else its text, else its data as compact JSON."""
    match result.content:
        case None | ():
            return _text(result)
        case (TextBlock(text=text, annotations=None),):
            return text
        case blocks:
            return blocks


def shown_error(error: SidecarError) -> str:
    """What a model is shown of a call that could not be carried out."""
    return _encodable(f"error: {error.message}")


def compact(value: Any) -> str:
    """The shortest JSON; raises ValueError, TypeError or RecursionError where there is none."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


async def _joined(parts: AsyncIterator[Any], on_part: OnPart) -> Any:
    """Text joined, or the last part when it is a ToolResult, or else the list of parts."""
    collected: list[Any] = []
    size = 0
    async with aclosing(_closable(parts)) as stream:
        async for part in stream:
            plain = part.data if isinstance(part, ToolResult) else part
            size += len(compact(_plain(plain)))
            if size > MAX_STREAMED_BYTES:
                raise _failed(f"the tool streamed more than {MAX_STREAMED_BYTES} bytes")
            collected.append(part)
            await on_part(plain)
    if collected and isinstance(collected[-1], ToolResult):
        return collected[-1]
    if collected and all(isinstance(part, str) for part in collected):
        return "".join(collected)
    return [part.data if isinstance(part, ToolResult) else part for part in collected]


async def _closable(parts: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """An iterator of a user's own need not have `aclose`."""
    try:
        async for part in parts:
            yield part
    finally:
        if hasattr(parts, "aclose"):
            await parts.aclose()


def _plain(data: Any) -> Any:
    """The data if it is JSON; with text that no encoding can carry replaced."""
    if isinstance(data, str):
        return _encodable(data)
    if data is None or isinstance(data, int):
        return data
    try:
        text = compact(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise _failed(f"the tool's result cannot be written as JSON: {error}") from error
    clean = _encodable(text)
    return data if clean is text else json.loads(clean)


def _plain_blocks(blocks: tuple[ContentBlock, ...] | None) -> tuple[ContentBlock, ...] | None:
    if all(map(_is_clean_text, blocks or ())):
        return blocks
    raw = encode(blocks)
    plain = _plain(raw)
    return blocks if plain is raw else decode({"ok": True, "content": plain}, ToolsExecuteResult).content


def _is_clean_text(block: ContentBlock) -> bool:
    """Of a large text no JSON need be made only to see that it can be."""
    return isinstance(block, TextBlock) and block.annotations is None and _encodable(block.text) is block.text


def _text(result: ToolResult) -> str:
    if result.ok:
        return result.data if isinstance(result.data, str) else compact(result.data)
    said = f"error: {result.error or 'the tool failed'}"
    if result.data is None:
        return _encodable(said)
    return _encodable(f"{said}\n{result.data if isinstance(result.data, str) else compact(result.data)}")


def _encodable(text: str) -> str:
    """The same text, where UTF-8 can carry it; pairs of surrogates are joined, halves become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _failed(message: str) -> ToolError:
    return ToolError("executionFailed", message)
