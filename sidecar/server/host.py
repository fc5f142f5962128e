"""The host as the rest of the sidecar sees it: what it can do, what it is told, what it is asked."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from attrs import frozen
from pygls.workspace import TextDocument

from sidecar.protocol.codec import DecodeError, decode, encode
from sidecar.protocol.events import AgentEvent
from sidecar.protocol.handshake import HostAbilities
from sidecar.protocol.messages import AgentEventParams
from sidecar.protocol.methods import METHODS
from sidecar.protocol.secrets import Secrets
from sidecar.protocol.values import JsonObject
from sidecar.server.outbox import Outbox, Waiting
from sidecar.server.unanswered import HostRefused, UnansweredRequests


@frozen(kw_only=True, repr=False, eq=False)
class HostCapabilities(HostAbilities):
    """What the host said it can do; everything else it cannot.

    These are LSP's own: `window.showMessage`, `window.showDocument`,
    `window.workDoneProgress`, `workspace.applyEdit`, `workspace.workspaceEdit.documentChanges`,
    `workspace.didChangeWatchedFiles.dynamicRegistration`.
    """

    show_message: bool = False
    show_document: bool = False
    work_done_progress: bool = False
    apply_edit: bool = False
    document_changes: bool = False
    watched_files: bool = False


def host_capabilities(capabilities: Any) -> HostCapabilities:
    """Reads LSP client capabilities. Whatever is not as expected is not there; nothing is an error."""
    ours = _object(_object(_object(capabilities).get("experimental")).get("agentSidecar"))
    window = _object(_object(capabilities).get("window"))
    workspace = _object(_object(capabilities).get("workspace"))
    opted_out = ours.get("optOutEvents")
    return HostCapabilities(
        approvals=ours.get("approvals") is True,
        input=ours.get("input") is True,
        host_tools=ours.get("hostTools") is True,
        host_model=ours.get("hostModel") is True,
        opt_out_events=frozenset(name for name in _list(opted_out) if type(name) is str),
        # Lua writes an empty object as `[]`.
        show_message=window.get("showMessage") is not None and window.get("showMessage") is not False,
        show_document=_object(window.get("showDocument")).get("support") is True,
        work_done_progress=window.get("workDoneProgress") is True,
        apply_edit=workspace.get("applyEdit") is True,
        document_changes=_object(workspace.get("workspaceEdit")).get("documentChanges") is True,
        watched_files=_object(workspace.get("didChangeWatchedFiles")).get("dynamicRegistration") is True,
    )


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class Host:
    """The one host of this process. To be used from the event loop's thread.

    `secrets` show in nothing that it is told. `open_documents` gives the documents that it has open now, by URI,
    as pygls keeps them.
    """

    def __init__(
        self,
        capabilities: HostCapabilities,
        outbox: Outbox,
        unanswered: UnansweredRequests,
        *,
        secrets: Secrets,
        open_documents: Callable[[], Mapping[str, TextDocument]] = dict,
    ) -> None:
        self.capabilities = capabilities
        self.secrets = secrets
        self.open_documents = open_documents
        self._outbox = outbox
        self._unanswered = unanswered
        outbox.opt_out_events = capabilities.opt_out_events

    def notify(self, method: str, params: Any) -> None:
        """Sends a notification; `params` is a value of `sidecar.protocol`, or JSON."""
        told = self.secrets.hide_in(encode(params))
        self._outbox.send({"jsonrpc": "2.0", "method": method, "params": told})

    def log_message(self, message: str, *, warning: bool = False) -> None:
        """Writes a line into the host's own log, by LSP's `window/logMessage`."""
        self.notify("window/logMessage", {"type": 2 if warning else 3, "message": message})

    async def request(self, method: str, params: Any, deadline_secs: float) -> Any:
        """Asks the host. The result has the type that METHODS names; that of another method stays JSON.

        Raises HostDidNotAnswer after the deadline, HostRefused for an error and for an answer that does not
        fit. When the caller is cancelled, so is the request.
        """
        result = await self._unanswered.ask(method, encode(params), deadline_secs=deadline_secs)
        row = METHODS.get(method)
        if row is None or row.result is None:
            return result
        try:
            return decode(result, row.result, path="result")
        except DecodeError as error:
            raise HostRefused(f"the host's answer to {method} makes no sense: {error}") from None

    def emit(self, session_id: str, run_id: str, event: AgentEvent) -> Coroutine[Any, Any, None]:
        """Sends an event of a run, numbered; waits while the host has too much to read. To be awaited."""
        return self._outbox.emit(session_id, run_id, event)

    def keep_events(self, keep: Callable[[AgentEventParams], bool]) -> None:
        """`keep` takes each event before it is sent, a delta piece by piece; False keeps it from being sent."""
        self._outbox.keep = keep

    def end_run(self, session_id: str, run_id: str) -> None:
        """A run is over: no event of it will follow, and its numbering is forgotten."""
        self._outbox.end_run(run_id)


class WorkDone:
    """The editor's progress bar for one request (LSP 3.17, "Work Done Progress"); nothing without a token."""

    def __init__(self, outbox: Outbox, token: str | int | None) -> None:
        self._outbox = outbox
        self._token = token
        self._last_report: Waiting | None = None

    def begin(self, title: str) -> None:
        """Shows the bar; the server does it before the handler runs."""
        self._send({"kind": "begin", "title": title})

    def report(self, message: str | None, *, done: float | None = None, total: float | None = None) -> None:
        """Says how far the work is. A report takes the place of one that still waits to be sent."""
        said = {"message": message, "percentage": _percentage(done, total)}
        value = {"kind": "report", **{name: known for name, known in said.items() if known is not None}}
        if self._token is not None:
            self._last_report = self._outbox.replace(self._last_report, self._message(value))

    def end(self) -> None:
        """Takes the bar away; the server does it when the handler has ended."""
        self._send({"kind": "end"})

    def _send(self, value: JsonObject) -> None:
        if self._token is not None:
            self._outbox.send(self._message(value))

    def _message(self, value: JsonObject) -> JsonObject:
        return {"jsonrpc": "2.0", "method": "$/progress", "params": {"token": self._token, "value": value}}


def _percentage(done: float | None, total: float | None) -> int | None:
    if done is None or not total:
        return None
    return max(0, min(100, round(100 * done / total)))
