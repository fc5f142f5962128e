"""A hand-written asyncio loop that sends events: the yardstick for what the wire costs. Standard library only.

It does what cannot be left out: reads a frame, makes JSON of each event, writes it, waits when the pipe is full.
"""

import asyncio
import json
import sys
from typing import Any


async def serve() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(transport, protocol, reader, loop)
    while header := await reader.readline():
        await reader.readline()
        message = json.loads(await reader.readexactly(int(header.partition(b":")[2])))
        if message["method"] == "agent/submit":
            await submit(writer, message["params"])
        send(writer, {"jsonrpc": "2.0", "id": message.get("id"), "result": {"capabilities": {}}})


async def submit(writer: asyncio.StreamWriter, params: dict[str, Any]) -> None:
    ((_, text, times),) = json.loads(params["prompt"])
    for seq in range(times):
        event = {"type": "toolExecutionProgress", "callId": "c1", "message": text}
        numbered = {"sessionId": "session", "runId": "run", "seq": seq, "event": event}
        send(writer, {"jsonrpc": "2.0", "method": "agent/event", "params": numbered})
        await writer.drain()


def send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)


if __name__ == "__main__":
    asyncio.run(serve())
