"""The user's configuration file, changed so that comments and order stay as they are."""

import contextlib
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from sidecar.cli.host import UsageError

JsonObject = dict[str, Any]


class UserFile:
    """The file at `path`, which need not be there. Raises UsageError for one that cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._text = _read(path)
        self._raw = _parsed(path, self._text)

    @property
    def servers(self) -> JsonObject:
        """The entries of `mcpServers`, as they are written."""
        servers = self._raw.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise UsageError(f"{self.path}: mcpServers: must be a table of servers by name")
        return servers

    @property
    def inputs(self) -> list[JsonObject]:
        """The definitions of `inputs`, as they are written."""
        inputs = self._raw.get("inputs")
        return [wanted for wanted in inputs if isinstance(wanted, dict)] if isinstance(inputs, list) else []

    def put(self, servers: Mapping[str, JsonObject], inputs: Sequence[JsonObject] = ()) -> None:
        """Writes servers, in the place of those of the same names, and adds inputs."""
        wanted = {**self._raw, "mcpServers": {**self.servers, **servers}}
        if inputs:
            wanted["inputs"] = [*self.inputs, *inputs]
        document = tomlkit.parse(self._text)
        if servers and "mcpServers" not in document:
            document["mcpServers"] = tomlkit.table(is_super_table=True)
        for name, entry in servers.items():
            document["mcpServers"][name] = _table(entry)
        if inputs:
            # Written anew as a whole: tomlkit adds to an array of tables in the wrong place.
            document.pop("inputs", None)
            document["inputs"] = _array_of_tables(wanted["inputs"])
        self._write(tomlkit.dumps(document), wanted)

    def remove(self, name: str) -> None:
        """Takes out a server that is there."""
        wanted = {**self._raw, "mcpServers": {key: entry for key, entry in self.servers.items() if key != name}}
        document = tomlkit.parse(self._text)
        del document["mcpServers"][name]
        if not wanted["mcpServers"]:
            del document["mcpServers"]
            del wanted["mcpServers"]
        self._write(tomlkit.dumps(document), wanted)

    def _write(self, text: str, wanted: JsonObject) -> None:
        """Replaces the file in one step. Raises UsageError where the text does not mean what it should."""
        try:
            is_right = tomllib.loads(text) == wanted
        except tomllib.TOMLDecodeError:
            is_right = False
        if not is_right:
            raise UsageError(f"{self.path}: its mcpServers are written in a way that cannot be changed from here")
        _replace(self.path.resolve(), text)  # Where it is a link, as in a folder of dotfiles, it stays one.


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "must be written in UTF-8"
        raise UsageError(f"{path}: cannot be read: {reason}") from None


def _parsed(path: Path, text: str) -> JsonObject:
    """What the text holds. Both parsers have to agree that it is TOML, before anything is changed."""
    try:
        raw = tomllib.loads(text)
        tomlkit.parse(text)
    except (tomllib.TOMLDecodeError, TOMLKitError, RecursionError) as error:
        line = re.search(r"\(at line (\d+)", str(error))
        raise UsageError(f"{path}{f':{line[1]}' if line else ''}: {error}") from None
    return raw


def _table(entry: JsonObject) -> tomlkit.items.Table:
    table = tomlkit.table()
    for key, value in entry.items():
        table[key] = _inline(value) if isinstance(value, dict) else value
    return table


def _inline(value: JsonObject) -> tomlkit.items.InlineTable:
    table = tomlkit.inline_table()
    table.update({key: _inline(inner) if isinstance(inner, dict) else inner for key, inner in value.items()})
    return table


def _array_of_tables(entries: Sequence[JsonObject]) -> tomlkit.items.AoT:
    array = tomlkit.aot()
    for entry in entries:
        array.append(_table(entry))
    return array


def _replace(path: Path, text: str) -> None:
    """Writes through a file beside it, readable by its owner alone: entries may hold keys."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        if path.exists():
            Path(name).chmod(path.stat().st_mode & 0o777)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
