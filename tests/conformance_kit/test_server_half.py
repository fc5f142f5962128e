"""The server half of the conformance kit: it can tell right from wrong, and our own sidecar keeps its rules.

Source: protocol.md, chapter Conformance. Each twin against all conversations takes long and is run by hand:
`python -m tests.conformance_kit.server_matrix`.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sidecar.conformance.judge_server import WATCHES, judge_server
from sidecar.conformance.matching import made_operators
from sidecar.conformance.report import as_text
from sidecar.conformance.transcripts import TranscriptError, read_file, read_kit
from tests.conformance_kit.judging import troubles
from tests.conformance_kit.server_matrix import SIDECAR, Batch, all_judged, places_of, twin_commands
from tests.conformance_kit.server_twins import TWINS
from tests.harness.processes import living
from tests.harness.tidy import ROOT

KIT = read_kit("server")
TRANSCRIPTS = ROOT / "sidecar/conformance/transcripts"


# Right and wrong sidecars -------------------------------------------------------------------------------


@pytest.mark.timeout(120)
async def test_our_sidecar_keeps_every_rule() -> None:
    async with twin_commands() as starts:
        assert troubles(await judge_server(starts(()), KIT, bound_secs=20)) == {}


@pytest.mark.conformance
@pytest.mark.timeout(300)
async def test_each_rule_is_broken_by_its_twin_alone() -> None:
    assert TWINS.keys() == {rule.id for rule in KIT.rules}
    assert await all_judged(list(TWINS), side_by_side=3) == []


async def test_a_twin_that_breaks_nothing_or_too_much_would_be_noticed() -> None:
    batch = Batch(conversations={"S083": ("unstreamed",)})
    async with twin_commands() as starts:
        right = await judge_server(starts(()), batch.chosen(KIT))
        wrong = await judge_server(starts(("S083", "S024")), batch.chosen(KIT))
    assert list(batch.wrong(right.verdicts)) == ["S083 holds in spite of its twin"]
    (complaint,) = batch.wrong(wrong.verdicts)
    assert complaint.startswith("S024 is broken in unstreamed without its twin: ")


def test_there_are_enough_rules_and_each_is_proven_in_one_way() -> None:
    assert len(KIT.rules) >= 120
    for rule in KIT.rules:
        assert (rule.watch in WATCHES) == (rule.watch is not None)
        assert places_of(KIT, rule.id)
    assert {rule.watch for rule in KIT.rules} - {None} == WATCHES.keys()


# Sidecars that are none ----------------------------------------------------------------------------------

CRASHES = "import sys; sys.exit('out of luck')"
HANGS = "import time; time.sleep(100)"
GARBLES = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.write('\\x1b[31mno\\r\\n\\r\\nContent-Length: x\\r\\n\\r\\nContent-Length: 3\\r\\n\\r\\n{]}')
    sys.stdout.flush()
"""
FLOODS = "import sys\nwhile True: sys.stdout.write('Content-Length: 2\\r\\n\\r\\n{}' * 1000)"
DEAF = "import sys, time\nprint('Content-Length: 2\\r\\n\\r\\n[]', flush=True)\nsys.stdin.close()\ntime.sleep(100)"


@pytest.mark.parametrize("program", [CRASHES, HANGS, GARBLES, FLOODS, DEAF], ids=str.split)
async def test_what_is_no_sidecar_gets_a_report(program: str) -> None:
    report = await judge_server([sys.executable, "-c", program], KIT, bound_secs=0.5)
    found = troubles(report)
    assert len(found) > 250
    assert "does not shake hands" in report.notes[0]
    assert all(len(line) <= 80 and line.isprintable() for line in as_text(report).splitlines())


async def test_everything_that_a_sidecar_started_is_ended(tmp_path: Path) -> None:
    child = "import os, sys, time; os.setsid(); print(os.getpid(), file=open(sys.argv[1], 'w')); time.sleep(100)"
    program = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}, sys.argv[1]]).wait()"
    )
    told = tmp_path / "pid"
    await judge_server([sys.executable, "-c", program, str(told)], KIT, bound_secs=2)
    assert living([int(told.read_text())]) == set()


