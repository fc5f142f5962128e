"""What servers over HTTP say when they fail, as errors that say what to do. Pure.

A server's own words are repeated, cut and without the secrets of its entry.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from html import unescape
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from sidecar.mcp.transport import HttpStatusError
from sidecar.protocol.errors import ToolError

MAX_QUOTED_CHARACTERS = 300
"""How much of a server's own words an error repeats. Own choice."""


@frozen(kw_only=True, eq=False)
class Endpoint:
    """A server as errors may show it. `secrets` are what its URL and headers hold."""

    server: str
    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    has_credentials: bool = False

    @property
    def name(self) -> str:
        return f"server {self.server!r}"

    @property
    def path(self) -> str:
        return f"mcpServers.{self.server}"

    @property
    def place(self) -> str:
        """The URL without what may be secret in it."""
        return shown_url(self.url)

    def clean(self, text: str) -> str:
        """Words of the server in one line, cut, without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= MAX_QUOTED_CHARACTERS else text[:MAX_QUOTED_CHARACTERS] + " …"

    def words(self, body: bytes) -> str:
        """What an error's body says, as errors may show it."""
        return self.clean(said(body))

    def error(self, message: str) -> ToolError:
        """A failure of this server."""
        return ToolError("mcpError", message, server=self.server)

    def failed_status(
        self, status: int, headers: Mapping[str, str], body: bytes, *, asked: str, advice: str | None = None
    ) -> HttpStatusError:
        """An answer with another status than 2xx to what was `asked`. Header names are in lower case.

        `advice` is what else to try, beside what the status suggests.
        """
        wait_secs = retry_after_secs(headers, datetime.now(UTC))
        words = self.words(body)
        message = f"{self.name} answered {asked} with HTTP {status}{_phrase(status)}{words and f': {words}'}"
        if wait_secs is not None:
            message += f"; it asks to wait {wait_secs:g} s (Retry-After)"
        message += self._advice(status) + (f"; {advice}" if advice else "")
        error = HttpStatusError(message, server=self.server, status=status)
        if wait_secs is not None:
            error.data["retryAfterSecs"] = wait_secs
        if status == 401:
            error.data["needsAuth"] = True
        return error

    def no_message(self, status: int, media_type: str, body: bytes, *, asked: str) -> HttpStatusError:
        """Something, often a page for people, where a message should be. `body` may be its beginning alone."""
        what = "a web page" if is_web_page(media_type, body) else (media_type or "something")
        words = self.words(body)
        message = f"{self.name} answered {asked} with {what} instead of a message{words and f': {words}'}"
        message += f"; check that {self.path}.url leads to its MCP endpoint"
        return HttpStatusError(message, server=self.server, status=status)

    def _advice(self, status: int) -> str:
        match status:
            case 401 if self.has_credentials:
                return f"; check the credentials in {self.path}.headers"
            case 401:
                return (
                    f"; it needs to know who you are: give it a token in {self.path}.headers "
                    f'({{"Authorization": "Bearer …"}}), or let {self.path}.oauth get one'
                )
            case 403:
                return f"; check what the credentials in {self.path} may do"
            case 404 | 405 | 410:
                return f"; check {self.path}.url"
            case 429:
                return "; try again later"
            case _:
                return ""


def shown_url(url: str) -> str:
    """A URL as it may be shown: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "no URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def retry_after_secs(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait that a server asks for, in seconds or as a date (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdecimal() and len(value) < 9:
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, round((date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds()))


def said(body: bytes) -> str:
    """The words of an error's body: of JSON what is meant for people, of a page its text."""
    text = body.decode(errors="replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _without_markup(text)
    return _message_in(value) or text


_NO_MESSAGES = (401, 403, 407, 408, 429)
"""Statuses of 4xx that count themselves, whatever their body holds; of the others a JSON-RPC error counts."""


def answer_in(status: int, body: bytes, request_id: int | None) -> bytes | None:
    """The JSON-RPC error that comes with a status of 4xx, as an answer to the request; None where none does.

    Its own id is often missing, or null: whose answer it is, HTTP says.
    """
    if request_id is None or not 400 <= status < 500 or status in _NO_MESSAGES:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not (isinstance(value, dict) and "jsonrpc" in value and isinstance(value.get("error"), dict)):
        return None
    return json.dumps({**value, "id": request_id}).encode()


def is_web_page(media_type: str, start: bytes) -> bool:
    """Whether something is HTML, whatever it is called."""
    head = start.lstrip()[:100].lower()
    return media_type == "text/html" or head.startswith((b"<!doctype html", b"<html"))


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _message_in(value: Any) -> str:
    for name in ("error", "message", "error_description", "detail", "title"):
        inner = value.get(name) if isinstance(value, dict) else None
        if isinstance(inner, dict):
            return _message_in(inner)
        if isinstance(inner, str) and inner:
            more = value.get("error_description") if name == "error" else None
            return f"{inner}: {more}" if isinstance(more, str) else inner
    return ""


def _without_markup(text: str) -> str:
    if "<" not in text:
        return text
    return " ".join(unescape(re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>", " ", text)).split())
