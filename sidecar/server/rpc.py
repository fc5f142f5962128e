"""JSON-RPC for one host: every message is checked here, every request gets exactly one answer here.

pygls brings LSP's own methods, the workspace and its documents. Everything that goes in or out passes through
our own tables instead of pygls': see `running`, `unanswered` and `outbox`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any, NoReturn

import cattrs
from attrs import frozen
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from sidecar import __version__
from sidecar.protocol.codec import DecodeError, decode, encode
from sidecar.protocol.errors import RequestError
from sidecar.protocol.messages import ToolsCallParams
from sidecar.protocol.methods import METHODS
from sidecar.protocol.secrets import Secrets
from sidecar.protocol.values import JsonObject
from sidecar.server.answers import error_answer, log_failure, result_answer
from sidecar.server.envelope import (
    HostAnswer,
    HostNotification,
    HostRequest,
    RequestId,
    Unusable,
    read_id,
    read_json,
    read_message,
)
from sidecar.server.framing import DEFAULT_MAX_FRAME_BYTES
from sidecar.server.host import Host, WorkDone, host_capabilities
from sidecar.server.host_process import HostProcess
from sidecar.server.initialize import Initialization, Opened, agent_sidecar, initialization, read_initialize
from sidecar.server.lsp import LazyConverter, LspProtocol, finish, is_lsp_notification, is_lsp_request
from sidecar.server.running import Outcome, RunningRequests

log = logging.getLogger("sidecar.server")

MAX_RUNNING_REQUESTS = 1000
"""More at once are refused as `overloaded`. Own choice: no host in its senses has so many."""

CANCEL_LIMIT_SECS = 1.0
"""How long cancelled requests may tidy up when the host says `shutdown` or the process ends. Own choice."""


@frozen(kw_only=True)
class Request:
    """What a handler gets beside its params: the services as `open_services` made them, and a progress bar."""

    services: Any
    work_done: WorkDone


Handler = Callable[[Request, Any], Awaitable[Any]]
"""Decoded params in, a value out. Raises SidecarError, or DecodeError for params that do not fit after all."""

Listener = Callable[[Any, Any], Coroutine[Any, Any, None]]
"""Takes the services and the params, as they came, of a notification. Nobody hears of what it raises."""

OpenServices = Callable[[Initialization, Host], Awaitable[Opened]]
CloseServices = Callable[[Any], Awaitable[None]]


class Phase(Enum):
    """Where in its life the connection is (LSP 3.17, "Server lifecycle")."""

    NEW = "new"
    INITIALIZING = "initializing"
    READY = "ready"
    SHUT_DOWN = "shut down"


class SidecarProtocol(LspProtocol):
    """Takes bodies in; answers, notifications and requests go out through the outbox."""

    _server: "SidecarServer"
    _phase = Phase.NEW

    def __init__(self, server: "SidecarServer", converter: cattrs.Converter) -> None:
        super().__init__(server, converter)
        self._running = RunningRequests(self._answer)
        self._background: set[asyncio.Task[Any]] = set()

    @property
    def exit_status(self) -> int:
        """What the process ends with when the host leaves now: 0 after `shutdown`, else 1."""
        return 0 if self._phase is Phase.SHUT_DOWN else 1

    # In ---------------------------------------------------------------------------------------------------

    def handle_body(self, body: bytes) -> bool:
        """Handles one frame's body; nothing in it can make this raise.

        True where a task was started. It should take its first step before the next body is handled, so that
        requests start in the order they came.
        """
        try:
            value = read_json(body)
        except ValueError as error:
            self.refuse(None, RequestError("parseError", str(error)))
            return False
        try:
            return self.handle_message(value)
        except Exception as error:  # noqa: BLE001  one message must not take down the connection
            log_failure(error, "handling a message")
            return False

    def handle_message(self, message: Any) -> bool:
        """Handles a JSON value that should be a message; answers it itself where it is none. See handle_body."""
        match read_message(message):
            case HostRequest() as request:
                return self._on_request(request)
            case HostNotification() as notification:
                return self._on_notification(notification)
            case HostAnswer() as answer:
                self.unanswered.resolve(answer)
            case Unusable(id=request_id, reason=reason):
                self.refuse(request_id, RequestError("invalidRequest", f"invalid request: {reason}"))
        return False

    def refuse(self, request_id: RequestId | None, error: Exception) -> None:
        """Answers without any work having been done."""
        self.outbox.answer(self._hidden(error_answer(request_id, error, about="a message")))

    def _on_request(self, request: HostRequest) -> bool:
        try:
            self._check_moment(request)
            work = self._work(request)
        except Exception as error:  # noqa: BLE001  whatever it is, the host waits for an answer
            self.refuse(request.id, error)
            return False
        # A shutdown that the host has already followed by exit is still answered as one.
        self._running.start(request, _without_exits(work), cancellable=request.method != types.SHUTDOWN)
        return True

    def _check_moment(self, request: HostRequest) -> None:
        if request.id in self._running:
            raise RequestError("invalidRequest", f"id {request.id!r} is in use by a request that still runs")
        match self._phase:
            case Phase.SHUT_DOWN:
                raise RequestError("invalidRequest", "the sidecar was shut down; only exit may follow")
            case Phase.INITIALIZING | Phase.READY if request.method == types.INITIALIZE:
                raise RequestError("invalidRequest", "initialize was sent before")
            case Phase.NEW | Phase.INITIALIZING if request.method != types.INITIALIZE:
                raise RequestError("serverNotInitialized", "initialize must be sent first, and answered")
        if len(self._running) >= MAX_RUNNING_REQUESTS:
            raise RequestError(
                "overloaded",
                f"{MAX_RUNNING_REQUESTS} requests are running; wait for some of them",
                limit=MAX_RUNNING_REQUESTS,
            )

    def _work(self, request: HostRequest) -> Coroutine[Any, Any, Any]:
        """What answers the request; raises RequestError for a method that is not there."""
        method, params = request.method, request.params
        if method == types.INITIALIZE:
            return self._initialize(params)
        if method == types.SHUTDOWN:
            return self._shut_down(request.id)
        if method in self._server.handlers:
            return self._call_handler(method, params)
        feature = self.feature(method)
        if feature is None or is_lsp_notification(method):
            raise RequestError("methodNotFound", f"there is no request {method!r}", method=method)
        return self.answer_feature(feature, method, params)

    def _on_notification(self, notification: HostNotification) -> bool:
        method, params = notification.method, notification.params
        if method == types.EXIT:
            self.end(self.exit_status, "the host sent exit")
        elif method == types.CANCEL_REQUEST:
            self._cancel(params)
        elif self._phase is Phase.READY and method in self._server.listeners:
            if self.feature(method) is not None:
                self._on_lsp_notification(method, params)  # pygls keeps an account of its own.
            work = self._server.listeners[method](self._server.services, params)
            self._in_background(work, f"notification {method!r}")
            return True
        elif self._phase is Phase.READY:
            return self._on_lsp_notification(method, params)
        return False

    def _cancel(self, params: Any) -> None:
        request_id = read_id(params.get("id")) if isinstance(params, dict) else None
        if request_id is not None:
            self._running.cancel(request_id)

    def _on_lsp_notification(self, method: str, params: Any) -> bool:
        feature = self.feature(method)
        if feature is None or is_lsp_request(method):
            log.debug("ignored notification %r", method)
            return False
        try:
            decoded = self.decode_params(method, params)
            if not self.has_user_feature(method):
                finish(feature(decoded))  # At once, so that documents change in the order of the messages.
                return False
        except DecodeError as error:
            log.warning("ignored notification %r: %s", method, error)
            return False
        except Exception as error:  # noqa: BLE001  a notification cannot be answered, and pygls' code is not ours
            log_failure(error, f"notification {method!r}")
            return False
        self._in_background(self.call_feature(feature, decoded), f"notification {method!r}")
        return True

    # Work -------------------------------------------------------------------------------------------------

    async def _call_handler(self, method: str, params: Any) -> Any:
        row = METHODS[method]
        decoded: Any = decode({} if params is None else params, row.params)
        work_done = WorkDone(self.outbox, getattr(decoded, "work_done_token", None))
        work_done.begin(decoded.name if isinstance(decoded, ToolsCallParams) else self._server.name)
        try:
            request = Request(services=self._server.services, work_done=work_done)
            return self._server.secrets.hide_in(encode(await self._server.handlers[method](request, decoded)))
        finally:
            work_done.end()

    def _hidden(self, answer: JsonObject) -> JsonObject:
        """An error as anybody may see it: it may quote what a provider or a server said."""
        answer["error"] = self._server.secrets.hide_in(answer["error"])
        return answer

    async def _initialize(self, raw: Any) -> JsonObject:
        """Opens the services. Where that fails, `initialize` may be sent again."""
        self._phase = Phase.INITIALIZING
        params = read_initialize(raw)
        result = self.set_up_workspace(params)
        capabilities = host_capabilities(params.capabilities)
        host = Host(
            capabilities,
            self.outbox,
            self.unanswered,
            secrets=self._server.secrets,
            open_documents=lambda: self.workspace.text_documents,
        )
        opened = await self._server.open(initialization(params), host)
        ours = agent_sidecar({*self._server.handlers, *self._server.listeners}, opened.models)
        result["capabilities"]["experimental"] = {"agentSidecar": ours}
        return result

    async def _shut_down(self, request_id: RequestId) -> None:
        """Cancels every other request; each is answered before this one."""
        self._phase = Phase.SHUT_DOWN
        await self._running.cancel_all(limit_secs=CANCEL_LIMIT_SECS, but=request_id)

    def _in_background(self, work: Coroutine[Any, Any, Any], about: str) -> None:
        task = asyncio.create_task(_without_exits(work), name=about)
        self._background.add(task)
        task.add_done_callback(partial(self._background_ended, about=about))

    def _background_ended(self, task: asyncio.Task[Any], about: str) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_failure(error, about)

    # Out --------------------------------------------------------------------------------------------------

    def _answer(self, request: HostRequest, outcome: Outcome) -> None:
        """The one place where a request that was begun is answered."""
        if outcome.error is None:
            try:
                self.outbox.answer(result_answer(request.id, outcome.result))
            except Exception as error:  # noqa: BLE001  a result that is no JSON still needs an answer
                outcome = Outcome(error=error)
        if outcome.error is not None:
            self._answer_error(request, outcome.error)
        if request.method == types.INITIALIZE:
            self._initialize_answered(outcome)

    def _answer_error(self, request: HostRequest, error: BaseException) -> None:
        try:
            self.outbox.answer(self._hidden(error_answer(request.id, error, about=request.method)))
        except Exception as unfit:  # noqa: BLE001  data that is no JSON must not cost the answer
            unfit.__cause__ = error
            self.outbox.answer(error_answer(request.id, unfit, about=f"the error data of {request.method}"))

    def _initialize_answered(self, outcome: Outcome) -> None:
        if self._phase is not Phase.INITIALIZING:
            return
        if outcome.error is None:
            self._phase = Phase.READY
            self.outbox.open()
            self._watch_host()
        else:
            self._phase = Phase.NEW
            self.outbox.discard()
            self._in_background(self._server.close(), "closing after initialize failed")

    def _watch_host(self) -> None:
        process_id = self._server.process_id
        if process_id is not None:
            reason = f"the host's process {process_id} is gone"
            HostProcess(process_id, partial(self.end, 1, reason)).watch()

    async def close(self) -> None:
        """Cancels what runs and answers it."""
        await self._running.cancel_all(limit_secs=CANCEL_LIMIT_SECS)


async def _without_exits(work: Coroutine[Any, Any, Any]) -> Any:
    """A handler or tool that calls sys.exit() fails; it does not take the sidecar along."""
    try:
        return await work
    except SystemExit as error:
        raise RuntimeError(f"sys.exit({error.code!r}) was called") from error


class SidecarServer(LanguageServer):
    """A pygls language server that answers our methods too. `serve_stdio` runs it.

    `handlers` are by method, `listeners` by notification. `open_services` is called by `initialize`; its
    DecodeError and SidecarError are the answer. `close_services` is called once for what was opened, when the
    process ends.
    """

    protocol: SidecarProtocol

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        open_services: OpenServices,
        close_services: CloseServices,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        listeners: Mapping[str, Listener] = MappingProxyType({}),
        secrets: Secrets | None = None,
    ) -> None:
        super().__init__(
            "agent-sidecar",
            __version__,
            protocol_cls=SidecarProtocol,
            converter_factory=LazyConverter,
        )
        strangers = [name for name in handlers if name not in METHODS or METHODS[name].sender != "host"]
        if strangers:
            raise ValueError(f"not a method that a host sends: {', '.join(strangers)}")
        self.handlers = handlers
        self.listeners = listeners
        self.max_frame_bytes = max_frame_bytes
        self.secrets = secrets or Secrets()
        self.services: Any = None
        self._open_services = open_services
        self._close_services = close_services
        self._is_open = False

    async def open(self, init: Initialization, host: Host) -> Opened:
        """Opens the services for the host."""
        opened = await self._open_services(init, host)
        self.services, self._is_open = opened.services, True
        if opened.max_frame_bytes is not None:
            self.max_frame_bytes = opened.max_frame_bytes
        return opened

    async def close(self) -> None:
        """Closes what was opened; nothing where nothing was, or where it was closed before."""
        if self._is_open:
            services, self.services, self._is_open = self.services, None, False
            await self._close_services(services)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Into the log. pygls would show it to the person at the editor."""
        log_failure(error, "pygls")

    def start_io(self, stdin: Any = None, stdout: Any = None) -> NoReturn:
        """Not this way: pygls' loop would freeze with a host that does not read, among other things."""
        raise NotImplementedError("run this server by sidecar.server.stdio.serve_stdio(server)")
