"""A host for end-to-end tests: the real sidecar process, driven by pytest-lsp's client.

Values stay JSON in the tests, as a host sees them. That they fit the schema is seen to by `frames.py`.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features
from pytest_lsp.protocol import LanguageClientProtocol

from sidecar.protocol.methods import METHODS
from tests.harness.data_home import new_data_home
from tests.harness.frames import Conversation

BOUND_SECS = 15.0
"""No single wait of a test is longer; a sidecar takes about half a second to start."""

Json = dict[str, Any]
Answer = Callable[[Json], Awaitable[Any] | Any]


class RequestFailed(Exception):
    """The sidecar answered with an error."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(f"{code}: {message} {data}")
        self.code, self.message, self.data = code, message, data


def _converter() -> Any:
    converter = get_converter()
    for envelope in (JsonRPCRequestMessage, JsonRPCNotification, JsonRPCResponseMessage):
        converter.register_structure_hook(envelope, lambda value, shape: shape(**value))
    return converter


class _Protocol(LanguageClientProtocol):
    """Params and results of our methods stay JSON; those of LSP are typed as ever."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.conversation = Conversation()

    def set_writer(self, writer: Any, include_headers: bool = True) -> None:
        super().set_writer(_HeardWriter(writer, self.conversation), include_headers)

    def structure_message(self, data: Json) -> Any:
        return data

    def handle_message(self, message: Any) -> None:
        if isinstance(message, dict):
            self.conversation.received(message)
            if "method" in message:
                message.setdefault("params", None)
            message = super().structure_message(message)
        super().handle_message(message)


class _HeardWriter:
    """What pygls writes to, heard as it goes out: one whole frame a call."""

    def __init__(self, writer: Any, conversation: Conversation) -> None:
        self._writer = writer
        self._conversation = conversation

    def write(self, data: bytes) -> Any:
        self._conversation.sent(json.loads(data.partition(b"\r\n\r\n")[2]))
        return self._writer.write(data)

    def close(self) -> Any:
        return self._writer.close()


class Host:
    """One running sidecar. `events` holds every `agent/event`, `notifications` all other notices of ours."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.events: list[Json] = []
        self.notifications: list[tuple[str, Json]] = []
        self.asked: list[tuple[str, Json]] = []
        self.withdrawn: list[Any] = []
        self.answers: dict[str, Answer] = {}
        self.initialized: Json = {}
        self._news = asyncio.Event()
        self._listen()

    def being_odd(self) -> AbstractContextManager[None]:
        """What is sent in the block is wrong on purpose and yet never refused."""
        return self.client.protocol.conversation.being_odd()

    async def request(self, method: str, params: Any = None) -> Any:
        """The result as JSON; raises RequestFailed."""
        return await self._within(self.send(method, params))

    def send(self, method: str, params: Any = None, *, request_id: str | None = None) -> "asyncio.Future[Any]":
        """Sends at once, so that several requests can be under way; the future raises RequestFailed."""
        sent = self.client.protocol.send_request(method, params, msg_id=request_id)
        return asyncio.ensure_future(self._answered(asyncio.wrap_future(sent)))

    async def submit(self, prompt: Any = "go", **params: Any) -> Json:
        """agent/submit; events are in `events` by the time it returns."""
        result: Json = await self.request("agent/submit", {"prompt": prompt, **params})
        return result

    def notify(self, method: str, params: Any) -> None:
        """Sends a notification; those of LSP are given as JSON too."""
        typed = {"$/cancelRequest": types.CancelParams, "$/progress": types.ProgressParams}.get(method)
        self.client.protocol.notify(method, typed(**params) if typed else params)

    async def wait_for(self, what: Callable[[], Any]) -> Any:
        """Waits until `what()` is true, looking again whenever something arrives."""

        async def waiting() -> Any:
            while not (found := what()):
                self._news.clear()
                await self._news.wait()
            return found

        return await self._within(waiting())

    async def wait_for_event(self, kind: str, **fields: Any) -> Json:
        """The first event of this type (with these fields) that came or will come."""

        def found() -> Json | None:
            return next(
                (e for e in self.kinds(kind) if all(e.get(name) == value for name, value in fields.items())), None
            )

        event: Json = await self.wait_for(found)
        return event

    def kinds(self, *kinds: str) -> list[Json]:
        """The events so far, those of the given types alone, without their envelope."""
        return [e["event"] for e in self.events if not kinds or e["event"]["type"] in kinds]

    def types(self) -> list[str]:
        """The types of all events so far, neighbouring deltas as one."""
        types = [e["event"]["type"] for e in self.events]
        return [t for i, t in enumerate(types) if not (i and t == types[i - 1] and t.endswith("Delta"))]

    async def _answered(self, sent: "asyncio.Future[Any]") -> Any:
        try:
            return await sent
        except JsonRpcException as error:
            raise RequestFailed(error.code, error.message, error.data) from None

    async def _within(self, waiting: Awaitable[Any]) -> Any:
        async with asyncio.timeout(BOUND_SECS):
            return await waiting

    def _listen(self) -> None:
        for row in METHODS.values():
            if row.sender != "sidecar":
                continue
            feature = self._on_notification(row.name) if row.is_notification else self._on_request(row.name)
            self.client.feature(row.name)(feature)

    def _on_notification(self, method: str) -> Any:
        def received(params: Json) -> None:
            if method == "agent/event":
                self.events.append(params)
            else:
                self.notifications.append((method, params))
            self._news.set()

        return received

    def _on_request(self, method: str) -> Any:
        async def received(params: Json) -> Any:
            self.asked.append((method, params))
            self._news.set()
            try:
                answer = self.answers[method](params)
                return await answer if isinstance(answer, Awaitable) else answer
            except asyncio.CancelledError:
                self.withdrawn.append(params.get("requestId", params.get("callId")))
                self._news.set()
                raise

        return received


