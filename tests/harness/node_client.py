"""The client library for Node, installed by npm from its own lock file and built once, in `.cache` of the project.

Import the fixture `node_client` to use it. A machine without node skips such tests; where node is there, an
install or a build that fails fails them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attrs import frozen

from tests.harness.frames import LEDGER, listened
from tests.harness.npm import locked
from tests.harness.once import copied, once
from tests.harness.scripted_sidecar import __file__ as scripted_sidecar_file
from tests.harness.terminal import ROOT, environment

SOURCE = ROOT / "clients/node"
NODE_TESTS = ROOT / "tests/client/node"
_NEEDED = ("package.json", "package-lock.json", ".npmrc")
_BUILT_FROM = ("tsconfig.json", "tsconfig.cjs.json", "src", "scripts", "README.md", "LICENSE")
_RUN_LIMIT_SECS = 50


@frozen
class NodeClient:
    """The built package in its folder, where programs find it by its own name."""

    folder: Path

    def node(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs node in the package's folder, with the commands of a real and a scripted sidecar at hand.

        The folder HEARD is for what they hear.
        """
        with TemporaryDirectory() as heard:
            ours = {"PYTHON": sys.executable, "SCRIPTED_SIDECAR": str(scripted_sidecar_file), "NO_COLOR": "1"}
            sidecar = listened(Path(heard), (sys.executable, "-P", "-m", "sidecar"))
            ours |= {"SIDECAR": json.dumps(sidecar), "HEARD": heard}
            done = self.run("node", *arguments, **ours, **variables)
            LEDGER.read(Path(heard))
        return done

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
    with locked("node-client") as folder:
        _bring(folder, _NEEDED, ("npm", "ci", "--no-audit", "--no-fund"))
        _bring(folder, _BUILT_FROM, ("npm", "run", "build"))
        shutil.copytree(NODE_TESTS, folder / "test", dirs_exist_ok=True)
    return NodeClient(folder)


def _bring(folder: Path, names: tuple[str, ...], command: tuple[str, ...]) -> None:
    """Copies parts of the source and runs what turns them into something."""

    def prepare() -> None:
        for name in names:
            copied(SOURCE / name, folder / name)

    once(folder, [SOURCE / name for name in names], prepare, command)
