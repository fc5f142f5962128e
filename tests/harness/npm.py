"""MCP servers from npm, installed once into `.cache/npm` of the project.

Import the fixture `npm_servers` into a test module or a conftest to use it. A machine without node skips such
tests; where node is there, an install that fails fails them.
"""

import fcntl
import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_WANTED = _ROOT / "tests/npm/package.json"
_FOLDER = _ROOT / ".cache/npm"
_INSTALL_LIMIT_SECS = 300


class NpmServers:
    """The installed packages."""

    def entry(self, package: str, *arguments: str, **fields: Any) -> dict[str, Any]:
        """The `mcpServers` entry that runs the program of `package`; `fields` are more fields of the entry."""
        folder = _FOLDER / "node_modules" / package
        (program,) = json.loads((folder / "package.json").read_text())["bin"].values()
        return {"command": "node", "args": [str(folder / program), *arguments], **fields}


@pytest.fixture(scope="session")
def npm_servers() -> NpmServers:
    """The packages of `tests/npm/package.json`, installed."""
    if shutil.which("node") is None:
        pytest.skip("node is not on this machine")
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests of several processes may want them at once.
        _install()
    return NpmServers()


def _install() -> None:
    done = _FOLDER / f"installed-{hashlib.sha256(_WANTED.read_bytes()).hexdigest()[:16]}"
    if done.exists():
        return
    shutil.copy(_WANTED, _FOLDER)
    command = ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    result = subprocess.run(command, cwd=_FOLDER, capture_output=True, text=True, timeout=_INSTALL_LIMIT_SECS)
    if result.returncode != 0:
        pytest.fail(f"npm install failed with status {result.returncode}:\n{result.stdout}\n{result.stderr}")
    done.touch()
