"""What a tool is, and what it is given when it runs."""

import asyncio
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from attrs import field, frozen

from sidecar.permissions.model import Permission
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import Warned
from sidecar.protocol.values import JsonObject, ToolKind, ToolResult
from sidecar.tools.documents import NO_DOCUMENTS, Documents
from sidecar.tools.threads import from_thread

T = TypeVar("T")


class CancellationToken:
    """Tells a running tool that nobody waits for it any more: check `cancelled`, or await `wait()`.

    Async tools are cancelled as tasks too; a plain function in a worker thread can only look here.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._children: weakref.WeakSet[CancellationToken] = weakref.WeakSet()
        self.reason: str | None = None

    @property
    def cancelled(self) -> bool:
        return self.reason is not None

    def cancel(self, reason: str) -> None:
        """Call from the event loop's thread. The first reason stays."""
        if self.reason is None:
            self.reason = reason
            self._event.set()
            for child in tuple(self._children):
                child.cancel(reason)

    def child(self) -> "CancellationToken":
        """A token of its own that is cancelled together with this one."""
        token = CancellationToken()
        if self.reason is not None:
            token.cancel(self.reason)
        self._children.add(token)
        return token

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
InvokeOther = Callable[[str, JsonObject], Awaitable[ToolResult]]
Warn = Callable[[Warned], Awaitable[None]]


async def _no_progress(done: float | None, total: float | None, message: str | None, partial: Any) -> None:
    """Nobody watches."""


async def _nobody_to_ask(prompt: str, schema: JsonObject | None) -> Any:
    """Nobody is there to answer: None, as if they had declined."""
    return None


async def _nobody_is_warned(warning: Warned) -> None:
    """Nobody watches."""


async def _no_other_tools(name: str, args: JsonObject) -> ToolResult:
    """A tool that runs outside a registry reaches no other."""
    raise ToolError("notFound", f"there is no registry here that could run {name!r}", tool=name)


@frozen(kw_only=True, eq=False, repr=False)
class ToolContext:
    """The second argument of `BaseTool.execute`. New fields may join; none will leave.

    `shared_state` lives as long as the run and is shared by its tools. `workspace` holds the folders that
    file tools keep to, the first of them where relative paths start; `documents` those that an editor has open,
    whose text may differ from what is on disk. `rule_arguments` are the arguments as the
    permission rules saw them; None where nothing was checked. `warn` tells the host what was mended or odd.
    """

    call_id: str = ""
    session_id: str | None = None
    run_id: str | None = None
    trace_id: str = ""
    cancellation: CancellationToken = field(factory=CancellationToken)
    shared_state: dict[str, Any] = field(factory=dict)
    workspace: tuple[Path, ...] = ()
    documents: Documents = NO_DOCUMENTS
    rule_arguments: JsonObject | None = None
    report: Progress = _no_progress
    question: Ask = _nobody_to_ask
    other: InvokeOther = _no_other_tools
    warn: Warn = _nobody_is_warned

    async def progress(
        self, done: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Tells the host how far the tool is; waits when the host reads slowly."""
        await self.report(done, total, message, None)

    async def ask(self, prompt: str, schema: JsonObject | None = None) -> Any:
        """Asks the person at the host; `schema` (JSON Schema) says what is wanted.

        Returns the content they gave, or None when they declined, nobody is there, the deadline passed, or what
        came does not fit the schema; without a schema it is text.
        """
        return await self.question(prompt, schema)

    async def invoke(self, name: str, args: JsonObject) -> ToolResult:
        """Runs another tool of the same registry, with its own checks and its own approval.

        Raises ToolError as that call does.
        """
        return await self.other(name, args)

    def from_thread(self, work: Coroutine[Any, Any, T]) -> T:
        """For plain functions, which run in a thread: `ctx.from_thread(ctx.ask("Really?"))`.

        Raises RuntimeError elsewhere, and CancelledError once nobody waits for the tool any more.
        """
        return from_thread(work)


ToolOutput = ToolResult | AsyncIterator[Any] | Any
"""What `execute` may return: a ToolResult, any JSON value (a success), or an async iterator of parts.

Each part of an iterator is reported as progress; the result is the parts joined when all are text, the last
part when it is a ToolResult, and the list of parts otherwise.
"""


class BaseTool(ABC):
    """A tool. Built-in, MCP and host-provided tools are all of these; the loop cannot tell them apart.

    `parameters` is a JSON Schema 2020-12 object. `required_permissions` and `requires_approval` decide who is
    asked before it runs. `idempotent` allows a second try after `mcpTimeout`. `timeout_secs` replaces the
    loop's limit for one call of this tool. `tags`, `category` and `version` describe it where `register` is
    given none.
    """

    name: str
    description: str
    parameters: JsonObject
    required_permissions: tuple[Permission, ...] = ()
    requires_approval: bool = False
    kind: ToolKind = "unknown"
    idempotent: bool = False
    timeout_secs: float | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    version: str | None = None
    remembered_arguments: tuple[str, ...] | None = None
    """The arguments that a remembered approval keeps: what the call is about, such as a path. None: all."""

    @abstractmethod
    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        """Does the work. `args` fits `parameters`.

        Return `ToolResult.error(...)` for a failure that the model should know and may work around. Raise
        ToolError for one of the call itself; anything else raised becomes `executionFailed`.
        """

    def person_secs(self) -> float:
        """How long, in all, this tool has waited for a person other than by `ctx`; no limit counts that."""
        return 0.0

    async def preview(self, args: JsonObject, ctx: ToolContext) -> str | None:
        """What the call would change, as a unified diff, for whoever is asked whether it may run. None: not said.

        Changes nothing itself. Whatever it raises counts as None.
        """
        return None

    async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
        """The arguments as permission rules see them; a tool of files gives each path in its one true spelling.

        Raises ToolError `permissionDenied` for what no rule can allow.
        """
        return args
