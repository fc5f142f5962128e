"""What takes long and comes out the same each time is done once, also where several processes want it at once."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

_LIMIT_SECS = 300


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """The folder, which is made where it is missing, for one process at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def once(
    folder: Path,
    sources: Iterable[Path],
    prepare: Callable[[], object],
    command: tuple[str, ...],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs `prepare`, then the command in the folder, unless that was done with just these sources.

    `environment` comes on top of our own.
    """
    done = folder / f"done-{'-'.join(command[1:])}"
    fingerprint = _fingerprint(sources)
    if done.exists() and done.read_text() == fingerprint:
        return
    prepare()
    result = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **(environment or {})},
        capture_output=True,
        text=True,
        timeout=_LIMIT_SECS,
    )
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command)} failed with status {result.returncode}:\n{result.stdout}{result.stderr}")
    done.write_text(fingerprint)


def copied(source: Path, target: Path) -> None:
    """A file, or a folder in the place of what was there."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _fingerprint(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for source in sorted(sources):
        for file in sorted(source.rglob("*")) or [source]:
            digest.update(str(file).encode() + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()
