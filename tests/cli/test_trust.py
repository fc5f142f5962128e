"""`agent-sidecar trust`: what a person decides without a host (protocol.md, "Workspaces and trust")."""

import json
from pathlib import Path

import pytest

from sidecar import app
from sidecar.cli import main
from sidecar.cli.trust import trust_file
from sidecar.config_files.trust import TrustBook
from sidecar.config_files.workspace import read_workspace
from tests.harness.scripted_sidecar import received, scripted
from tests.harness.terminal import cli, environment, on_terminal


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one server, in the middle of which we are; the data folder is an empty one."""
    folder = (tmp_path / "repo").resolve()
    folder.mkdir()
    write(folder, "uvx")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(folder)
    return folder


def write(folder: Path, command: str) -> None:
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"git": {"command": command}}}))


def standing(folder: Path) -> str:
    return TrustBook(trust_file()).standing(folder, read_workspace(folder).digests)


def test_what_is_shown_is_trusted_until_it_changes(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", "--yes"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ".mcp.json:\n  server git runs: uvx\n"
    assert shown.err == f"agent-sidecar: {repo} is trusted until one of these files changes\n"
    assert standing(repo) == "trusted"
    assert main(["trust", str(repo)]) == 0
    assert "is trusted as it is" in capsys.readouterr().err
    write(repo, "other")
    assert standing(repo) == "changed"
    assert main(["trust", "--list"]) == 0
    line = capsys.readouterr().out
    assert line.startswith("changed   20") and line.endswith(f"  {repo}\n")
    assert main(["trust", "--list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["workspaces"]
    assert (listed["folder"], listed["decision"], listed["standing"]) == (str(repo), "trust", "changed")
    assert main(["trust", "--revoke"]) == 0
    assert standing(repo) == "unknown"
    assert main(["trust", "--revoke", str(repo)]) == 0
    assert capsys.readouterr().err.endswith("nothing was decided\n")


def test_without_a_terminal_nothing_is_trusted_unasked(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust"]) == 2
    said = capsys.readouterr().err
    assert said == "agent-sidecar: error: nobody can be asked; say --yes, having read what is shown\n"
    assert standing(repo) == "unknown"


@pytest.mark.parametrize(
    ("answer", "status", "then"), [("y", 0, "trusted"), ("n", 1, "unknown"), ("", 1, "unknown")]
)
async def test_a_person_is_asked_having_seen_it_escaped(repo: Path, answer: str, status: int, then: str) -> None:
    write(repo, "\x1b[2Jrm \u202e\u3164")
    data = str(trust_file().parent.parent)
    async with on_terminal(cli("trust"), cwd=repo, env=environment(XDG_DATA_HOME=data)) as terminal:
        await terminal.sees("[n]o: ")
        terminal.press(f"{answer}\n")
        assert await terminal.ends() == status
        assert r"server git runs: '\u001b[2Jrm \u202e\u3164'" in terminal.text
    assert standing(repo) == then


@pytest.mark.parametrize(
    ("key", "then", "said"),
    [("y", "trusted", {}), ("v", "never", {}), ("n", "unknown", {"trustWorkspace": False})],
)
async def test_a_person_who_asks_something_decides_first(
    repo: Path, key: str, then: str, said: dict[str, bool]
) -> None:
    ended = {"result": {"sessionId": "s", "runId": "$runId", "stopReason": "stop"}}
    sidecar = scripted(repo, {"agent/submit": [ended]})
    data = str(trust_file().parent.parent)
    for _ in range(1 if then == "unknown" else 2):  # What was decided is not asked again.
        command = cli("ask", "hi", sidecar=sidecar)
        async with on_terminal(command, cwd=repo, env=environment(XDG_DATA_HOME=data)) as terminal:
            if standing(repo) == "unknown":
                await terminal.sees("server git runs: uvx")
                await terminal.sees("ne[v]er: ")
                terminal.press(f"{key}\n")
            assert await terminal.ends() == 0
        *_, started = [message for message in received(repo) if message.get("method") == "initialize"]
        assert started["params"]["initializationOptions"] == said
    assert standing(repo) == then


def test_a_folder_without_configuration_needs_no_trust(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / ".mcp.json").unlink()
    assert main(["trust"]) == 0
    assert "brings no configuration along (.agent-sidecar.toml, .mcp.json, " in capsys.readouterr().err
    assert main(["trust", "/no/such/folder"]) == 2


def test_the_decisions_are_where_the_sidecar_looks() -> None:
    assert trust_file() == app.trust_path()
