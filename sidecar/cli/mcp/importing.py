"""`mcp import`: the servers that other programs have, found, shown and taken over."""

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from sidecar.cli.host import DONE, FAILED, UsageError, complain, screen_on
from sidecar.cli.mcp.entries import JsonObject, described, gist, without_nulls
from sidecar.cli.mcp.user_file import UserFile
from sidecar.cli.screen import Screen
from sidecar.cli.terminal import safe_line
from sidecar.config_files.places import Place, places
from sidecar.config_files.server_files import InputDefinition, ServerFile, ServerFileError, read_server_file

LARGEST_FILE_BYTES = 64 * 1024 * 1024
"""Claude Code keeps its history beside its servers, in megabytes. Own choice: what is larger is no such file."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A server in a file. `obstacle` says why it is not taken over."""

    program: str
    file: Path
    name: str
    entry: Any
    inputs: Sequence[InputDefinition]
    obstacle: str = ""


def import_servers(flags: argparse.Namespace, file: UserFile) -> int:
    """Shows what there is, and puts what is chosen into the user's file. Raises UsageError."""
    found, warnings = _find(flags)
    found = list(_with_obstacles(found, file, replaces=flags.replace))
    if not flags.json:
        _show(found, warnings, screen_on(sys.stdout, sys.stdout))
    if not found and not flags.json:
        complain("no MCP servers were found" + ("; name a FILE that has some" if not flags.file else ""))
        return FAILED
    possible = [one for one in found if not one.obstacle]
    chosen = possible if flags.yes else [] if flags.json else _ask(possible, sys.stdin, sys.stderr)
    if chosen:
        file.put({one.name: without_nulls(one.entry) for one in chosen}, _new_inputs(chosen, file))
    if flags.json:
        _print_json(found, chosen, warnings, file)
    elif possible:
        names = ", ".join(one.name for one in chosen) or "nothing"
        complain(f"imported {names} into {file.path}", is_error=False)
    return DONE


# Finding ------------------------------------------------------------------------------------------------


def _find(flags: argparse.Namespace) -> tuple[list[Found], list[str]]:
    workspace = Path(flags.cwd or ".").resolve()
    if flags.file:
        file = Path(flags.file)
        return _read(Place(program="", file=file), _text(file), workspace)
    found: list[Found] = []
    warnings: list[str] = []
    for place in places(os.environ, home=Path.home(), workspace=workspace):
        if flags.program in (None, place.program) and place.file.is_file():
            try:
                of_file, more = _read(place, _text(place.file), workspace)
            except UsageError as error:
                warnings.append(f"{error}; it is passed over")
            else:
                found += of_file
                warnings += more
    return found, warnings


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise UsageError(f"{file}: is larger than any such file")
        return file.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: must be written in UTF-8") from None


def _read(place: Place, text: str, workspace: Path) -> tuple[list[Found], list[str]]:
    try:
        read: ServerFile = read_server_file(text, project=str(workspace))
    except ServerFileError as error:
        line = f":{error.line}" if error.line else ""
        raise UsageError(f"{place.file}{line}: {error}") from None
    found = [
        Found(program=place.program, file=place.file, name=name, entry=entry, inputs=read.inputs)
        for name, entry in read.servers.items()
    ]
    return found, [f"{place.file}: {warning}" for warning in read.warnings]


def _with_obstacles(found: Iterable[Found], file: UserFile, *, replaces: bool) -> Iterator[Found]:
    taken: dict[str, Found] = {}
    for one in found:
        if not isinstance(one.entry, dict):
            yield replace(one, obstacle="is no object")
        elif one.name in taken:
            is_same = one.entry == taken[one.name].entry
            yield replace(one, obstacle=f"is {'the same' if is_same else 'another'} as above")
        elif one.name in file.servers and without_nulls(one.entry) == file.servers[one.name]:
            yield replace(one, obstacle="is in your configuration")
        elif one.name in file.servers and not replaces:
            yield replace(one, obstacle="the name is taken in your configuration; --replace takes it over")
        else:
            taken[one.name] = one
            yield one


_INPUT = re.compile(r"\$\{input:([^{}]*)\}")


def _new_inputs(chosen: Iterable[Found], file: UserFile) -> list[JsonObject]:
    """The inputs that these servers ask for, as VS Code writes them, less those that are there."""
    known = {wanted.get("id") for wanted in file.inputs}
    new: dict[str, JsonObject] = {}
    for one in chosen:
        asked = set(_INPUT.findall(json.dumps(one.entry)))
        for wanted in one.inputs:
            if wanted.id in asked - known:
                new.setdefault(wanted.id, _input(wanted))
    return list(new.values())


def _input(wanted: InputDefinition) -> JsonObject:
    fields = {
        "id": wanted.id,
        "type": wanted.type,
        "description": wanted.description,
        "default": wanted.default,
        "password": wanted.password or None,
        "options": list(wanted.choices) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


# Showing and choosing -----------------------------------------------------------------------------------


def _show(found: Sequence[Found], warnings: Iterable[str], screen: Screen) -> None:
    columns = max((len(safe_line(one.name)) for one in found), default=0)
    last = None
    for one in found:
        if one.file != last:
            last = one.file
            screen.line(screen.terminal.style(safe_line(f"{one.program}  {one.file}".strip()), "bold"))
        why = screen.terminal.style(f"  ({one.obstacle})", "dim") if one.obstacle else ""
        screen.line(f"  {safe_line(one.name):{columns}}  {safe_line(gist(one.entry))}{why}")
    for warning in warnings:
        complain(warning, is_error=False)


def _ask(possible: Sequence[Found], keyboard: TextIO, notes: TextIO) -> list[Found]:
    """Those that the person says yes to. Raises UsageError where there is nobody."""
    if not possible:
        return []
    if not keyboard.isatty():
        raise UsageError("nobody can be asked which to import; say --yes to take them all")
    chosen: list[Found] = []
    for index, one in enumerate(possible):
        match _answer(f"import {safe_line(one.name)}? [y]es, [n]o, [a]ll, [q]uit: ", keyboard, notes):
            case "y":
                chosen.append(one)
            case "a":
                return [*chosen, *possible[index:]]
            case "q":
                break
    return chosen


def _answer(question: str, keyboard: TextIO, notes: TextIO) -> str:
    """The first letter of an answer; the end of the input is to quit."""
    while True:
        notes.write(question)
        notes.flush()
        line = keyboard.readline()
        if not line:
            return "q"
        if (letter := line.strip().lower()[:1]) and letter in "ynaq":
            return letter


def _print_json(found: Iterable[Found], chosen: Sequence[Found], warnings: Sequence[str], file: UserFile) -> None:
    servers = [
        {
            **described(one.name, one.entry),
            "program": one.program or None,
            "from": str(one.file),
            "imported": one in chosen,
            "obstacle": one.obstacle or None,
        }
        for one in found
    ]
    answer = {"file": str(file.path), "servers": servers, "warnings": list(warnings)}
    sys.stdout.write(json.dumps(answer) + "\n")
