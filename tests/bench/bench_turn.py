"""What the sidecar adds to a warm turn: one MCP call and final text, with a model that answers at once.

The floor does the same work by hand in one program: two streamed requests to the same model server over one
kept connection, one call to the same MCP server. Both are measured in turns in one run. Prints a table.

    python -m tests.bench.bench_turn [ROUNDS]
"""

import asyncio
import json
import statistics
import sys
import time
from typing import Any

import httpx
from sidecar_client import Sidecar

from tests.harness.host import clean_environment
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import ScriptedModel, SeenRequest, calls, says

TARGET_MS = 10.0


def answer(request: SeenRequest) -> Any:
    """A call first, then text."""
    if request.messages[-1]["role"] == "tool":
        return says("done")
    return calls(("srv__echo", {"text": "hi"}))


async def floor_turn(client: httpx.AsyncClient, url: str, server: asyncio.subprocess.Process, number: int) -> None:
    """The same exchange without any of us in between."""
    asked: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    call = {
        "id": f"c{number}",
        "type": "function",
        "function": {"name": "srv__echo", "arguments": '{"text": "hi"}'},
    }
    tools = [
        {"type": "function", "function": {"name": "srv__echo", "parameters": {"type": "object", "properties": {}}}}
    ]
    await _stream(client, url, {"model": "m", "stream": True, "messages": asked, "tools": tools})
    await _mcp(
        server, {"id": number, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}
    )
    asked += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "hi"},
    ]
    await _stream(client, url, {"model": "m", "stream": True, "messages": asked, "tools": tools})


async def _stream(client: httpx.AsyncClient, url: str, body: dict[str, Any]) -> None:
    async with client.stream("POST", f"{url}/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                json.loads(line[6:])


async def _mcp(server: asyncio.subprocess.Process, message: dict[str, Any]) -> None:
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    await server.stdin.drain()
    while "id" in message and json.loads(await server.stdout.readline()).get("id") != message["id"]:
        pass


async def main(rounds: int) -> None:
    options = {
        "model": "test/m",
        "builtinTools": False,
        "permissions": {"ask": [], "allowed": ["mcp:*"]},
        "mcpServers": {"srv": server_entry()},
    }
    entry = server_entry()
    server = await asyncio.create_subprocess_exec(
        entry["command"], *entry["args"], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "floor", "version": "1"}}
    await _mcp(server, {"id": 0, "method": "initialize", "params": info})
    await _mcp(server, {"method": "notifications/initialized"})
    ours: list[float] = []
    floor: list[float] = []
    async with ScriptedModel(answer=answer) as model, httpx.AsyncClient() as client:
        options["providers"] = {"test": {"api": "openai-chat", "baseUrl": model.base_url}}
        command = (sys.executable, "-m", "sidecar")
        async with Sidecar(options, command=command, env=clean_environment()) as host:
            for number in range(1, rounds + 6):
                began = time.perf_counter()
                await host.submit("go").result()
                between = time.perf_counter()
                await floor_turn(client, model.base_url, server, number)
                if number > 5:  # The first few warm both up.
                    ours.append((between - began) * 1000)
                    floor.append((time.perf_counter() - between) * 1000)
    server.kill()
    await server.wait()
    added = statistics.median(ours) - statistics.median(floor)
    sys.stdout.write(
        f"| warm turn, median of {rounds} | ms |\n|---|---|\n"
        f"| through the sidecar | {statistics.median(ours):.1f} |\n"
        f"| the same by hand | {statistics.median(floor):.1f} |\n"
        f"| added (target at most {TARGET_MS:.0f}) | {added:.1f} |\n"
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
