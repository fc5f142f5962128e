"""What a workspace's files would do, in words for the person who is to trust them: whole, and escaped. Pure.

Every server is shown by its command line or address in full, then whatever else its entry says; every setting
by its value. Nothing is cut: what cannot be seen cannot be trusted.
"""

import json
import shlex
from collections.abc import Iterator
from typing import Any

from sidecar.config_files.server_files import URL_FIELDS, JsonObject
from sidecar.config_files.workspace import WorkspaceFile, WorkspaceFiles
from sidecar.protocol.printable import printable


def shown_files(found: WorkspaceFiles) -> list[str]:
    """The lines about each file that holds anything."""
    return [line for file in found.files for line in _file_lines(file)]


def _file_lines(file: WorkspaceFile) -> Iterator[str]:
    if not file.servers and not file.settings:
        return
    yield f"{file.name}:"
    for name, entry in file.servers.items():
        yield from _server_lines(name, entry)
    for name, value in file.settings.items():
        yield f"  sets {name}: {printable(_json(value))}"


def _server_lines(name: str, entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield f"  server {printable(name)}: is no object, and cannot be started"
        return
    rest = dict(entry)
    if addresses := [rest.pop(key) for key in URL_FIELDS if key in rest]:
        yield from (f"  server {printable(name)} reaches: {printable(_text(address))}" for address in addresses)
    if "command" in rest or not addresses:
        yield f"  server {printable(name)} runs: {printable(_command_line(rest))}"
    yield from (f"    {printable(key)}: {printable(_json(value))}" for key, value in rest.items())


def _command_line(rest: JsonObject) -> str:
    """The command as a shell would take it, its parts taken out of `rest` where they are as they should be."""
    command, arguments = rest.get("command"), rest.get("args")
    if not isinstance(command, str):
        return "nothing that can be started"
    del rest["command"]
    if arguments is None or (isinstance(arguments, list) and all(isinstance(word, str) for word in arguments)):
        rest.pop("args", None)
        return shlex.join([command, *(arguments or ())])
    return shlex.join([command])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)  # TOML knows dates.
