"""The extension for VS Code, installed by npm from its own lock file, checked and packaged once, in `.cache`.

Import the fixture `extension` to use it. A machine without node skips such tests; where node is there, an install
or a build that fails fails them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "clients/vscode"
NODE_CLIENT = ROOT / "clients/node"
_INSTALLED_FROM = ("package.json", "package-lock.json", ".npmrc")
_BUILT = ("dist", "node_modules")
_INSTALL_LIMIT_SECS = 300
_RUN_LIMIT_SECS = 120


@frozen
class Extension:
    """A copy of `clients/vscode` in which everything is installed, and the package that was made of it."""

    folder: Path

    @property
    def package(self) -> Path:
        """What a person installs."""
        return self.folder / "dist/agent-sidecar.vsix"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the copy."""
        return _run(self.folder, command, _RUN_LIMIT_SECS)


@pytest.fixture(scope="session")
def extension() -> Extension:
    """The extension as its source is now."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not on this machine")
    clients = ROOT / ".cache/vscode-extension/clients"  # The extension takes the library from beside it.
    folder = clients / "vscode"
    folder.mkdir(parents=True, exist_ok=True)
    with (clients / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests of several processes may want it at once.
        _install(folder)
        _package(folder, clients / "node")
    return Extension(folder)


def _install(folder: Path) -> None:
    needed = [SOURCE / name for name in _INSTALLED_FROM]
    if _is_done(folder / "installed", needed):
        return
    for file in needed:
        shutil.copy(file, folder)
    _must(folder, ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), _INSTALL_LIMIT_SECS)
    (folder / "installed").write_text(_fingerprint(needed))


def _package(folder: Path, client: Path) -> None:
    sources = [path for path in SOURCE.iterdir() if path.name not in _BUILT]
    if _is_done(folder / "packaged", [*sources, NODE_CLIENT / "src"]):
        return
    shutil.copytree(NODE_CLIENT / "src", client / "src", dirs_exist_ok=True)
    shutil.copy(NODE_CLIENT / "package.json", client)
    for path in sources:
        target = folder / path.name
        if path.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(path, target)
        else:
            shutil.copy(path, target)
    _must(folder, ("npm", "run", "--silent", "package"), _RUN_LIMIT_SECS)  # Which checks the types and bundles.
    (folder / "packaged").write_text(_fingerprint([*sources, NODE_CLIENT / "src"]))


def _must(folder: Path, command: tuple[str, ...], limit_secs: float) -> None:
    done = _run(folder, command, limit_secs)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stdout}{done.stderr}")


def _run(folder: Path, command: tuple[str, ...], limit_secs: float) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_COLOR": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit_secs)


def _is_done(mark: Path, sources: Iterable[Path]) -> bool:
    return mark.exists() and mark.read_text() == _fingerprint(sources)


def _fingerprint(sources: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for source in sorted(sources):
        for file in sorted(source.rglob("*")) or [source]:
            digest.update(str(file).encode() + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()
