"""The host that `protocol.md` shows, "A host in 60 lines": as it is there but for the command and the model."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.rules import Outcome
from sidecar.conformance.transcripts import read_kit
from tests.conformance_kit.drivers import shown_host
from tests.harness.host import clean_environment
from tests.harness.tidy import ROOT

PAGE = (ROOT / "protocol.md").read_text(encoding="utf-8").split("## A host in 60 lines\n")[1].split("\n## ")[0]
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_it_streams_asks_and_ends(tmp_path: Path) -> None:
    write = {"tool": "write_file", "input": {"path": "haiku.txt", "content": "日本\n"}}
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"turns": [{"text": "I write.", "calls": [write]}, {"text": "Done."}]}))
    options = {
        "model": "replay/script",
        "providers": {"replay": {"api": "replay", "file": str(script)}},
        "store": {"path": ":memory:"},
    }
    program = PROGRAM.replace('["agent-sidecar"]', repr([sys.executable, "-P", "-m", "sidecar"]))
    program = program.replace('{"model": "ollama/qwen3"}', repr(options))
    done = subprocess.run(
        [sys.executable, "-c", program],
        input="y\n",
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "I write." in done.stdout and "* write_file ok" in done.stdout and "Done." in done.stdout
    assert (tmp_path / "haiku.txt").read_text() == "日本\n"


def test_it_is_as_short_as_it_says() -> None:
    assert len([line for line in PROGRAM.splitlines() if line.strip()]) <= 60


@pytest.mark.conformance
async def test_it_keeps_every_rule_that_is_about_it_but_those_that_the_page_names() -> None:
    kit = read_kit("host")
    report = await judge_host([sys.executable, shown_host.__file__], kit, bound_secs=10.0)
    outcomes = {each.rule.id: each.outcome for each in report.verdicts}
    assert {rule for rule, outcome in outcomes.items() if outcome is Outcome.FAILED} == set(
        re.findall(r"\bH\d+", PAGE)
    )
    assert Outcome.NOT_REACHED not in outcomes.values()
