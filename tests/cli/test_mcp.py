"""`agent-sidecar mcp`, for real: files as people have them, servers started by a real sidecar.

Source: own choice. Exit status: 0 done, 1 failed, 2 wrong usage or configuration.
"""

import json
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sidecar.cli import main
from tests.harness.mcp_server import server_entry
from tests.harness.tcp import closed_port
from tests.harness.terminal import cli, environment, on_terminal

MINE = """\
# What I use.
model = "ollama/qwen3"   # small

[mcpServers.git]  # first
command = "uvx"
args = [
  "mcp-server-git",  # of the reference servers
]

[cycle]
maxTurns = 3
"""


class Home:
    """A person's home folder, with nothing in it, and the command run there."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.config = folder / ".config" / "agent-sidecar" / "config.toml"
        self._capsys = capsys

    def mcp(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """Runs the command, checks its exit status; what it wrote to stdout and stderr."""
        returned = main(["mcp", *arguments])
        shown = self._capsys.readouterr()
        assert returned == status, shown.err
        return shown.out, shown.err

    def write(self, text: str) -> None:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(text)

    @property
    def written(self) -> dict[str, Any]:
        return tomllib.loads(self.config.read_text())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Home:
    folder = (tmp_path / "home").resolve()
    folder.mkdir()
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment(HOME=str(folder)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    return Home(folder, capsys)


# add and remove -----------------------------------------------------------------------------------------


def test_what_is_added_keeps_the_file_as_it_was_written(home: Home) -> None:
    home.write(MINE)
    _, said = home.mcp("add", "time", "--env", "TZ=UTC", "--", "uvx", "mcp-server-time", "--", "-y")
    assert "mcp test time" in said
    home.mcp("add", "web", "--url", "https://example.com/mcp?a=b", "--header", "X-A: b=c", "--header", "X-B=d:e")
    text = home.config.read_text()
    for line in MINE.splitlines():
        assert line in text
    assert home.written["mcpServers"] == {
        "git": {"command": "uvx", "args": ["mcp-server-git"]},
        "time": {"command": "uvx", "args": ["mcp-server-time", "--", "-y"], "env": {"TZ": "UTC"}},
        "web": {"url": "https://example.com/mcp?a=b", "headers": {"X-A": "b=c", "X-B": "d:e"}},
    }
    home.mcp("remove", "time")
    home.mcp("remove", "web")
    assert home.config.read_text().rstrip() == MINE.rstrip()


def test_the_first_server_makes_a_file_that_its_owner_alone_reads(home: Home) -> None:
    _, said = home.mcp("add", "gh", "--env", "GH_TOKEN=hush", "--", "uvx", "server")
    assert home.written == {
        "mcpServers": {"gh": {"command": "uvx", "args": ["server"], "env": {"GH_TOKEN": "hush"}}}
    }
    assert home.config.stat().st_mode & 0o777 == 0o600
    assert "GH_TOKEN stands there in plain text" in said and "hush" not in said
    home.mcp("remove", "gh")
    assert home.written == {}


def test_a_link_stays_one_and_a_file_that_is_named_is_the_one_changed(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o640)
    home.config.parent.mkdir(parents=True)
    home.config.symlink_to(real)
    home.mcp("add", "a", "--", "x")
    assert home.config.is_symlink() and tomllib.loads(real.read_text())["mcpServers"]["a"]["command"] == "x"
    assert real.stat().st_mode & 0o777 == 0o640
    other = tmp_path / "other.toml"
    home.mcp("--config", str(other), "add", "b", "--", "y")
    assert list(tomllib.loads(other.read_text())["mcpServers"]) == ["b"]


@pytest.mark.parametrize(
    ("text", "arguments", "complaint"),
    [
        (MINE, ("add", "git", "--", "x"), "config.toml has a server 'git' already; say --replace to replace it"),
        (MINE, ("add", "a"), "say what to start, after `--`, or where it is, with --url"),
        (MINE, ("add", "a", "--url", "ftp://x"), "--url: 'ftp://x' must be a URL with http or https"),
        (MINE, ("add", "a", "--url", "https://x", "--", "y"), "a server has a command or a --url, not both"),
        (MINE, ("add", "a", "--env", "sk-secret", "--", "y"), "--env: must be NAME=VALUE"),
        (MINE, ("add", "a", "--header", "A=b", "--", "y"), "--header: is for a server with --url"),
        (MINE, ("add", "a\x1b[2J", "--", "y"), "'a\\x1b[2J' is no name for a server"),
        (MINE, ("remove", "time"), "config.toml has no server 'time'; there are: git"),
        (MINE, ("test", "time"), "config.toml has no server 'time'; there are: git"),
        (MINE, (), "the following arguments are required: ACTION; see `agent-sidecar mcp --help`"),
        ("", ("test",), "config.toml; agent-sidecar mcp add or mcp import puts some there"),
        ("a = 1\nb = = 2", ("list",), "config.toml:2: Invalid value (at line 2, column 5)"),
        ("mcpServers = 3", ("add", "a", "--", "x"), "config.toml: mcpServers: must be a table of servers by name"),
    ],
)
def test_what_cannot_be_meant_is_one_line_and_changes_nothing(
    home: Home, text: str, arguments: tuple[str, ...], complaint: str
) -> None:
    home.write(text)
    out, said = home.mcp(*arguments, status=2)
    assert out == "" and said.count("\n") == 1
    assert said.startswith("agent-sidecar: error: ") and said.rstrip().endswith(complaint)
    assert "sk-secret" not in said
    assert home.config.read_text() == text


# list and test ------------------------------------------------------------------------------------------


def configure(home: Home, servers: dict[str, Any]) -> None:
    """Through the command itself, so that what it writes is what the sidecar reads."""
    file = home.folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    home.mcp("import", str(file), "--yes")


def test_servers_are_listed_without_their_secrets(home: Home) -> None:
    configure(
        home,
        {
            "a": {"command": "uvx", "args": ["x y"], "env": {"KEY": "hush"}},
            "off": {"command": "z", "disabled": True},
        },
    )
    out, _ = home.mcp("list")
    assert out.splitlines()[1:] == ["a    uvx 'x y'", "off  disabled  z"]
    listed, _ = home.mcp("list", "--json")
    file = str(home.config)
    assert json.loads(listed)["servers"] == [
        {"name": "a", "command": "uvx", "args": ["x y"], "env": ["KEY"], "file": file, "used": True},
        {"name": "off", "command": "z", "disabled": True, "file": file, "used": True},
    ]
    assert "hush" not in out + listed


def test_servers_of_a_workspace_are_listed_and_used_once_they_are_trusted(home: Home) -> None:
    home.write("[mcpServers.a]\ncommand = 'mine'\n")
    (home.folder / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "theirs"}}}')
    out, _ = home.mcp("list")
    assert out.splitlines() == [
        str(home.config),
        "a  mine",
        f"{home.folder}/.mcp.json  (not trusted: agent-sidecar trust)",
        "a  theirs",
    ]
    assert main(["trust", "--yes"]) == 0
    listed = json.loads(home.mcp("list", "--json")[0].splitlines()[-1])["servers"]
    assert [(one["command"], one["used"]) for one in listed] == [("mine", False), ("theirs", True)]


def test_servers_are_started_and_each_says_how_it_did(home: Home) -> None:
    dies = "import sys; sys.stderr.write('no licence\\n'); sys.exit(3)"
    servers = {
        "good": server_entry(),
        "gone": {"command": "/no/such/server"},
        "away": {"url": f"http://127.0.0.1:{closed_port()}/mcp"},
        "dies": {"command": sys.executable, "args": ["-c", dies]},
        "asks": {"command": "x", "env": {"A": "${input:a}"}},
        "off": {"command": "x", "disabled": True},
    }
    configure(home, servers)
    out, said = home.mcp("test", status=1)
    lines = out.splitlines()
    assert said == ""
    assert lines[0].startswith("ok    good  ") and "tools" in lines[0] and "MCP 20" in lines[0]
    assert "mcpServers.gone.command: the program '/no/such/server' was not found" in lines[1]
    assert lines[2] == f"      next: mend its entry in {home.config}"
    rest = "\n".join(lines[3:])
    assert "cannot be reached at http://127.0.0.1:" in rest and "next: see that it runs there" in rest
    assert "      it said: no licence" in rest
    assert f"      its command: {shlex.join([sys.executable, '-c', dies])}" in rest
    assert "${input:a} stands for nothing" in rest and "on a terminal" in rest
    assert lines[-1] == "off   off   is disabled"
    one, _ = home.mcp("test", "good", "--json")
    (good,) = json.loads(one)["servers"]
    assert json.loads(one)["ok"] is True
    assert (good["name"], good["ok"], good["status"]) == ("good", True, "ready")
    assert good["toolCount"] > 3 and good["durationMs"] > 0 and good["protocolVersion"]
    status, _ = home.mcp("list", "--status")
    assert [line.split()[:2] for line in status.splitlines()[1:]] == [
        ["good", "ready"],
        ["gone", "failed"],
        ["away", "failed"],
        ["dies", "failed"],
        ["asks", "failed"],
        ["off", "stopped"],
    ]


# import -------------------------------------------------------------------------------------------------


def programs_in(home: Path, workspace: Path) -> None:
    """Files of four programs, one of them broken."""
    files = {
        home / ".config/Claude/claude_desktop_config.json": {
            "mcpServers": {"git": {"command": "uvx", "env": {"A": None}}}
        },
        home / ".claude.json": {
            "mcpServers": {"all": {"command": "a"}},
            "projects": {str(workspace): {"mcpServers": {"here": {"command": "h"}}}},
        },
        workspace / ".vscode/mcp.json": {
            "servers": {
                "git": {"command": "other"},
                "web": {"url": "https://example.com", "headers": {"A": "${input:t}"}},
                "bad": 5,
            },
            "inputs": [
                {"id": "t", "type": "promptString", "description": "Token", "password": True},
                {"id": "u", "type": "promptString"},
            ],
        },
    }
    for file, held in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(held))
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text('{"mcpServers":\n nope}')


def test_servers_of_all_programs_are_found_shown_and_taken_over(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = (tmp_path / "repo").resolve()
    workspace.mkdir()
    programs_in(home.folder, workspace)
    monkeypatch.chdir(workspace)
    shown, _ = home.mcp("import", "--json")
    found = {(one["program"], one["name"]): one["obstacle"] for one in json.loads(shown)["servers"]}
    assert found == {
        ("claude-desktop", "git"): None,
        ("claude-code", "all"): None,
        ("claude-code", "here"): None,
        ("vscode", "git"): "is another as above",
        ("vscode", "web"): None,
        ("vscode", "bad"): "is no object",
    }
    assert not home.config.exists()
    out, said = home.mcp("import", "--yes")
    assert f"vscode {workspace}/.vscode/mcp.json" in out and "  web   https://example.com" in out
    assert f"{home.folder}/.cursor/mcp.json:2: Expecting" in said and said.endswith("config.toml\n")
    assert home.written == {
        "mcpServers": {
            "git": {"command": "uvx", "env": {}},
            "all": {"command": "a"},
            "here": {"command": "h"},
            "web": {"url": "https://example.com", "headers": {"A": "${input:t}"}},
        },
        "inputs": [{"id": "t", "type": "promptString", "description": "Token", "password": True}],
    }
    again, _ = home.mcp("import", "--from", "vscode", "--json")
    obstacles = [one["obstacle"] for one in json.loads(again)["servers"]]
    assert obstacles[0].startswith("the name is taken") and obstacles[1] == "is in your configuration"
    home.mcp("import", "--from", "vscode", "--replace", "--yes")
    assert home.written["mcpServers"]["git"] == {"command": "other"}
    assert len(home.written["inputs"]) == 1


async def test_a_person_chooses_one_by_one_and_sees_what_would_run(home: Home) -> None:
    file = home.folder / "x.json"
    entries = {
        "a": {"command": "a\x1b[2J", "args": ["\u202e"]},
        "b": {"command": "b"},
        "c": {"command": "c"},
        "d": {"command": "d"},
    }
    file.write_text(json.dumps(entries))
    async with on_terminal(
        cli("mcp", "import", str(file)), env=environment(HOME=str(home.folder)), cwd=home.folder
    ) as terminal:
        for key in ("y", "maybe", "n", "y", "q"):
            await terminal.sees("[q]uit: ", since=len(terminal.text) if key == "maybe" else 0)
            terminal.press(f"{key}\n")
        assert await terminal.ends() == 0
        assert "a\\x1b[2J" in terminal.text and "\\u202e" in terminal.text
    assert sorted(home.written["mcpServers"]) == ["a", "c"]


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        (("import",), 1, "no MCP servers were found; name a FILE that has some"),
        (("import", "/no/such/file"), 2, "/no/such/file: cannot be read: No such file or directory"),
        (("import", "broken.json"), 2, "broken.json:2: Expecting value"),
        (("import", "good.json"), 2, "nobody can be asked which to import; say --yes to take them all"),
    ],
)
def test_what_cannot_be_imported_is_said_in_one_line(
    home: Home, arguments: tuple[str, ...], status: int, complaint: str
) -> None:
    (home.folder / "broken.json").write_text('{"mcpServers":\n nope}')
    (home.folder / "good.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    _, said = home.mcp(*arguments, status=status)
    assert said == f"agent-sidecar: error: {complaint}\n"
    assert not home.config.exists()
