"""The client library for Node, installed by npm from its own lock file and built once, in `.cache` of the project.

Import the fixture `node_client` to use it. A machine without node skips such tests; where node is there, an
install or a build that fails fails them.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from attrs import frozen

from tests.harness.scripted_sidecar import __file__ as scripted_sidecar_file
from tests.harness.terminal import ROOT, environment

SOURCE = ROOT / "clients/node"
NODE_TESTS = ROOT / "tests/client/node"
_NEEDED = ("package.json", "package-lock.json", ".npmrc")
_BUILT_FROM = ("tsconfig.json", "tsconfig.cjs.json", "src", "scripts", "README.md", "LICENSE")
_INSTALL_LIMIT_SECS = 300
_RUN_LIMIT_SECS = 50


@frozen
class NodeClient:
    """The built package in its folder, where programs find it by its own name."""

    folder: Path

    def node(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs node in the package's folder, with the commands of a real and a scripted sidecar at hand."""
        ours = {"PYTHON": sys.executable, "SCRIPTED_SIDECAR": str(scripted_sidecar_file), "NO_COLOR": "1"}
        return self.run("node", *arguments, **ours, **variables)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the package's folder."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment(**variables),
            capture_output=True,
            text=True,
            timeout=_RUN_LIMIT_SECS,
            check=False,
        )


@pytest.fixture(scope="session")
def node_client() -> NodeClient:
    """The package as its source is now, with the tests beside it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not on this machine")
    folder = ROOT / ".cache" / "node-client"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Tests of several processes may want it at once.
        _bring(folder, _NEEDED, ("npm", "ci", "--no-audit", "--no-fund"))
        _bring(folder, _BUILT_FROM, ("npm", "run", "build"))
        shutil.copytree(NODE_TESTS, folder / "test", dirs_exist_ok=True)
    return NodeClient(folder)


def _bring(folder: Path, names: Iterable[str], command: tuple[str, ...]) -> None:
    """Copies parts of the source and runs what turns them into something, unless that was done with just these."""
    done = folder / f"done-{'-'.join(command[1:])}"
    fingerprint = _fingerprint(names)
    if done.exists() and done.read_text() == fingerprint:
        return
    for name in names:
        _copy(SOURCE / name, folder / name)
    result = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=_INSTALL_LIMIT_SECS
    )
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command)} failed with status {result.returncode}:\n{result.stdout}{result.stderr}")
    done.write_text(fingerprint)


def _fingerprint(names: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for name in names:
        for file in sorted((SOURCE / name).rglob("*")) or [SOURCE / name]:
            digest.update(str(file).encode() + b"\0" + (file.read_bytes() if file.is_file() else b""))
    return digest.hexdigest()


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
