"""Tools of the user's own: the Python files, module members and entry points that the option `tools` names.

Nothing is searched for: a package that brings tools is asked for them when its entry point is named, never
because it is installed. What is loaded runs with all that this process may do, so only whoever starts the
sidecar names it.
"""

import asyncio
import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from sidecar.protocol.errors import ConfigurationError, ToolError
from sidecar.tools.base import BaseTool
from sidecar.tools.registry import ToolRegistry
from sidecar.tools.threads import in_thread

ENTRY_POINTS = "agent_sidecar.tools"
"""The entry-point group in which packages offer tools."""

LOAD_LIMIT_SECS = 30.0
"""How long the code of one entry may take to load (own choice): `initialize` waits for it."""

LONGEST_REASON_CHARS = 300

_ENTRY_POINT = "entry-point:"
_IMPORTLIB = str(Path(importlib.__file__).parent)
_DO_SOMETHING = "mend it, or take it out of the option `tools`"


async def add_tools(registry: ToolRegistry, entries: Sequence[str]) -> None:
    """Loads what each entry names and adds it to the registry; an entry that is there twice counts once.

    Raises ConfigurationError for the first that cannot be loaded or holds a tool that cannot join.
    """
    for entry in dict.fromkeys(map(_resolved, entries)):
        tools = await load_tools(entry)
        try:
            registry.register_all(tools)
        except ToolError as error:
            raise _wrong(entry, f"{error.message}; {_DO_SOMETHING}") from error


async def load_tools(entry: str, *, limit_secs: float = LOAD_LIMIT_SECS) -> list[BaseTool]:
    """The tools that one entry names: `FILE.py`, `module:name` or `entry-point:NAME`.

    A file or module gives those in its list `TOOLS`, or else every tool at its top level whose name does not
    begin with `_`. The code runs in a thread. Raises ConfigurationError, which says where the code fails.
    """
    if fault := fault_of_entry(entry):
        raise _wrong(entry, fault)
    try:
        async with asyncio.timeout(limit_secs):
            return await in_thread(_load, entry)
    except TimeoutError:
        reason = f"it was not loaded within {limit_secs:g} s; do slow work inside the tools"
        raise _wrong(entry, reason) from None


def fault_of_entry(entry: str) -> str | None:
    """What is wrong with the form of an entry, where something is."""
    module, colon, name = entry.partition(":")
    is_entry_point = entry.startswith(_ENTRY_POINT) and entry != _ENTRY_POINT
    if _is_file(entry) or is_entry_point or (colon and _is_dotted(module) and _is_dotted(name)):
        return None
    return f"{entry!r} is neither a .py file nor written as 'module:name' or '{_ENTRY_POINT}NAME'"


def starting_at(folder: Path, entry: str) -> str:
    """The entry, with the path of a file starting at `folder` where it is relative."""
    return str(folder / _expanded(entry)) if _is_file(entry) else entry


def _is_file(entry: str) -> bool:
    return entry.endswith(".py")


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _resolved(entry: str) -> str:
    return str(_expanded(entry).resolve()) if _is_file(entry) else entry


def _expanded(entry: str) -> Path:
    try:
        return Path(entry).expanduser()
    except RuntimeError:  # There is no such user, so the file will not be there, either.
        return Path(entry)


# Loading, in the thread ---------------------------------------------------------------------------------


def _load(entry: str) -> list[BaseTool]:
    try:
        return _tools_in(_named_by(entry), entry)
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        # The code is a user's, and may raise anything while it is loaded.
        raise _broken(entry, error) from error


