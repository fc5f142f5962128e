"""The files below a folder, as git sees them: without what `.gitignore` names, and without `.git`.

Each folder is opened below the one before it and no link is followed, so that nothing outside is ever looked at.
Ignore files count from the workspace's folder down, whether git is used there or not. What lies above it does
not, nor do a user's own `core.excludesFile` and `.git/info/exclude`: a workspace looks the same to everybody.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from sidecar.tools.workspace import Place, Spot, folder_at

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"

MAX_IGNORE_FILE_BYTES = 1024 * 1024
"""Of a larger ignore file nothing is read. Own choice."""

MAX_DEPTH = 200
"""Folders within folders; what lies deeper is passed over. Own choice: below Python's own limit."""

Visit = Callable[[str, Spot], bool]
"""Takes a file: its path from where the walk began, with `/`, and how to open it. False ends the walk."""

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


class Walked(NamedTuple):
    """How a walk ended: whether all was seen, and how many folders could not be opened."""

    is_complete: bool
    unreadable: int


def walk(place: Place, visit: Visit, *, with_ignored: bool = False) -> Walked:
    """Shows every ordinary file below a folder to `visit`. Raises OSError where that cannot be read."""
    walker = _Walker(visit, with_ignored=with_ignored)
    with folder_at(place) as folder:
        above = None if with_ignored else _Level(_Rules(rules_from_above(place)), 0, None)
        is_complete = walker.folder(folder, "", above, 0)
    return Walked(is_complete, walker.unreadable)


class _Rules:
    """What an ignore file says. Two expressions tell first whether it says anything at all: most often not.

    What is above a path was asked about before it, so that a rule for any depth need only see the last name.
    """

    def __init__(self, text: str) -> None:
        self._spec = GitIgnoreSpec([pattern for line in text.splitlines() for pattern in _patterns(line)])
        of_names: list[str] = []
        of_paths: list[str] = []
        for pattern in self._spec.patterns:
            if pattern.regex is None:
                continue
            expression = _plain(pattern)
            is_of_name = expression.startswith(_ANY_DEPTH) and "/" not in str(pattern.pattern).rstrip("/ ")
            (of_names if is_of_name else of_paths).append(expression.removeprefix(_ANY_DEPTH * is_of_name))
        self._mentions_name, self._mentions_path = _one_of(of_names), _one_of(of_paths)

    def verdict(self, path: str) -> bool | None:
        """Whether a path is ignored; None where nothing is said of it."""
        name_start = path.rfind("/", 0, -1) + 1
        if self._mentions_name.match(path[name_start:]) or self._mentions_path.match(path):
            return self._spec.check_file(path).include
        return None


_NAMED_GROUP = re.compile(r"\(\?P<\w+>")
_ANY_DEPTH = "^(?:.+/)?"
"""How the library begins the expression of a rule without a `/`."""


def _patterns(line: str) -> Sequence[GitIgnoreSpecPattern]:
    """The rule of a line; none where git would not understand it either."""
    if line.rstrip().endswith("/**"):
        line = f"{line.rstrip()}/*"  # The library takes the folder itself along, which git does not.
    try:
        return [GitIgnoreSpecPattern(line)]
    except ValueError:
        return ()


def _plain(pattern: GitIgnoreSpecPattern) -> str:
    """The library's expression, fit to be one of several."""
    assert pattern.regex is not None, "what is no comment has one"
    return _NAMED_GROUP.sub("(?:", pattern.regex.pattern)


def _one_of(expressions: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(expressions) or r"(?!)")


class _Level(NamedTuple):
    """The ignore file of one folder, which sees a path of the walk without its first `skip` characters."""

    rules: _Rules
    skip: int
    above: "_Level | None"


class _Walker:
    def __init__(self, visit: Visit, *, with_ignored: bool) -> None:
        self._visit = visit
        self._with_ignored = with_ignored
        self.unreadable = 0

    def folder(self, folder: int | str, path: str, above: _Level | None, depth: int) -> bool:
        """Walks one folder; `path` is empty or ends with `/`. False once `visit` has had enough."""
        with os.scandir(folder) as found:
            entries = sorted(found, key=_name)
        level = None if self._with_ignored else _level(folder, path, entries, above)
        for entry in entries:
            below = path + entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name == REPOSITORY or _is_ignored(level, f"{below}/"):
                    continue
                if not self._enter(folder, entry.name, f"{below}/", level, depth + 1):
                    return False
            elif entry.is_file(follow_symlinks=False) and not _is_ignored(level, below):
                if entry.name == REPOSITORY:  # A work tree of git's has a file of that name.
                    continue
                if not self._visit(below, _spot(folder, entry.name)):
                    return False
        return True

    def _enter(self, folder: int | str, name: str, path: str, level: _Level | None, depth: int) -> bool:
        if depth > MAX_DEPTH:
            self.unreadable += 1
            return True
        try:
            with _opened(folder, name) as below:
                return self.folder(below, path, level, depth)
        except OSError:  # It is closed to us, has gone, or has become a link meanwhile.
            self.unreadable += 1
            return True


