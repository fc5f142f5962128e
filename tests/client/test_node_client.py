"""The client library for Node: its own tests, its types, its package, and the code in its README.

Source: protocol.md and clients/node/README.md; each file of tests says the rest.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.node_client import NODE_TESTS, SOURCE, NodeClient, node_client

__all__ = ["node_client"]

TEST_FILES = sorted(file.name for file in NODE_TESTS.glob("*.test.mjs"))
EXAMPLES = re.findall(r"```js\n(.*?)```", (SOURCE / "README.md").read_text("utf-8"), re.DOTALL)

replayed = pytest.mark.skipif(
    sys.platform != "linux", reason="the folder of the configuration is set the Linux way"
)


@pytest.mark.parametrize("name", TEST_FILES)
def test_what_node_runs_passes(node_client: NodeClient, name: str) -> None:
    done = node_client.node("--test", "--test-reporter=spec", "--test-timeout=20000", f"test/{name}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_hosts_in_typescript_are_checked_with_both_builds(node_client: NodeClient) -> None:
    done = node_client.run("node_modules/.bin/tsc", "-p", "test")
    assert done.returncode == 0, done.stdout


def test_the_package_holds_the_two_builds_and_one_dependency(node_client: NodeClient) -> None:
    (package,) = json.loads(node_client.run("npm", "pack", "--dry-run", "--ignore-scripts", "--json").stdout)
    names = {file["path"] for file in package["files"]}
    assert "dist/cjs/package.json" in names
    for build in ("esm", "cjs"):
        assert {f"dist/{build}/index.js", f"dist/{build}/index.d.ts", f"dist/{build}/protocol.d.ts"} <= names
    assert {name.partition("/")[0] for name in names} == {"package.json", "README.md", "LICENSE", "dist"}
    assert list(json.loads((SOURCE / "package.json").read_text())["dependencies"]) == ["vscode-jsonrpc"]
    assert "resolved" not in (SOURCE / "package-lock.json").read_text()  # No machine's registry.


def test_there_is_an_example_for_each_part() -> None:
    assert len(EXAMPLES) == 3
    assert len([line for line in EXAMPLES[0].splitlines() if line.strip()]) <= 10


def run(client: NodeClient, folder: Path, example: int, *turns: Any) -> subprocess.CompletedProcess[str]:
    """Runs an example where the user's configuration replays these turns, and `agent-sidecar` is ours."""
    script = folder / "script.json"
    script.write_text(json.dumps(list(turns)))
    config = folder / "agent-sidecar" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'model = "replay/x"\n[providers.replay]\nfile = "{script}"\n')
    program = client.folder / f"example-{example}.mjs"
    program.write_text(EXAMPLES[example])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return client.node(str(program), XDG_CONFIG_HOME=str(folder), PATH=path)


@replayed
def test_the_first_example_streams_an_answer(node_client: NodeClient, tmp_path: Path) -> None:
    done = run(node_client, tmp_path, 0, "A few files.")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("{\n  type: 'runStarted'")
    assert "type: 'assistantTextDelta', text: 'A" in done.stdout
    assert done.stdout.splitlines()[-1] == "A few files."


@replayed
def test_the_second_example_answers_questions_runs_tools_and_lends_a_model(
    node_client: NodeClient, tmp_path: Path
) -> None:
    opened = {"calls": [{"tool": "open_files", "input": {"folder": "src"}}]}
    closed = {"calls": [{"tool": "close_all"}]}
    done = run(node_client, tmp_path, 1, opened, closed, "All seen.")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "close_all {} needs [ 'write' ]",
        "All seen.",
        "I am a model of the host's, and this is message 1.",
    ]


@replayed
def test_the_third_example_survives_a_crash_and_names_what_went_wrong(
    node_client: NodeClient, tmp_path: Path
) -> None:
    looks = {"text": "Let me look.", "calls": [{"tool": "find_files", "input": {"pattern": "*"}}]}
    done = run(node_client, tmp_path, 2, looks, {"text": "never said", "delayMs": 60_000})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("the sidecar was ended by SIGKILL { status: null, signal: 'SIGKILL'")
    assert "missed {\n  type: 'runCompleted',\n  stopReason: 'error'" in done.stdout
    assert "\ninvalidConfiguration " in done.stdout
