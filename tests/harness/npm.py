"""Packages from npm, installed once into `.cache` of the project.

Import the fixture `npm_servers` into a test module or a conftest to use MCP servers from npm. A machine without
node skips such tests; where node is there, an install that fails fails them.
"""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.once import alone, once
from tests.harness.tcp import closed_port

_ROOT = Path(__file__).resolve().parents[2]
_START_LIMIT_SECS = 20


class NpmServers:
    """The installed packages."""

    def __init__(self, modules: Path) -> None:
        self._modules = modules

    def entry(self, package: str, *arguments: str, **fields: Any) -> dict[str, Any]:
        """The `mcpServers` entry that runs the program of `package`; `fields` are more fields of the entry."""
        folder = self._modules / package
        (program,) = json.loads((folder / "package.json").read_text())["bin"].values()
        return {"command": "node", "args": [str(folder / program), *arguments], **fields}

    @contextlib.asynccontextmanager
    async def listening(self, package: str, *arguments: str, port: int | None = None) -> AsyncIterator[int]:
        """Runs the program of `package` as a server over HTTP; its port."""
        port = port or closed_port()
        entry = self.entry(package, *arguments)
        process = await asyncio.create_subprocess_exec(
            entry["command"],
            *entry["args"],
            env={**os.environ, "PORT": str(port)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_LIMIT_SECS):
                while line := await process.stdout.readline():
                    if str(port) in line.decode():
                        break
            yield port
        finally:
            process.kill()
            await process.wait()


@pytest.fixture(scope="session")
def npm_servers() -> NpmServers:
    """The packages of `tests/npm/package.json`, installed."""
    return NpmServers(installed(_ROOT / "tests/npm/package.json", "npm"))


def installed(wanted: Path, name: str) -> Path:
    """The folder `node_modules` with what the package file `wanted` names, in `.cache/NAME`."""
    with locked(name) as folder:
        once(
            folder,
            (wanted,),
            lambda: shutil.copy(wanted, folder),
            ("npm", "install", "--no-package-lock", "--no-audit", "--no-fund"),
        )
    return folder / "node_modules"


@contextlib.contextmanager
def locked(name: str) -> Iterator[Path]:
    """The folder `.cache/NAME`, for one process at a time. Skips the test where there is no node."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not on this machine")
    folder = _ROOT / ".cache" / name
    with alone(folder):
        yield folder
