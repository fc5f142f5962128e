"""The host half of the conformance kit: it can tell right from wrong, and our own hosts keep its rules.

Source: protocol.md, chapter Conformance. The whole matrix, each twin against all conversations, takes many minutes
and is run by hand: `python -m tests.conformance_kit.host_matrix`.
"""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from attrs import evolve, frozen

from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.report import Report
from sidecar.conformance.rules import Outcome, all_passed
from sidecar.conformance.transcripts import Kit, read_kit
from tests.conformance_kit.host_matrix import failed_by_twins
from tests.conformance_kit.host_twins import TWINS, twin
from tests.conformance_kit.judging import named, troubles
from tests.harness.tidy import ROOT
from tests.neovim.driving import NVIM, PLUGIN

KIT = read_kit("host")
WATCHED = {rule.id for rule in KIT.rules if rule.watch}
HAS_NEOVIM = sys.platform == "linux"
DRIVERS = Path(__file__).parent / "drivers"
STAND_IN = ROOT / "sidecar/conformance/stand_in.py"


def python_client() -> list[str]:
    return [sys.executable, str(DRIVERS / "python_client.py")]


def neovim() -> list[str]:
    plugin = ["--cmd", f"set rtp^={PLUGIN}"]
    return [str(NVIM), "--headless", "-u", "NONE", *plugin, "-l", str(DRIVERS / "neovim.lua")]


NOT_IN_NEOVIM = {"H035", "H067", *(f"H{number:03}" for number in range(72, 81)), "H096", "H098"}
"""It offers no tools and lends no models, and for `vim.ui` declining is the same as closing."""


@frozen(kw_only=True)
class Judged:
    """What came of everything that is judged side by side, because it waits for most of the time."""

    right: Report
    python_client: Report
    neovim: Report | None


async def _judge_all() -> Judged:
    right, client, editor = await asyncio.gather(
        judge_host(twin(), KIT),
        judge_host(python_client(), KIT),
        judge_host(neovim(), KIT) if HAS_NEOVIM else _nothing(),
    )
    return Judged(right=right, python_client=client, neovim=editor)


async def _nothing() -> None:
    return None


@pytest.fixture(scope="module")
def judged() -> Judged:
    return asyncio.run(_judge_all())


@pytest.mark.conformance
def test_a_host_that_keeps_the_protocol_passes_every_rule(judged: Judged) -> None:
    assert troubles(judged.right) == {}


@pytest.mark.conformance
@pytest.mark.timeout(300)
async def test_each_rule_is_broken_by_its_twin_alone() -> None:
    assert TWINS.keys() == {rule.id for rule in KIT.rules}
    assert await failed_by_twins(KIT, TWINS, at_once=12) == {rule: [rule] for rule in TWINS}


@pytest.mark.conformance
def test_the_python_client_keeps_every_rule(judged: Judged) -> None:
    assert troubles(judged.python_client) == {}


@pytest.mark.conformance
@pytest.mark.skipif(not HAS_NEOVIM, reason="the wheel that brings Neovim is for Linux")
def test_the_plugin_for_neovim_keeps_every_rule_that_is_about_it(judged: Judged) -> None:
    assert judged.neovim
    outcomes = {each.rule.id: each.outcome for each in judged.neovim.verdicts}
    assert {rule for rule, outcome in outcomes.items() if outcome is Outcome.SKIPPED} == NOT_IN_NEOVIM
    assert troubles(judged.neovim).keys() == NOT_IN_NEOVIM, troubles(judged.neovim)


async def test_what_a_host_says_that_it_cannot_do_is_skipped() -> None:
    command = [sys.executable, "-c", """print('{"unsupported": "steering"}')"""]
    report = await judge_host(command, named(KIT, "steer"))
    (verdict,) = [each for each in report.verdicts if each.rule.id == "H054"]
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, "the host does not support steering")


DECLINES = """print('{"unsupported": "all of it"}')"""


async def test_what_is_looked_at_everywhere_is_skipped_where_every_conversation_is_declined() -> None:
    report = await judge_host([sys.executable, "-c", DECLINES], named(KIT, "steer", "later-minor-version"))
    reasons = {(each.outcome, each.reason) for each in report.verdicts}
    assert reasons == {(Outcome.SKIPPED, "the host does not support all of it")}
    assert {"H001", "H085"} < {each.rule.id for each in report.verdicts}
    assert all_passed(report.verdicts)


@pytest.mark.parametrize(
    ("otherwise", "not_reached"),
    [("sys.exit('no luck')", WATCHED), (f"os.execv(sys.executable, {twin()})", set())],
    ids=["crashes", "keeps all rules"],
)
async def test_a_conversation_that_was_declined_hides_nothing_of_the_others(
    otherwise: str, not_reached: set[str]
) -> None:
    program = f"import os, sys\nif 'steer' in os.environ['AGENT_SIDECAR_SCENARIO']: {DECLINES}\nelse: {otherwise}"
    report = await judge_host([sys.executable, "-c", program], named(KIT, "steer", "later-minor-version"))
    outcomes = {each.rule.id: each.outcome for each in report.verdicts if each.rule.watch}
    assert {rule for rule, outcome in outcomes.items() if outcome is Outcome.NOT_REACHED} == not_reached
    assert outcomes["H017"] is Outcome.SKIPPED or not_reached, "the conversation that was played asks nothing"


