"""Settings: their shape, where they are read from, and which source wins.

The same shape is read from `initializationOptions`, from flags, and from the user's file, in that order of
weight. Imported by `app`, `workspace` and, for its shape, `schema`; everyone else gets plain arguments.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from attrs import frozen

from sidecar.agent.config import CycleConfig, SummaryBy
from sidecar.config_files.server_files import InputDefinition
from sidecar.permissions.entries import fault_of_options
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.errors import TOOL_ERROR_KINDS, ConfigurationError, ErrorAction
from sidecar.protocol.messages import PermissionOptions
from sidecar.protocol.values import JsonObject
from sidecar.providers.options import ProviderOptions, check_options
from sidecar.store.opening import MEMORY
from sidecar.store.store import StorePlace
from sidecar.tools.builtin import BUILTIN
from sidecar.tools.loading import fault_of_entry, starting_at


@frozen(kw_only=True)
class CycleOptions:
    """`cycle`: the limits of a run, and how long people and servers are waited for."""

    max_turns: int | None = None
    tool_timeout_secs: float | None = None
    max_tool_result_bytes: int | None = None
    error_policy: dict[str, ErrorAction] | None = None
    repeat_warning: int | None = None
    repeat_limit: int | None = None
    max_retries: int | None = None
    max_retry_delay_secs: float | None = None
    summary: SummaryBy | None = None
    server_wait_secs: float | None = None
    approval_timeout_secs: float | None = None


@frozen(kw_only=True)
class StoreOptions:
    """`store`: where sessions are kept, and for how long."""

    path: str | None = None
    max_age_days: float | None = None
    max_bytes: int | None = None


@frozen(kw_only=True)
class WorkspaceFolder:
    """A folder as LSP names it."""

    uri: str
    name: str | None = None


@frozen(kw_only=True)
class Options:
    """Everything that can be set. A field left out is not said, so that a weaker source may say it."""

    model: str | None = None
    system: str | None = None
    providers: dict[str, ProviderOptions] | None = None
    mcp_servers: dict[str, Any] | None = None
    inputs: tuple[InputDefinition, ...] | None = None
    permissions: PermissionOptions | None = None
    cycle: CycleOptions | None = None
    store: StoreOptions | None = None
    builtin_tools: bool | tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    workspace_folders: tuple[WorkspaceFolder, ...] | None = None
    max_frame_bytes: int | None = None
    trust_workspace: bool | None = None


DEFAULT_SERVER_WAIT_SECS = 5.0
LONGEST_APPROVAL_SECS = 365 * 24 * 3600.0
"""What a longer `cycle.approvalTimeoutSecs` counts as: for ever, and still a number that any host can read."""

DEFAULT_MAX_AGE_DAYS = 90.0
"""Sessions that nobody has touched for a season (own choice)."""

DEFAULT_MAX_BYTES = 1024 * 1024 * 1024
"""A gigabyte: a thousand long sessions (own choice)."""

DEFAULT_APPROVAL_TIMEOUT_SECS = 300.0
"""Five minutes: long enough to read a diff, short enough that a forgotten question ends (own choice)."""

LEAST_MAX_FRAME_BYTES = 1024
"""Below this a host locks itself out: `shutdown` and small answers must still come through. Own choice."""

_MERGED_BY_NAME = ("providers", "mcpServers", "permissions", "cycle", "store")

_JOINED = ("tools", "inputs")


def layered(*sources: JsonObject) -> JsonObject:
    """One object from several, the strongest first.

    Tables are merged by name; `tools` and `inputs` are joined, so that `--tools` adds to those that a file names.
    Everything else is replaced.
    """
    merged: JsonObject = {}
    for source in reversed(sources):
        for name, value in source.items():
            below = merged.get(name)
            if name in _MERGED_BY_NAME and isinstance(value, dict) and isinstance(below, dict):
                merged[name] = {**below, **value}
            elif name in _JOINED:
                merged[name] = [*(below or ()), *(value or ())]
            elif value is not None:
                merged[name] = value
    return merged


def read_options(raw: JsonObject, *, path: str) -> Options:
    """Options from JSON. Raises DecodeError with a path below `path` for the first thing that is wrong."""
    options = decode(raw, Options, path=path)
    for place, reason in _faults(options):
        raise DecodeError(f"{path}.{place}" if path else place, reason)
    return options


def _faults(options: Options) -> Iterator[tuple[str, str]]:
    """What a type cannot say: where, and what is wrong there."""
    if options.max_frame_bytes is not None and options.max_frame_bytes < LEAST_MAX_FRAME_BYTES:
        yield "maxFrameBytes", f"must be at least {LEAST_MAX_FRAME_BYTES}, not {options.max_frame_bytes}"
    if options.model is not None and not all(options.model.partition("/")):
        yield "model", f"must be written as 'provider/model', not {options.model!r}"
    for index, folder in enumerate(options.workspace_folders or ()):
        if folder_path(folder.uri) is None and not re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:", folder.uri):
            yield f"workspaceFolders[{index}].uri", f"must be a file: URI or an absolute path, not {folder.uri!r}"
    if options.cycle is not None:
        yield from _cycle_faults(options.cycle)
    if options.store is not None:
        limits = {"maxAgeDays": options.store.max_age_days, "maxBytes": options.store.max_bytes}
        yield from _number_faults("store.", limits)
    if options.permissions is not None and (wrong := fault_of_options(options.permissions)):
        yield f"permissions.{wrong[0]}", wrong[1]
    for name, provider in (options.providers or {}).items():
        try:
            check_options(name, provider)
        except ConfigurationError as error:
            yield error.path, error.message.removeprefix(f"{error.path}: ")
    if isinstance(options.builtin_tools, tuple):
        for index, tool in enumerate(options.builtin_tools):
            if tool not in BUILTIN:
                yield (
                    f"builtinTools[{index}]",
                    f"there is no built-in tool {tool!r}; there are {', '.join(BUILTIN)}",
                )
    for index, entry in enumerate(options.tools or ()):
        if fault := fault_of_entry(entry):
            yield f"tools[{index}]", fault


def _cycle_faults(cycle: CycleOptions) -> Iterator[tuple[str, str]]:
    for kind in cycle.error_policy or {}:
        if kind not in TOOL_ERROR_KINDS:
            yield f"cycle.errorPolicy.{kind}", f"is no error kind; known are {', '.join(TOOL_ERROR_KINDS)}"
    counts = {
        "maxTurns": cycle.max_turns,
        "maxToolResultBytes": cycle.max_tool_result_bytes,
        "repeatWarning": cycle.repeat_warning,
        "repeatLimit": cycle.repeat_limit,
        "toolTimeoutSecs": cycle.tool_timeout_secs,
        "approvalTimeoutSecs": cycle.approval_timeout_secs,
    }
    yield from _number_faults("cycle.", counts)
    waits = {
        "maxRetries": cycle.max_retries,
        "maxRetryDelaySecs": cycle.max_retry_delay_secs,
        "serverWaitSecs": cycle.server_wait_secs,
    }
    yield from _number_faults("cycle.", waits, zero=True)


def _number_faults(
    place: str, numbers: Mapping[str, float | None], *, zero: bool = False
) -> Iterator[tuple[str, str]]:
    """Numbers that must be more than 0 or, with `zero`, at least that."""
    for name, number in numbers.items():
        if number is not None and (number < 0 or (number == 0 and not zero)):
            yield f"{place}{name}", f"must be {'at least' if zero else 'more than'} 0, not {number}"


def permission_config(options: Options) -> PermissionConfig:
    """Who may do what: what is set, and our own defaults for the rest."""
    return PermissionConfig().updated(options.permissions or PermissionOptions())


def cycle_config(options: CycleOptions | None) -> CycleConfig:
    """The loop's settings, with its defaults where nothing is said."""
    if options is None:
        return CycleConfig()
    names = (
        "max_turns",
        "tool_timeout_secs",
        "max_tool_result_bytes",
        "error_policy",
        "repeat_warning",
        "repeat_limit",
        "max_retries",
        "max_retry_delay_secs",
        "summary",
    )
    said = {name: value for name in names if (value := getattr(options, name)) is not None}
    return CycleConfig(**said)


