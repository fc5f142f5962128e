"""The sidecar's processes as the judge has them in hand: orders to a stand-in, and what it passes on."""

import asyncio
import base64
import json
from typing import Any

from attrs import define, field

from sidecar.conformance.host_steps import Wire


@define
class News:
    """Lets one waiter sleep until something has happened."""

    _happened: asyncio.Event = field(factory=asyncio.Event, init=False)

    def tell(self) -> None:
        """Something happened."""
        self._happened.set()

    async def wait(self, limit_secs: float) -> None:
        """Until the next thing happens, at most so long."""
        try:
            async with asyncio.timeout(max(limit_secs, 0)):
                await self._happened.wait()
        except TimeoutError:
            return
        self._happened.clear()


@define(kw_only=True)
class Life:
    """One process of the sidecar, as long as the host keeps it."""

    writer: asyncio.StreamWriter
    input_closed: bool = False
    gone: bool = False
    wire: Wire = field(factory=Wire)
    held: bytes = b""

    def order(self, **order: Any) -> None:
        """Has the stand-in do something; without effect once it is gone."""
        if not self.gone:
            self.writer.write(json.dumps(order).encode() + b"\n")

    def write(self, data: bytes, wire: Wire) -> None:
        """Has bytes written to stdout."""
        encoded = base64.b64encode(data).decode()
        self.order(write=encoded, pieceBytes=wire.piece_bytes, pauseMs=wire.pause_ms)

    def send(self, message: Any) -> None:
        """Has a message written as a frame, or keeps it back, as the wire is."""
        body = _body(message)
        header = self.wire.header or "Content-Length: {bytes}\r\n\r\n"
        data = header.replace("{bytes}", str(len(body))).encode() + body
        if self.wire.together:
            self.held += data
        else:
            self.write(data, self.wire)

    def cut_off(self, message: Any) -> None:
        """Has a frame written whose header promises one byte more than there is."""
        body = _body(message)
        self.write(b"Content-Length: %d\r\n\r\n%b" % (len(body) + 1, body), Wire())

    def rewire(self, wire: Wire) -> None:
        """From here on frames go out so; what was kept back goes out before."""
        if self.held:
            self.write(self.held, Wire())
        self.held, self.wire = b"", wire


def _body(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


async def read_piece(reader: asyncio.StreamReader) -> bytes:
    """What the stand-in passes on at once; nothing at the end of its stdin."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)
