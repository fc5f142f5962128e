"""What a tool is, and what it is given when it runs."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from attrs import field, frozen

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolKind, ToolResult


class CancellationToken:
    """Tells a running tool that nobody waits for it any more: check `cancelled`, or await `wait()`.

    Async tools are cancelled as tasks too; a plain function in a worker thread can only look here.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason: str | None = None

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    def cancel(self, reason: str) -> None:
        """Call from the event loop's thread. The first reason stays."""
        if self.reason is None:
            self.reason = reason
            self._event.set()

    async def wait(self) -> str:
        """Returns the reason once there is one."""
        await self._event.wait()
        return self.reason or ""

    def raise_if_cancelled(self) -> None:
        """Raises asyncio.CancelledError once the token is cancelled."""
        if self.cancelled:
            raise asyncio.CancelledError(self.reason)


Progress = Callable[[float | None, float | None, str | None, Any], Awaitable[None]]
Ask = Callable[[str, JsonObject | None], Awaitable[Any]]


async def _no_progress(done: float | None, total: float | None, message: str | None, partial: Any) -> None:
    """Nobody watches."""


async def _nobody_to_ask(prompt: str, schema: JsonObject | None) -> Any:
    """Nobody is there to answer: None, as if they had declined."""
    return None


@frozen(kw_only=True)
class ToolContext:
    """The second argument of `BaseTool.execute`. New fields may join; none will leave.

    `shared_state` lives as long as the run and is shared by its tools. `workspace` holds the folders that
    file tools keep to, the first of them where relative paths start.
    """

    call_id: str = ""
    session_id: str | None = None
    run_id: str | None = None
    trace_id: str = ""
    cancellation: CancellationToken = field(factory=CancellationToken)
    shared_state: dict[str, Any] = field(factory=dict)
    workspace: tuple[Path, ...] = ()
    report: Progress = _no_progress
    question: Ask = _nobody_to_ask

    async def progress(
        self, done: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tells the host how far the tool is; waits when the host reads slowly."""
        await self.report(done, total, message, None)

    async def ask(self, prompt: str, schema: JsonObject | None = None) -> Any:
        """Asks the person at the host; `schema` (JSON Schema) says what is wanted.

        Returns the content they gave, or None when they declined, nobody is there, or the deadline passed.
        """
        return await self.question(prompt, schema)


ToolOutput = ToolResult | AsyncIterator[Any] | Any
"""What `execute` may return: a ToolResult, any JSON value (a success), or an async iterator of parts.

Each part of an iterator is reported as progress; the result is the parts joined when all are text, the last
part when it is a ToolResult, and the list of parts otherwise.
"""


class BaseTool(ABC):
    """A tool. Built-in, MCP and host-provided tools are all of these; the loop cannot tell them apart.

    `parameters` is a JSON Schema 2020-12 object. `required_permissions` and `requires_approval` decide who is
    asked before it runs. `idempotent` allows a second try after `mcpTimeout`. `timeout_secs` replaces the
    loop's limit for one call of this tool.
    """

    name: str
    description: str
    parameters: JsonObject
    required_permissions: tuple[Permission, ...] = ()
    requires_approval: bool = False
    kind: ToolKind = "unknown"
    idempotent: bool = False
    timeout_secs: float | None = None

    @abstractmethod
    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        """Does the work. `args` fits `parameters`.

        Return `ToolResult.error(...)` for a failure that the model should know and may work around. Raise
        ToolError for one of the call itself; anything else raised becomes `executionFailed`.
        """
