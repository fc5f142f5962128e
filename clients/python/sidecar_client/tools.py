"""Tools that the host offers to the model: Python functions, described by their signature or by hand."""

import inspect
import types
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sidecar_client.callbacks import call
from sidecar_client.frames import JsonObject

_SCALARS: dict[Any, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call, for a tool that has a parameter of this type."""

    call_id: str
    session_id: str | None
    run_id: str | None
    report: Callable[[JsonObject], None]

    def progress(self, done: float | None = None, total: float | None = None, message: str | None = None) -> None:
        """Tells how far the tool is; shown to people, not to the model."""
        percentage = round(100 * done / total) if done is not None and total else None
        said = {"message": message, "percentage": percentage}
        self.report({key: value for key, value in said.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class HostTool:
    """A function of the host that a model may call.

    `input_schema` is a JSON Schema object. Without `required_permissions` the tool needs none and runs
    unasked, unless `requires_approval`.
    """

    name: str
    description: str
    input_schema: JsonObject
    function: Callable[..., Any]
    required_permissions: Sequence[str] = ()
    requires_approval: bool = False
    tags: Sequence[str] = ()
    timeout_secs: float | None = None
    """How long a call may take, in place of the sidecar's own limit."""
    call_parameter: str | None = None
    """The parameter of `function` that takes the ToolCall."""

    @classmethod
    def of(
        cls, function: Callable[..., Any], *, input_schema: JsonObject | None = None, **fields: Any
    ) -> "HostTool":
        """The function as a tool: its name, the first paragraph of its docstring, its parameters.

        Takes parameters of type str, int, float, bool, Literal, list, dict and unions of these; raises
        TypeError for others, unless `input_schema` is given. `fields` are those of HostTool.
        """
        hints = get_type_hints(function)
        paragraph = (inspect.getdoc(function) or "").partition("\n\n")[0]
        described: dict[str, Any] = {
            "name": function.__name__,
            "description": " ".join(paragraph.split()),
            "input_schema": input_schema or _schema_of(function, hints),
            "call_parameter": next((name for name, hint in hints.items() if hint is ToolCall), None),
        }
        return cls(function=function, **{**described, **fields})

    def definition(self) -> JsonObject:
        """What `tools/register` takes."""
        limit = {} if self.timeout_secs is None else {"timeoutSecs": self.timeout_secs}
        return {
            **limit,
            "name": self.name,
            "description": self.description,
            "inputSchema": self.input_schema,
            "requiredPermissions": list(self.required_permissions),
            "requiresApproval": self.requires_approval,
            "tags": list(self.tags),
        }

    async def run(self, arguments: JsonObject, tool_call: ToolCall) -> Any:
        """What the function returns for these arguments."""
        extra = {self.call_parameter: tool_call} if self.call_parameter else {}
        return await call(self.function, **arguments, **extra)


Tool = HostTool | Callable[..., Any] | Callable[..., Awaitable[Any]]


def as_host_tool(tool: Tool) -> HostTool:
    """The tool, or the function described as one."""
    return tool if isinstance(tool, HostTool) else HostTool.of(tool)


def _schema_of(function: Callable[..., Any], hints: dict[str, Any]) -> JsonObject:
    properties: JsonObject = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) is ToolCall:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"tool {function.__name__}: parameter {name!r} cannot be passed by name")
        properties[name] = _schema_of_type(hints.get(name, Any), f"tool {function.__name__}: parameter {name!r}")
        if parameter.default is parameter.empty:
            required.append(name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _schema_of_type(hint: Any, where: str) -> JsonObject:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, members = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(members)}
    if origin is list:
        return {"type": "array", "items": _schema_of_type(members[0], where)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of_type(members[1], where)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of_type(member, where) for member in members]}
    raise TypeError(f"{where} is of type {hint!r}, which has no JSON Schema here: pass input_schema")
