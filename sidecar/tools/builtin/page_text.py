"""The text of what came over HTTP: HTML as Markdown, everything else that is text as it is."""

import codecs
import re

from charset_normalizer import from_bytes
from markdownify import MarkdownConverter

from sidecar.web.fetching import Page

_HTML = ("text/html", "application/xhtml+xml")
_TEXT_TYPES = re.compile(
    r"text/.*|application/(json|xml|javascript|ecmascript|x-ndjson|yaml|toml|x-sh)|.*\+(json|xml)"
)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]{1,40})""", re.IGNORECASE)
_UNSHOWN = re.compile(r"<(script|style|noscript|template|svg)\b.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_EMPTY_LINES = re.compile(r"\n\s*\n\s*\n+")
_HEAD_BYTES = 2048


class UnfitPageError(Exception):
    """What came is no text; the message says what it is."""


def text_of(page: Page, *, is_raw: bool) -> str:
    """The text of a page. Raises UnfitPageError for what is binary. Takes a while for large HTML."""
    is_html = page.media_type in _HTML
    if not is_html and (b"\0" in page.body[:_HEAD_BYTES] or not _may_be_text(page)):
        raise UnfitPageError(f"{page.url} is no text but {page.media_type or 'binary'}, {len(page.body)} bytes")
    text = _decoded(page)
    return text if is_raw or not is_html else _markdown(text)


def _may_be_text(page: Page) -> bool:
    return not page.media_type or bool(_TEXT_TYPES.fullmatch(page.media_type))


def _decoded(page: Page) -> str:
    """By the charset that is named, else UTF-8, else by the look of it."""
    named = page.charset
    if named is None and (found := _META_CHARSET.search(page.body[:_HEAD_BYTES])):
        named = found[1].decode("ascii")
    for encoding in (named, "utf-8-sig"):
        if encoding is not None and _is_text_encoding(encoding):
            try:
                return page.body.decode(encoding)
            except UnicodeDecodeError:
                if page.is_cut:  # Perhaps only in the middle of its last character.
                    return page.body.decode(encoding, "replace")
    guess = from_bytes(page.body).best()
    return str(guess) if guess is not None else page.body.decode(errors="replace")


def _is_text_encoding(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except LookupError:
        return False


def _markdown(html: str) -> str:
    converter = MarkdownConverter(heading_style="ATX", strip=["img"], autolinks=False)
    text: str = converter.convert(_UNSHOWN.sub("", html))
    return _EMPTY_LINES.sub("\n\n", text).strip()
