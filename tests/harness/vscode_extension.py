"""The extension for VS Code, installed by npm from its own lock file, checked and packaged once, in `.cache`.

Import the fixture `extension` to use it. A machine without node skips such tests; where node is there, an install
or a build that fails fails them.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from attrs import frozen

from tests.harness.npm import locked
from tests.harness.once import copied, once

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "clients/vscode"
NODE_CLIENT = ROOT / "clients/node"
_INSTALLED_FROM = ("package.json", "package-lock.json", ".npmrc")
_BUILT = ("dist", "node_modules")
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
        environment = {**os.environ, "NO_COLOR": "1"}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=_RUN_LIMIT_SECS
        )


@pytest.fixture(scope="session")
def extension() -> Extension:
    """The extension as its source is now."""
    return packaged()


def packaged() -> Extension:
    """Installs, checks and packages what has changed since the last time."""
    with locked("vscode-extension/clients") as clients:  # The extension takes the library from beside it.
        folder = clients / "vscode"
        folder.mkdir(exist_ok=True)
        needed = [SOURCE / name for name in _INSTALLED_FROM]
        once(
            folder,
            needed,
            lambda: _copy(needed, folder),
            ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"),
        )
        sources = [path for path in SOURCE.iterdir() if path.name not in _BUILT]

        def prepare() -> None:
            _copy(sources, folder)
            (clients / "node").mkdir(exist_ok=True)
            _copy([NODE_CLIENT / "src", NODE_CLIENT / "package.json"], clients / "node")

        # Which checks the types and bundles.
        once(folder, [*sources, NODE_CLIENT / "src"], prepare, ("npm", "run", "--silent", "package"))
    return Extension(folder)


def _copy(sources: Iterable[Path], folder: Path) -> None:
    for source in sources:
        copied(source, folder / source.name)
