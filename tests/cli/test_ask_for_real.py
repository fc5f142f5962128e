"""`agent-sidecar ask` over the real sidecar and a real HTTP model: nothing scripted but the model's words.

Source: own choice, within "Try it" of README.md.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.harness.model_server import ScriptedModel, calls, says, stalls
from tests.harness.terminal import cli, environment, on_terminal

LIMIT_SECS = 30


def variables(model: ScriptedModel, folder: Path) -> dict[str, str]:
    """Where people put their key and their endpoint."""
    return environment(
        HOME=str(folder),
        XDG_CONFIG_HOME=str(folder / "config"),
        OPENAI_API_KEY="sk-test",
        OPENAI_BASE_URL=model.base_url,
        OPENAI_MODEL="scripted",
    )


async def ask(model: ScriptedModel, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of an `ask` without a terminal."""
    process = await asyncio.create_subprocess_exec(
        *cli("ask", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=variables(model, folder),
        cwd=folder,
    )
    async with asyncio.timeout(LIMIT_SECS):
        stdout, stderr = await process.communicate()
    assert process.returncode is not None
    return process.returncode, stdout.decode(), stderr.decode()


async def test_a_key_and_an_endpoint_in_the_environment_are_enough(tmp_path: Path) -> None:
    async with ScriptedModel(says("Hello from afar.")) as model:
        assert await ask(model, tmp_path, "hi") == (0, "Hello from afar.\n", "")
        assert model.requests[0].messages[-1] == {"role": "user", "content": "hi"}


async def test_a_call_works_in_the_folder_one_is_in(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Seventeen geese.")
    async with ScriptedModel(calls(("read_file", {"path": "notes.md"})), says("Seventeen.")) as model:
        status, stdout, stderr = await ask(model, tmp_path, "how many geese?")
    assert (status, stdout) == (0, "Seventeen.\n")
    assert stderr.startswith("ok read_file  ") and "Seventeen geese." in stderr


async def test_writing_is_denied_unless_it_is_allowed(tmp_path: Path) -> None:
    write = calls(("write_file", {"path": "a.txt", "content": "x"}))
    async with ScriptedModel(write, says("Not done.")) as model:
        status, _, stderr = await ask(model, tmp_path, "write")
    assert (status, (tmp_path / "a.txt").exists()) == (0, False)
    assert "to allow it: --allow write" in stderr
    async with ScriptedModel(write, says("Done.")) as model:
        status, _, _ = await ask(model, tmp_path, "--allow", "write", "write")
    assert (status, (tmp_path / "a.txt").read_text()) == (0, "x")


async def test_what_is_denied_by_default_can_be_allowed_by_flag(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("x")
    delete = calls(("delete", {"path": "old.txt"}))
    async with ScriptedModel(delete) as model:
        status, _, stderr = await ask(model, tmp_path, "delete")
    assert (status, (tmp_path / "old.txt").exists()) == (1, True)
    assert stderr.splitlines()[-1].startswith("agent-sidecar: error: delete is not permitted")
    async with ScriptedModel(delete, says("Gone.")) as model:
        assert (await ask(model, tmp_path, "--allow", "delete", "delete"))[0] == 0
    assert not (tmp_path / "old.txt").exists()


async def test_without_a_model_it_says_what_to_do(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *cli("ask", "hi"),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=environment(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path)),
        cwd=tmp_path,
    )
    async with asyncio.timeout(LIMIT_SECS):
        _, stderr = await process.communicate()
    (line,) = stderr.decode().splitlines()
    assert process.returncode == 2
    assert line.startswith("agent-sidecar: error: no model is configured") and "OPENAI_API_KEY" in line


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
async def test_a_person_allows_a_call_for_the_session_once(tmp_path: Path) -> None:
    write = ("write_file", {"path": "a.txt", "content": "x"})
    async with (
        ScriptedModel(calls(write), calls(write), says("Twice.")) as model,
        on_terminal(cli("ask", "write"), env=variables(model, tmp_path), cwd=tmp_path) as terminal,
    ):
        await terminal.sees("[s] ")
        terminal.press("s")
        assert await terminal.ends() == 0
        assert terminal.text.count("[s] ") <= 4  # Drawn again while it waited, not asked again.
        assert sum(line.startswith("? write_file") for line in terminal.picture) == 1
        assert sum(line.startswith("✓ write_file") for line in terminal.picture) == 2
        assert "Twice." in terminal.picture


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
async def test_ctrl_c_ends_a_call_of_the_model_and_the_sidecar_with_it(tmp_path: Path) -> None:
    async with ScriptedModel(stalls(says("One two three."), after=3)) as model:
        async with on_terminal(cli("ask", "go on"), env=variables(model, tmp_path), cwd=tmp_path) as terminal:
            await terminal.sees("One")
            terminal.press("\x03")
            assert await terminal.ends() == 130
            assert "Traceback" not in terminal.text
        async with asyncio.timeout(LIMIT_SECS):
            await model.requests[0].disconnected.wait()
