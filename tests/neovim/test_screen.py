"""The plugin on a real terminal: what a person sees, and that keys are answered while a model talks fast.

Source: own choice; 50 ms is what a person does not feel.
"""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from tests.harness.host import clean_environment
from tests.harness.model_server import ScriptedModel, calls, says
from tests.harness.speech import talks_fast
from tests.neovim.driving import COMMAND, NVIM, PLUGIN, options, play

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("tmux") is None,
    reason="needs tmux, and the wheel that brings Neovim is for Linux",
)

INIT = """
vim.opt.runtimepath:prepend([[{plugin}]])
vim.o.swapfile = false
require("sidecar").setup({{
  cmd = vim.json.decode([==[{command}]==]),
  options = vim.json.decode([==[{options}]==]),
}})
"""


async def test_the_screen_shows_questions_and_folds_and_answers_keys_at_1000_deltas_a_second(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("words of a file\n")
    script = (calls(("write_file", {"path": "note.txt", "content": "one\ntwo"})), says("Done."), talks_fast())
    async with ScriptedModel(*script) as model:
        init = tmp_path / "init.lua"
        told = json.dumps(options(model))
        init.write_text(INIT.format(plugin=PLUGIN, command=json.dumps(COMMAND), options=told))
        paths = {"init": init, "file": tmp_path / "a.txt", "socket": tmp_path / "nvim", "tmux": tmp_path / "tmux"}
        given = {"nvim": str(NVIM), "folder": str(tmp_path), **{name: str(path) for name, path in paths.items()}}
        try:
            seen = await play(
                "screen", given, {**clean_environment(), "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
            )
        finally:
            killer = await asyncio.create_subprocess_exec(
                "tmux", "-S", given["tmux"], "kill-server", stderr=DEVNULL
            )
            await killer.wait()
    assert "╭ May this run? ─" in seen["question"]
    assert "│ o  Allow once  " in seen["question"]
    assert "│+one  " in seen["question"]
    assert ":Sidecar approve to answer" in seen["question"]
    assert "│▸ write_file · done in " in seen["done"]
    assert "+one" not in seen["done"]
    assert "## Agent" in seen["done"] and "│<CR> sends · <C-c> stops" in seen["done"]
    assert seen["was_streaming"]
    assert seen["later"] != seen["streaming"]
    assert seen["p95_ms"] < 50, (
        f"median {seen['median_ms']:.0f} ms, p95 {seen['p95_ms']:.0f} ms, worst {seen['worst_ms']:.0f} ms"
    )
