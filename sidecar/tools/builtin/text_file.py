"""A text file on disk: read with its version, written in one step, its mode and line ends kept."""

import hashlib
import os
import stat
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from attrs import frozen

from sidecar.tools.builtin.decoding import UTF_8, Encoding, NoTextError, decoded
from sidecar.tools.workspace import Place, Spot

MAX_FILE_BYTES = 10 * 1024 * 1024
"""The largest file that is read whole (own choice): no model can use more."""


class UnfitFileError(Exception):
    """The file is not one that a text tool can work on; the message says why, as in `is not …`."""


class LargeFileError(UnfitFileError):
    """The file is too large to be read whole; lines of it can be had."""


@frozen(kw_only=True, eq=False)
class TextFile:
    """What a file holds. Line ends are `\\n` in `text` where the file has one kind of them throughout."""

    text: str
    version: str
    has_windows_line_ends: bool = False
    encoding: Encoding = UTF_8
    mode: int | None = None

    def encoded(self, text: str) -> bytes:
        """Other text for the same file. Raises UnfitFileError for what its encoding cannot hold."""
        if self.has_windows_line_ends and "\r" not in text:
            text = text.replace("\n", "\r\n")
        try:
            return self.encoding.encoded(text)
        except NoTextError as error:
            raise UnfitFileError(str(error)) from None


def read(spot: Spot) -> TextFile:
    """Raises UnfitFileError for what is no text or too large, and OSError."""
    with os.fdopen(spot.open(os.O_RDONLY), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError
        if not stat.S_ISREG(status.st_mode):
            raise UnfitFileError("is no ordinary file")
        if status.st_size > MAX_FILE_BYTES:
            raise LargeFileError(
                f"has {status.st_size} bytes, and no more than {MAX_FILE_BYTES} can be read whole"
            )
        raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:  # It grew meanwhile, or is one whose size the system does not tell.
        raise UnfitFileError(f"has more than the {MAX_FILE_BYTES} bytes that can be read")
    return _decoded(raw, stat.S_IMODE(status.st_mode))


def buffered(text: str) -> TextFile:
    """The text of an editor's buffer, as a file would hold it. Raises UnfitFileError."""
    return _decoded(text.encode("utf-8", "replace"), None)


def read_if_there(spot: Spot) -> TextFile | None:
    """As `read`; None where there is nothing."""
    return read(spot) if spot.stat() is not None else None


def write(spot: Spot, raw: bytes, *, mode: int | None) -> str:
    """Puts `raw` in place of what is there, in one step, and gives its version. `mode` None: a new file's."""
    if mode is not None and not mode & 0o222:
        raise PermissionError  # Replacing needs the folder's permission alone, but the file says no.
    temporary = spot.beside(f".{os.urandom(6).hex()}.tmp")
    descriptor = temporary.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):  # Windows has none.
                os.fchmod(descriptor, mode)
            os.fsync(descriptor)  # Else a crash could leave the new name with nothing in it.
        spot.replace_by(temporary)
    except BaseException:
        with suppress(OSError):
            temporary.remove()
        raise
    return version_of(raw)


def version_of(raw: bytes) -> str:
    """Changes with every change of the file: the first half of its SHA-256."""
    return hashlib.sha256(raw).hexdigest()[:32]


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """One change of a file at a time, among the calls of this process."""
    with _locks_lock:
        lock = _locks.setdefault(str(place.path), threading.Lock())
    with lock:
        yield


_locks: "weakref.WeakValueDictionary[str, threading.Lock]" = weakref.WeakValueDictionary()
_locks_lock = threading.Lock()


def _decoded(raw: bytes, mode: int | None) -> TextFile:
    try:
        text, encoding = decoded(raw)
    except NoTextError as error:
        raise UnfitFileError(str(error)) from None
    lines = text.count("\n")
    is_windows = lines > 0 and text.count("\r\n") == lines == text.count("\r")
    return TextFile(
        text=text.replace("\r\n", "\n") if is_windows else text,
        version=version_of(raw),
        has_windows_line_ends=is_windows,
        encoding=encoding,
        mode=mode,
    )
