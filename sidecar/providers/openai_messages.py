"""A conversation as Chat Completions takes it. Pure.

What a provider wants back with an assistant message (`ProviderExtras` made by `openai_chunks`) goes back to
the provider of that name alone: `reasoningField` names the field that the message's reasoning came in,
`reasoningDetails` is OpenRouter's list, `callExtras` holds Gemini's `extra_content` by call id.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from sidecar.protocol.values import Content, JsonObject, Message, ToolCall
from sidecar.providers.base import ModelRequest, WarningPiece
from sidecar.providers.content import ContentReduction, Media, joined

MAX_CALL_ID_CHARACTERS = 40
"""OpenAI refuses longer ids; other providers' are up to twice as long."""

AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
"""What `input_audio` may hold, by media type."""


@frozen(kw_only=True)
class WireMessages:
    """The `messages` of a request, and what could not be said in them."""

    messages: list[JsonObject]
    warnings: tuple[WarningPiece, ...]


def wire_messages(request: ModelRequest, *, provider: str, wire_name: Callable[[str], str]) -> WireMessages:
    """The request's conversation; `wire_name` gives the name under which the provider knows a tool."""
    writer = _Writer(provider, wire_name)
    writer.system(request)
    for message in request.messages:
        writer.add(message)
    writer.end()
    return WireMessages(messages=writer.written, warnings=writer.content.warnings)


class _Writer:
    """Writes messages one after the other. Images in tool results wait until all results have been given."""

    def __init__(self, provider: str, wire_name: Callable[[str], str]) -> None:
        self.written: list[JsonObject] = []
        self.content = ContentReduction(provider)
        self._provider = provider
        self._wire_name = wire_name
        self._waiting: list[JsonObject] = []

    def system(self, request: ModelRequest) -> None:
        # Templates of local models take one system message, at the beginning.
        texts = [
            request.system or "",
            *(self.content.text(m.content) for m in request.messages if m.role == "system"),
        ]
        if any(texts):
            self.written.append({"role": "system", "content": joined(text for text in texts if text)})

    def add(self, message: Message) -> None:
        match message.role:
            case "user":
                self._user(message)
            case "assistant":
                self.end()
                self._assistant(message)
            case "tool":
                self._tool(message)
            case "system":
                pass  # It is part of the first message.

    def end(self) -> None:
        if self._waiting:
            self.written.append({"role": "user", "content": self._waiting})
            self._waiting = []

    def _user(self, message: Message) -> None:
        content = self._user_content(message.content)
        if self._waiting:
            parts = [_text_part(content)] if isinstance(content, str) else content
            content = [*self._waiting, *parts]
            self._waiting = []
        self.written.append({"role": "user", "content": content})

    def _assistant(self, message: Message) -> None:
        text = self.content.text(message.content)
        calls = [self._call(call, message) for call in message.tool_calls or ()]
        if not text and not calls:
            return  # Every provider refuses an empty one.
        written: JsonObject = {"role": "assistant", "content": text or None}
        if calls:
            written["tool_calls"] = calls
        written.update(self._extras_of(message))
        self.written.append(written)

    def _tool(self, message: Message) -> None:
        parts = self._parts(message.content)
        texts = [part for part in parts if part["type"] == "text"]
        others = [part for part in parts if part["type"] != "text"]
        call_id = wire_call_id(message.call_id or "")
        text = _joined_parts(texts) if texts or not others else "(what it returned follows in the next message)"
        self.written.append({"role": "tool", "tool_call_id": call_id, "content": text})
        if others:
            tool = message.tool_name or "the tool"
            self._waiting += [_text_part(f"What {tool} returned besides text (call {call_id}):"), *others]

    def _call(self, call: ToolCall, message: Message) -> JsonObject:
        arguments = json.dumps(call.input, ensure_ascii=False, separators=(",", ":"))
        written: JsonObject = {
            "id": wire_call_id(call.call_id),
            "type": "function",
            "function": {"name": self._wire_name(call.tool_name), "arguments": arguments},
        }
        extra = _object(self._own_extras(message).get("callExtras")).get(call.call_id)
        return written if extra is None else {**written, "extra_content": extra}

    def _extras_of(self, message: Message) -> JsonObject:
        extras = self._own_extras(message)
        if details := extras.get("reasoningDetails"):
            return {"reasoning_details": details}
        if name := extras.get("reasoningField"):
            return {name: message.reasoning or ""}
        return {}

    def _own_extras(self, message: Message) -> JsonObject:
        extras = message.provider_extras
        return _object(extras.data) if extras is not None and extras.provider == self._provider else {}

    # Content --------------------------------------------------------------------------------------------

    def _user_content(self, content: Content) -> str | list[JsonObject]:
        """Plain text where that is all there is: many servers take nothing else."""
        if isinstance(content, str):
            return content
        parts = self._parts(content)
        return _joined_parts(parts) if all(part["type"] == "text" for part in parts) else parts

    def _parts(self, content: Content) -> list[JsonObject]:
        parts = self.content.parts(content)
        return [_text_part(part) if isinstance(part, str) else self._media_part(part) for part in parts]

    def _media_part(self, media: Media) -> JsonObject:
        if media.mime_type.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": f"data:{media.mime_type};base64,{media.data}"}}
        if audio_format := AUDIO_FORMATS.get(media.mime_type):
            return {"type": "input_audio", "input_audio": {"data": media.data, "format": audio_format}}
        return _text_part(self.content.left_out(media.what))


def wire_call_id(call_id: str) -> str:
    """The id that stands for a call in a request: its own, or a digest where that is too long or too odd."""
    if len(call_id) <= MAX_CALL_ID_CHARACTERS and _CALL_ID.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_CALL_ID = re.compile(r"[A-Za-z0-9_.:-]+")


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _joined_parts(parts: Sequence[JsonObject]) -> str:
    return joined(str(part["text"]) for part in parts)


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
