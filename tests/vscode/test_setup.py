"""The first minute with the extension in the real VS Code, on a machine that has no sidecar.

Source: `clients/vscode/README.md`, "Set it up".
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.vscode_extension import ROOT, Extension, extension
from tests.vscode.driving import Editor, editor, play, serving

__all__ = ["editor", "extension"]

pytestmark = [
    pytest.mark.conformance,  # Its packages are fetched.
    pytest.mark.skipif(sys.platform != "linux", reason="a PATH of links is made the POSIX way"),
    pytest.mark.timeout(260),
]

SCENARIO = Path(__file__).with_name("setup.mjs")
PROGRAMS = ("node", "sh", "bash", "env", "dirname", "readlink", "uname", "sed", "cat", "ps", "which", "git")
"""What VS Code's own server and its extensions run."""
PYTHON = Path(sys.executable).resolve()


async def first_minute(
    editor: Editor, extension: Extension, place: Path, *, end: str, has_python: bool
) -> dict[str, Any]:
    """With few programs on PATH; what a person saw who pressed the button that installs."""
    folder = place / "wörk späce"
    folder.mkdir()
    (place / "script.json").write_text(json.dumps({"turns": [{"text": "Good morning."}]}))
    programs = place / "bin"
    programs.mkdir()
    for program in PROGRAMS:
        if found := shutil.which(program):
            (programs / program).symlink_to(found)
    if has_python:
        (programs / "python3").symlink_to(PYTHON)
    settings = {
        "security.workspace.trust.enabled": False,
        "agentSidecar.installFrom": str(ROOT),
        "agentSidecar.model": "replay/script",
        "agentSidecar.providers": {"replay": {"api": "replay", "file": str(place / "script.json")}},
    }
    # As started from a command line, so that the editor does not ask a login shell for a longer PATH.
    variables = {"PATH": str(programs), "VSCODE_CLI": "1"}
    async with serving(editor, extension, place / "editor", settings, variables) as url:
        given = {"url": url, "folder": str(folder), "end": end, "hasPython": has_python}
        return await play(editor, SCENARIO, given)


async def test_one_button_and_one_file_of_settings_lead_to_an_answer(
    editor: Editor, extension: Extension, tmp_path: Path
) -> None:
    end = "Agent Sidecar is installed and running"
    seen = await first_minute(editor, extension, tmp_path, end=end, has_python=True)
    assert "failure" not in seen, seen["failure"]
    assert "was not found on PATH or in the Python environment" in seen["missing"]["text"]
    assert seen["missing"]["actions"] == ["Install it for this editor", "Say where it is", "Look again"]
    assert seen["answer"].strip() == "Good morning."


async def test_without_python_the_person_is_told_what_to_install(
    editor: Editor, extension: Extension, tmp_path: Path
) -> None:
    end = "it was not installed"
    seen = await first_minute(editor, extension, tmp_path, end=end, has_python=False)
    assert "failure" not in seen, seen["failure"]
    assert "Python 3.11 or newer was not found on PATH; install it from python.org" in seen["told"]
