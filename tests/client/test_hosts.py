"""The hosts in other languages, each against the real sidecar. Source: `clients/hosts/README.md`.

Each is compiled once for all tests of a session, and is left out by name where a machine lacks its language.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from attrs import evolve, frozen

from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.report import Report, as_text
from sidecar.conformance.rules import Outcome
from sidecar.conformance.transcripts import Conversation, Kit, read_kit
from tests.conformance_kit.drivers import small_host
from tests.harness.frames import listened
from tests.harness.host import clean_environment
from tests.harness.once import alone, once
from tests.harness.tidy import ROOT

FOLDER = ROOT / "clients/hosts"
README = (FOLDER / "README.md").read_text("utf-8")
KIT = read_kit("host")
LINES_BELOW = 150
PATIENCE = 4
"""The bounds of the kit, so many times: seven hosts share a machine, and Perl takes seconds for 5 MB of JSON."""

TELLS_ITS_VERSION = {
    "Go": ("go", "version"),
    "Rust": ("rustc", "--version"),
    "Java": ("javac", "--version"),
    "Ruby": ("ruby", "--version"),
    "Perl": ("perl", "-e", "print $^V"),
    "Lua": ("lua5.4", "-v"),
    "bash": ("bash", "--version"),
    "jq": ("jq", "--version"),
}

FAST_TO_START = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
"""Java, for many short lives side by side."""

SCRIPT = {
    "turns": [
        {
            "text": "Zuerst die Häfen.",
            "calls": [
                {"tool": "host_language"},
                {"tool": "write_file", "input": {"path": "new.txt", "content": "日本\n"}},
            ],
        },
        {"text": "Fertig: 日本 🎉"},
        {"calls": [{"tool": "write_file", "input": {"path": "other.txt", "content": '"\\'}}]},
        {"text": "«ça» 🌊"},
        {"error": {"message": "no paper left", "retryable": False}},
    ]
}


@frozen
class Language:
    """A row of the table in the README."""

    name: str
    build: str
    run: str

    @property
    def file(self) -> Path:
        return FOLDER / shlex.split(self.build or self.run)[-1]

    @property
    def missing(self) -> list[str]:
        """What this machine lacks, or has in an older version."""
        needed = re.findall(r"(\w+) ([\d.]+)", self.name)
        return [f"{program} {version}" for program, version in needed if found(program) < numbers(version)]

    def command(self, folder: Path) -> list[str]:
        """What runs the host, compiled in the folder by whoever comes first."""
        if self.build:
            with alone(folder):
                kept = {"GOCACHE": os.environ.get("GOCACHE", str(ROOT / ".cache/go"))}
                build = tuple(shlex.split(self.build))
                once(folder, [self.file], lambda: shutil.copy(self.file, folder), build, kept)
        program, *words = shlex.split(self.run)
        if program == "java":
            return [program, *FAST_TO_START, "-cp", str(folder), *words]
        return [str(folder / program) if self.build else program, *(str(FOLDER / word) for word in words)]


LANGUAGES = [
    Language(*row)
    for row in re.findall(r"^\| (.+?) \| `(?:(.+?) && )?(.+?) PROMPT\.\.\.` \|$", README, re.MULTILINE)
]


@cache
def found(program: str) -> list[int]:
    """The version that this machine has; nothing where it has none."""
    command = TELLS_ITS_VERSION[program]
    if shutil.which(command[0]) is None:
        return []
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return numbers(told.stdout + told.stderr)


def numbers(text: str) -> list[int]:
    first = re.search(r"\d+(\.\d+)?", text)
    assert first, text
    return [int(number) for number in first[0].split(".")]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A temporary folder of all processes that run the tests of a session."""
    own = tmp_path_factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "hosts"


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.name)
def language(request: pytest.FixtureRequest) -> Language:
    chosen: Language = request.param
    if sys.platform == "win32":
        pytest.skip("these tests put a shell script in the place of the sidecar")
    if chosen.missing:
        pytest.skip(f"{' and '.join(chosen.missing)} is not on this machine")
    return chosen


