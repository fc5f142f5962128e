"""Which tools there are, and the one way any of them runs: look up, arguments, permission, approval, execute,
truncate, record. Belongs to one event loop; nothing here is for other threads.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import Permission, PermissionDecision
from sidecar.protocol.errors import ToolError
from sidecar.protocol.messages import ToolsChangedParams
from sidecar.protocol.values import (
    JsonObject,
    ToolCall,
    ToolDefinition,
    ToolInvocation,
    ToolSelector,
    ToolSource,
)
from sidecar.tools.base import BaseTool
from sidecar.tools.call import Call
from sidecar.tools.entry import ToolEntry
from sidecar.tools.limits import Stragglers
from sidecar.tools.output import shown_error
from sidecar.tools.permit import OpenQuestions, decided, seen_by_rules
from sidecar.tools.scope import InvocationScope
from sidecar.tools.truncation import cut

__all__ = ["InvocationScope", "ToolRegistry", "not_found"]

LONGEST_NAME_CHARS = 128

OnDone = Callable[[ToolInvocation], Awaitable[None]]
OnChange = Callable[[ToolsChangedParams], None]


class ToolRegistry:
    """The tools, by name. `permissions` decides where a scope brings none; by default the default ones do."""

    def __init__(self, *, permissions: PermissionChecker | None = None) -> None:
        self._permissions = permissions or PermissionChecker()
        self._entries: dict[str, ToolEntry] = {}
        self._listeners: list[OnChange] = []
        self._questions = OpenQuestions()
        self._stragglers = Stragglers()

    # Which tools ----------------------------------------------------------------------------------------

    def register(
        self,
        tool: BaseTool,
        *,
        tags: Sequence[str] = (),
        category: str | None = None,
        version: str | None = None,
        source: ToolSource | None = None,
    ) -> ToolEntry:
        """Adds a tool. Raises ToolError `invalidArguments` for a name that is taken or cannot be one."""
        entry = entry_of(tool, tags=tags, category=category, version=version, source=source)
        self.replace((), (entry,))
        return entry

    def register_all(
        self, tools: Iterable[BaseTool], *, tags: Sequence[str] = (), source: ToolSource | None = None
    ) -> list[ToolEntry]:
        """Adds all of them or, where one cannot join, none. Raises as `register` does."""
        entries = [entry_of(tool, tags=tags, source=source) for tool in tools]
        self.replace((), entries)
        return entries

    def unregister(self, name: str) -> ToolEntry | None:
        """Takes a tool away; a call of it that runs already is not touched. None: there was none."""
        entry = self._entries.get(name)
        if entry is not None:
            self.replace((name,), ())
        return entry

    def replace(self, names: Collection[str], entries: Collection[ToolEntry]) -> None:
        """Takes some tools away and adds others in one step, told to listeners as one change.

        A tool that is in both keeps its statistics. Raises as `register` does, and then nothing has changed.
        """
        joining: dict[str, ToolEntry] = {}
        for entry in entries:
            holder = joining.get(entry.name) or (None if entry.name in names else self._entries.get(entry.name))
            if holder is not None:
                raise _name_taken(entry.name, holder)
            joining[entry.name] = entry
        leaving = {name: self._entries.pop(name) for name in names if name in self._entries}
        for name, entry in joining.items():
            if name in leaving:
                entry.stats = leaving[name].stats
        self._entries.update(joining)
        self._tell(leaving, joining)

    def get(self, name: str) -> ToolEntry | None:
        """The tool of that very name."""
        return self._entries.get(name)

    def find(self, name: str) -> ToolEntry:
        """The tool of that very name. Raises ToolError `notFound`, which offers the nearest one."""
        entry = self._entries.get(name)
        if entry is None:
            raise not_found(name, self._entries)
        return entry

    def list_tools(self) -> list[str]:
        """All names, sorted."""
        return sorted(self._entries)

    def entries(self, selector: ToolSelector | None = None) -> list[ToolEntry]:
        """The tools that `selector` takes, by name."""
        entries = (self._entries[name] for name in sorted(self._entries))
        return [entry for entry in entries if selector is None or entry.matches(selector)]

    def definitions(self, selector: ToolSelector | None = None) -> tuple[ToolDefinition, ...]:
        """What a model is told; always in the order of the names, which suits the caches of providers."""
        return tuple(entry.definition for entry in self.entries(selector))

    def find_by_tag(self, tag: str) -> list[ToolEntry]:
        """The tools with this tag, by name."""
        return [entry for entry in self.entries() if tag in entry.tags]

    def find_by_category(self, category: str) -> list[ToolEntry]:
        """The tools of this category, by name."""
        return [entry for entry in self.entries() if entry.category == category]

    def groups(self) -> dict[str | None, list[ToolEntry]]:
        """The tools by category; those without one are under None."""
        groups: dict[str | None, list[ToolEntry]] = {}
        for entry in self.entries():
            groups.setdefault(entry.category, []).append(entry)
        return groups

    def subscribe(self, listener: OnChange) -> Callable[[], None]:
        """Calls `listener` after every change, until the function that is returned is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    # Running them ---------------------------------------------------------------------------------------

    async def invoke(
        self, name: str, args: Any, scope: InvocationScope | None = None, *, call_id: str | None = None
    ) -> ToolInvocation:
        """Runs one tool; `args` is a JSON object, or that object as a JSON string, which is a warning.

        A result that is an error of the tool's own is a result. Raises ToolError when the call could not be
        carried out, and CancelledError after the tool was told to end.
        """
        invocation = await self._invoke(name, args, scope or InvocationScope(), call_id or _new_call_id())
        if invocation.error is not None:
            raise invocation.error
        return invocation

    async def invoke_all(
        self,
        calls: Sequence[ToolCall | tuple[str, Any]],
        scope: InvocationScope | None = None,
        on_done: OnDone | None = None,
    ) -> list[ToolInvocation]:
        """Runs all calls at once, each under its own limit; answers in the order of the calls.

        `on_done` is awaited for each as it ends. A ToolError is in the record's `error`, never raised.
        """
        shared = scope or InvocationScope()

        async def one(call: ToolCall) -> ToolInvocation:
            invocation = await self._invoke(call.tool_name, call.input, shared, call.call_id)
            if on_done is not None:
                await on_done(invocation)
            return invocation

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(_as_call(call))) for call in calls]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None  # Only `on_done` can have raised it.
        return [task.result() for task in tasks]

    async def decide(self, name: str, args: Any, scope: InvocationScope | None = None) -> PermissionDecision:
        """What would become of this call: the very decision that `invoke` would act on.

        Raises ToolError `notFound`.
        """
        entry = self.find(name)
        known = scope or InvocationScope()
        try:
            seen = await seen_by_rules(entry.tool, args or {}, known)
        except ToolError as error:
            return PermissionDecision(decision="deny", rule=error.message)
        return decided(entry.tool, name, known.permissions or self._permissions, seen)

    def reconsider(self) -> None:
        """Call after permissions have changed: open questions that they answer now are withdrawn."""
        self._questions.reconsider()

    async def aclose(self) -> None:
        """Ends what still runs of calls that were given up."""
        await self._stragglers.aclose()

    async def _invoke(self, name: str, args: Any, scope: InvocationScope, call_id: str) -> ToolInvocation:
        entry = self._entries.get(name)
        if entry is None:
            missed = _failed_look_up(not_found(name, self._entries), args, scope, call_id)
            scope.record(ToolCall(call_id=call_id, tool_name=name, input=missed.input), missed)
            return missed
        call = Call(
            entry,
            call_id,
            scope,
            scope.permissions or self._permissions,
            questions=self._questions,
            stragglers=self._stragglers,
            invoke_other=self._invoke,
        )
        return await call.run(args)

    def _tell(self, leaving: Collection[str], joining: Collection[str]) -> None:
        change = ToolsChangedParams(
            added=tuple(sorted(set(joining) - set(leaving))),
            removed=tuple(sorted(set(leaving) - set(joining))),
            changed=tuple(sorted(set(joining) & set(leaving))),
        )
        if change.added or change.removed or change.changed:
            for listener in tuple(self._listeners):
                listener(change)


