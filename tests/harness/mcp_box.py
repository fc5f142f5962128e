"""One MCP server of `mcp_offering`, in a sidecar that several tests share."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.harness.host import Host, Json
from tests.harness.mcp_offering import offering_entry

_numbers = itertools.count(1)


class Box:
    """The server `name`. What is asked, told and withdrawn is that since the test began."""

    def __init__(self, host: Host, name: str) -> None:
        self.host = host
        self.name = name
        self._asked_before = len(host.asked)
        self._notified_before = len(host.notifications)
        self._withdrawn_before = len(host.withdrawn)

    async def request(self, method: str, **params: Any) -> Any:
        """A request of ours about the server."""
        return await self.host.request(method, {"server": self.name, **params})

    async def call(self, tool: str, arguments: Json) -> Json:
        """The whole answer to a call of one of its tools."""
        about = {"name": f"{self.name}__{tool}", "arguments": arguments}
        answer: Json = await self.host.request("tools/call", about)
        return answer

    async def told(self, tool: str, arguments: Json) -> Any:
        """What its tool answers, which is JSON."""
        return json.loads((await self.call(tool, arguments))["result"]["data"])

    async def tell(self, method: str, *params: Json) -> None:
        """Has it send a notification for each of `params`."""
        await self.call("tell", {"method": method, "params": list(params)})

    async def ask(self, method: str, params: Json) -> Json:
        """What it is answered to a request of its own: `result` or `error`."""
        answer = await self.told("ask", {"method": method, "params": params})
        return {name: value for name, value in answer.items() if name in ("result", "error")}

    def answers(self, method: str, *given: Json) -> None:
        """The host answers questions with these, in their order."""
        waiting = list(given)
        self.host.answers[method] = lambda asked: waiting.pop(0)

    def asked(self, method: str) -> list[Json]:
        """The questions that the host was asked."""
        return [params for name, params in self.host.asked[self._asked_before :] if name == method]

    def notified(self, method: str) -> list[Json]:
        """The params of the notifications that the host got."""
        return [params for name, params in self.host.notifications[self._notified_before :] if name == method]

    @property
    def withdrawn(self) -> list[Any]:
        return self.host.withdrawn[self._withdrawn_before :]


@asynccontextmanager
async def box_in(host: Host, *options: str, **fields: Any) -> AsyncIterator[Box]:
    """A server of its own for a test, under a name that no other had."""
    box = Box(host, f"box{next(_numbers)}")
    entry = offering_entry(*options, **fields)
    info = await host.request("mcp/connect", {"name": box.name, "config": entry})
    assert info["status"] == "ready", info
    try:
        yield box
    finally:
        await host.request("mcp/disconnect", {"name": box.name})
