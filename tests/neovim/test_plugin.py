"""The plugin of `clients/neovim` in the real Neovim: each feature as it stands in the buffers.

Source: `clients/neovim/README.md`, and `protocol.md` for what is told to the sidecar. Windows are the editor's
own; only `vim.ui.select`, `vim.ui.input` and `vim.notify` are those of the scenario, as a plugin brings them.
"""

import re
import sys
from pathlib import Path

import pytest

from tests.harness.host import clean_environment
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, says, stalls
from tests.neovim.driving import options, play

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the wheel that brings Neovim is for Linux")

FOLDER = "wörk space"


async def test_a_chat_streams_folds_calls_asks_with_the_diff_and_takes_a_selection_along(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "näme with spaces.txt").write_text("words with spaces\n")
    script = (
        calls(
            ("write_file", {"path": "note.txt", "content": "one\x1b[2J\u202etwo"}), text="I write **it**.\n\n\n"
        ),
        says("Done é漢.\n\n```lua\nreturn 1\n```"),
        calls(("write_file", {"path": "näme with spaces.txt", "content": "gone"})),
        says("I see."),
        says("It is with."),
        stalls(says("Let me think."), after=3),
        says("Here I am."),
    )
    async with ScriptedModel(*script) as model:
        seen = await play("chat", {"folder": str(folder), "options": options(model)}, clean_environment())
    assert seen["loaded"] == ["sidecar", "sidecar.config", "sidecar.state"]
    assert seen["told"] == []
    for question in seen["aside"], seen["question"]:
        assert "+one\\u{1b}[2J\\u{202e}two" in question
        assert "write_file needs write · " in question
    assert " o  Allow once" in seen["question"]
    assert seen["question"].count('remembers {"') == 1
    assert not seen["entered_unasked"] and not seen["answered_in_passing"]
    assert seen["told_of_question"] == "sidecar: :Sidecar approve shows the question again"
    assert "## You\n\nwrite a note\n\n## Agent\n\nI write **it**." in seen["asking"]
    assert "I write **it**.\n\n▸ write_file · asking you · path=" in seen["asking"]
    assert "in English, please" in str(model.requests[1].messages[-1]["content"])
    assert "Done é漢.\n\n```lua\nreturn 1\n```" in seen["allowed"]
    (fold,) = seen["folds"]
    assert fold[0].startswith("▸ write_file · done in ")
    assert fold[1].startswith("    path: note.txt") and fold[-2].startswith("    ") and fold[-1] == ""
    assert seen["follows"]
    assert (folder / "note.txt").read_text() == "one\x1b[2J\u202etwo"
    assert seen["prompt"].endswith("sidecar://prompt/1")
    assert "(permissionDenied)" in seen["denied"]
    assert "use the other file" in str(model.requests[3].messages[-1]["content"])
    assert "words with spaces" in str(model.requests[2].messages[-1]["content"])
    assert (folder / "näme with spaces.txt").read_text() == "words with spaces\n"
    selection = str(model.requests[4].messages[-1]["content"])
    assert "näme with spaces.txt, lines 1 to 1" in selection
    assert "```\nwith\n```" in selection
    assert seen["progress"][:1] == ["begin"] and seen["progress"][-1:] == ["end"]