async def test_a_kit_that_takes_too_long_is_stopped() -> None:
    report = await judge_server([sys.executable, "-c", HANGS], KIT, bound_secs=60, limit_secs=0.5)
    assert report.notes == ("it took longer than 0.5 s, and was stopped",)


# The command ---------------------------------------------------------------------------------------------


def run_command(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "clients/python"), str(ROOT)])}
    command = (sys.executable, "-m", "sidecar", "conformance", *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


def test_the_command_judges_and_reports_in_three_forms(tmp_path: Path) -> None:
    line = " ".join(SIDECAR)
    files = ("--json", str(tmp_path / "report.json"), "--junit", str(tmp_path / "report.xml"))
    done = run_command("--server", line, "--rule", "S026", "--rule", "S038", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^2 rules: 2 passed in [\d.]+ s$", done.stdout, re.MULTILINE)
    written = json.loads((tmp_path / "report.json").read_text())
    assert (written["half"], written["subject"], written["counts"]["passed"]) == ("server", line, 2)
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert [case.get("name", "")[:4] for case in suite.iter("testcase")] == ["S026", "S038"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "say what to judge"),
        (("--server", "/no/such/sidecar"), "cannot start '/no/such/sidecar'"),
        (("--server", "./no-such-sidecar", "--rule", "S038"), "no-such-sidecar'"),
        (("--server", "x 'y"), "--server: No closing quotation"),
        (("--server", " "), "the command is empty"),
        (("--server", "x", "--rule", "S999"), "there is no rule S999"),
    ],
)
def test_wrong_usage_is_told_in_a_line(words: tuple[str, ...], why: str) -> None:
    done = run_command(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr and done.stderr.count("\n") == 1


def test_what_fails_is_told_by_rule_and_place(tmp_path: Path) -> None:
    junit = tmp_path / "report.xml"
    line = f"{sys.executable} -c 'import sys; sys.exit(3)'"
    done = run_command("--server", line, "--rule", "S025", "--patience", "1", "--junit", str(junit))
    assert done.returncode == 1, done.stderr
    assert 'handshake, step 2: the answer to "early" did not come: it ended with' in done.stdout
    assert ElementTree.parse(junit).getroot().get("failures") == "1"


# What holds rules, transcripts and documents together ----------------------------------------------------


def test_the_document_has_the_rules_of_the_kit_and_no_others() -> None:
    text = (ROOT / "protocol.md").read_text("utf-8")
    table = re.findall(r"^\| (S\d+) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    assert table == [(rule.id, rule.must, rule.section) for rule in KIT.rules]
    headings = {
        heading.replace("`", "").partition(" (")[0] for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    assert {rule.section for rule in KIT.rules} - headings == set()


def test_every_word_operator_and_watch_is_described() -> None:
    described = (TRANSCRIPTS / "README.md").read_text("utf-8")
    words = {next(iter(step)) for step in steps_of("server")}
    assert {word for word in words if f'`{{"{word}":' not in described} == set()
    assert {name for name in made_operators() if f'{{"{name}": ' not in described} == set()
    assert {name for name in WATCHES if f"`{name}`" not in described} == set()


def steps_of(half: str) -> list[Mapping[str, object]]:
    files = [json.loads(path.read_text("utf-8")) for path in sorted((TRANSCRIPTS / half).glob("*.json"))]
    return [step for file in files for each in file.get("conversations", ()) for step in each["steps"]]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not JSON"),
        ('{"conversation": []}', "unknown: conversation"),
        ('{"conversations": [{"name": "x", "steps": [{"sned": {}}]}]}', "x, step 1: no step"),
        ('{"conversations": [{"name": "x", "steps": [{"send": {}, "rules": 1}]}]}', "x, step 1: unknown: rules"),
        ('{"rules": [{"id": "S1", "must": "x"}]}', "section is missing"),
    ],
)
def test_a_transcript_that_is_not_understood_is_refused(content: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "01.json"
    file.write_text(content)
    with pytest.raises(TranscriptError, match=re.escape(why)):
        read_file(file, {})
