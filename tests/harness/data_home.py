"""Data folders for the sidecars of tests: each gets one of its own, and the user's is never touched."""

import atexit
import shutil
import tempfile
from pathlib import Path

import platformdirs

USERS_OWN = Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False))
"""Where a sidecar outside of tests keeps its store; looked up before anything here changes the environment."""


def new_data_home() -> str:
    """An empty folder for XDG_DATA_HOME, gone when the tests are."""
    folder = tempfile.mkdtemp(prefix="sidecar-data-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder with its size and the time of its last change."""
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}
