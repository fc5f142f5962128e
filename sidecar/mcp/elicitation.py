"""`elicitation/create`: a server's question to the person, read into a value, and the answer to it. Pure.

Source: MCP 2025-11-25, client/elicitation: a form by a schema, or a page to visit.
"""

from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from sidecar.mcp.connection import ReplyRefusal
from sidecar.mcp.envelope import INVALID_PARAMS
from sidecar.protocol.values import JsonObject

Mode = Literal["form", "url"]

MAX_URL_CHARS = 8192
"""Of a page to visit, which a person is shown whole. Own choice."""


class InputQuestion(NamedTuple):
    """What a server wants to know: either `schema` says what the answer must be, or `url` is to be visited."""

    message: str
    schema: JsonObject | None = None
    url: str | None = None
    elicitation_id: str | None = None


class InputAnswer(NamedTuple):
    """What came of it. Only an accepted form has content."""

    action: Literal["accept", "decline", "cancel"]
    content: Any = None


def read_question(params: JsonObject, modes: tuple[Mode, ...]) -> InputQuestion:
    """Raises ReplyRefusal for a mode that was not declared, and naming a field that cannot be."""
    mode = params.get("mode", "form")  # Before 2025-11-25 there was no other.
    if mode not in modes:
        raise _refusal(f"mode: {mode!r} was not declared by this client")
    message = params.get("message")
    if not isinstance(message, str):
        raise _refusal("message: must be text")
    if mode == "url":
        return _page(message, params)
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise _refusal("requestedSchema: must be the JSON Schema of an object")
    return InputQuestion(message=message, schema=schema)


def answer_result(question: InputQuestion, answer: InputAnswer) -> JsonObject:
    """The answer as an `ElicitResult`."""
    if answer.action != "accept" or question.schema is None:
        return {"action": answer.action}
    return {"action": "accept", "content": with_defaults(question.schema, answer.content)}


def with_defaults(schema: JsonObject, content: Any) -> Any:
    """The content with what its schema says of properties that it leaves out."""
    properties = schema.get("properties")
    if not isinstance(content, dict) or not isinstance(properties, dict):
        return content
    defaults = {
        name: inner["default"]
        for name, inner in properties.items()
        if isinstance(inner, dict) and "default" in inner
    }
    return {**defaults, **content}


def _page(message: str, params: JsonObject) -> InputQuestion:
    url, elicitation_id = params.get("url"), params.get("elicitationId")
    if not isinstance(url, str) or len(url) > MAX_URL_CHARS or not _is_web_page(url):
        raise _refusal("url: must be an absolute http or https address")
    if not isinstance(elicitation_id, str | None):
        raise _refusal("elicitationId: must be text")
    return InputQuestion(message=message, url=url, elicitation_id=elicitation_id)


def _is_web_page(url: str) -> bool:
    """Nothing else is handed to whoever opens pages: other schemes start programs or read files."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and url.isprintable()
    except ValueError:
        return False


def _refusal(reason: str) -> ReplyRefusal:
    return ReplyRefusal(INVALID_PARAMS, reason)
