"""The folders that file tools keep to, and how a file in them is reached without leaving them.

A path is resolved first, symbolic links and all, and has to end inside. Then each folder on the way is opened
below the one before it, following no link, so that a link put there meanwhile leads nowhere. On systems without
descriptors for folders (Windows) the resolved path is used as it is.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import frozen

from sidecar.protocol.errors import ToolError

_HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe must not wait for somebody at its other end."""

_WINDOWS_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?", re.IGNORECASE)


@frozen(kw_only=True, eq=False)
class Place:
    """A path inside a workspace: its folder, and the way down from there, on which there is no link.

    `shown` is its one spelling for people and rules: relative to the first folder where it lies in it, else
    absolute; with `/` on every system.
    """

    folder: Path
    parts: tuple[str, ...]
    shown: str

    @property
    def path(self) -> Path:
        return self.folder.joinpath(*self.parts)

    def shown_below(self, path: str) -> str:
        """How something below this folder is spelt."""
        return path if self.shown == "." else f"{self.shown}/{path}"


@frozen(eq=False)
class Spot:
    """A name in a folder that is held open, so that nobody can put another folder in its place."""

    name: str
    folder: int | None

    def open(self, flags: int, mode: int = 0o666) -> int:
        """A descriptor. Raises OSError, also where the name is a link."""
        return os.open(self.name, flags | _SAFELY | _AT_ONCE, mode, dir_fd=self.folder)

    def stat(self) -> os.stat_result | None:
        """What is there, a link as itself; None: nothing."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def beside(self, name: str) -> "Spot":
        """Another name in the same folder."""
        path = name if self.folder is not None else str(Path(self.name).with_name(name))
        return Spot(name=path, folder=self.folder)

    def replace_by(self, other: "Spot") -> None:
        """Moves `other`, of the same folder, here, in one step."""
        os.replace(other.name, self.name, src_dir_fd=other.folder, dst_dir_fd=self.folder)

    def remove(self) -> None:
        """Removes a file or a link."""
        os.unlink(self.name, dir_fd=self.folder)


class Workspace:
    """The folders; the first is where relative paths start."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(Path(os.path.realpath(folder)) for folder in folders)

    def place(self, path: str, *, follow: bool = True) -> Place:
        """Where `path` leads; with `follow` False a link at its end is itself the place.

        Raises ToolError `permissionDenied`, naming path and scope, for what lies outside.
        """
        if not self._folders:
            why = "no workspace folder is open; the host names one in initialize, or the flag --cwd does"
            raise _outside(path, self._folders, why)
        if "\0" in path:
            raise ToolError("invalidArguments", "a path cannot hold a null character", path=path)
        real = self._real(self._folders[0] / path, follow)
        for folder in self._folders:
            if real.is_relative_to(folder):
                parts = real.relative_to(folder).parts
                _refuse_devices(path, parts)
                return Place(folder=folder, parts=parts, shown=self._shown(real, folder))
        raise _outside(path, self._folders, "it is outside the workspace")

    def _real(self, path: Path, follow: bool) -> Path:
        if follow or path.name in ("", ".", ".."):
            return Path(os.path.realpath(path))
        return Path(os.path.realpath(path.parent), path.name)

    def _shown(self, real: Path, folder: Path) -> str:
        return (real.relative_to(folder) if folder == self._folders[0] else real).as_posix()


@contextmanager
def spot_of(place: Place, *, create_parents: bool = False) -> Iterator[Spot]:
    """The place, reached folder by folder. Raises OSError where one of them is missing or no folder.

    Raises ToolError `permissionDenied` where one has become a link since the path was resolved.
    """
    if not place.parts:
        raise IsADirectoryError(None, "is a folder", place.shown)
    if not _HAS_FOLDER_DESCRIPTORS:
        if create_parents:
            place.path.parent.mkdir(parents=True, exist_ok=True)
        yield Spot(name=str(place.path), folder=None)
        return
    descriptor = os.open(place.folder, _FOLDER | getattr(os, "O_CLOEXEC", 0))
    try:
        for name in place.parts[:-1]:
            below = _open_below(descriptor, name, place, create=create_parents)
            os.close(descriptor)
            descriptor = below
        yield Spot(name=place.parts[-1], folder=descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def folder_at(place: Place) -> Iterator[int | str]:
    """A folder for `os.scandir`. Raises as `spot_of` does, and NotADirectoryError."""
    if not _HAS_FOLDER_DESCRIPTORS:
        yield str(place.path)
        return
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
    if place.parts:
        with spot_of(place) as spot:
            descriptor = spot.open(flags)
    else:
        descriptor = os.open(place.folder, flags | getattr(os, "O_CLOEXEC", 0))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_below(folder: int, name: str, place: Place, *, create: bool) -> int:
    try:
        return os.open(name, _FOLDER | _SAFELY, dir_fd=folder)
    except FileNotFoundError:
        if not create:
            raise
        with suppress(FileExistsError):  # Somebody else was quicker.
            os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER | _SAFELY, dir_fd=folder)
    except OSError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise became_another(place.shown) from None
        raise


def became_another(path: str) -> ToolError:
    """A path leads elsewhere than it did when it was checked."""
    return ToolError("permissionDenied", f"{path!r} was changed while it was being used; try again", path=path)


def _refuse_devices(path: str, parts: Sequence[str]) -> None:
    """On Windows `nul` is a device in any folder, and `file:name` a hidden stream."""
    if os.name == "nt" and any(":" in part or _WINDOWS_DEVICE.fullmatch(part) for part in parts):
        raise ToolError("permissionDenied", f"{path!r} names a device or a stream, not a file", path=path)


def _outside(path: str, folders: Sequence[Path], why: str) -> ToolError:
    scope = [folder.as_posix() for folder in folders]
    among = f" ({', '.join(scope)})" if scope else ""
    return ToolError("permissionDenied", f"{path!r} cannot be reached: {why}{among}", path=path, scope=scope)