async def test_stop_stops_and_a_killed_sidecar_loses_no_conversation(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()

    def answer(request: SeenRequest) -> Reply:
        said = [str(m["content"]) for m in request.messages if m["role"] == "user"][-1]
        if said.startswith("write"):
            return calls(("write_file", {"path": f"{said[-1]}.txt", "content": said}), text=f"I write {said[-1]}.")
        replies = {"and now": "Here.", "go on": "Still here.", "hello": "Hello."}
        return says(replies[said]) if said in replies else stalls(says("Well, let me think."), after=2)

    async with ScriptedModel(answer=answer) as model:
        seen = await play("ending", {"folder": str(folder), "options": options(model)}, clean_environment())
    assert seen["stop_ms"] < 1000
    assert "## You\n\nthink long\n\n## Agent\n\nWell" in seen["stopped"]
    assert "> stopped\n\n## You\n\nand now\n\n## Agent\n\nHere." in seen["stopped"]
    assert seen["is_new"]
    assert not seen["question_left"]
    (told_once,) = [told for told in seen["told"] if "signal 9" in told]
    assert told_once == "sidecar: the sidecar ended with signal 9 and is being started again"
    for letter, text in zip("ab", seen["crashed"], strict=True):
        assert f"write {letter}\n\n## Agent\n\nI write {letter}." in text
        assert "· failed after" in text
        assert "> failed: " in text
        assert not (folder / f"{letter}.txt").exists()
    going_on = next(request for request in model.requests if request.messages[-1]["content"] == "go on")
    assert [m["role"] for m in going_on.messages] == ["user", "assistant", "tool", "user"]
    last = [str(m["content"]) for m in model.requests[-1].messages if m["role"] == "user"]
    assert last[-2:] == ["hello", "and now"]
    assert 'there is no program "no-such-program"' in seen["missing"]
    assert re.search("## You\n\nhello\n\n> failed: .* could not be started: ENOENT", seen["not_startable"])
    assert "params.initializationOptions.model" in seen["refused"]
    assert 'there is no setting "modle"; there are cmd' in seen["wrong_setting"]


async def test_windows_come_back_whole_after_they_were_closed_or_restored_by_a_session(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("seven\neight")
    read = calls(("read_file", {"path": "a.txt"}))
    behind_the_editor = {"command": [sys.executable, "-c", "open('a.txt', 'w').write('ten')"]}
    write = calls(("write_file", {"path": "b.txt", "content": "nine"}), ("run_command", behind_the_editor))
    permissions = {"allowed": ["read", "shell"], "denied": []}
    script = (read, says("It is seven."), read, says("And eight."), write, says("Written."))
    async with ScriptedModel(*script) as model:
        told = options(model, permissions=permissions)
        seen = await play("windows", {"folder": str(tmp_path), "options": told}, clean_environment())
    one, two, three = (["a.txt", f"sidecar://chat/{number}", f"sidecar://prompt/{number}"] for number in (1, 2, 3))
    assert seen["opened"] == seen["reopened"] == seen["first_again"] == one
    assert seen["second"] == two
    assert seen["prompt_height"] == 5
    assert seen["narrow"] == 27 and seen["aside"] == 34
    assert [(fold[0].split(" in ")[0], *fold[-2:]) for fold in seen["folds"]] == [
        ("▸ read_file · done", "    eight", "")
    ] * 2
    assert seen["restored"] == three and seen["is_unlisted"] and seen["bar"].startswith("<CR> sends")
    assert seen["written"].startswith("## You\n\nwrite what #buffer says\n+ c.txt\n")
    assert seen["reloaded"] == ["ten"]
    assert seen["told"] == ["sidecar: there is an answer; :Sidecar chat 1 shows it"]
    assert (tmp_path / "b.txt").read_text() == "nine"


async def test_a_kept_conversation_goes_on_and_lists_log_and_health_say_how_things_are(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "their-server"}}}')
    (tmp_path / "a.txt").write_text("seven")
    env = clean_environment()
    (tmp_path / "b.txt").write_text("eight")
    two = calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}))
    script = (two, says("Seven."), says("It was 7."), says("The second."))
    async with ScriptedModel(*script, models=("m", "second")) as model:
        untrusting = options(model, trustWorkspace=False)
        first = await play("sessions", {"folder": str(tmp_path), "options": untrusting, "begins": True}, env)
        asking = options(model, mcpServers={"broken": {"command": "no-such-server"}})
        seen = await play("sessions", {"folder": str(tmp_path), "options": asking}, env)
    (trust,) = [picked for picked in seen["picked"] if "Trust" in picked["names"]]
    lists = [picked for picked in seen["picked"] if picked["prompt"] == "Go on with"]
    assert trust["names"] == ["Trust", "Not now", "Never"]
    assert all("remember 7" in picked["names"][0] and len(picked["names"]) == 1 for picked in lists)
    assert '## You\n\nremember 7\n\n▸ read_file · done · path="a.txt"' in seen["resumed"]
    assert seen["resumed"].endswith("    eight\n\n\n## Agent\n\nSeven.")
    untimed = re.sub(r" in [\d.]+ m?s ·", " ·", first["live"])
    assert untimed == seen["resumed"] + "\n\n> 22 tokens in, 14 out"
    assert seen["cursor_in"].endswith("sidecar://prompt/1")
    assert seen["chats"] == 1
    assert [m["role"] for m in model.requests[2].messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
    ]
    (models,) = [picked for picked in seen["picked"] if picked["prompt"] == "Answers from now on"]
    assert models["names"] == ["test/m", "test/second"]
    assert [request.body["model"] for request in model.requests][-2:] == ["m", "second"]
    assert "test/second" in seen["bar"] and "test/50%%" in seen["named"]
    assert not seen["asked_unasked"]
    assert seen["answer"] == {"action": "accept", "content": {"count": 7, "colour": "b"}}
    assert "no-such-server" in seen["servers"]
    assert "the sidecar is ready" in seen["log"]
    every, with_s, approvals = seen["completed"]
    assert every == ["approve", "ask", "chat", "log", "model", "restart", "servers", "sessions", "stop", "tools"]
    assert with_s == ["servers", "sessions", "stop"]
    assert approvals == ["deny"]
    assert any("there is no :Sidecar nonsense; there are approve, ask" in told for told in seen["told"])
    assert "agent-sidecar" in seen["health"] and "models: test/m" in seen["health"]
    assert "MCP server broken: failed" in seen["health"]
