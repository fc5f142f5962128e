"""JSON-RPC messages as MCP servers send them, and ours as they are sent. Pure.

Reading never raises. What is odd but clear is taken (an id as text, a batch, two messages on a line, a missing
`jsonrpc`); what is broken but shows whose answer it was meant to be becomes a BrokenAnswer, so that its request
can fail at once; all else is Junk: servers print banners and logs where only messages belong.

Messages are named tuples rather than attrs classes: one is made for every line, and defining them is cheap.
"""

import json
import re
from math import isfinite
from typing import Any, NamedTuple

from sidecar.mcp.framing import Line, OversizedLine
from sidecar.protocol.values import JsonObject

RequestId = int | str | float


class Answer(NamedTuple):
    """The result of our request `id`."""

    id: int
    result: JsonObject


class Refusal(NamedTuple):
    """The server's error for our request `id`; None where it could not tell which."""

    id: int | None
    code: int | None
    message: str
    data: Any = None


class BrokenAnswer(NamedTuple):
    """Something meant as an answer that cannot be read. `ids` are those it may have been for."""

    ids: tuple[int, ...]
    reason: str


class ServerRequest(NamedTuple):
    """A request of the server, to be answered with the same id."""

    id: RequestId
    method: str
    params: JsonObject


class ServerNotification(NamedTuple):
    """A notification of the server."""

    method: str
    params: JsonObject


class Junk(NamedTuple):
    """A line that is no message."""

    text: str


Incoming = Answer | Refusal | BrokenAnswer | ServerRequest | ServerNotification | Junk

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


# Reading ------------------------------------------------------------------------------------------------


LONG_LINE_BYTES = 256 * 1024
"""From here on reading takes a millisecond or more. Own choice."""


def is_long(line: Line) -> bool:
    """Whether reading the line may take so long that it belongs in a thread."""
    return type(line) is bytes and len(line) > LONG_LINE_BYTES


def read_line(line: Line) -> list[Incoming]:
    """The messages of one line: one as a rule, several in a batch."""
    if isinstance(line, OversizedLine):
        text = (line.head + b" ... " + line.tail).decode(errors="replace")
        return [BrokenAnswer(_claimed_ids(text), "its answer is longer than this client takes")]
    text = line.decode(errors="replace").strip()
    has_surrogates = b"\\ud" in line or b"\\uD" in line
    decoder = _long_decoder if is_long(line) else _decoder
    messages: list[Incoming] = []
    position = 0
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
            value = _without_surrogates(value) if has_surrogates else value
            if not isinstance(value, dict | list):
                return [*messages, _broken(text[position:], "its answer is no JSON object")]
            messages += _messages(value, text)
        except (ValueError, RecursionError) as error:
            return [*messages, _broken(text[position:], _why(error))]
        position = _after_space(text, end)
    return messages


def _no_number(constant: str) -> None:
    """NaN and Infinity are no JSON; null stands in for them, as JavaScript writes them."""


def _number(digits: str) -> float | None:
    """A fraction; None for 1e999, which is JSON, but more than a float holds and than we could pass on."""
    number = float(digits)
    return number if isfinite(number) else None


def _same(value: JsonObject) -> JsonObject:
    """Changes nothing; see `_long_decoder`."""
    return value


_decoder = json.JSONDecoder(parse_constant=_no_number, parse_float=_number)
_long_decoder = json.JSONDecoder(parse_constant=_no_number, parse_float=_number, object_hook=_same)
"""For lines that are read in a thread: without a call back into Python now and then, the parser would let no other
thread run until it is done."""
_SPACE = re.compile(r"\s*")


def _after_space(text: str, position: int) -> int:
    return position if position == len(text) else _SPACE.match(text, position).end()  # type: ignore[union-attr]


def _messages(value: JsonObject | list[Any], text: str) -> list[Incoming]:
    if isinstance(value, dict):
        return [_message(value, text)]
    return [_message(item, text) if isinstance(item, dict) else Junk(text) for item in value] or [Junk(text)]


def _message(value: JsonObject, text: str) -> Incoming:
    method = value.get("method")
    if type(method) is str:
        return _from_server(value, method)
    if "jsonrpc" not in value and not ("id" in value and ("result" in value or "error" in value)):
        return Junk(text)  # Structured logs are JSON objects too.
    return _answer(value)