@pytest.mark.parametrize("command", [twin, python_client])
async def test_a_scenario_with_a_field_that_a_host_does_not_know_is_skipped(
    command: Callable[[], list[str]],
) -> None:
    kit = named(KIT, "lent-model")
    (conversation,) = kit.conversations
    scenario = {**conversation.start["scenario"], "later": 1, "model": {"deltas": ["It"], "mood": "blue"}}
    later = evolve(kit, conversations=(evolve(conversation, start={"scenario": scenario}),))
    (verdict,) = [each for each in (await judge_host(command(), later)).verdicts if each.rule.id == "H079"]
    assert (verdict.outcome, verdict.reason) == (Outcome.SKIPPED, "the host does not support later, model.mood")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit('no luck')", "the host ended with status 1; it said: no luck"),
        ("import time; time.sleep(60)", "waited 600 ms in vain for agent/submit"),
        ("print('hello'); print('{]'); print('[1]')", "the host ended with status 0"),
    ],
)
async def test_a_host_that_never_submits_is_told_apart_and_ended(program: str, why: str) -> None:
    report = await judge_host(
        [sys.executable, "-c", program], named(KIT, "steer", "later-minor-version"), bound_secs=0.2
    )
    assert why in troubles(report)["H008"]
    assert troubles(report)["H054"].startswith("steer ended at step 1: ")
    assert why in troubles(report)["H054"], "the rule of the step itself is none, so the next one tells it"
    assert why in troubles(report)["H001"], "no step is about it, and no conversation came to it"


def test_the_played_sidecar_says_nothing_of_its_own_to_a_host_that_does_not_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = (sys.executable, "-I", "-S", str(STAND_IN), str(server.getsockname()[1]), "token")
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            assert process.stdout and process.stderr
            process.stdout.close()
            judge, _ = server.accept()
            with judge:
                judge.sendall(b'{"write": "aGVsbG8="}\n{"exit": 3}\n')
                said = process.stderr.read()
                assert (process.wait(timeout=30), said) == (3, b"")


def test_the_command_judges_reports_and_lists(tmp_path: Path) -> None:
    line = " ".join(twin("no-initialized"))
    asked = run_command(
        "--host", line, "--rule", "H005", "--rule", "H007", "--json", str(tmp_path / "report.json")
    )
    assert asked.returncode == 1, asked.stderr
    assert "H005 failed: `initialized` follows the answer" in asked.stdout
    written = json.loads((tmp_path / "report.json").read_text())
    assert [each["outcome"] for each in written["rules"]] == ["failed", "passed"]
    assert (written["half"], written["subject"]) == ("host", line)
    nowhere = run_command("--host", "/no/such/host")
    assert (nowhere.returncode, nowhere.stdout) == (2, "")
    assert "'/no/such/host' cannot be started" in nowhere.stderr
    assert "H091 what it missed joins what it had" in run_command("--list").stdout


def run_command(*words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "sidecar", "conformance", "--patience", "2", *words)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(["clients/python", str(ROOT)])}


def test_the_document_has_the_rules_of_the_kit_and_no_others() -> None:
    text = (ROOT / "protocol.md").read_text("utf-8")
    table = re.findall(r"^\| (H\d+) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    assert table == [(rule.id, rule.must, rule.section) for rule in KIT.rules]
    headings = {heading.replace("`", "") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    assert {rule.section for rule in KIT.rules} - headings == set()


def test_the_document_sends_host_authors_to_all_rules() -> None:
    text = (ROOT / "protocol.md").read_text("utf-8")
    assert set(re.findall(r"H001 to (H\d+)", text)) == {KIT.rules[-1].id}


def test_the_document_has_every_field_of_a_scenario() -> None:
    text = (ROOT / "protocol.md").read_text("utf-8")
    (table,) = re.findall(r"^\| in the scenario .*\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [row.split(" | ")[0] for row in table.splitlines()[1:]]
    of_the_document = {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    scenarios = [each.start["scenario"] for each in KIT.conversations]
    used = {name for scenario in scenarios for name in scenario}
    used |= {f"{name}.{inner}" for name in ("tool", "model") for each in scenarios for inner in each.get(name, {})}
    assert of_the_document == used


def test_every_word_of_a_step_is_described() -> None:
    described = (ROOT / "sidecar/conformance/transcripts/README.md").read_text("utf-8")
    for word in words_of(KIT):
        assert f'`{{"{word}":' in described, word


def words_of(kit: Kit) -> Sequence[str]:
    folder = ROOT / "sidecar/conformance/transcripts/host"
    files = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    steps = [step for file in files for each in file["conversations"] for step in each["steps"]]
    return sorted({next(iter(step)) for step in steps})