def folder_path(uri: str) -> Path | None:
    """The path of a `file:` URI, or an absolute path as it is; None where it is not on a disk."""
    if "\0" in unquote(uri):
        return None
    if Path(uri).is_absolute():
        return Path(uri)
    if not uri.lower().startswith("file://"):
        return None
    path = unquote(re.sub(r"(?i)^file://[^/]*|[?#].*$", "", uri))
    if not path:
        return None
    return Path(path[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", path) else path)


def server_wait_secs(options: Options) -> float:
    """How long a submit waits for servers that still start."""
    said = options.cycle.server_wait_secs if options.cycle else None
    return DEFAULT_SERVER_WAIT_SECS if said is None else said


def approval_timeout_secs(options: Options) -> float:
    """How long a question to a person stays open."""
    said = options.cycle.approval_timeout_secs if options.cycle else None
    return DEFAULT_APPROVAL_TIMEOUT_SECS if said is None else min(said, LONGEST_APPROVAL_SECS)


def store_place(options: StoreOptions | None, default: Path) -> StorePlace:
    """Where sessions are kept: in `default` unless the options name another file, or memory."""
    said = options or StoreOptions()
    file = default if said.path is None else Path(said.path).expanduser()
    return StorePlace(
        file=None if said.path == MEMORY else file,
        is_chosen=said.path is not None,
        max_age_days=DEFAULT_MAX_AGE_DAYS if said.max_age_days is None else said.max_age_days,
        max_bytes=DEFAULT_MAX_BYTES if said.max_bytes is None else said.max_bytes,
    )


def read_user_file(file: Path, *, required: bool) -> JsonObject:
    """The user's TOML file as raw options; `{}` when it is not there and not `required`.

    Paths of tools start at its folder. Raises ConfigurationError naming file and line.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        if not required:
            return {}
        raise ConfigurationError(f"{file}: there is no such file", path=str(file)) from None
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}", path=str(file)) from None
    text, raw = _parsed(file, data)
    try:
        options = read_options(raw, path="")
    except DecodeError as error:
        place = f"{file}:{_line_of(error.path, text)}"
        raise ConfigurationError(f"{place}: {error}", path=error.path, file=str(file)) from None
    if options.trust_workspace:
        place = f"{file}:{_line_of('trustWorkspace', text)}: trustWorkspace"
        reason = "is for a host to say, which knows the folder; you say `agent-sidecar trust FOLDER`"
        raise ConfigurationError(f"{place}: {reason}", path="trustWorkspace", file=str(file))
    return {**raw, "tools": [starting_at(file.parent, entry) for entry in options.tools or ()]}


def _parsed(file: Path, data: bytes) -> tuple[str, JsonObject]:
    """The text and what it holds."""
    try:
        text = data.decode("utf-8-sig")  # Editors on Windows begin it with a byte order mark.
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{file}:{line}: must be written in UTF-8", path=str(file)) from None
    try:
        return text, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        named = re.search(r"\(at line (\d+)", str(error))  # Else it is the end of the document.
        line = int(named[1]) if named else text.count("\n", 0, len(text.rstrip())) + 1
        raise ConfigurationError(f"{file}:{line}: {error}", path=str(file)) from None


def _line_of(path: str, text: str) -> int:
    """The line of a TOML text where the value at `path` most likely stands, from 1."""
    lines = text.splitlines()
    start, end = 0, len(lines)
    for segment, index in re.findall(r"([^.\[\]]+)(?:\[(\d+)\])?", path):
        pattern = re.compile(rf"(^|[\s.\[\"'{{]){re.escape(segment)}([\s.\]\"'=]|$)")
        found = [n for n in range(start, end) if pattern.search(lines[n])]
        entries = [n for n in found if re.match(rf"\s*\[\[.*{re.escape(segment)}\W*\]\]", lines[n])]
        if index and int(index) < len(entries):
            start, *after = entries[int(index) :]
            end = after[0] if after else end
        elif found:
            start = found[0]
    return start + 1


# Secrets -------------------------------------------------------------------------------------------------

_SECRET_VARIABLE = re.compile(
    r"(^|_)(API_?)?(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(_|$)", re.IGNORECASE
)
_SECRET_HEADER = re.compile(r"key|token|secret|auth|cookie", re.IGNORECASE)
_SHORTEST_VARIABLE = 8
"""A shorter value of a variable is a word or a number more often than a key. Own choice."""


def secret_variables(environ: Mapping[str, str]) -> Iterator[str]:
    """What the variables of our environment hold whose names speak of keys; a path to a key is none."""
    for name, value in environ.items():
        if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_VARIABLE and "/" not in value[:1]:
            yield value


def secret_settings(options: Options, environ: Mapping[str, str]) -> Iterator[str]:
    """The keys of providers, from wherever they come, and the headers that hold some."""
    for provider in (options.providers or {}).values():
        if provider.api_key:
            yield provider.api_key
        if provider.api_key_env and (value := environ.get(provider.api_key_env)):
            yield value
        for name, value in (provider.headers or {}).items():
            if _SECRET_HEADER.search(name):
                yield from (value, value.partition(" ")[2])
