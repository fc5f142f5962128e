"""The code in clients/python/README.md, run as it stands against a real sidecar with a replayed model.

Source: clients/python/README.md.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.terminal import ROOT, environment

LIMIT_SECS = 30

EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "clients/python/README.md").read_text("utf-8"), re.DOTALL)


def run(folder: Path, example: str, *turns: Any) -> subprocess.CompletedProcess[str]:
    """Runs an example where the user's configuration replays these turns."""
    script = folder / "script.json"
    script.write_text(json.dumps(list(turns)))
    config = folder / "agent-sidecar" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'model = "replay/x"\n[providers.replay]\nfile = "{script}"\n')
    return subprocess.run(
        [sys.executable, "-c", example],
        env=environment(XDG_CONFIG_HOME=str(folder)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECS,
        check=False,
    )


def test_there_is_an_example_for_each_part() -> None:
    assert len(EXAMPLES) == 3
    assert len([line for line in EXAMPLES[0].splitlines() if line.strip()]) <= 10


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of the configuration is set the Linux way")
def test_the_first_example_streams_an_answer(tmp_path: Path) -> None:
    done = run(tmp_path, EXAMPLES[0], "A few files.")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("{'type': 'runStarted'")
    assert "{'type': 'assistantTextDelta', 'text': 'A '}" in done.stdout or "'A few" in done.stdout
    assert lines[-1] == "A few files."


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of the configuration is set the Linux way")
def test_the_second_example_answers_questions_and_runs_tools(tmp_path: Path) -> None:
    opened = {"calls": [{"tool": "open_files", "input": {"folder": "src"}}]}
    closed = {"calls": [{"tool": "close_all"}]}
    done = run(tmp_path, EXAMPLES[1], opened, closed, "All seen.")
    assert (done.returncode, done.stderr) == (0, "")
    # The example denies what it does not know, which ends the turn with that word and not the run.
    assert done.stdout.splitlines() == ["close_all {} needs ['write']", "All seen."]


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of the configuration is set the Linux way")
def test_the_third_example_names_what_went_wrong(tmp_path: Path) -> None:
    done = run(tmp_path, EXAMPLES[2], "never said")
    assert done.returncode == 0
    assert done.stdout.startswith("invalidConfiguration ")
