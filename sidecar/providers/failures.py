"""What providers say when they fail, as ModelError with the truth about retrying. Pure.

Statuses, codes and wordings differ by server; whatever a server said itself is part of the message. No
secret is: keys that a server repeats are taken out.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from attrs import field, frozen

from sidecar.protocol.errors import ModelError

MAX_QUOTED_CHARACTERS = 1000
"""How much of a server's own words an error repeats (own choice)."""

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, *range(500, 600)} - {501, 505})
"""Time-outs, conflicts, rate limits and server faults. 501 and 505 say that it will never work."""


@frozen(kw_only=True)
class Endpoint:
    """Whom was asked, as errors may show it. `what` is the kind of API that should be there.

    `key_origin` is where the key comes from, None without one.
    """

    provider: str
    url: str
    what: str
    key_origin: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def clean(self, text: str) -> str:
        """The text without the secrets, and no longer than an error should be."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= MAX_QUOTED_CHARACTERS else text[:MAX_QUOTED_CHARACTERS] + " …"


@frozen(kw_only=True)
class _Said:
    """A provider's error in its own words."""

    message: str
    codes: frozenset[str]
    number: int | None


def failed_status(
    endpoint: Endpoint, *, status: int, body: str, headers: Mapping[str, str], model: str | None
) -> ModelError:
    """An answer with another status than 2xx. Header names are in lower case."""
    said = _said(_decoded(body))
    message = endpoint.clean(said.message) or "it gave no reason"
    if status != 429 and (status == 413 or is_overflow(said.message, said.codes)):
        return _overflow(endpoint, message, model, status)
    # A used-up balance answers 429 like a rate limit does, but no waiting helps.
    spent = said.codes & {"insufficient_quota", "billing_hard_limit_reached"}
    retryable = status in RETRYABLE_STATUSES and not spent
    return ModelError(
        f"{endpoint.provider}: {_headline(endpoint, status, headers, model)}: {message}"
        f"{_advice(endpoint, status, model)}",
        provider=endpoint.provider,
        retryable=retryable,
        status=status,
        retry_after_secs=retry_after_secs(headers, datetime.now(UTC)) if retryable else None,
    )


def failed_in_stream(endpoint: Endpoint, error: Any, *, model: str | None) -> ModelError:
    """An error object that arrived after a 200 status, where a part of the answer should have been."""
    said = _said(error)
    message = endpoint.clean(said.message) or "it gave no reason"
    status = said.number if said.number is not None and 400 <= said.number <= 599 else None
    if status != 429 and is_overflow(said.message, said.codes):
        return _overflow(endpoint, message, model, status)
    # The request was good enough to be accepted, so what broke is the server, unless it blames the request.
    blamed = bool(said.codes & _BLAMING_CODES)
    return ModelError(
        f"{endpoint.provider}: the answer ended in an error: {message}",
        provider=endpoint.provider,
        retryable=status in RETRYABLE_STATUSES if status is not None else not blamed,
        status=status,
    )


def unreadable(endpoint: Endpoint, what: str, text: str, *, retryable: bool) -> ModelError:
    """Something that is no answer of such an API at all; `what` names it. A gateway's hiccup may pass."""
    excerpt = endpoint.clean(text).strip()[:200]
    return ModelError(
        f"{endpoint.provider}: {endpoint.url} sent {what}: {excerpt!r}; "
        f"check that `providers.{endpoint.provider}.baseUrl` leads to {endpoint.what}",
        provider=endpoint.provider,
        retryable=retryable,
    )


def is_overflow(message: str, codes: frozenset[str]) -> bool:
    """Whether a provider's error says that the request is longer than the model's context."""
    if codes & _OVERFLOW_CODES:
        return True
    return bool(_CONTEXT.search(message) and _TOO_MUCH.search(message)) or bool(_OVERFLOW.search(message))


def is_refused_parameter(body: str, name: str) -> bool:
    """Whether an error says that the server does not take the parameter at all, whatever its value."""
    return name in body and bool(_NOT_TAKEN.search(body))