def _name(entry: "os.DirEntry[str]") -> str:
    return entry.name


@contextmanager
def _opened(folder: int | str, name: str) -> Iterator[int | str]:
    if isinstance(folder, str):  # Without descriptors for folders, as on Windows.
        yield str(Path(folder, name))
        return
    descriptor = os.open(name, _FLAGS, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _spot(folder: int | str, name: str) -> Spot:
    return Spot(name=str(Path(folder, name)), folder=None) if isinstance(folder, str) else Spot(name, folder)


# Ignoring -----------------------------------------------------------------------------------------------


def _is_ignored(level: _Level | None, path: str) -> bool:
    """The nearest ignore file that says something about a path decides; that of a folder ends with `/`."""
    while level is not None:
        verdict = level.rules.verdict(path[level.skip :])
        if verdict is not None:
            return verdict
        level = level.above
    return False


def _level(folder: int | str, path: str, entries: "list[os.DirEntry[str]]", above: _Level | None) -> _Level | None:
    """The level of a folder, or the one above where the folder has nothing of its own to say.

    Where a repository begins, the rules of what is around it end.
    """
    names = {entry.name for entry in entries if entry.name in (IGNORE_FILE, REPOSITORY)}
    above = None if REPOSITORY in names else above
    if IGNORE_FILE not in names:
        return above
    return _Level(_Rules(_read_rules(_spot(folder, IGNORE_FILE))), len(path), above)


def rules_from_above(place: Place) -> str:
    """What the ignore files of the folders around a place say, as an ignore file in the place itself would."""
    lines: list[str] = []
    for depth in range(len(place.parts) + 1):
        folder = place.folder.joinpath(*place.parts[:depth])
        if (folder / REPOSITORY).exists():
            lines.clear()
        if depth == len(place.parts):
            break
        for line in _read_rules(Spot(str(folder / IGNORE_FILE), None)).splitlines():
            lines += _rules_below(line, place.parts[depth:])
    return "\n".join(lines)


def _rules_below(line: str, parts: Sequence[str]) -> list[str]:
    """The rules that take the place of one in a folder that lies `parts` further down."""
    rule = line.rstrip()
    if not rule or rule.startswith("#"):
        return []
    negation = "!" if rule.startswith("!") else ""
    rule = rule.removeprefix("!")
    only_folders = "/" if rule.endswith("/") else ""
    segments = rule.strip("/").split("/")
    if len(segments) == 1 and not rule.startswith("/"):
        return [line]  # A name, wherever it is.
    return [f"{negation}/{'/'.join(rest)}{only_folders}" for rest in _remaining(segments, parts) if rest]


def _remaining(segments: Sequence[str], parts: Sequence[str]) -> Iterator[Sequence[str]]:
    """What is left of a rule once its beginning has taken `parts`; nothing where it cannot."""
    if not parts:
        yield segments
    elif segments and segments[0] == "**":
        yield from _remaining(segments[1:], parts)
        yield from _remaining(segments, parts[1:])
    elif segments and fnmatchcase(parts[0], segments[0]):
        yield from _remaining(segments[1:], parts[1:])


def _read_rules(spot: Spot) -> str:
    """An ignore file; empty where there is none that can be read."""
    try:
        with os.fdopen(spot.open(os.O_RDONLY), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_IGNORE_FILE_BYTES:
                return ""
            return file.read(MAX_IGNORE_FILE_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""


# Globs --------------------------------------------------------------------------------------------------

MAX_ALTERNATIVES = 64
"""How many globs `{a,b}` may stand for. Own choice."""

_BRACES = re.compile(r"\{([^{}]*)\}")


class Glob:
    """Which files are wanted. Without a `/` it is of names at any depth, else of paths; `{a,b}` is either.

    Raises ValueError for what is no glob.
    """

    def __init__(self, glob: str) -> None:
        lines = _alternatives(glob)
        patterns = [GitIgnoreSpecPattern(f"\\{line}" if line[:1] in ("!", "#") else line) for line in lines]
        self._wanted = _one_of([_plain(pattern) for pattern in patterns if pattern.regex is not None])
        self.names = None if any("/" in line for line in lines) else tuple(sorted(lines))
        """The alternatives, where all are of names."""

    def matches(self, path: str) -> bool:
        """Whether a path below the start of a walk is wanted."""
        return self._wanted.match(path) is not None


def _alternatives(glob: str) -> list[str]:
    done: list[str] = []
    waiting = [glob]
    while waiting:
        each = waiting.pop()
        if braces := _BRACES.search(each):
            waiting += [
                f"{each[: braces.start()]}{choice}{each[braces.end() :]}" for choice in braces[1].split(",")
            ]
        elif each.strip("/ "):
            done.append(each)
        else:
            raise ValueError("a glob must name something")
        if len(waiting) + len(done) > MAX_ALTERNATIVES:
            raise ValueError(f"the braces stand for more than {MAX_ALTERNATIVES} globs")
    return done
