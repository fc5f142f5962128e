"""`agent-sidecar sessions` and `audit`, and `--session` of `ask` and `chat`, over real sidecars on one store.

Source: README.md, "What is kept, and how to remove it"; the words are our own choice.
"""

import json
import subprocess
from pathlib import Path

from tests.harness.terminal import cli, environment

LIMIT_SECS = 30

SCRIPT = [
    {"text": "Let me write.", "calls": [{"tool": "write_file", "input": {"path": "a.txt", "content": "geese"}}]},
    "It is written.",
    "Still \x1b[31mthere\x1b[0m.",
    "And goes on.",
]

CONFIG = """
model = "replay/script"

[providers.replay]
api = "replay"
file = "{script}"

[mcpServers.never]
command = "touch"
args = ["{started}"]
"""


class Shell:
    """Commands of one user, whose home is a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started = folder / "started"
        script = folder / "script.json"
        script.write_text(json.dumps(SCRIPT))
        config = folder / "config" / "agent-sidecar" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(CONFIG.format(script=script, started=self.started))
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        self._environment = environment(**home)

    def __call__(self, *arguments: str, typed: str = "") -> tuple[int, str, str]:
        ended = subprocess.run(
            cli(*arguments),
            input=typed,
            capture_output=True,
            text=True,
            env=self._environment,
            cwd=self.folder,
            timeout=LIMIT_SECS,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr


def kept(shell: Shell) -> str:
    """The id of the one session, listed by a sidecar that starts no servers."""
    shell.started.unlink(missing_ok=True)
    status, out, _ = shell("sessions", "--json")
    (listed,) = json.loads(out)["sessions"]
    assert (status, listed["title"], listed["messageCount"]) == (0, "count the geese", 4)
    assert not shell.started.exists()
    return str(listed["sessionId"])


def test_a_conversation_is_listed_resumed_shown_and_exported(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell("ask", "--allow", "write", "count the geese")[0] == 0
    session = kept(shell)
    said = shell("chat", "--session", session[:10], typed="are they there?\ngo on\n")[1]
    assert said == "Still \\x1b[31mthere\\x1b[0m.\nAnd goes on.\n"
    status, out, _ = shell("sessions")
    assert (status, out.split()[0], "8 messages" in out) == (0, session[:12], True)
    shown = shell("sessions", "show", session)[1]
    assert "## User\n\ngo on" in shown and "\\x1b[31mthere" in shown, "nothing in it acts on the terminal"
    document = json.loads(shell("sessions", "export", session, "--format", "json")[1])
    assert [message["role"] for message in document["messages"]] == [
        "user", "assistant", "tool", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip


def test_what_was_called_is_told_until_its_session_is_deleted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert shell("ask", "--allow", "write", "count the geese")[0] == 0
    status, out, _ = shell("audit", "--session", "ses_", "--since", "1h")
    assert (status, len(out.splitlines())) == (0, 1)
    assert "write_file  allowed by the person" in out and "  ok  " in out
    (entry,) = json.loads(shell("audit", "--tool", "write_file", "--json")[1])["entries"]
    assert (entry["outcome"], entry["answer"], len(entry["inputDigest"])) == ("ok", "allowOnce", 64)
    session = entry["sessionId"]
    assert shell("sessions", "delete", session) == (0, "", f"agent-sidecar: {session} is deleted\n")
    assert shell("audit") == (0, "", "agent-sidecar: nothing was called\n")


def test_a_session_that_cannot_be_meant_is_wrong_usage(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for arguments, words in (
        (("sessions", "show"), "say which: agent-sidecar sessions show ID"),
        (("ask", "--session", "ses_0", "hi"), "there is no session whose id begins with 'ses_0'"),
        (("audit", "--since", "yesterday"), "--since: 'yesterday' is no span of time"),
    ):
        status, out, errors = shell(*arguments)
        assert (status, out) == (2, "")
        assert words in errors and len(errors.splitlines()) == 1