def retry_after_secs(headers: Mapping[str, str], now: datetime) -> float | None:
    """The wait that a server asks for, in seconds or as a date (RFC 9110, 10.2.3); OpenAI adds milliseconds."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - now).total_seconds())


# Words --------------------------------------------------------------------------------------------------

_OVERFLOW_CODES = {
    "context_length_exceeded",  # OpenAI, and many after it
    "exceed_context_size_error",  # llama.cpp
    "model_context_window_exceeded",
    "context_window_exceeded",
    "tokens_limit_reached",
    "prompt_too_long",
    "request_too_large",
}
_BLAMING_CODES = {
    "invalid_request_error",
    "invalid_request",
    "authentication_error",
    "permission_error",  # Anthropic, and the next two
    "not_found_error",
    "billing_error",
}
_CONTEXT = re.compile(r"context[ _-]?(length|window|size|limit)|\bn_ctx\b", re.IGNORECASE)
_TOO_MUCH = re.compile(
    r"exceed|maximum|\btoo (long|large|many|big)|greater|larger|longer|not enough|overflow|>=", re.IGNORECASE
)
_OVERFLOW = re.compile(
    r"prompt (is )?too long"  # Anthropic's models behind a compatible front
    r"|maximum prompt length"  # xAI
    r"|token count.{0,40}exceeds"  # Gemini and Copilot
    r"|exceeded model token limit"  # Moonshot
    r"|reduce the length of (the|your) (messages|prompt|input)"  # Groq, Cerebras
    r"|inputs?`? tokens? \+ `?max_new_tokens"  # Text Generation Inference
    r"|tokens? in (the )?request more than max",  # Zhipu
    re.IGNORECASE,
)
_NOT_TAKEN = re.compile(
    r"unsupported|(not|n't|not currently) (be )?(supported|permitted|allowed|recogni[sz]ed)|does not support"
    r"|unrecogni[sz]ed|unknown|unexpected|extra[ _](inputs?|fields?|forbidden)"
    r"|is deprecated|may only be set",  # Anthropic's newer models, of `temperature`
    re.IGNORECASE,
)


def _overflow(endpoint: Endpoint, message: str, model: str | None, status: int | None) -> ModelError:
    return ModelError(
        f"{endpoint.provider}: the conversation is longer than the context of {model!r}: {message}; "
        "compact the session, start a new one, or give the model a larger context",
        provider=endpoint.provider,
        kind="contextOverflow",
        status=status,
    )


def _headline(endpoint: Endpoint, status: int, headers: Mapping[str, str], model: str | None) -> str:
    if 300 <= status < 400:
        return f"{endpoint.url} redirects to {headers.get('location', 'nowhere')!r} (HTTP {status})"
    if status == 404 and model is not None:
        return f"there is no model {model!r} at {endpoint.url} (HTTP 404)"
    if status == 404:
        return f"there is nothing at {endpoint.url} (HTTP 404)"
    if status in (401, 403):
        return f"the server refused access (HTTP {status})"
    return f"the server answered HTTP {status}"


def _advice(endpoint: Endpoint, status: int, model: str | None) -> str:
    place = f"providers.{endpoint.provider}"
    if status in (401, 403):
        if endpoint.key_origin is not None:
            return f"; check the key in {endpoint.key_origin}"
        return f"; no key was sent: name the variable that holds it in `{place}.apiKeyEnv`"
    if status == 404 and model is not None:
        return f"; check the model's name and `{place}.baseUrl`"
    if status == 404 or 300 <= status < 400:
        return f"; check `{place}.baseUrl`"
    return ""


# Shapes -------------------------------------------------------------------------------------------------


def _decoded(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _without_markup(body)


def _without_markup(body: str) -> str:
    """The words of a gateway's error page."""
    if "<" not in body:
        return body.strip()
    visible = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>", " ", body)
    return " ".join(visible.split())


def _said(error: Any) -> _Said:
    """The message, codes and number of an error, wherever a server puts them.

    `{"error": {…}}`, `[{"error": {…}}]`, `{"error": "text"}`, `{"detail": …}`, `{"message": …}`, plain text.
    """
    while True:
        match error:
            case [inner, *_]:
                error = inner
            case {"error": inner} if inner:
                error = inner
            case _:
                break
    if not isinstance(error, dict):
        return _Said(message=error if isinstance(error, str) else _as_json(error), codes=frozenset(), number=None)
    named = [error.get(name) for name in ("code", "type", "status")]
    return _Said(
        message=_message_of(error),
        codes=frozenset(code.lower() for code in named if isinstance(code, str)),
        number=next((int(str(code)) for code in named if _is_status(code)), None),
    )


def _message_of(error: dict[str, Any]) -> str:
    message = next((error[name] for name in ("message", "detail", "error_description") if error.get(name)), None)
    if message is None:
        return _as_json(error)
    text = message if isinstance(message, str) else _as_json(message)
    # OpenRouter's own message is often only "Provider returned error"; the reason stands beside it.
    raw = error["metadata"].get("raw") if isinstance(error.get("metadata"), dict) else None
    return f"{text} ({raw})" if isinstance(raw, str) and raw else text


def _as_json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _is_status(code: Any) -> bool:
    return type(code) is int or (isinstance(code, str) and code.isdecimal() and len(code) == 3)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None