def entry_of(
    tool: BaseTool,
    *,
    tags: Sequence[str] = (),
    category: str | None = None,
    version: str | None = None,
    source: ToolSource | None = None,
) -> ToolEntry:
    """The entry of a tool, which describes itself where nothing is given.

    Raises ToolError `invalidArguments` for a tool that no registry can take.
    """
    _check(tool)
    return ToolEntry(
        tool=tool,
        tags=tuple(tags) or tool.tags,
        category=category or tool.category,
        version=version or tool.version,
        source=source or ToolSource(type="python"),
    )


def not_found(name: str, known: Collection[str]) -> ToolError:
    """There is no such tool; the nearest of those that there are is offered."""
    # difflib takes 10 ms to import and serves invented names alone.
    from difflib import get_close_matches  # noqa: PLC0415

    asked = name[:LONGEST_NAME_CHARS]  # A model may invent a name of any length, and likening takes time.
    nearest = get_close_matches(asked, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    data: JsonObject = {"nearest": nearest[0]} if nearest else {}
    return ToolError("notFound", f"there is no tool {asked!r}{hint}", tool=name, **data)


def _failed_look_up(error: ToolError, args: Any, scope: InvocationScope, call_id: str) -> ToolInvocation:
    content = cut(shown_error(error), scope.max_result_bytes)
    return ToolInvocation(
        call_id=call_id,
        tool_name=error.tool or "",
        input=args if isinstance(args, dict) else {},
        error=error,
        content=content.content,
        started_ms=time.time_ns() // 1_000_000,
        duration_ms=0,
        truncated=content.truncated,
        original_bytes=content.original_bytes,
    )


def _check(tool: BaseTool) -> None:
    for attribute in ("name", "description", "parameters"):
        if not hasattr(tool, attribute):
            raise _unfit(type(tool).__name__, f"it has no {attribute}")
    name = tool.name
    if not _is_name(name):
        raise _unfit(str(name), f"a name has 1 to {LONGEST_NAME_CHARS} printable characters and no spaces")
    if not isinstance(tool.description, str):
        raise _unfit(name, "its description must be text")
    if not isinstance(tool.parameters, dict):
        raise _unfit(name, "its parameters must be a JSON Schema object")
    for permission in tool.required_permissions:
        try:
            Permission(permission)
        except ValueError as error:
            raise _unfit(name, str(error)) from None


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME_CHARS and name.isprintable() and " " not in name


def _unfit(name: str, why: str) -> ToolError:
    return ToolError("invalidArguments", f"the tool {name[:LONGEST_NAME_CHARS]!r} cannot join: {why}", tool=name)


def _name_taken(name: str, holder: ToolEntry) -> ToolError:
    return ToolError(
        "invalidArguments",
        f"the name {name!r} is taken by {holder.holder}; give the tool another, or unregister that one first",
        tool=name,
        holder=holder.source.type,
    )


def _as_call(call: ToolCall | tuple[str, JsonObject]) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    name, args = call
    return ToolCall(call_id=_new_call_id(), tool_name=name, input=args)


def _new_call_id() -> str:
    return f"call_{uuid.uuid4().hex[:24]}"
