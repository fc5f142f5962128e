"""A body as a message: what kind it is, and whether it is one at all. Pure.

Source: JSON-RPC 2.0 with LSP 3.17's narrowing (ids are strings or integers, no batches).
"""

import json
import math
from typing import Any, NoReturn

from attrs import frozen

from sidecar.protocol.values import JsonObject

RequestId = str | int


@frozen
class HostRequest:
    """The host wants an answer under `id`."""

    id: RequestId
    method: str
    params: Any


@frozen
class HostNotification:
    """The host says something."""

    method: str
    params: Any


@frozen
class HostAnswer:
    """The host answers a request of ours, or means to; nothing is ever answered to it.

    `fault` says why the answer makes no sense, where it makes none.
    """

    id: RequestId | None
    result: Any
    error: JsonObject | None
    fault: str | None


@frozen
class Unusable:
    """Valid JSON, but no message. `id` is the sender's own where one could be read."""

    id: RequestId | None
    reason: str


Incoming = HostRequest | HostNotification | HostAnswer | Unusable


def read_json(body: bytes) -> Any:
    """The body's JSON value. Raises ValueError in words for the host: no UTF-8, no JSON, too deep, not finite."""
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"the body is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None


def read_message(value: Any) -> Incoming:
    """Sorts a JSON value into what it is; looks at the outermost object alone."""
    if type(value) is not dict:
        what = "batches are not part of LSP" if type(value) is list else "a message is an object"
        return Unusable(None, what)
    known_id = read_id(value.get("id"))
    if "method" not in value:
        return _answer(value, known_id)
    fault = _fault(value)
    if fault is not None:
        return Unusable(known_id, fault)
    if known_id is not None:
        return HostRequest(known_id, value["method"], value.get("params"))
    return HostNotification(value["method"], value.get("params"))


def read_id(value: Any) -> RequestId | None:
    """The value where it may be an id: a string or an integer, and neither a boolean nor a float."""
    return value if type(value) is str or type(value) is int else None


def _fault(value: JsonObject) -> str | None:
    if "id" in value and read_id(value["id"]) is None:
        return "id must be a string or an integer"
    if value.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if type(value["method"]) is not str:
        return "method must be a string"
    return None


def _answer(value: JsonObject, known_id: RequestId | None) -> Incoming:
    if not ("result" in value or "error" in value or _is_ours(known_id)):
        return Unusable(known_id, "neither a request nor an answer: method is missing")
    error = value.get("error")
    fault = None
    if value.get("jsonrpc") != "2.0":
        fault = 'jsonrpc must be "2.0"'
    elif error is not None and not _is_error(error):
        fault = "error must be an object with an integer code and a string message"
    elif error is None and "result" not in value:
        fault = "neither result nor error"
    return HostAnswer(known_id, value.get("result"), error if fault is None else None, fault)


OUR_IDS = "srv:"
"""Ids of our own requests begin so, to be told from the host's in logs and traces."""


def _is_ours(identity: RequestId | None) -> bool:
    return isinstance(identity, str) and identity.startswith(OUR_IDS)


def _is_error(error: Any) -> bool:
    return type(error) is dict and type(error.get("code")) is int and type(error.get("message")) is str


def _not_finite(name: str) -> NoReturn:
    raise ValueError(f"the body is not JSON: {name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("the body holds a number that is too large")
    return number


_DECODER = json.JSONDecoder(parse_constant=_not_finite, parse_float=_finite)
