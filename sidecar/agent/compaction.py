"""Makes a history smaller: old tool results shrink first, then old turns become a summary.

The latest run stays whole, and a call is never parted from its result: everything before the latest run is
either kept with its results shortened, or replaced as a whole. Pure but for the one question to a model.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from attrs import evolve, frozen

from sidecar.agent.conversation import Conversation
from sidecar.protocol.codec import encode
from sidecar.protocol.errors import ModelError
from sidecar.protocol.values import Message, TextBlock

BYTES_PER_TOKEN = 4
"""Rule of thumb for English and JSON, where no provider has counted (own choice)."""

KEPT_RESULT_CHARACTERS = 200
"""How much of an old tool result is kept, so that the model still knows what it saw (own choice)."""

EXCERPT_CHARACTERS = 400
"""How much of a message goes into a summary by rule, or into what a model is asked to sum up (own choice)."""

SUMMARY_HEADING = "Summary of the conversation before this point:"

SUMMARY_QUESTION = (
    "Sum up the conversation above so that it can be carried on from your summary alone. Keep what was asked, "
    "what was decided and done, names of files, values that were found, and what is still open. "
    "Answer with the summary and nothing else."
)

Summarise = Callable[[str], Awaitable[str]]
"""Asks a model for a summary of a transcript, the question included. Raises ModelError."""


@frozen(kw_only=True)
class Compaction:
    """Estimated tokens before and after."""

    before_tokens: int
    after_tokens: int


async def compact(
    conversation: Conversation, *, target_tokens: int, summarise: Summarise | None = None
) -> Compaction:
    """Brings the history down to `target_tokens` as far as the latest run allows.

    Without `summarise`, or where it fails, the summary is made by rule.
    """
    before_tokens = tokens_of(conversation.messages)
    old = conversation.messages[: conversation.latest_start]
    latest = conversation.messages[conversation.latest_start :]
    shrunk = [_shrunk(message) for message in old]
    if shrunk and tokens_of([*shrunk, *latest]) > target_tokens:
        shrunk = [await _summary(shrunk, summarise)]
    if tokens_of(shrunk) < tokens_of(old):
        conversation.messages[: conversation.latest_start] = shrunk
        conversation.latest_start = len(shrunk)
    return Compaction(before_tokens=before_tokens, after_tokens=tokens_of(conversation.messages))


def tokens_of(messages: Sequence[Message]) -> int:
    """About how many tokens messages are."""
    return sum(size_bytes(message) for message in messages) // BYTES_PER_TOKEN


def size_bytes(value: Any) -> int:
    """How large a value is in a request, roughly: the length of its text or JSON."""
    return len(value) if isinstance(value, str) else len(json.dumps(encode(value), ensure_ascii=False))


def _shrunk(message: Message) -> Message:
    """A tool message with its head alone; reasoning of old turns goes, other messages stay."""
    if message.role == "assistant" and message.reasoning and message.provider_extras is None:
        return evolve(message, reasoning=None)
    text = text_of(message)
    if message.role != "tool" or size_bytes(message.content) <= KEPT_RESULT_CHARACTERS + 100:
        return message
    left_out = size_bytes(message.content) - KEPT_RESULT_CHARACTERS
    return evolve(
        message, content=f"{text[:KEPT_RESULT_CHARACTERS]}\n[{left_out} bytes of this old result left out]"
    )


async def _summary(messages: Sequence[Message], summarise: Summarise | None) -> Message:
    text = ""
    if summarise is not None:
        try:
            text = (await summarise(f"{transcript(messages)}\n\n{SUMMARY_QUESTION}")).strip()
        except ModelError:
            text = ""  # A summary by rule is worse than the model's, and better than none.
    return Message(role="user", content=f"{SUMMARY_HEADING}\n\n{text or transcript(messages)}")


def transcript(messages: Sequence[Message]) -> str:
    """The messages as text, each cut to its beginning."""
    return "\n".join(line for message in messages for line in _lines(message))


def _lines(message: Message) -> list[str]:
    text = text_of(message).strip()
    said = text if len(text) <= EXCERPT_CHARACTERS else f"{text[:EXCERPT_CHARACTERS]} […]"
    speaker = f"result of {message.tool_name}" if message.role == "tool" else message.role
    lines = [f"{speaker}: {said}"] if said else []
    for call in message.tool_calls or ():
        arguments = json.dumps(call.input, ensure_ascii=False)
        lines.append(f"{message.role} called {call.tool_name} with {arguments[:EXCERPT_CHARACTERS]}")
    return lines


def text_of(message: Message) -> str:
    """The text of a message, without what is not text."""
    if isinstance(message.content, str):
        return message.content
    return "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
