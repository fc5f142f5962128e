"""A conversation as Chat Completions takes it. Pure.

What a provider wants back with an assistant message (`ProviderExtras` made by `openai_chunks`) goes back to
the provider of that name alone: `reasoningField` names the field that the message's reasoning came in,
`reasoningDetails` is OpenRouter's list, `callExtras` holds Gemini's `extra_content` by call id.
"""

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from sidecar.protocol.values import Content, JsonObject, Message, ToolCall
from sidecar.providers.base import ModelRequest, WarningPiece
from sidecar.providers.content import ContentReduction, Media, joined
from sidecar.providers.json_text import as_json
from sidecar.providers.lowering import ProviderLimits, wire_call_id
from sidecar.providers.written import WireName, Written, WrittenMessages

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
    """The `messages` of a request, each as JSON text, and what could not be said in them."""

    texts: tuple[str, ...]
    warnings: tuple[WarningPiece, ...]


class ConversationWriter:
    """Writes conversations for one provider. Messages that it wrote before cost next to nothing."""

    def __init__(self, provider: str, limits: ProviderLimits) -> None:
        self._provider = provider
        self._limits = limits
        self._written = WrittenMessages(self._write)

    def write(self, request: ModelRequest, wire_name: WireName) -> WireMessages:
        """The conversation of a request; `wire_name` gives the name under which the provider knows a tool."""
        texts: list[str] = []
        waiting: list[str] = []  # Images in tool results, until all results have been given.
        warnings: dict[str, WarningPiece] = {}
        if system := self._system(request, warnings):
            texts.append(as_json({"role": "system", "content": system}))
        for message in request.messages:
            if message.role == "system":
                continue
            written = self._written.of(message, wire_name)
            for warning in written.warnings:
                warnings[warning.message] = warning
            if waiting and message.role == "user":
                texts.append(self._joining(waiting, message))
                waiting = []
                continue
            if waiting and message.role == "assistant":
                texts.append(_user_text(waiting))
                waiting = []
            texts += written.texts
            waiting += written.later
        if waiting:
            texts.append(_user_text(waiting))
        return WireMessages(texts=tuple(texts), warnings=tuple(warnings.values()))

    def _system(self, request: ModelRequest, warnings: dict[str, WarningPiece]) -> str:
        """All system text. Templates of local models take one system message, at the beginning."""
        content = ContentReduction(self._provider)
        texts = [request.system or "", *(content.text(m.content) for m in request.messages if m.role == "system")]
        warnings.update((warning.message, warning) for warning in content.warnings)
        return joined(text for text in texts if text)

    def _joining(self, waiting: Sequence[str], message: Message) -> str:
        """What the user says after results with images; templates want user and assistant to take turns."""
        parts = self._parts(message.content, ContentReduction(self._provider))
        return _user_text([*waiting, *map(as_json, parts)])

    # One message ----------------------------------------------------------------------------------------

    def _write(self, message: Message, wire_name: WireName) -> Written:
        content = ContentReduction(self._provider)
        match message.role:
            case "assistant":
                return self._assistant(message, wire_name, content)
            case "tool":
                return self._tool(message, content)
            case _:
                said = {"role": "user", "content": self._user_content(message.content, content)}
                return Written(texts=(as_json(said),), warnings=content.warnings)

    def _assistant(self, message: Message, wire_name: WireName, content: ContentReduction) -> Written:
        text, calls = content.text(message.content), message.tool_calls or ()
        if not text and not calls:
            return Written(texts=())  # Every provider refuses an empty one.
        said: JsonObject = {"role": "assistant", "content": text or None}
        if calls:
            said["tool_calls"] = [self._call(call, message, wire_name) for call in calls]
        said.update(self._extras_of(message))
        names = tuple((call.tool_name, wire_name(call.tool_name)) for call in calls)
        return Written(texts=(as_json(said),), names=names, warnings=content.warnings)

    def _tool(self, message: Message, content: ContentReduction) -> Written:
        parts = self._parts(message.content, content)
        texts = [part for part in parts if part["type"] == "text"]
        others = [part for part in parts if part["type"] != "text"]
        call_id = wire_call_id(message.call_id or "", self._limits)
        text = _joined_parts(texts) if texts or not others else "(what it returned follows in the next message)"
        later: list[JsonObject] = []
        if others:
            tool = message.tool_name or "the tool"
            later = [_text_part(f"What {tool} returned besides text (call {call_id}):"), *others]
        said = {"role": "tool", "tool_call_id": call_id, "content": text}
        return Written(texts=(as_json(said),), later=tuple(map(as_json, later)), warnings=content.warnings)

    def _call(self, call: ToolCall, message: Message, wire_name: WireName) -> JsonObject:
        written: JsonObject = {
            "id": wire_call_id(call.call_id, self._limits),
            "type": "function",
            "function": {"name": wire_name(call.tool_name), "arguments": as_json(call.input)},
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

    def _user_content(self, said: Content, content: ContentReduction) -> str | list[JsonObject]:
        """Plain text where that is all there is: many servers take nothing else."""
        if isinstance(said, str):
            return said
        parts = self._parts(said, content)
        return _joined_parts(parts) if all(part["type"] == "text" for part in parts) else parts

    def _parts(self, said: Content, content: ContentReduction) -> list[JsonObject]:
        parts = content.parts(said)
        return [_text_part(part) if isinstance(part, str) else _media_part(part, content) for part in parts]


def _media_part(media: Media, content: ContentReduction) -> JsonObject:
    if media.mime_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{media.mime_type};base64,{media.data}"}}
    if audio_format := AUDIO_FORMATS.get(media.mime_type):
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": audio_format}}
    return _text_part(content.left_out(media.what))


def _user_text(parts: Sequence[str]) -> str:
    """A user message made of parts that are JSON already."""
    return f'{{"role":"user","content":[{",".join(parts)}]}}'


def _text_part(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _joined_parts(parts: Sequence[JsonObject]) -> str:
    return joined(str(part["text"]) for part in parts)


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}
