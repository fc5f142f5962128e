"""Placeholders in server configurations: `${workspaceFolder}`, `${env:NAME}`, `${input:id}` and their kin.

Pure: what they stand for is handed in. The spellings are those of VS Code, Claude Code and Cursor, so that a
file made for them works as it is. Placeholders do not nest, and what they stand for is not expanded again.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from attrs import field, frozen

_PLACEHOLDER = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_()]*)(?::-(?P<default>.*))?", re.DOTALL)
_HOME_PREFIXES = ("~/", "~\\")


class PlaceholderError(ValueError):
    """A placeholder stands for nothing, or is none that is known; the message names it."""


@frozen(kw_only=True, eq=False)
class Surroundings:
    """What placeholders stand for. `inputs` holds answers by input id; `workspace` and `home` may be unknown."""

    workspace: str | None = None
    home: str | None = None
    environ: Mapping[str, str] = field(factory=dict, repr=False)
    inputs: Mapping[str, str] = field(factory=dict, repr=False)


def expand(text: str, surroundings: Surroundings) -> str:
    """`text` with every placeholder replaced, and a leading `~/` by the home folder.

    Raises PlaceholderError for one that is unset or unknown.
    """
    expanded = _PLACEHOLDER.sub(lambda found: _meaning(found[1], surroundings), text)
    if text.startswith(_HOME_PREFIXES):
        return _known(surroundings.home, "~/", "the home folder is not known") + expanded[1:]
    return expanded


def input_ids(texts: Iterable[str]) -> tuple[str, ...]:
    """The ids of all `${input:id}` in `texts`, each once, in the order in which they come."""
    return tuple(dict.fromkeys(_input_ids(texts)))


def _input_ids(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        for found in _PLACEHOLDER.finditer(text):
            kind, colon, name = found[1].partition(":")
            if colon and kind == "input":
                yield name


def _meaning(inside: str, surroundings: Surroundings) -> str:
    placeholder = f"${{{inside}}}"
    if inside == "workspaceFolder":
        return _known(surroundings.workspace, placeholder, "no workspace folder is open")
    if inside == "workspaceFolderBasename":
        workspace = _known(surroundings.workspace, placeholder, "no workspace folder is open")
        return PurePath(workspace).name
    if inside in ("pathSeparator", "/"):
        return os.sep
    if inside == "userHome":
        return _known(surroundings.home, placeholder, "the home folder is not known")
    if inside.startswith("input:"):
        answer = surroundings.inputs.get(inside.removeprefix("input:"))
        return _known(answer, placeholder, "nobody gave this input")
    return _variable(inside, placeholder, surroundings.environ)


def _variable(inside: str, placeholder: str, environ: Mapping[str, str]) -> str:
    found = _VARIABLE.fullmatch(inside)
    if found is None:
        raise PlaceholderError(
            f"{placeholder} is not known: use ${{workspaceFolder}}, ${{userHome}}, ${{env:NAME}}, ${{NAME}}, "
            "${NAME:-default} or ${input:id}"
        )
    name, default = found["name"], found["default"]
    if default is not None:  # As in a shell, `:-` also stands in for an empty variable.
        return environ.get(name) or default
    reason = f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
    return _known(environ.get(name), placeholder, reason)


def _known(meaning: str | None, placeholder: str, reason: str) -> str:
    if meaning is None:
        raise PlaceholderError(f"{placeholder} stands for nothing: {reason}")
    return meaning
