"""pygls' part of the wire: LSP's own methods and documents, with every way out led through our tables.

pygls leaks a future for each notification, shows failures to the person at the editor, shares one table of
ids between both directions, and sends nothing where a message is no JSON. So its features are called from here.
"""

import asyncio
import inspect
from collections.abc import Callable, Generator
from concurrent.futures import Future
from enum import Enum
from functools import cached_property, partial
from typing import Any

import attrs
import cattrs
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.feature_manager import is_thread_function
from pygls.protocol import LanguageServerProtocol

from sidecar.protocol.codec import DecodeError, camel
from sidecar.protocol.values import JsonObject
from sidecar.server.initialize import InitializeParams
from sidecar.server.outbox import Outbox
from sidecar.server.unanswered import UnansweredRequests

REQUEST_DEADLINE_SECS = 60.0
"""For requests made through pygls' own methods, which have no deadline of their own. Own choice."""

Feature = Callable[..., Any]
"""What pygls takes as one: a function, a coroutine function, or a generator that names further features."""


class LspProtocol(LanguageServerProtocol):
    """pygls' protocol on our outbox, which `connect` brings."""

    _raw_capabilities: JsonObject = {}  # noqa: RUF012  replaced as a whole, never changed

    def connect(self, outbox: Outbox, end: Callable[[int, str], None]) -> None:
        """To be called before the first message, in the event loop. `end` takes an exit status and a reason."""
        self.loop = asyncio.get_running_loop()
        self.outbox = outbox
        self.end = end
        self.unanswered = UnansweredRequests(outbox)

    # Features -------------------------------------------------------------------------------------------

    def feature(self, method: str) -> Feature | None:
        """What pygls has built in for a method, else what was registered for it."""
        return self.fm.builtin_features.get(method) or self.fm.features.get(method)

    def has_user_feature(self, method: str) -> bool:
        """Whether somebody registered a feature, on its own or behind a built-in one."""
        return method in self.fm.features

    def decode_params(self, method: str, params: Any) -> Any:
        """The params of a method of LSP as its type; of any other method as they are. Raises DecodeError."""
        shape: Any = types.METHOD_TO_TYPES.get(method, (None, None, None))[2]
        if shape is None:
            return params
        if params is None or params == []:
            params = {}
        if not isinstance(params, dict):
            raise DecodeError("params", "must be an object")
        try:
            return self._converter.structure(params, shape)
        except Exception as error:  # noqa: BLE001  cattrs groups whatever the hooks raise
            raise _decode_error(error) from None

    async def answer_feature(self, feature: Feature, method: str, params: Any) -> Any:
        """The JSON-ready result of a request of LSP."""
        result = await self.call_feature(feature, self.decode_params(method, params))
        return self._converter.unstructure(result)

    async def call_feature(self, feature: Feature, *arguments: Any, **named: Any) -> Any:
        """Calls any kind of feature; those that pygls runs in threads run in its pool."""
        call = partial(feature, *arguments, **named)
        if inspect.isgeneratorfunction(feature):
            return await self._drive(call())
        if is_thread_function(feature):  # type: ignore[no-untyped-call]
            return await self.loop.run_in_executor(self._server.thread_pool, call)
        result = call()
        return await result if inspect.isawaitable(result) else result

    async def _drive(self, steps: Generator[Any, Any, Any]) -> Any:
        """pygls' built-ins are generators: each step names a feature to call, and is given its result."""
        result = None
        try:
            while True:
                feature, arguments, named = steps.send(result)
                result = await self.call_feature(feature, *arguments, **(named or {}))
        except StopIteration as end:
            return end.value

    # Initialize -----------------------------------------------------------------------------------------

    @property
    def client_capabilities(self) -> types.ClientCapabilities:
        """What the client said it can do in LSP, without each part that is not as LSP has it."""
        capabilities = types.ClientCapabilities()
        for name, value in self._raw_capabilities.items():
            try:
                part = self._converter.structure({name: value}, types.ClientCapabilities)
            except Exception:  # noqa: BLE001  cattrs groups whatever the hooks raise, and garbage is left out
                continue
            for attribute in attrs.fields(types.ClientCapabilities):
                if (known := getattr(part, attribute.name)) is not None:
                    setattr(capabilities, attribute.name, known)
        return capabilities

    @client_capabilities.setter
    def client_capabilities(self, capabilities: types.ClientCapabilities) -> None:
        """pygls sets what it was given by `set_up_workspace`, which is less than we know."""

    def set_up_workspace(self, params: InitializeParams) -> JsonObject:
        """pygls' part of `initialize`: the workspace, and LSP's `InitializeResult` as JSON.

        pygls is told no capabilities. It would use them to choose a position encoding, and ours is UTF-16,
        which every client must be able to use.
        """
        self._raw_capabilities = {}
        folders = [types.WorkspaceFolder(uri=f.uri, name=f.name) for f in params.workspace_folders or ()]
        built_in = self.lsp_initialize(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(),
                process_id=params.process_id,
                root_uri=params.root_uri,
                root_path=params.root_path,
                workspace_folders=folders or None,
            )
        )
        result: JsonObject = as_json(finish(built_in))
        self._raw_capabilities = params.capabilities if isinstance(params.capabilities, dict) else {}
        return result

    def _serialize_message(self, data: Any) -> JsonObject:
        """pygls makes JSON of its capabilities for a log line that nobody sees; this spares the work."""
        return {}

    # Out ------------------------------------------------------------------------------------------------

    def _send_data(self, data: Any) -> None:
        """All that pygls sends by its own methods. Raises in the caller where it is no JSON."""
        message: JsonObject = self._converter.unstructure(data)
        if message.get("params", message) is None:
            del message["params"]  # JSON-RPC knows no null there.
        if asyncio._get_running_loop() is self.loop:
            self.outbox.send(message)
        else:
            self.loop.call_soon_threadsafe(self.outbox.send, message)

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Future[Any]:
        """pygls' way to ask the host, with our ids and a deadline. `msg_id` is ignored."""
        answer = asyncio.run_coroutine_threadsafe(self._ask(method, params), self.loop)
        if callback is not None:
            answer.add_done_callback(lambda done: callback(done.result()))
        return answer

    async def _ask(self, method: str, params: Any) -> Any:
        asked = self._converter.unstructure(params)
        result = await self.unanswered.ask(method, asked, deadline_secs=REQUEST_DEADLINE_SECS)
        shape = self.get_result_type(method)
        if shape is None:
            return result
        return self._converter.structure({"id": 0, "jsonrpc": "2.0", "result": result}, shape).result


