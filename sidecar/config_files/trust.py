"""Which workspaces a person trusts, and with which content: one small file, written in one step.

Two sidecars that decide at once may lose one answer, which is then asked for again.
"""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

Decision = Literal["trust", "notNow", "never"]
Standing = Literal["trusted", "changed", "unknown", "never"]

FILE_NAME = "trusted-workspaces.json"
VERSION = 1


class Entry(NamedTuple):
    """What was decided about a folder, and the digests of the files that it was decided about."""

    decision: Decision
    files: Mapping[str, str]
    decided_ms: int


class TrustBook:
    """The decisions in the file `path`. `fault` says why it is not believed, where it is there and is not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault = ""
        self._entries = self._read()

    @property
    def entries(self) -> Mapping[str, Entry]:
        """By folder."""
        return self._entries

    def standing(self, folder: Path, digests: Mapping[str, str]) -> Standing:
        """Whether exactly this content of the folder is trusted; `folder` has no links in it."""
        match self._entries.get(str(folder)):
            case Entry(decision="trust", files=files):
                return "trusted" if files == digests else "changed"
            case Entry(decision="never"):
                return "never"
            case _:
                return "unknown"

    def record(self, folder: Path, decision: Decision, digests: Mapping[str, str]) -> None:
        """Keeps a decision in place of an older one. Raises OSError."""
        entry = Entry(decision=decision, files=dict(digests), decided_ms=time.time_ns() // 1_000_000)
        self._write({**self._read(), str(folder): entry})

    def forget(self, folder: Path) -> bool:
        """Drops what was decided about a folder; whether there was anything. Raises OSError."""
        entries = self._read()
        known = entries.pop(str(folder), None) is not None
        if known:
            self._write(entries)
        return known

    def _read(self) -> dict[str, Entry]:
        """Nothing is trusted by a file that others could have written, or that is not as we write it."""
        try:
            with self.path.open("rb") as stream:
                if fault := _of_others(os.fstat(stream.fileno())):
                    raise ValueError(fault)
                raw = json.loads(stream.read())
            if raw["version"] != VERSION:
                raise ValueError(f"has version {raw['version']!r}, which this program does not know")
            return {str(folder): _entry(entry) for folder, entry in raw["workspaces"].items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.fault = f"cannot be read: {error.strerror}"
        except (KeyError, TypeError, AttributeError, RecursionError):
            self.fault = "is damaged"
        except ValueError as error:
            self.fault = (
                "is damaged" if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) else str(error)
            )
        return {}

    def _write(self, entries: Mapping[str, Entry]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.fault and self.path.exists():
            self.path.replace(self.path.with_suffix(".set-aside.json"))
        workspaces = {
            folder: {"decision": entry.decision, "files": dict(entry.files), "decidedMs": entry.decided_ms}
            for folder, entry in entries.items()
        }
        # mkstemp makes files that their owner alone can read.
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump({"version": VERSION, "workspaces": workspaces}, stream, indent=1)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
        self.fault = ""
        self._entries = dict(entries)


def _of_others(status: os.stat_result) -> str:
    """Why a file could be others' work; empty where it is ours alone. Windows keeps others out by its folder."""
    if os.name == "nt":
        return ""
    if status.st_uid != os.getuid():
        return "belongs to another user"
    return "can be written by others; mend that with chmod 600" if status.st_mode & 0o022 else ""


def _entry(raw: Any) -> Entry:
    decision, files = raw["decision"], raw["files"]
    if decision not in ("trust", "notNow", "never") or not all(
        isinstance(digest, str) for digest in files.values()
    ):
        raise TypeError
    return Entry(decision=decision, files=files, decided_ms=int(raw["decidedMs"]))
