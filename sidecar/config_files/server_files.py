"""Files in which other programs keep MCP servers, read as they are: text in, entries out. Pure.

An entry stays as its program wrote it, but for spellings that ours does not have. Whether it can be used is
found out where it is started: one that is broken takes no other along.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from attrs import field, frozen

from sidecar.config_files.jsonc import JsoncError, read_jsonc
from sidecar.protocol.codec import DecodeError, decode

JsonObject = dict[str, Any]

Format = Literal["mcpServers", "servers", "mcp.servers", "context_servers", "empty"]
"""Under which key a file has its servers: Claude, Cursor and most others; VS Code; its settings; Zed."""

FOREIGN_APPROVALS = ("autoApprove", "alwaysAllow", "trust")
"""What other programs' entries say about running tools unasked (Cline and Cursor, Roo, Gemini)."""

URL_FIELDS = ("url", "httpUrl", "serverUrl")
"""Where an entry says how it is reached over HTTP: most programs, Gemini, Windsurf."""


class ServerFileError(ValueError):
    """The file cannot be read; `line` counts from 1, 0 where none can be named."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


@frozen(kw_only=True)
class InputDefinition:
    """An entry of `inputs`, as VS Code has it: what `${input:id}` in a server's entry asks a person for.

    Every answer is a secret, whatever `password` says: that only tells the host not to show it.
    """

    id: str
    type: str = "promptString"
    description: str | None = None
    default: str | None = field(default=None, repr=False)
    password: bool = False
    options: tuple[Any, ...] | None = None

    @property
    def schema(self) -> JsonObject:
        """JSON Schema of the answer."""
        schema: JsonObject = {"type": "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.default is not None:
            schema["default"] = self.default
        return {**schema, "format": "password", "writeOnly": True} if self.password else schema

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of a `pickString`; its options are strings, or objects with a value and a label."""
        values = (option.get("value") if isinstance(option, dict) else option for option in self.options or ())
        return tuple(value for value in values if isinstance(value, str)) if self.type == "pickString" else ()


class ServerFile(NamedTuple):
    """What a file holds. `warnings` say what was passed over in it, and name the place."""

    format: Format
    servers: Mapping[str, Any] = MappingProxyType({})
    inputs: tuple[InputDefinition, ...] = ()
    warnings: tuple[str, ...] = ()


def read_server_file(text: str, *, project: str | None = None) -> ServerFile:
    """The servers of a file. Raises ServerFileError.

    `project` is a folder: what Claude Code's own file has for it outweighs what that has for all.
    """
    try:
        raw, twice = read_jsonc(text) if text.strip("\ufeff \t\r\n") else ({}, ())
    except JsoncError as error:
        raise ServerFileError(str(error), error.line) from None
    if not isinstance(raw, dict):
        raise ServerFileError("must hold a JSON object", 1)
    form, servers, inputs = _parts(raw)
    servers = {**_table(servers, form), **_table(_of_project(raw, project), "projects")}
    warnings = [f"{key!r} is there twice; the last one counts" for key in twice if key in servers]
    entries = {name: _adapted(name, entry, warnings) for name, entry in servers.items()}
    return ServerFile(format=form, servers=entries, inputs=read_inputs(inputs, warnings), warnings=tuple(warnings))


def read_inputs(raw: Any, warnings: list[str]) -> tuple[InputDefinition, ...]:
    """The definitions in `inputs`; one that cannot be used is left out with a warning."""
    read: list[InputDefinition] = []
    for index, entry in enumerate(raw if isinstance(raw, list) else ()):
        try:
            read.append(decode(entry, InputDefinition, path=f"inputs[{index}]"))
        except DecodeError as error:
            warnings.append(f"{error}; this input is left out")
    if raw is not None and not isinstance(raw, list):
        warnings.append("inputs: must be an array; it is passed over")
    return tuple(read)


def _parts(raw: JsonObject) -> tuple[Format, Any, Any]:
    """Under which key the servers are, they themselves, and the inputs."""
    inputs = raw.get("inputs")
    match raw:
        case {"mcpServers": servers}:
            return "mcpServers", servers, inputs
        case {"context_servers": servers}:
            return "context_servers", servers, inputs
        case {"servers": servers}:
            return "servers", servers, inputs
        case {"mcp": {"servers": servers, **rest}} | {"mcp": {"mcpServers": servers, **rest}}:
            return "mcp.servers", servers, rest.get("inputs")
        case _ if raw and all(_is_entry(entry) for entry in raw.values()):
            return "mcpServers", raw, None  # As some servers' instructions show it: the entries alone.
        case _:
            return "empty", {}, inputs


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("command", *URL_FIELDS))


def _of_project(raw: JsonObject, project: str | None) -> Any:
    match raw.get("projects"):
        case dict(projects) if project is not None and isinstance(own := projects.get(project), dict):
            return own.get("mcpServers", {})
        case _:
            return {}


def _table(servers: Any, place: str) -> JsonObject:
    if servers is None or servers == []:
        return {}
    if not isinstance(servers, dict):
        raise ServerFileError(f"{place}: must be an object of servers by name")
    return servers


def _adapted(name: str, entry: Any, warnings: list[str]) -> Any:
    """The entry in our spelling; whatever is no object stays, for the fault to be told where it is started."""
    if not isinstance(entry, dict):
        return entry
    warnings.extend(_approvals(name, entry))
    return dict(_fields(entry))


def _approvals(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    for key in FOREIGN_APPROVALS:
        if entry.get(key):
            yield f"{name}.{key} is ignored; what runs unasked is said in `permissions`"


def _fields(entry: JsonObject) -> Iterator[tuple[str, Any]]:
    for key, value in entry.items():
        match key, value:
            case "command", {"path": path}:  # Zed, until 2025.
                yield "command", path
                yield from ((inner, value[inner]) for inner in ("args", "env") if inner in value)
            case ("enabled", bool(enabled)) if "disabled" not in entry:
                yield "disabled", not enabled
            case _ if key not in FOREIGN_APPROVALS:
                yield key, value
