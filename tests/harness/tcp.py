"""TCP servers that are no good model servers: they answer anything, nothing, or over TLS."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path


@contextlib.asynccontextmanager
async def tcp_server(
    answer: bytes, *, until: bytes = b"\r\n\r\n", tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, asyncio.Future[bytes]]]:
    """A server that reads up to the end of a head, sends these bytes and closes; its URL, and what it read."""
    head: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                first = await reader.readuntil(until)
                if not head.done():
                    head.set_result(first)
                writer.write(answer)
                await writer.drain()
        finally:
            writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", head


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def self_signed(folder: Path, *, name: str = "x") -> ssl.SSLContext:
    """A server's TLS with a certificate for `name` that it made itself, and left in `certificate.pem`."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN={name} -addext subjectAltName=DNS:{name}"
    command += f" -keyout {key} -out {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
