"""A server while it is there: its transport, the conversation over it, and the task that reads."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from attrs import frozen

from sidecar.mcp.authorization import Authorization
from sidecar.mcp.config import HttpServer, Server, StdioServer, is_secret, path_of, plan_launch
from sidecar.mcp.connection import Connection, Reply
from sidecar.mcp.pending import Heard
from sidecar.mcp.process import ServerProcess
from sidecar.mcp.tail import Tail
from sidecar.mcp.transport import Transport
from sidecar.protocol.errors import ConfigurationError


@frozen(kw_only=True, eq=False)
class Start:
    """How a server is started. `inputs` are what a person gave for its entry: secrets. `authorization` holds the
    right to use one that is reached over HTTP. `on_secrets` hears what must not show in what the server writes.

    Relative paths in `server` start at `folder`. Placeholders in it are not expanded.
    """

    name: str
    server: Server
    folder: Path
    environ: Mapping[str, str]
    inputs: tuple[str, ...]
    on_secrets: Callable[[Iterable[str]], None]
    authorization: Authorization | None = None


class Life:
    """From the start of a server to its end. Whoever got one must `close` it."""

    def __init__(self, server: Server, transport: Transport, connection: Connection) -> None:
        self.server = server
        self.transport = transport
        self.connection = connection
        self._reading = asyncio.create_task(self._read_to_the_end())

    @classmethod
    async def begin(
        cls,
        start: Start,
        *,
        replies: Mapping[str, Reply],
        on_notification: Heard,
        paused_secs: Callable[[], float],
    ) -> "Life":
        """Starts the server. Raises ConfigurationError where that cannot be."""
        tail = Tail()
        transport = await open_transport(start, tail)
        connection = Connection(
            transport,
            server=start.name,
            timeout_secs=start.server.timeout_secs,
            tail=tail,
            replies=replies,
            on_notification=on_notification,
            paused_secs=paused_secs,
        )
        if isinstance(transport, ServerProcess):
            transport.hand_over(connection.take_at_once)
        return cls(start.server, transport, connection)

    @property
    def is_over(self) -> bool:
        return self.connection.ending is not None

    async def close(self) -> None:
        """Ends the server and all that it started, within 3 s; what still waits fails at once."""
        self.connection.end("was stopped")
        await self.transport.close()
        await asyncio.wait({self._reading})

    async def _read_to_the_end(self) -> None:
        try:
            await self.connection.read()
        finally:
            # Also a server that died by itself may have left something running.
            await self.transport.close()


async def open_transport(start: Start, tail: Tail) -> Transport:
    """The way to a server, by the kind of its entry. What it writes where no message belongs goes to `tail`.

    Raises ConfigurationError where the entry is wrong, ToolError where the server cannot be reached.
    """
    match start.server:
        case StdioServer() as server:
            return await _start_process(start, server, tail)
        case HttpServer() as server:
            return await _open_http(start, server)


async def _start_process(start: Start, server: StdioServer, tail: Tail) -> ServerProcess:
    path = path_of(start.name)
    launch = plan_launch(server, path=path, environ=start.environ, folder=start.folder, inputs=start.inputs)
    tail.hide(launch.secrets)
    start.on_secrets(launch.secrets)
    try:
        return await ServerProcess.start(launch, tail)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        message = f"{path}.command: {server.command!r} cannot be started: {reason}"
        raise ConfigurationError(message, path=f"{path}.command") from None


async def _open_http(start: Start, server: HttpServer) -> Transport:
    """httpx takes 90 ms to import, which only those pay who have such a server."""
    start.on_secrets((*start.inputs, *filter(is_secret, server.headers.values())))
    if server.type == "sse":
        from sidecar.mcp.http_sse_transport import open_sse  # noqa: PLC0415

        return await open_sse(start.name, server, secrets=start.inputs, authorization=start.authorization)
    from sidecar.mcp.http_transport import open_http  # noqa: PLC0415

    return await open_http(start.name, server, secrets=start.inputs, authorization=start.authorization)
