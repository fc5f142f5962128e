"""What goes back for a request: a result, or an error as JSON-RPC has it. Tracebacks end here, in the log."""

import asyncio
import logging
import os
from typing import Any

from pygls.exceptions import JsonRpcException

from sidecar.protocol.codec import DecodeError
from sidecar.protocol.errors import ERROR_CODES, ErrorKind, RequestError, SidecarError, invalid_params
from sidecar.protocol.values import JsonObject
from sidecar.server.envelope import RequestId

log = logging.getLogger("sidecar.server")

_KINDS: dict[int, ErrorKind] = {code: kind for kind, code in ERROR_CODES.items()}


def result_answer(request_id: RequestId, result: Any) -> JsonObject:
    """The answer to a request that went well. `result` is JSON already."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_answer(request_id: RequestId | None, error: BaseException, *, about: str) -> JsonObject:
    """The answer to a request that did not. `about` says in the log what was tried."""
    return {"jsonrpc": "2.0", "id": request_id, "error": error_object(error, about=about)}


def error_object(error: BaseException, *, about: str) -> JsonObject:
    """The error as the host may see it: code, message, and data that always holds `kind`."""
    match error:
        case SidecarError():
            return _error(error.code, error.message, {**error.data, "kind": error.kind})
        case DecodeError():
            return error_object(invalid_params(error.path, error.reason), about=about)
        case asyncio.CancelledError():
            return error_object(RequestError("requestCancelled", "the request was cancelled"), about=about)
        case JsonRpcException():
            return _error(error.code, error.message, _data_of(error))
        case _:
            return _internal_error(error, about)


def _data_of(error: JsonRpcException) -> JsonObject:
    data = error.data if isinstance(error.data, dict) else {}
    return {**data, "kind": _KINDS.get(error.code, "internalError")}


def _internal_error(error: BaseException, about: str) -> JsonObject:
    return _error(
        ERROR_CODES["internalError"],
        "internal error; the sidecar's log has the details under this logId",
        {"kind": "internalError", "logId": log_failure(error, about)},
    )


def log_failure(error: BaseException, about: str) -> str:
    """Logs a failure of our own with its traceback; returns the id it is found under."""
    log_id = os.urandom(4).hex()
    log.error("%s failed [%s]", about, log_id, exc_info=error)
    return log_id


def _error(code: int, message: str, data: JsonObject) -> JsonObject:
    return {"code": code, "message": message, "data": data}