COMMAND = (sys.executable, "-m", "sidecar")
"""The sidecar of this source tree."""

FULL: Json = {"approvals": True, "input": True, "hostTools": True}
"""What a host that can do everything says of itself."""


@asynccontextmanager
async def sidecar(
    options: Json | None = None,
    *,
    can: Json | None = None,
    lsp: types.ClientCapabilities | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    args: Sequence[str] = (),
    folders: Sequence[Path] = (),
    answers: dict[str, Answer] | None = None,
    command: Sequence[str] = COMMAND,
) -> AsyncIterator[Host]:
    """A sidecar that has answered `initialize`, shut down in good order at the end.

    `can` is the host's own word on itself (default FULL), `lsp` the LSP capabilities beside it. `answers` are
    for questions that may come at once; later ones can be put into the host's own `answers`. The user's
    configuration file is that of an empty home.
    """
    client = LanguageClient(protocol_cls=_Protocol, converter_factory=_converter)
    register_lsp_features(client)
    host = Host(client)
    host.answers.update(answers or {})
    await client.start_io(*command, *args, cwd=cwd, env={**clean_environment(), **(env or {})})
    try:
        capabilities = lsp or types.ClientCapabilities()
        capabilities.experimental = {"agentSidecar": FULL if can is None else can}
        result = await host._within(
            client.initialize_session(
                types.InitializeParams(
                    capabilities=capabilities,
                    initialization_options=options or {},
                    workspace_folders=[types.WorkspaceFolder(uri=f.as_uri(), name=f.name) for f in folders]
                    or None,
                )
            )
        )
        host.initialized = result.capabilities.experimental["agentSidecar"]
        yield host
        await host._within(client.shutdown_session())
        assert client._server is not None
        assert client._server.returncode == 0, "a sidecar that was shut down must end with status 0"
    finally:
        server = client._server
        if server is not None and server.returncode is None:
            server.kill()
            await host._within(server.wait())
        await client.stop()


def clean_environment() -> dict[str, str]:
    """This process' environment without what would lead a sidecar to real models and real settings.

    Each time with other folders for what is kept, so that no sidecar finds what another has left.
    """
    empty, own = str(Path(__file__).parent / "empty_home"), new_data_home()
    leading = ("OPENAI_", "ANTHROPIC_", "OLLAMA_", "OPENROUTER_", "DEEPSEEK_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(leading)}
    folders = {"HOME": empty, "XDG_CONFIG_HOME": f"{empty}/config"}
    folders |= {f"XDG_{kind}_HOME": own for kind in ("DATA", "CACHE", "STATE")}
    # Nor does one find what the user keeps in a keyring, or leave anything there.
    return {**kept, **folders, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
