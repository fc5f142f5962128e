"""Content blocks reduced to what model APIs know: text, and media by type. Pure."""

from collections.abc import Iterable, Iterator

from attrs import frozen

from sidecar.protocol.values import (
    AudioBlock,
    Content,
    ContentBlock,
    ImageBlock,
    JsonObject,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from sidecar.providers.base import WarningPiece


@frozen(kw_only=True)
class Media:
    """Something that is not text. `data` is base64, `what` names it for people and the model."""

    mime_type: str
    data: str
    what: str


class ContentReduction:
    """Reduces the content of one request, and gathers what could not be said in it."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._warnings: dict[str, WarningPiece] = {}

    @property
    def warnings(self) -> tuple[WarningPiece, ...]:
        """One for each kind of content that was left out."""
        return tuple(self._warnings.values())

    def parts(self, content: Content) -> Iterator[str | Media]:
        """The content in its order. What is neither text nor media is told as text."""
        if isinstance(content, str):
            yield content
            return
        for block in content:
            yield self._part(block)

    def text(self, content: Content) -> str:
        """The content of a message that can hold nothing but text."""
        if isinstance(content, str):
            return content
        return joined(p if isinstance(p, str) else self.left_out(p.what) for p in self.parts(content))

    def left_out(self, what: str) -> str:
        """Notes that something cannot be sent; the text that stands in its place."""
        message = f"{what} cannot be sent to {self._provider}; the model is told that it is missing"
        self._warnings[what] = WarningPiece(code="contentLeftOut", message=message)
        return f"[{what} cannot be shown here]"

    def _part(self, block: ContentBlock) -> str | Media:
        match block:
            case TextBlock(text=text):
                return text
            case ImageBlock(data=data, mime_type=mime_type):
                return Media(mime_type=mime_type, data=data, what=f"an image of type {mime_type}")
            case AudioBlock(data=data, mime_type=mime_type):
                return Media(mime_type=mime_type, data=data, what=f"sound of type {mime_type}")
            case ResourceBlock(resource=resource):
                return self._resource(resource)
            case ResourceLinkBlock(uri=uri, name=name):
                described = f": {block.description}" if block.description else ""
                return f"[{block.title or name}]({uri}){described}"
            case UnknownBlock(raw=raw):
                return self.left_out(f"content of type {raw.get('type')!r}")

    def _resource(self, resource: JsonObject) -> str | Media:
        uri, mime_type = resource.get("uri"), str(resource.get("mimeType") or "")
        if isinstance(resource.get("text"), str):
            return f"{uri}:\n{resource['text']}"
        what = f"the resource {uri} ({mime_type or 'of unknown type'})"
        blob = resource.get("blob")
        return Media(mime_type=mime_type, data=blob, what=what) if isinstance(blob, str) else self.left_out(what)


def joined(texts: Iterable[str]) -> str:
    """Several texts as one."""
    return "\n\n".join(texts)
