"""Cuts what a model is shown of a result: head and tail stay, at whole lines where that costs little. Pure."""

from attrs import evolve, frozen

from sidecar.protocol.codec import encode
from sidecar.protocol.values import AudioBlock, Content, ContentBlock, ImageBlock, ResourceBlock, TextBlock
from sidecar.tools.output import compact

BINARY_ALLOWANCE = 64
"""An image or sound may be this many times the limit for text: it costs a model far less than its bytes.

Own choice; with the default of 64 KiB it makes 4 MiB, below what the large vendors take.
"""


@frozen(kw_only=True)
class Cut:
    """Content within the limit. `original_bytes`, in UTF-8, is set when something had to go."""

    content: Content
    original_bytes: int | None = None

    @property
    def truncated(self) -> bool:
        return self.original_bytes is not None


def cut(content: Content, max_bytes: int) -> Cut:
    """`content` with at most `max_bytes` of text, not counting a word on each block that was left out."""
    size = _size(content)
    if isinstance(content, str):
        shorter: Content = cut_text(content, max_bytes)
    else:
        shorter = _cut_blocks(content, max_bytes)
    return Cut(content=shorter, original_bytes=None if shorter == content else size)


def cut_text(text: str, max_bytes: int) -> str:
    """The text, or its head and tail around a line that tells its size; never more than `max_bytes`."""
    raw = text.encode()
    if len(raw) <= max_bytes:
        return text
    marker = f"\n[... cut here: {len(raw)} bytes in all, shown are the first and the last of them ...]\n"
    room = max_bytes - len(marker)
    if room <= 0:
        return marker.strip()[: max(max_bytes, 0)]
    tail_bytes = room // 3  # The head says what it is; the end of a log says what came of it.
    return _head(raw, room - tail_bytes) + marker + _tail(raw, tail_bytes)


def _head(raw: bytes, size: int) -> str:
    piece = raw[:size].decode(errors="ignore")
    line_end = piece.rfind("\n")
    return piece[:line_end] if line_end >= len(piece) * 3 // 4 else piece


def _tail(raw: bytes, size: int) -> str:
    piece = raw[len(raw) - size :].decode(errors="ignore")
    line_start = piece.find("\n") + 1
    return piece[line_start:] if line_start <= len(piece) // 4 else piece


def _cut_blocks(blocks: tuple[ContentBlock, ...], max_bytes: int) -> tuple[ContentBlock, ...]:
    """Blocks in order, as long as there is room for text; the last that fits is cut, the rest is counted."""
    kept: list[ContentBlock] = []
    room = max_bytes
    for place, block in enumerate(blocks):
        fitting = _fitting(block, room, max_bytes)
        room -= _text_size(fitting)
        if room < 0:
            missing = blocks[place:]
            count = f"{len(missing)} more block{'s' if len(missing) > 1 else ''}"
            kept.append(TextBlock(text=f"[{count}, {_size(missing)} bytes, left out]"))
            break
        kept.append(fitting)
    return tuple(kept)


def _fitting(block: ContentBlock, room: int, max_bytes: int) -> ContentBlock:
    match block:
        case TextBlock(text=text):
            return evolve(block, text=cut_text(text, room)) if room > 0 else block
        case ResourceBlock(resource={"text": str(text)} as resource) if room > 0:
            return evolve(block, resource={**resource, "text": cut_text(text, room)})
        case ImageBlock() | AudioBlock() | ResourceBlock() if _size((block,)) > max_bytes * BINARY_ALLOWANCE:
            what = block.type if isinstance(block, ResourceBlock) else f"{block.type} {block.mime_type}"
            return TextBlock(text=f"[{what} of {_size((block,))} bytes left out: too large for a tool result]")
        case _:
            return block


def _text_size(block: ContentBlock) -> int:
    """The bytes that count as text; those of an image have a limit of their own."""
    match block:
        case TextBlock(text=text) | ResourceBlock(resource={"text": str(text)}):
            return len(text.encode())
        case ImageBlock() | AudioBlock() | ResourceBlock():
            return 0
        case _:
            return _size((block,))


def _size(content: Content) -> int:
    if isinstance(content, str):
        return len(content.encode())
    return sum(_block_size(block) for block in content)


def _block_size(block: ContentBlock) -> int:
    match block:
        case TextBlock(text=text) | ResourceBlock(resource={"text": str(text)}):
            return len(text.encode())
        case ImageBlock(data=data) | AudioBlock(data=data) | ResourceBlock(resource={"blob": str(data)}):
            return len(data)
        case _:
            return len(compact(encode(block)).encode())
