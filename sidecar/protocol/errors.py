"""Every error a host can meet, with its code.

SidecarError                what anything below the wire raises on purpose
├── ToolError               a tool could not be run, or broke while running
├── ModelError              the model's provider failed
├── ConfigurationError      an option, a file, a variable or a server entry is wrong
└── RequestError            the request itself was wrong, or stands at a wrong moment

Whatever else rises is our own mistake; `server/rpc.py` logs it and answers -32603.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

ToolErrorKind = Literal[
    "notFound",
    "executionFailed",
    "invalidArguments",
    "permissionDenied",
    "mcpError",
    "mcpNotInitialized",
    "mcpTimeout",
    "io",
    "other",
    "timeout",
]
ModelErrorKind = Literal["modelError", "modelTimeout", "contextOverflow"]
RunErrorKind = Literal["maxTurnsExceeded", "repeatedToolCalls"]
SessionErrorKind = Literal["sessionNotFound", "sessionBusy", "runNotFound"]
ServiceErrorKind = Literal["invalidConfiguration", "overloaded"]
RpcErrorKind = Literal[
    "parseError",
    "invalidRequest",
    "methodNotFound",
    "invalidParams",
    "internalError",
    "serverNotInitialized",
    "requestCancelled",
]
ErrorKind = Literal[ToolErrorKind, ModelErrorKind, RunErrorKind, SessionErrorKind, ServiceErrorKind, RpcErrorKind]

ERROR_CODES: Mapping[ErrorKind, int] = {
    "notFound": -31001,
    "executionFailed": -31002,
    "invalidArguments": -31003,
    "permissionDenied": -31004,
    "mcpError": -31005,
    "mcpNotInitialized": -31006,
    "mcpTimeout": -31007,
    "io": -31008,
    "other": -31009,
    "timeout": -31010,
    "modelError": -31020,
    "modelTimeout": -31021,
    "maxTurnsExceeded": -31022,
    "contextOverflow": -31023,
    "repeatedToolCalls": -31024,
    "sessionNotFound": -31030,
    "sessionBusy": -31031,
    "runNotFound": -31032,
    "invalidConfiguration": -31040,
    "overloaded": -31050,
    "parseError": -32700,
    "invalidRequest": -32600,
    "methodNotFound": -32601,
    "invalidParams": -32602,
    "internalError": -32603,
    "serverNotInitialized": -32002,
    "requestCancelled": -32800,
}
"""JSON-RPC error code by kind; ours are outside the range that JSON-RPC and LSP reserve."""

TOOL_ERROR_KINDS: tuple[ToolErrorKind, ...] = get_args(ToolErrorKind)


class SidecarError(Exception):
    """A failure with a kind, a sentence for people, and data for programs.

    `data` is a JSON object; it travels as the JSON-RPC error's `data` with `kind` added.
    """

    def __init__(self, kind: ErrorKind, message: str, **data: Any) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.data = data

    @property
    def code(self) -> int:
        return ERROR_CODES[self.kind]


class ToolError(SidecarError):
    """A tool call that could not be carried out: a failure of the call, not an answer of the tool.

    An expected failure that the model should react to is `ToolResult.error` instead. `action`, where set, is
    what the loop does whatever the policy says: somebody's "deny" is told to the model, "deny and stop" stops.
    """

    kind: ToolErrorKind

    def __init__(
        self,
        kind: ToolErrorKind,
        message: str,
        *,
        tool: str | None = None,
        action: "ErrorAction | None" = None,
        **data: Any,
    ) -> None:
        super().__init__(kind, message, **({"tool": tool} if tool is not None else {}), **data)
        self.tool = tool
        self.action = action

    @property
    def is_recoverable(self) -> bool:
        """Whether the loop, by default, tells the model and goes on rather than ending the run."""
        return DEFAULT_ERROR_POLICY[self.kind] == "tellModel"


ErrorAction = Literal["tellModel", "stop"]

DEFAULT_ERROR_POLICY: Mapping[ToolErrorKind, ErrorAction] = {
    "executionFailed": "tellModel",
    "invalidArguments": "tellModel",
    "timeout": "tellModel",
    "other": "tellModel",
    "notFound": "stop",
    "permissionDenied": "stop",
    "mcpError": "stop",
    "mcpNotInitialized": "stop",
    "mcpTimeout": "stop",
    "io": "stop",
}
"""What the loop does with each kind of `ToolError`; `errorPolicy` of a submit overrides it kind by kind."""


class ModelError(SidecarError):
    """The provider refused, broke off, stalled or could not be reached.

    `retryable` says whether the same request may succeed later; `retry_after_secs` is the provider's own
    word on when. `status` is the HTTP status where there was one.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        kind: ModelErrorKind = "modelError",
        retryable: bool = False,
        status: int | None = None,
        retry_after_secs: float | None = None,
        **data: Any,
    ) -> None:
        said = {"status": status, "retryAfterSecs": retry_after_secs}
        known = {key: value for key, value in said.items() if value is not None}
        super().__init__(kind, message, provider=provider, retryable=retryable, **known, **data)
        self.provider = provider
        self.retryable = retryable
        self.status = status
        self.retry_after_secs = retry_after_secs


class ConfigurationError(SidecarError):
    """Something the user wrote is wrong; `path` names it as they wrote it (`mcpServers.git.command`)."""

    def __init__(self, message: str, *, path: str, **data: Any) -> None:
        super().__init__("invalidConfiguration", message, path=path, **data)
        self.path = path


class RequestError(SidecarError):
    """The host asked for something that cannot be: bad params, unknown method, wrong moment."""


def invalid_params(path: str, reason: str) -> RequestError:
    """-32602, naming the field by its camelCase path from `params` and what is wrong with it."""
    return RequestError("invalidParams", f"invalid params: {path}: {reason}", path=path, reason=reason)
