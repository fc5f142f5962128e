"""The hosts in other languages, each against the real sidecar. Source: `clients/hosts/README.md`."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.frames import listened
from tests.harness.host import clean_environment

FOLDER = Path(__file__).resolve().parents[2] / "clients/hosts"
COMMANDS = re.findall(r"`(\w+)( run)? (host\.\w+) \[--yes\] PROMPT`", (FOLDER / "README.md").read_text())
LONGEST_LINES = 150

SCRIPT = {
    "turns": [
        {
            "text": "Zuerst die Häfen.",
            "calls": [
                {"tool": "host_language"},
                {"tool": "write_file", "input": {"path": "new.txt", "content": "日本\n"}},
            ],
        },
        {"text": "Fertig: 日本 🎉"},
    ]
}


class InALanguage:
    """One of them, and a workspace."""

    def __init__(self, words: tuple[str, str, str], folder: Path) -> None:
        program, run, file = words
        self.command = [program, *run.split(), str(FOLDER / file)]
        self.folder = folder
        (folder / "script.json").write_text(json.dumps(SCRIPT))

    def runs(self, *arguments: str, said: str = "", **options: Any) -> "subprocess.CompletedProcess[str]":
        chosen = {
            "model": "replay/script",
            "providers": {"replay": {"api": "replay", "file": str(self.folder / "script.json")}},
            "workspaceFolders": [{"uri": self.folder.as_uri(), "name": "here"}],
            "store": {"path": ":memory:"},
            **options,
        }
        environment = {
            **clean_environment(),
            "AGENT_SIDECAR": " ".join(listened(self.folder, [sys.executable, "-m", "sidecar"])),
            "AGENT_SIDECAR_OPTIONS": json.dumps(chosen),
            "GOCACHE": os.environ.get("GOCACHE", str(FOLDER.parents[1] / ".cache/go")),
        }
        return subprocess.run(
            [*self.command, *arguments], input=said, env=environment, capture_output=True, text=True, timeout=60
        )


@pytest.fixture(params=COMMANDS, ids=lambda words: words[2])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> InALanguage:
    needed = [request.param[0], *(["jq"] if request.param[2] == "host.sh" else [])]
    if missing := [program for program in needed if shutil.which(program) is None]:
        pytest.skip(f"{' and '.join(missing)} is not on this machine")
    return InALanguage(request.param, tmp_path)


def test_it_streams_offers_a_tool_and_allows(host: InALanguage) -> None:
    done = host.runs("--yes", "go")
    assert (done.returncode, done.stderr) == (0, "")
    for shown in ("Zuerst die Häfen.", "* ok host_language", "* Run write_file", "* ok write_file", "日本 🎉"):
        assert shown in done.stdout
    assert (host.folder / "new.txt").read_text() == "日本\n"


def test_a_person_may_say_no(host: InALanguage) -> None:
    done = host.runs("go", said="n\n")
    assert done.returncode == 0
    assert "* failed write_file" in done.stdout
    assert not (host.folder / "new.txt").exists()


def test_an_error_is_told_by_its_kind(host: InALanguage) -> None:
    done = host.runs("--yes", "go", model="nobody/x")
    assert done.returncode == 1
    assert done.stderr.startswith("invalidConfiguration: there is no provider 'nobody'")


def test_each_file_is_short_and_in_the_table() -> None:
    files = {file.name: len(file.read_text().splitlines()) for file in FOLDER.glob("host.*")}
    assert set(files) == {file for _, _, file in COMMANDS}
    assert max(files.values()) < LONGEST_LINES
