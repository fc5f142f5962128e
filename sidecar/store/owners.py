"""Which sidecars that share a file are alive.

Each holds a lock on one byte of a file beside the store. The system lets go of it when the process ends,
however it ends, so that no clock, no heartbeat and no process id has to be trusted.
"""

import os
import sys
from pathlib import Path

from sidecar.store.database import Database
from sidecar.store.errors import StoreError

FURTHEST = 2**30
"""No number is ever as large."""


class Owners:
    """This sidecar's number among those that share a store, and which others are alive. `file` None: no others."""

    def __init__(self, database: Database, file: Path | None) -> None:
        self._database = database
        self._file = file
        self._fd: int | None = None
        self._number: int | None = None

    @property
    def number(self) -> int:
        """Ours; taken when it is first asked for, and no other sidecar ever has it again."""
        if self._number is None:
            with self._database.transaction():  # Nobody sees the number before its byte is locked.
                number = self._database.insert("INSERT INTO owners (pid) VALUES (?)", os.getpid())
                if self._file is not None:
                    self._hold(self._file, number)
            self._number = number
        return self._number

    def _hold(self, file: Path, number: int) -> None:
        try:
            _hold(self._descriptor(), number)
        except OSError as error:
            raise StoreError(
                f"{file} cannot be locked: {error.strerror or error}; name another file by store.path",
                path=str(file),
            ) from None

    def is_alive(self, number: int | None) -> bool:
        """Whether another sidecar with this number runs; our own has no other."""
        if number is None or number == self._number or self._file is None:
            return False
        return not self._is_free(number, 1)

    def others_run(self) -> bool:
        """Whether any other sidecar works with the store, whatever is in it. To be asked before `number`."""
        return self._file is not None and not self._is_free(1, FURTHEST)

    def forget_dead(self) -> None:
        """Drops the numbers of sidecars that have ended."""
        for (number,) in self._database.rows("SELECT number FROM owners"):
            if number != self._number and not self.is_alive(number):
                self._database.change("DELETE FROM owners WHERE number = ?", number)

    def forget_file(self) -> None:
        """Nothing is shared after all."""
        self._file = None

    def leave(self) -> None:
        """Gives the number back."""
        if self._number is not None:
            self._database.change("DELETE FROM owners WHERE number = ?", self._number)
            self._number = None
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _is_free(self, start: int, length: int) -> bool:
        try:
            _try(self._descriptor(), start, length)
        except OSError:
            return False
        return True

    def _descriptor(self) -> int:
        if self._fd is None:
            assert self._file is not None
            # Closed by `leave` alone: POSIX drops all locks of a process on a file with the first close of it.
            self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
        return self._fd


if sys.platform == "win32":
    import msvcrt

    def _hold(fd: int, number: int) -> None:
        os.lseek(fd, number, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _try(fd: int, start: int, length: int) -> None:
        """Raises OSError where somebody holds a byte."""
        os.lseek(fd, start, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, length)
        os.lseek(fd, start, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, length)

else:
    import fcntl

    def _hold(fd: int, number: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)

    def _try(fd: int, start: int, length: int) -> None:
        """Raises OSError where somebody holds a byte. Shared, so that two who try are not in each other's way."""
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, length, start)
        fcntl.lockf(fd, fcntl.LOCK_UN, length, start)
