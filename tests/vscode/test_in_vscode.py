"""The extension of `clients/vscode` in the real VS Code, in one long sitting of one person.

Source: `clients/vscode/README.md`, and `protocol.md` for what is told to the sidecar. The model is the sidecar's
own replay; the fast one is a real local server. `tests/bench/bench_vscode.py` measures how soon keys are shown.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.model_server import ScriptedModel
from tests.harness.speech import talks_fast
from tests.harness.vscode_extension import Extension, extension
from tests.vscode.driving import Editor, editor, play, serving, sidecar_settings

__all__ = ["editor", "extension"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for the Linux way")

FOLDER = "wörk späce"
NOTES = "# Notes\n\nfirst line\nsecond line\n"
KEY = "sk-or-none-may-read-this"
TYPED = "what I think of it meanwhile"
SCENARIO = Path(__file__).with_name("scenario.mjs")
SERVER = Path(__file__).resolve().parents[2] / "sidecar/cli/demo/server.py"

COUNT = "one two three four five six seven eight nine ten " * 40
ANSWER = "The notes have **two lines**, see [notes](notes.txt).\n\n- first\n- second\n\n```text\nfirst line\n```\n"
SCRIPT = {
    "delayMs": 20,
    "turns": [
        {"text": ANSWER * 3, "calls": [{"tool": "read_file", "input": {"path": "notes.txt"}}]},
        {
            "text": "I change the second.",
            "calls": [
                {
                    "tool": "edit_file",
                    "input": {"path": "notes.txt", "oldText": "second line", "newText": "third line"},
                }
            ],
        },
        {"text": "It is changed."},
        {"text": "I write.", "calls": [{"tool": "write_file", "input": {"path": "new.txt", "content": "new\n"}}]},
        {"text": "Then I do not."},
        {"calls": [{"tool": "write_file", "input": {"path": "kept.txt", "content": "one\n"}}]},
        {"calls": [{"tool": "write_file", "input": {"path": "kept.txt", "content": "two\n"}}]},
        {"text": "Twice."},
        {"text": COUNT},
        {"text": COUNT},
        {"text": "I am here."},
    ],
}


@pytest.mark.timeout(260)
async def test_a_person_works_with_it_for_a_while(editor: Editor, extension: Extension, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    (folder / ".vscode").mkdir(parents=True)
    (folder / "notes.txt").write_text(NOTES)
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    async with ScriptedModel(talks_fast()) as fast:
        providers = {"replay": {"api": "replay", "file": str(script)}, "fast": {"baseUrl": fast.base_url}}
        settings = {
            **sidecar_settings(),
            "agentSidecar.model": "replay/script",
            "agentSidecar.providers": providers,
            "agentSidecar.mcpServers": {"demo": {"command": sys.executable, "args": [str(SERVER)]}},
        }
        async with serving(editor, extension, tmp_path / "editor", settings) as url:
            seen = await play(editor, SCENARIO, {"url": url, "folder": str(folder), "typed": TYPED, "key": KEY})
    assert "failure" not in seen, seen["failure"]
    nothing_starts_before_the_workspace_is_trusted(seen)
    answers_stream_and_edits_are_asked_about(seen, folder)
    a_denial_is_told_with_its_reason(seen)
    choices_are_remembered(seen)
    a_run_stops_and_a_crash_loses_nothing(seen)
    servers_tools_and_sessions_are_listed(seen)
    a_key_is_the_sidecars_and_in_no_file(seen, folder, tmp_path / "editor")
    keys_arrive_while_a_model_talks_fast(seen)
    assert seen["violations"] == []


Seen = dict[str, Any]


def nothing_starts_before_the_workspace_is_trusted(seen: Seen) -> None:
    restricted = seen["restricted"]
    assert restricted["notice"].startswith("You have not trusted this workspace yet, so nothing is started here")
    assert restricted["isDisabled"]
    assert "Nothing is started in a workspace that is not trusted" in restricted["statusBar"]
    assert restricted["processes"] == []


def answers_stream_and_edits_are_asked_about(seen: Seen, folder: Path) -> None:
    assert seen["attached"] == ["notes.txt"]
    assert len(seen["streaming"]["later"]) > len(seen["streaming"]["early"]) > 0
    assert seen["streaming"]["isBusy"] == "true"
    question = seen["question"]
    assert question["heading"] == "May edit_file run?"
    assert (question["removed"], question["added"]) == (["-second line\n"], ["+third line\n"])
    assert question["answers"] == [
        "Allow once",
        "Allow for this session: edit_file path=notes.txt",
        "Always allow: edit_file path=notes.txt",
        "Deny",
        "Deny and stop",
    ]
    assert question["state"] == "asks you"
    assert "asks" in question["statusBar"]
    assert "may edit_file run?" in question["spoken"]
    assert question["focused"] == "allowOnce"
    assert "third line" in seen["edited"]["buffer"] and "second line" not in seen["edited"]["buffer"]
    assert seen["edited"]["disk"] == NOTES  # The editor's to save.
    assert seen["edited"]["ending"].endswith("tokens in, 0 out")
    assert "second line" in seen["undone"] and "third line" not in seen["undone"]
    assert (folder / "notes.txt").read_text() == NOTES


def a_denial_is_told_with_its_reason(seen: Seen) -> None:
    assert seen["denied"]["state"] == "denied"
    assert "not this one" in seen["denied"]["told"]
    assert seen["denied"]["disk"] is None


def choices_are_remembered(seen: Seen) -> None:
    assert seen["remembered"]["disk"] == "two\n"
    assert seen["remembered"]["questions"] == 0


def a_run_stops_and_a_crash_loses_nothing(seen: Seen) -> None:
    assert seen["stopped"]["ending"] == "Stopped"
    assert "one" in seen["stopped"]["text"]
    assert seen["killed"]["ending"].startswith("Failed: ")
    assert "one two three" in seen["killed"]["text"]
    assert seen["killed"]["answer"] == "I am here."
    assert seen["killed"]["isAnother"]
    assert seen["reloaded"]["after"] == seen["reloaded"]["before"]


def servers_tools_and_sessions_are_listed(seen: Seen) -> None:
    assert any("demo" in row and "2 tools" in row for row in seen["tree"]["rows"])
    assert any("Built in" in row for row in seen["tree"]["rows"])
    assert any("From the editor" in row for row in seen["tree"]["rows"])
    assert seen["sessions"]["first"].startswith("What do the notes say?")
    assert seen["sessions"]["prompt"] == "What do the notes say?"


def a_key_is_the_sidecars_and_in_no_file(seen: Seen, *places: Path) -> None:
    assert seen["key"] == f"OPENROUTER_API_KEY={KEY}"
    files = [file for place in places for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []


def keys_arrive_while_a_model_talks_fast(seen: Seen) -> None:
    typing = seen["typing"]
    assert typing["text"] == TYPED
    assert typing["grownBy"] > 0
    assert typing["ending"] == "Stopped"
