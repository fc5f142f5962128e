"""Everything that can go wrong between a host and its sidecar.

ClientError                 what this library raises on purpose
├── CannotStart             the command could not be run at all
├── SidecarExited           the process is gone; says its status and the last it wrote to stderr
├── BrokenStream            what the process writes to stdout is not the protocol
├── NoAnswer                a request was not answered within its limit
└── RequestFailed           the sidecar answered with an error
    └── RunCancelled        the run was cancelled, by whomever
"""

from collections.abc import Mapping
from typing import Any

REQUEST_CANCELLED = -32800
"""LSP 3.17, `ErrorCodes.RequestCancelled`."""


class ClientError(Exception):
    """A failure with a sentence for people, on one line."""


class CannotStart(ClientError):
    """The command does not exist or may not be run."""


class SidecarExited(ClientError):
    """The process ended, or closed its stdout, while somebody counted on it.

    `status` is its exit status, the negative number of the signal that ended it, or None where it is not
    known. `stderr_tail` holds the last lines that it wrote to stderr, which often say why.
    """

    def __init__(self, status: int | None, stderr_tail: str) -> None:
        last_line = stderr_tail.strip().rpartition("\n")[2]
        super().__init__(f"the sidecar {_ending(status)}" + (f": {last_line}" if last_line else ""))
        self.status = status
        self.stderr_tail = stderr_tail


def _ending(status: int | None) -> str:
    if status is None:
        return "closed its output"
    return f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"


class BrokenStream(ClientError):
    """The process is no sidecar, or something in it prints to stdout."""


class NoAnswer(ClientError):
    """The sidecar lives and is silent."""

    def __init__(self, method: str, limit_secs: float) -> None:
        super().__init__(f"the sidecar did not answer {method} within {limit_secs:g} s")
        self.method = method
        self.limit_secs = limit_secs


class RequestFailed(ClientError):
    """A JSON-RPC error. Match on `kind`, which is stable, rather than on the message."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: Mapping[str, Any] = data or {}

    @property
    def kind(self) -> str | None:
        """The error in a word, such as `permissionDenied`; None where the sidecar gave none."""
        kind = self.data.get("kind")
        return kind if isinstance(kind, str) else None


class RunCancelled(RequestFailed):
    """The answer of a run that was cancelled."""


def failure_of(error: object) -> RequestFailed:
    """The `error` of a JSON-RPC answer as an exception, whatever it holds."""
    fields: Mapping[str, Any] = error if isinstance(error, dict) else {}
    code, message, data = fields.get("code"), fields.get("message"), fields.get("data")
    kind = RunCancelled if code == REQUEST_CANCELLED else RequestFailed
    return kind(
        code if isinstance(code, int) else 0,
        message if isinstance(message, str) else f"an error without a message: {error!r}",
        data if isinstance(data, dict) else None,
    )
