"""Settings: their shape, where they are read from, and which source wins.

The same shape is read from `initializationOptions`, from flags, and from the user's file, in that order of
weight. Imported by `app` alone; everyone else gets plain arguments.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import frozen

from sidecar.agent.config import CycleConfig
from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.errors import TOOL_ERROR_KINDS, ConfigurationError, ErrorAction
from sidecar.protocol.messages import PermissionOptions
from sidecar.protocol.values import JsonObject
from sidecar.providers.options import ProviderOptions


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
    server_wait_secs: float | None = None
    approval_timeout_secs: float | None = None


@frozen(kw_only=True)
class StoreOptions:
    """`store`: where sessions are kept. This version keeps them in memory."""

    path: str | None = None


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
    permissions: PermissionOptions | None = None
    cycle: CycleOptions | None = None
    store: StoreOptions | None = None
    builtin_tools: bool | tuple[str, ...] | None = None
    workspace_folders: tuple[WorkspaceFolder, ...] | None = None
    max_frame_bytes: int | None = None


DEFAULT_SERVER_WAIT_SECS = 5.0
DEFAULT_APPROVAL_TIMEOUT_SECS = 300.0
"""Five minutes: long enough to read a diff, short enough that a forgotten question ends (own choice)."""

_MERGED_BY_NAME = ("providers", "mcpServers", "permissions", "cycle", "store")


def layered(*sources: JsonObject) -> JsonObject:
    """One object from several, the strongest first. Tables are merged by name, everything else is replaced."""
    merged: JsonObject = {}
    for source in reversed(sources):
        for name, value in source.items():
            below = merged.get(name)
            if name in _MERGED_BY_NAME and isinstance(value, dict) and isinstance(below, dict):
                merged[name] = {**below, **value}
            elif value is not None:
                merged[name] = value
    return merged


def read_options(raw: JsonObject, *, path: str) -> Options:
    """Options from JSON. Raises DecodeError with a path below `path`."""
    options = decode(raw, Options, path=path)
    _check_policy(options.cycle.error_policy if options.cycle else None, f"{path}.cycle.errorPolicy")
    if options.cycle is not None:
        _check_limits(options.cycle, f"{path}.cycle")
    return options


def _check_policy(policy: Mapping[str, ErrorAction] | None, path: str) -> None:
    for kind in policy or {}:
        if kind not in TOOL_ERROR_KINDS:
            raise DecodeError(f"{path}.{kind}", f"is no error kind; known are {', '.join(TOOL_ERROR_KINDS)}")


def _check_limits(cycle: CycleOptions, path: str) -> None:
    at_least_one = {"maxTurns": cycle.max_turns, "maxToolResultBytes": cycle.max_tool_result_bytes}
    for name, value in at_least_one.items():
        if value is not None and value < 1:
            raise DecodeError(f"{path}.{name}", f"must be at least 1, not {value}")
    above_zero = {
        "toolTimeoutSecs": cycle.tool_timeout_secs,
        "approvalTimeoutSecs": cycle.approval_timeout_secs,
    }
    for name, seconds in above_zero.items():
        if seconds is not None and seconds <= 0:
            raise DecodeError(f"{path}.{name}", f"must be more than 0, not {seconds}")


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
    )
    said = {name: value for name in names if (value := getattr(options, name)) is not None}
    return CycleConfig(**said)


def folder_path(uri: str) -> Path:
    """The path of a `file:` URI; anything else is taken for a path already."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return Path(uri)
    path = unquote(parts.path)
    return Path(path[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", path) else path)


def server_wait_secs(options: Options) -> float:
    """How long a submit waits for servers that still start."""
    said = options.cycle.server_wait_secs if options.cycle else None
    return DEFAULT_SERVER_WAIT_SECS if said is None else said


def approval_timeout_secs(options: Options) -> float:
    """How long a question to a person stays open."""
    said = options.cycle.approval_timeout_secs if options.cycle else None
    return DEFAULT_APPROVAL_TIMEOUT_SECS if said is None else said


def read_user_file(file: Path, *, required: bool) -> JsonObject:
    """The user's TOML file as raw options; `{}` when it is not there and not `required`.

    Raises ConfigurationError naming file and line.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if not required:
            return {}
        raise ConfigurationError(f"{file}: there is no such file", path=str(file)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {error}", path=str(file)) from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: {error}", path=str(file)) from None
    try:
        read_options(raw, path="")
    except DecodeError as error:
        place = f"{file}:{_line_of(error.path, text)}"
        raise ConfigurationError(f"{place}: {error}", path=error.path, file=str(file)) from None
    return raw


def _line_of(path: str, text: str) -> int:
    """The line of a TOML text where the value at `path` most likely stands."""
    line = 1
    lines = text.splitlines()
    for segment in re.findall(r"[^.\[\]]+", path):
        pattern = re.compile(rf"(^|[\s.\[\"'{{]){re.escape(segment)}([\s.\]\"'=]|$)")
        line = next((n for n in range(line, len(lines) + 1) if pattern.search(lines[n - 1])), line)
    return line