def _named_by(entry: str) -> Any:
    if _is_file(entry):
        return _run(Path(_resolved(entry)))
    if entry.startswith(_ENTRY_POINT):
        return _offered(entry.removeprefix(_ENTRY_POINT), entry)
    module, _, name = entry.partition(":")
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _run(file: Path) -> ModuleType:
    """The file as a module of its own, which no other module can be taken for."""
    if not file.is_file():
        raise _wrong(str(file), "there is no such file; correct its path in the option `tools`")
    name = f"sidecar_tools_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Before it runs, because its classes look their hints up there.
    try:
        with _neighbours_of(file):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def _neighbours_of(file: Path) -> Iterator[None]:
    """The files beside a file can be imported while it is loaded, and hide nothing that is installed."""
    folder = str(file.parent)
    sys.path.append(folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _offered(name: str, entry: str) -> Any:
    # 20 ms, and needed by those alone who name an entry point.
    from importlib.metadata import entry_points  # noqa: PLC0415

    group = entry_points(group=ENTRY_POINTS)
    found = [point for point in group if point.name == name]
    if len(found) == 1:
        return found[0].load()
    if not found:
        offered = ", ".join(sorted(point.name for point in group)) or "none"
        reason = f"no package in {sys.prefix} offers it in the group {ENTRY_POINTS}; offered are: {offered}"
        raise _wrong(entry, reason)
    packages = ", ".join(sorted(point.dist.name if point.dist else "?" for point in found))
    raise _wrong(entry, f"several packages offer it: {packages}; name what is meant as 'module:name'")


# Which tools --------------------------------------------------------------------------------------------


def _tools_in(value: Any, entry: str) -> list[BaseTool]:
    """The tools that a loaded value stands for. Raises ConfigurationError when there are none."""
    match value:
        case BaseTool():
            return [value]
        case ModuleType():
            return _listed(value.TOOLS, "TOOLS", entry) if hasattr(value, "TOOLS") else _at_top_level(value, entry)
        case list() | tuple():
            return _listed(value, entry, entry)
        case _:
            raise _wrong(entry, _no_tool(entry, value))


def _listed(tools: Any, name: str, entry: str) -> list[BaseTool]:
    if not isinstance(tools, list | tuple):
        raise _wrong(entry, f"{name} must be a list of tools, not a {type(tools).__name__}")
    for index, value in enumerate(tools):
        if not isinstance(value, BaseTool):
            raise _wrong(entry, _no_tool(f"{name}[{index}]", value))
    return list(tools)


def _at_top_level(module: ModuleType, entry: str) -> list[BaseTool]:
    public = (value for name, value in vars(module).items() if not name.startswith("_"))
    tools = {id(value): value for value in public if isinstance(value, BaseTool)}
    if not tools:
        reason = "it holds no tool; decorate a function with @tool, or put instances of BaseTool into a list TOOLS"
        raise _wrong(entry, reason)
    return list(tools.values())


def _no_tool(name: str, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, BaseTool):
        return f"{name} is the class {value.__name__}, not a tool; make an instance of it"
    return f"{name} is a {type(value).__name__}, not a tool; decorate a function with @tool"


# What went wrong ----------------------------------------------------------------------------------------


def _wrong(entry: str, reason: str, **data: Any) -> ConfigurationError:
    return ConfigurationError(f"tools: {entry}: {reason}", path="tools", **data)


def _broken(entry: str, error: BaseException) -> ConfigurationError:
    """Where in the user's code an error comes from, what it is, and what to do about it."""
    file, line = _place(entry, error)
    said = " ".join(str(error).split())[:LONGEST_REASON_CHARS]
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    todo = _DO_SOMETHING
    if isinstance(error, ModuleNotFoundError):
        todo = f"install what brings it for {sys.executable}, or take this out of the option `tools`"
    where = {} if file is None else {"file": file, "line": line}
    at = f"{entry}:{line}" if file == _resolved(entry) else f"{entry}: {file}:{line}" if file else entry
    return ConfigurationError(f"tools: {at}: {reason}; {todo}", path="tools", **where)


def _place(entry: str, error: BaseException) -> tuple[str | None, int | None]:
    """File and line: those in the entry's own file, else the last ones on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = [
        (frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((__file__, _IMPORTLIB, "<frozen "))
    ]
    own = [frame for frame in frames if frame[0] == _resolved(entry)]
    places = own or frames
    return places[-1] if places else (None, None)