def _from_server(value: JsonObject, method: str) -> ServerRequest | ServerNotification:
    params = value.get("params")
    params = params if isinstance(params, dict) else {}
    request_id = value.get("id")
    if isinstance(request_id, int | str | float) and not isinstance(request_id, bool):
        return ServerRequest(request_id, method, params)
    return ServerNotification(method, params)


def _answer(value: JsonObject) -> Answer | Refusal | BrokenAnswer:
    request_id = own_id(value.get("id"))
    error = value.get("error")
    if error is not None:
        return _refusal(request_id, error)
    ids = () if request_id is None else (request_id,)
    if "result" not in value:
        return BrokenAnswer(ids, "its answer has neither a result nor an error")
    result = value["result"]
    if result == [] and type(result) is list:
        result = {}  # An empty table of Lua.
    if type(result) is not dict:
        return BrokenAnswer(ids, f"the result in its answer is {_kind(result)} instead of an object")
    return BrokenAnswer(ids, "its answer has no usable id") if request_id is None else Answer(request_id, result)


def own_id(value: Any) -> int | None:
    """The number that our ids are, also where a server sends it as text or as 5.0; None for all else."""
    match value:
        case bool():
            return None
        case int():
            return value
        case str() if value.isascii() and value.isdecimal() and len(value) < 16:
            return int(value)
        case float() if isfinite(value) and value.is_integer():
            return int(value)
        case _:
            return None


def _refusal(request_id: int | None, error: Any) -> Refusal:
    if not isinstance(error, dict):
        return Refusal(request_id, None, _shortened(error if isinstance(error, str) else json.dumps(error)))
    message = error.get("message")
    if not isinstance(message, str) or not message:
        message = f"an error without a message: {json.dumps(error)}"
    return Refusal(request_id, _error_code(error.get("code")), _shortened(message), error.get("data"))


def _error_code(value: Any) -> int | None:
    """An error code, which some servers send as text."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value) else None


_SHOWN_CHARACTERS = 2000


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {list: "an array", str: "a string", bool: "a boolean"}.get(type(value), "a number")


# Salvage ------------------------------------------------------------------------------------------------

_ID = re.compile(r"""["']id["']\s*:\s*["']?(\d{1,15})["']?(?=\s*[,}]|\s*$)""")
_ENVELOPE = re.compile(r"""["'](?:jsonrpc|result)["']\s*:""")
_SEARCHED_CHARACTERS = 4096


def _broken(text: str, reason: str) -> BrokenAnswer | Junk:
    """A line that is no JSON: part of a message, or just talk. Log lines that quote a message are talk."""
    if text.startswith(("{", "[")) and _ENVELOPE.search(text, 0, _SEARCHED_CHARACTERS):
        return BrokenAnswer(_claimed_ids(text), reason)
    if _ID.match(text):  # One line of a message that was printed over several.
        return BrokenAnswer(_claimed_ids(text), "its answer is spread over several lines")
    return Junk(text)


def _why(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its answer is nested too deeply"
    return f"its answer is no JSON ({error.args[0] if isinstance(error, json.JSONDecodeError) else error})"


def _claimed_ids(text: str) -> tuple[int, ...]:
    ends = (text[:_SEARCHED_CHARACTERS], text[_SEARCHED_CHARACTERS:][-_SEARCHED_CHARACTERS:])
    return tuple(dict.fromkeys(int(found[1]) for end in ends for found in _ID.finditer(end)))


def _without_surrogates(value: Any) -> Any:
    """The value with halves of surrogate pairs replaced: no UTF-8 can carry them on."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value


# Writing ------------------------------------------------------------------------------------------------

_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
"""ASCII only: what servers in the field do with U+2028 or half a surrogate pair is then not our trouble."""


def request(request_id: int, method: str, params: JsonObject | None) -> bytes:
    """Our request. Raises ValueError, TypeError or RecursionError for params that are no JSON."""
    body = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return _encode(body if params is None else {**body, "params": params})


def notification(method: str, params: JsonObject | None = None) -> bytes:
    """Our notification."""
    body = {"jsonrpc": "2.0", "method": method}
    return _encode(body if params is None else {**body, "params": params})


def result(request_id: RequestId, value: JsonObject) -> bytes:
    """Our answer to a request of the server."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": value})


def error(request_id: RequestId, code: int, message: str) -> bytes:
    """Our refusal of a request of the server."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def _encode(message: JsonObject) -> bytes:
    return _encoder.encode(message).encode("ascii")
