"""A conversation as the Messages API takes it. Pure.

Roles take turns: neighbouring messages of one role are one message there, and the results of tools are what the
user says. Blocks that the API wants back (`ProviderExtras` made by `anthropic_events`) go back as they came, in
their place among text and calls, to the provider of that name alone.

The API reads from its cache what it has read before, up to a block that is marked. Marked are the system text and
the ends of the last two user messages: the one before the last is where the previous request ended.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, frozen

from sidecar.protocol.values import Content, JsonObject, Message, ToolCall
from sidecar.providers.base import ModelRequest, WarningPiece
from sidecar.providers.content import ContentReduction, Media, joined
from sidecar.providers.json_text import as_json
from sidecar.providers.lowering import ProviderLimits, wire_call_id
from sidecar.providers.written import WireName, Written, WrittenMessages

IMAGES = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
}
"""The images that the API takes, and its name for each."""

OPENING = "(The conversation so far:)"
"""Stands before a conversation that the assistant begins; the API wants the user to."""


@frozen(kw_only=True)
class WireConversation:
    """The `system` and `messages` of a request as JSON text, and what could not be said in them."""

    system: tuple[str, ...]
    messages: tuple[str, ...]
    warnings: tuple[WarningPiece, ...]


@define
class _Turn:
    """All that one role says before the other one does."""

    role: str
    blocks: list[str]

    def as_text(self) -> str:
        return f'{{"role":"{self.role}","content":[{",".join(self.blocks)}]}}'


class ConversationWriter:
    """Writes conversations for one provider. Messages that it wrote before cost next to nothing."""

    def __init__(self, provider: str, limits: ProviderLimits) -> None:
        self._provider = provider
        self._limits = limits
        self._written = WrittenMessages(self._write)

    def write(self, request: ModelRequest, wire_name: WireName) -> WireConversation:
        """The conversation of a request; `wire_name` gives the name under which the provider knows a tool."""
        warnings: dict[str, WarningPiece] = {}
        system = self._system(request, warnings)
        turns = self._turns(request, wire_name, warnings)
        for turn in [turn for turn in turns if turn.role == "user"][-2:]:
            turn.blocks[-1] = cached(turn.blocks[-1])
        return WireConversation(
            system=(cached(as_json(_text_block(system))),) if system else (),
            messages=tuple(turn.as_text() for turn in turns),
            warnings=tuple(warnings.values()),
        )

    def _system(self, request: ModelRequest, warnings: dict[str, WarningPiece]) -> str:
        content = ContentReduction(self._provider)
        texts = [request.system or "", *(content.text(m.content) for m in request.messages if m.role == "system")]
        warnings.update((warning.message, warning) for warning in content.warnings)
        return joined(text for text in texts if text.strip())

    def _turns(self, request: ModelRequest, wire_name: WireName, warnings: dict[str, WarningPiece]) -> list[_Turn]:
        turns: list[_Turn] = []
        waiting: list[str] = []  # What came with failed calls besides text, until all results have been given.
        for message in request.messages:
            if message.role == "system":
                continue
            written = self._written.of(message, wire_name)
            for warning in written.warnings:
                warnings[warning.message] = warning
            if waiting and message.role != "tool":
                _join(turns, "user", waiting)
                waiting = []
            _join(turns, "assistant" if message.role == "assistant" else "user", written.texts)
            waiting += written.later
        _join(turns, "user", waiting)
        if turns and turns[0].role != "user":
            turns.insert(0, _Turn("user", [as_json(_text_block(OPENING))]))
        return turns

    # One message ----------------------------------------------------------------------------------------

    def _write(self, message: Message, wire_name: WireName) -> Written:
        content = ContentReduction(self._provider)
        match message.role:
            case "assistant":
                return self._assistant(message, wire_name, content)
            case "tool":
                return self._result(message, content)
            case _:
                blocks = _blocks(message.content, content)
                return Written(texts=tuple(map(as_json, blocks)), warnings=content.warnings)

    def _assistant(self, message: Message, wire_name: WireName, content: ContentReduction) -> Written:
        text, calls = content.text(message.content), message.tool_calls or ()
        written = [self._call(call, wire_name) for call in calls]
        blocks = list(_in_order(self._own_blocks(message), text, written))
        while blocks and _is_thought(blocks[-1]):
            blocks.pop()  # The API refuses a message that ends in thought, or holds nothing else.
        names = tuple((call.tool_name, wire_name(call.tool_name)) for call in calls)
        return Written(texts=tuple(map(as_json, blocks)), names=names, warnings=content.warnings)

    def _call(self, call: ToolCall, wire_name: WireName) -> JsonObject:
        call_id = wire_call_id(call.call_id, self._limits)
        return {"type": "tool_use", "id": call_id, "name": wire_name(call.tool_name), "input": call.input}

    def _result(self, message: Message, content: ContentReduction) -> Written:
        call_id = wire_call_id(message.call_id or "", self._limits)
        blocks = _blocks(message.content, content)
        others = [block for block in blocks if block["type"] != "text"]
        result: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
        later: list[JsonObject] = []
        if message.is_error and others:  # A failed call may hold nothing but text.
            intro = f"What {message.tool_name or 'the tool'} returned besides text (call {call_id}):"
            later = [_text_block(intro), *others]
            blocks = [block for block in blocks if block["type"] == "text"]
        if all(block["type"] == "text" for block in blocks):
            said: Any = joined(str(block["text"]) for block in blocks) or ("it failed" if message.is_error else "")
        else:
            said = blocks
        result |= ({"content": said} if said else {}) | ({"is_error": True} if message.is_error else {})
        return Written(texts=(as_json(result),), later=tuple(map(as_json, later)), warnings=content.warnings)

    def _own_blocks(self, message: Message) -> list[JsonObject]:
        """The blocks of this message that this provider wants back, if any; see `anthropic_events`."""
        extras = message.provider_extras
        if extras is None or extras.provider != self._provider or not isinstance(extras.data, dict):
            return []
        blocks = extras.data.get("blocks")
        return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def cached(block: str) -> str:
    """A block in JSON, marked as the end of what the API is to keep in its cache."""
    return f'{block[:-1]},"cache_control":{{"type":"ephemeral"}}}}'


def _join(turns: list[_Turn], role: str, blocks: Sequence[str]) -> None:
    if not blocks:
        return
    if turns and turns[-1].role == role:
        turns[-1].blocks += blocks
    else:
        turns.append(_Turn(role, list(blocks)))


def _in_order(own: list[JsonObject], text: str, calls: list[JsonObject]) -> Iterator[JsonObject]:
    """The blocks of an assistant's message as they came, however much of them is still there."""
    told, left = 0, dict(enumerate(calls))
    for block in own:
        match block:
            case {"textCharacters": int(count)}:
                yield from _text_blocks(text[told : told + count])
                told += count
            case {"call": int(number)}:
                yield from [left.pop(number)] if number in left else []
            case {"type": str()}:
                yield block
    yield from _text_blocks(text[told:])
    yield from left.values()


def _is_thought(block: JsonObject) -> bool:
    return block.get("type") in ("thinking", "redacted_thinking")


# Content ------------------------------------------------------------------------------------------------


def _blocks(said: Content, content: ContentReduction) -> list[JsonObject]:
    blocks: list[JsonObject] = []
    for part in content.parts(said):
        blocks += _text_blocks(part) if isinstance(part, str) else [_media_block(part, content)]
    return blocks


def _media_block(media: Media, content: ContentReduction) -> JsonObject:
    if image := IMAGES.get(media.mime_type):
        return {"type": "image", "source": {"type": "base64", "media_type": image, "data": media.data}}
    if media.mime_type == "application/pdf":
        return {
            "type": "document",
            "source": {"type": "base64", "media_type": media.mime_type, "data": media.data},
        }
    return _text_block(content.left_out(media.what))


def _text_blocks(text: str) -> list[JsonObject]:
    """A text as blocks: none where it is nothing but space, which the API refuses."""
    return [_text_block(text)] if text.strip() else []


def _text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}
