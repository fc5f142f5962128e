"""`@tool`: a typed Python function as a tool. Name, description and schema come from the function itself."""

import inspect
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, get_args, overload

from attrs import evolve

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolKind, ToolResult
from sidecar.tools.arguments import Fault, invalid_arguments
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.schema import NO_DEFAULT, Member, documented, object_schema, resolved_hints
from sidecar.tools.structure import faults_of, structured, unstructured
from sidecar.tools.threads import in_thread, iterate_in_thread

Function = TypeVar("Function", bound=Callable[..., Any])


class FunctionTool(BaseTool):
    """A tool that calls a function; it can still be called as the function.

    A coroutine or async generator function runs on the event loop, a plain one in a thread of its own. A
    parameter annotated with ToolContext gets the context and is not told to the model. Arguments arrive as the
    hints say, checked and not coerced; what comes back may be any value that cattrs can turn into JSON.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        permissions: Sequence[str] = (),
        requires_approval: bool = False,
        kind: ToolKind = "function",
        tags: Sequence[str] = (),
        category: str | None = None,
        version: str | None = None,
        idempotent: bool = False,
        timeout_secs: float | None = None,
    ) -> None:
        """Raises TypeError for a parameter that JSON cannot carry, ValueError for an unknown permission."""
        if not (inspect.isfunction(function) or inspect.ismethod(function)):
            raise TypeError(f"@tool takes a function or a method, not {function!r}")
        told = documented(function)
        self.function = function
        self.name = name or function.__name__
        self.description = told.description if description is None else description
        self.required_permissions = tuple(map(Permission, permissions))
        self.requires_approval = requires_approval
        self.kind = kind
        self.tags = tuple(tags)
        self.category = category
        self.version = version
        self.idempotent = idempotent
        self.timeout_secs = timeout_secs
        self._is_async = inspect.iscoroutinefunction(function)
        self._signature = inspect.signature(function)
        self._hints = resolved_hints(function)
        self._context_names = [n for n, hint in self._hints.items() if n != "return" and _is_context(hint)]
        try:
            self.parameters = object_schema(self._members(told.members), unstructured)
        except TypeError as error:
            raise TypeError(f"{self.name} cannot be a tool: {error}") from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        bound = self._bound(args, ctx)
        if self._is_async:
            return _plain(await self.function(*bound.args, **bound.kwargs))
        if inspect.isasyncgenfunction(self.function):
            return _parts(self.function(*bound.args, **bound.kwargs))
        if inspect.isgeneratorfunction(self.function):
            return _parts(iterate_in_thread(self.function(*bound.args, **bound.kwargs)))
        answer = await in_thread(self.function, *bound.args, **bound.kwargs)
        # A wrapper around a coroutine function is plain, and what it gives is not.
        return _plain(await answer if inspect.isawaitable(answer) else answer)

    def _members(self, told: Any) -> list[Member]:
        members = []
        for name, parameter in self._signature.parameters.items():
            if name in self._context_names:
                continue
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"{parameter} has no names that a model could use; name each parameter")
            hint = self._hints.get(name, Any)
            members.append(Member(name=name, hint=hint, default=parameter.default, description=told.get(name)))
        return members

    def _bound(self, args: JsonObject, ctx: ToolContext) -> inspect.BoundArguments:
        """The function's arguments. Raises ToolError `invalidArguments` with every fault."""
        bound = self._signature.bind_partial()
        faults: list[Fault] = []
        for name, parameter in self._signature.parameters.items():
            if name in self._context_names:
                bound.arguments[name] = ctx
            elif name in args:
                try:
                    bound.arguments[name] = structured(args[name], self._hints.get(name, Any))
                except Exception as error:  # noqa: BLE001  validators of a user's class raise what they like
                    faults += faults_of(error, name)
            elif parameter.default is NO_DEFAULT:
                faults.append(Fault(name, "is required"))
        if faults:
            raise invalid_arguments(self.name, faults)
        return bound


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    permissions: Sequence[str] = (),
    requires_approval: bool = False,
    kind: ToolKind = "function",
    tags: Sequence[str] = (),
    category: str | None = None,
    version: str | None = None,
    idempotent: bool = False,
    timeout_secs: float | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, **options: Any
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Makes a function a tool: `@tool`, or `@tool(permissions=["write"])` with any option of FunctionTool."""
    if function is not None:
        return FunctionTool(function)
    return lambda decorated: FunctionTool(decorated, **options)


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or ToolContext in get_args(hint)


async def _parts(items: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    async with aclosing(items):
        async for item in items:
            yield _plain(item)


def _plain(value: Any) -> Any:
    if isinstance(value, ToolResult):
        return evolve(value, data=unstructured(value.data))
    return unstructured(value)
