"""The real VS Code, as code-server serves it, driven in a real Chromium by the scenario beside this file."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.harness.data_home import new_data_home
from tests.harness.host import clean_environment
from tests.harness.npm import installed
from tests.harness.tcp import closed_port
from tests.harness.vscode_extension import ROOT, Extension

_START_LIMIT_SECS = 30
_SCENARIO_LIMIT_SECS = 200

QUIET: dict[str, Any] = {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": False,
    "files.autoSave": "off",
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
}


@frozen
class Editor:
    """The programs that the tests need beside Node."""

    code_server: str
    chromium: str
    modules: Path


@pytest.fixture(scope="session")
def editor() -> Editor:
    """The editor of this machine."""
    return found_editor()


def found_editor() -> Editor:
    """Found on PATH, or by CODE_SERVER and CHROMIUM; what is missing is the reason to skip."""
    code_server = shutil.which(os.environ.get("CODE_SERVER", "code-server"))
    chromium = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    if code_server is None or chromium is None:
        missing = "code-server (CODE_SERVER)" if code_server is None else "chromium (CHROMIUM)"
        pytest.skip(f"{missing} is not on this machine")
    return Editor(code_server, chromium, installed(Path(__file__).parent / "package.json", "vscode-driver"))


@asynccontextmanager
async def serving(
    editor: Editor,
    extension: Extension,
    folder: Path,
    settings: Mapping[str, Any],
    variables: Mapping[str, str] = {},
) -> AsyncIterator[str]:
    """Serves a VS Code with nothing but the extension in it; its address. `variables` are its environment's."""
    user = folder / "user"
    for place in ("User", "Machine"):  # What is of the machine counts in the second place.
        (user / place).mkdir(parents=True)
        (user / place / "settings.json").write_text(json.dumps({**QUIET, **settings}))
    port = closed_port()
    places = (
        "--config",
        folder / "config.yaml",
        "--user-data-dir",
        user,
        "--extensions-dir",
        folder / "extensions",
    )
    quiet = ("--disable-telemetry", "--disable-update-check", "--disable-getting-started-override")
    environment = {
        **clean_environment(),
        "HOME": str(folder),
        "XDG_DATA_HOME": new_data_home(),
        "XDG_CONFIG_HOME": str(folder / "configuration"),
        **variables,
    }
    await _run(editor.code_server, *places, "--install-extension", extension.package, env=environment)
    process = await asyncio.create_subprocess_exec(
        *(editor.code_server, *places, *quiet, "--auth", "none", "--bind-addr", f"127.0.0.1:{port}"),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    listens = asyncio.Event()
    reading = asyncio.create_task(_read(process.stdout, listens))
    try:
        async with asyncio.timeout(_START_LIMIT_SECS):
            await listens.wait()
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # It has started processes of its own.
        await process.wait()
        await reading


@asynccontextmanager
async def browsing(editor: Editor, folder: Path) -> AsyncIterator[str]:
    """Runs a browser for several scripts to share; the address at which it listens to them."""
    process = await asyncio.create_subprocess_exec(
        *(editor.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"),
        *("--window-size=1280,820", f"--user-data-dir={folder}", "about:blank"),
        env={**os.environ, "HOME": str(folder)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    reading = asyncio.create_task(_read_address(process.stderr, address))
    try:
        async with asyncio.timeout(_START_LIMIT_SECS):
            found = await address
        yield found
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        await process.wait()
        await reading


async def _read_address(errors: asyncio.StreamReader, address: asyncio.Future[str]) -> None:
    """Reads on to the end, so that what writes never waits."""
    while line := await errors.readline():
        if not address.done() and b"DevTools listening on" in line:
            address.set_result(line.decode().split()[-1])


async def play(editor: Editor, scenario: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Plays a scenario, which is a script for Node; what it saw."""
    pictures = os.environ.get("VSCODE_PICTURES")
    told = {**given, "modules": str(editor.modules), "chromium": editor.chromium, "pictures": pictures}
    out = await _run("node", scenario, json.dumps(told), env=dict(os.environ), limit_secs=_SCENARIO_LIMIT_SECS)
    seen: dict[str, Any] = json.loads(out.splitlines()[-1])
    return seen


def sidecar_settings() -> dict[str, Any]:
    """Settings with which the extension finds the sidecar of this checkout."""
    return {
        "agentSidecar.command": [sys.executable, "-m", "sidecar"],
        "agentSidecar.env": {"PYTHONPATH": str(ROOT)},
    }


async def _read(output: asyncio.StreamReader, listens: asyncio.Event) -> None:
    """Reads on to the end, so that what writes never waits."""
    while line := await output.readline():
        if b"HTTP server listening" in line:
            listens.set()


async def _run(*command: str | Path, env: Mapping[str, str], limit_secs: float = _START_LIMIT_SECS) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(limit_secs):
            out, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode == 0, (out + errors).decode()
    return out.decode()