def test_it_streams_lends_a_tool_asks_and_tells_an_error(language: Language, shared: Path, tmp_path: Path) -> None:
    put_sidecar(tmp_path)
    prompts = ("the harbours", "«日»", "more")
    done = subprocess.run(
        [*language.command(shared / language.name), *prompts],
        input="y\nn\n",
        cwd=tmp_path,
        env={**clean_environment(), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.stdout == "Zuerst die Häfen.\nFertig: 日本 🎉\n\n«ça» 🌊\n", done.stderr
    told = [re.sub(r"(\* Run \w+).*", r"\1", line) for line in done.stderr.splitlines()]
    first, rest = told[: told.index("* stop")], told[told.index("* stop") :]
    assert sorted(first) == ["* Run write_file", "* ok host_language", "* ok write_file"]
    assert rest == [
        "* stop",
        "* Run write_file",
        "* failed write_file",
        "* stop",
        "* error",
        "modelError: replay: no paper left",
    ]
    assert done.returncode == 1
    assert (tmp_path / "new.txt").read_text() == "日本\n"
    assert not (tmp_path / "other.txt").exists()


def put_sidecar(folder: Path) -> None:
    """Puts the real one, with a script for its model, where a host finds it by its name."""
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    replay = "providers.replay = {api = 'replay', file = 'script.json'}"
    (folder / "config.toml").write_text(f"model = 'replay/any'\n{replay}\nstore.path = ':memory:'\n")
    words = [sys.executable, "-m", "sidecar", "--config", str(folder / "config.toml")]
    words = listened(folder, words)
    program = folder / "agent-sidecar"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o700)


@pytest.fixture(scope="module")
def judged(shared: Path) -> dict[str, Report]:
    """What the kit makes of those that run here, side by side because it waits for much of the time."""
    here = [language for language in LANGUAGES if not language.missing]
    playable = [each for each in KIT.conversations if not small_host.unsupported(each.start["scenario"])]
    kit = Kit(rules=KIT.rules, conversations=tuple(map(patient, playable)))

    async def judge(language: Language) -> Report:
        driver = (sys.executable, "-I", "-S", small_host.__file__)
        command = language.command(shared / language.name)
        return await judge_host([*driver, *command], kit, bound_secs=5.0 * PATIENCE, side_by_side=2)

    async def judge_all() -> list[Report]:
        return await asyncio.gather(*map(judge, here))

    return {language.name: report for language, report in zip(here, asyncio.run(judge_all()), strict=True)}


def patient(conversation: Conversation) -> Conversation:
    """With the bounds that its steps name made longer."""
    steps = tuple(
        evolve(step, within_ms=bound * PATIENCE) if (bound := getattr(step, "within_ms", None)) else step
        for step in conversation.steps
    )
    return evolve(conversation, steps=steps)


@pytest.mark.conformance
@pytest.mark.timeout(300)
def test_it_keeps_every_rule_of_hosts_but_those_that_the_readme_names(
    language: Language, judged: dict[str, Report]
) -> None:
    report = judged[language.name]
    by_outcome = {
        outcome: {each.rule.id for each in report.verdicts if each.outcome is outcome} for outcome in Outcome
    }
    assert by_outcome[Outcome.FAILED] == set(), as_text(report)
    assert by_outcome[Outcome.NOT_REACHED] == left_out(), as_text(report)


def left_out() -> set[str]:
    """The rules that the README says are not about these hosts."""
    spans = re.findall(r"\bH(\d{3})(?: to H(\d{3}))?", README)
    return {f"H{number:03}" for first, last in spans for number in range(int(first), int(last or first) + 1)}


async def test_the_kit_is_told_what_these_hosts_leave_out() -> None:
    command = [sys.executable, small_host.__file__, "no-such-host"]
    (steer,) = [each for each in KIT.conversations if each.name == "steer"]
    report = await judge_host(command, Kit(rules=KIT.rules, conversations=(steer,)))
    reasons = {each.rule.id: each.reason for each in report.verdicts if each.outcome is Outcome.SKIPPED}
    watched = {rule.id for rule in KIT.rules if rule.watch}
    assert reasons == dict.fromkeys(["H054", *watched], "the host does not support steer")


@pytest.mark.parametrize("file", sorted(FOLDER.glob("[Hh]ost.*")), ids=lambda file: file.name)
def test_each_file_is_short_and_in_the_table(file: Path) -> None:
    assert len(file.read_text("utf-8").splitlines()) < LINES_BELOW
    assert file in [language.file for language in LANGUAGES]
