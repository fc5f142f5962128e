"""Variables out of a file, as an entry's `envFile` names it: lines of `NAME=value`, in the manner of dotenv. Pure.

Nothing in a value is expanded: what a file of secrets holds is taken as it stands. Own choice, as dotenv has
no standard: comments on lines of their own or after a space, `export` in front, single or double quotes.
"""

import re

_LINE = re.compile(
    r"""[^\S\n]*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=[^\S\n]*
        (?:'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<bare>(?:(?![^\S\n]\#)[^\n])*))
        [^\S\n]*(?:\#[^\n]*)?(?=\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_PASSED_OVER = re.compile(r"[^\S\n]*(?:#[^\n]*)?(?:\n|\Z)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class EnvFileError(ValueError):
    """A line that is none; `line` counts from 1. The message does not repeat it: it may hold a secret."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line} must be NAME=value")
        self.line = line


def read_env_file(text: str) -> dict[str, str]:
    """The variables of a file, the last of a name counting. Raises EnvFileError."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    variables: dict[str, str] = {}
    position = 0
    while position < len(text):
        if empty := _PASSED_OVER.match(text, position):
            position = empty.end()
        elif line := _LINE.match(text, position):
            variables[line["name"]] = _value(line)
            position = line.end()
        else:
            raise EnvFileError(text.count("\n", 0, position) + 1)
    return variables


def _value(line: re.Match[str]) -> str:
    if line["single"] is not None:
        return line["single"]
    if line["double"] is not None:
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), line["double"], flags=re.DOTALL)
    bare: str = line["bare"]
    return "" if bare.lstrip().startswith("#") else bare.strip()
