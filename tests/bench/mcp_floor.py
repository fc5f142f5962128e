"""The least that an MCP client can be: no checks, no limits, no cancellation. The yardstick for ours."""

import asyncio
import itertools
import json
from typing import Any

LINE_LIMIT_BYTES = 64 * 1024 * 1024


class HandWritten:
    """One server over stdio, by a hand-written asyncio loop."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._ids = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}

    async def connect(self) -> None:
        """Starts the server and shakes hands."""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=pipe,
            stdout=pipe,
            limit=LINE_LIMIT_BYTES,
            # As every client that can end a server's children; a busy system shares its time out by session.
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read())
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        await self._request("initialize", params)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def list_tools(self) -> Any:
        """The first page of tools."""
        return await self._request("tools/list", {})

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """The result as it came."""
        return await self._request("tools/call", {"name": name, "arguments": arguments})

    async def close(self) -> None:
        """Ends stdin and waits for the server to go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._reading

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        request_id = next(self._ids)
        self._pending[request_id] = answer = asyncio.get_running_loop().create_future()
        self._write({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return await answer

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            message = json.loads(line)
            self._pending.pop(message["id"]).set_result(message["result"])
