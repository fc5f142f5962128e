"""Our client against the official conformance suites. Run apart from the others: `pytest -m conformance`.

Source: the suites themselves. They start a server, run `client.py` against it and check what it did. Scenarios run
one after the other, each in a process of its own, since the suite's own way to run many overlooks how a client
ends. A scenario in which nothing was checked has not been passed.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.conformance.scenarios import SUITES, Suite
from tests.harness.host import clean_environment
from tests.harness.npm import installed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLIENT = HERE / "client.py"

SCENARIO_LIMIT_SECS = 30
"""For a client; a scenario takes about two seconds."""

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(360)]
"""The first test installs the suites."""


@pytest.fixture(scope="session")
def modules() -> Path:
    return installed(HERE / "package.json", "conformance")


def suite_command(modules: Path, suite: Suite, *arguments: str) -> tuple[str, ...]:
    """The suite's program with these arguments; it needs a newer Node than many systems have."""
    node = modules / "node/bin/node"
    return (str(node), str(modules / suite.package / "dist/index.js"), *arguments)


@frozen(kw_only=True)
class Verdict:
    """What the suite found: how its program ended, and its checks that say yes or no."""

    status: int
    passed: int
    failed: tuple[str, ...]
    report: str


def run(modules: Path, suite: Suite, scenario: str, results: Path) -> Verdict:
    """Runs one scenario."""
    at = ("--spec-version", suite.spec_version) if suite.spec_version else ()
    arguments = ("--scenario", scenario, *at, "-o", str(results), "--timeout", str(SCENARIO_LIMIT_SECS * 1000))
    command = suite_command(modules, suite, "client", "--command", f"{sys.executable} {CLIENT}", *arguments)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=2 * SCENARIO_LIMIT_SECS,
    )
    checks: list[dict[str, Any]] = [
        check for file in sorted(results.rglob("checks.json")) for check in json.loads(file.read_text())
    ]
    failed = tuple(str(check) for check in checks if check["status"] in ("FAILURE", "WARNING"))
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    return Verdict(status=done.returncode, passed=passed, failed=failed, report=done.stdout)


def cases() -> Iterator[Any]:
    for name, suite in SUITES.items():
        for scenario in suite.scenarios:
            reason = suite.not_offered.get(scenario)
            marks = [] if reason is None else [pytest.mark.skip(reason=reason)]
            yield pytest.param(suite, scenario, id=f"{name} {scenario}", marks=marks)


@pytest.mark.parametrize(("suite", "scenario"), tuple(cases()))
def test_a_scenario_is_passed(modules: Path, suite: Suite, scenario: str, tmp_path: Path) -> None:
    verdict = run(modules, suite, scenario, tmp_path)
    assert verdict.failed == (), verdict.report
    assert verdict.status == 0, verdict.report
    assert verdict.passed > 0, "nothing was checked"


def test_every_scenario_of_the_suites_is_in_the_table(modules: Path) -> None:
    for package in {suite.package for suite in SUITES.values()}:
        suites = [suite for suite in SUITES.values() if suite.package == package]
        assert listed(modules, suites[0]) == {scenario for suite in suites for scenario in suite.scenarios}
    for suite in SUITES.values():
        if suite.spec_version:
            assert listed(modules, suite, "--spec-version", suite.spec_version) == set(suite.scenarios)


def listed(modules: Path, suite: Suite, *arguments: str) -> set[str]:
    """The scenarios that the suite itself names."""
    command = suite_command(modules, suite, "list", "--client", *arguments)
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    return {line.split()[1] for line in lines if line.startswith("  - ")}