def is_lsp_notification(method: str) -> bool:
    """Whether LSP has this method as a notification."""
    return method in types.METHOD_TO_TYPES and types.METHOD_TO_TYPES[method][1] is None


def is_lsp_request(method: str) -> bool:
    """Whether LSP has this method as a request."""
    return method in types.METHOD_TO_TYPES and types.METHOD_TO_TYPES[method][1] is not None


class LazyConverter:
    """lsprotocol's converter, made when it is needed: that takes 30 ms, which no start should have to wait for."""

    @cached_property
    def _made(self) -> cattrs.Converter:
        return get_converter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def as_json(value: Any) -> Any:
    """What an LSP value is as JSON, for values whose every field is named as usual."""
    if attrs.has(type(value)):
        fields = ((attribute.name, getattr(value, attribute.name)) for attribute in attrs.fields(type(value)))
        return {camel(name): as_json(field) for name, field in fields if field is not None}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def finish(steps: Generator[Any, Any, Any]) -> Any:
    """Runs a built-in feature behind which none was registered; returns its result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


def _decode_error(error: Exception) -> DecodeError:
    """The first of cattrs' complaints, which read `what is wrong @ params.text_document.uri`."""
    reason, _, path = cattrs.transform_error(error, path="params")[0].partition(" @ ")
    return DecodeError(".".join(camel(part) for part in path.split(".")), reason)
