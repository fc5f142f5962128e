"""The configuration that a workspace brings along: found, read, identified by digest, and not used here.

Whoever can write into a repository can write these files. They are read whole, once, and what is shown to a
person, trusted and used later is what was read.
"""

import hashlib
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from sidecar.config_files.server_files import (
    InputDefinition,
    JsonObject,
    ServerFileError,
    read_inputs,
    read_server_file,
)

OWN_FILE = ".agent-sidecar.toml"
FILES = (OWN_FILE, ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
"""From the workspace folder; the strongest first."""

SETTINGS = ("model", "system", "permissions", "cycle", "builtinTools")
"""What counts in OWN_FILE beside `mcpServers` and `inputs`. Not among them is what could send prompts and keys
elsewhere (`providers`), run code in our process (`tools`) or reach other files (`store`, `workspaceFolders`)."""

MAX_FILE_BYTES = 64 * 1024
"""Larger files are refused: nobody would read them before trusting them. Own choice."""


class WorkspaceFile(NamedTuple):
    """A file by its name in the workspace. `settings` are options; `warnings` say what of it is passed over."""

    name: str
    digest: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    servers: Mapping[str, Any] = MappingProxyType({})
    inputs: tuple[InputDefinition, ...] = ()
    settings: Mapping[str, Any] = MappingProxyType({})
    warnings: tuple[str, ...] = ()


class WorkspaceFiles(NamedTuple):
    """What `folder`, without links in its path, brings along. `refused` says which files were not read and why."""

    folder: Path
    files: tuple[WorkspaceFile, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def digests(self) -> dict[str, str]:
        """By file name: what a person's trust is about."""
        return {file.name: file.digest for file in self.files}

    @property
    def says_something(self) -> bool:
        """Whether there is anything to trust."""
        return any(file.servers or file.settings for file in self.files)


def read_workspace(folder: Path) -> WorkspaceFiles:
    """The files of a workspace; one that is broken takes no other along. Never raises for what a file holds."""
    try:
        folder = folder.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # Not there, a link that leads to itself, no path at all.
        return WorkspaceFiles(folder=folder)
    files: list[WorkspaceFile] = []
    refused: list[str] = []
    for name in FILES:
        try:
            data = _contents(folder, name)
        except OSError as error:
            refused.append(f"{name}: {error.strerror or error}; it is not used")
            continue
        if data is not None:
            files.append(_parsed(name, data))
    return WorkspaceFiles(folder=folder, files=tuple(files), refused=tuple(refused))


def _contents(folder: Path, name: str) -> bytes | None:
    """The bytes of a file, None where it is not there. Raises OSError for one that must not be read."""
    try:
        file = (folder / name).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except RuntimeError as error:
        raise OSError("is a link that leads to itself") from error
    if not file.is_relative_to(folder):
        raise OSError("is a link that leads out of the workspace")
    # The last name is no link any more, unless somebody is at work; a pipe in its place must not hold us up.
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("is no regular file")
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(f"is larger than {MAX_FILE_BYTES} bytes")
    return data


def _parsed(name: str, data: bytes) -> WorkspaceFile:
    file = WorkspaceFile(name=name, digest=hashlib.sha256(data).hexdigest())
    try:
        text = data.decode("utf-8-sig")
        return _own(file, text) if name == OWN_FILE else _of_another_program(file, text)
    except UnicodeDecodeError:
        return file._replace(warnings=(f"{name}: must be written in UTF-8; it is not used",))
    except ServerFileError as error:
        line = f":{error.line}" if error.line else ""
        return file._replace(warnings=(f"{name}{line}: {error}; it is not used",))


def _of_another_program(file: WorkspaceFile, text: str) -> WorkspaceFile:
    read = read_server_file(text)
    warnings = tuple(f"{file.name}: {warning}" for warning in read.warnings)
    return file._replace(servers=read.servers, inputs=read.inputs, warnings=warnings)


def _own(file: WorkspaceFile, text: str) -> WorkspaceFile:
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"\(at line (\d+)", str(error))
        raise ServerFileError(str(error), int(line[1]) if line else 0) from None
    servers = raw.pop("mcpServers", {})
    if not isinstance(servers, dict):
        raise ServerFileError("mcpServers: must be a table of servers by name")
    warnings: list[str] = []
    inputs = read_inputs(raw.pop("inputs", None), warnings)
    warnings.extend(_not_counting(raw))
    return file._replace(
        servers=servers,
        inputs=inputs,
        settings={name: value for name, value in raw.items() if name in SETTINGS},
        warnings=tuple(f"{file.name}: {warning}" for warning in warnings),
    )


def _not_counting(raw: JsonObject) -> Iterator[str]:
    for name in raw:
        if name not in SETTINGS:
            yield f"{name} does not count in a workspace's file; say it in your own configuration"
