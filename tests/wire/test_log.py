"""Where log lines go, and what is in them.

Source: own choice; protocol.md, Transport, says what hosts may expect of stderr.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.wire import BOUND_SECS
from tests.wire.conftest import ROOT

SCRIPT = """
import logging, sys
from pathlib import Path
from sidecar.server.log import configure_logging
configure_logging(Path(sys.argv[2]) if len(sys.argv) > 2 else None, sys.argv[1])
for name in ("sidecar.server", "pygls.protocol", "httpx"):
    for level in (logging.DEBUG, logging.INFO, logging.WARNING):
        logging.getLogger(name).log(level, "a line")
"""


def lines(text: str) -> list[str]:
    return [" ".join(line.split()[2:]) for line in text.splitlines()]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BOUND_SECS)


LIBRARIES = ["WARNING pygls.protocol: a line", "WARNING httpx: a line"]


@pytest.mark.parametrize(
    ("level", "ours"),
    [
        ("debug", ["DEBUG", "INFO", "WARNING"]),
        ("info", ["INFO", "WARNING"]),
        ("warning", ["WARNING"]),
        ("error", []),
    ],
)
def test_the_level_is_ours_and_libraries_are_heard_from_warnings_on(level: str, ours: list[str]) -> None:
    done = run(level)
    assert done.stdout == ""
    assert lines(done.stderr) == [*(f"{name} sidecar.server: a line" for name in ours), *LIBRARIES]


def test_a_file_takes_the_lines_instead(tmp_path: Path) -> None:
    done = run("info", str(tmp_path / "log"))
    assert done.stderr == ""
    assert len(lines((tmp_path / "log").read_text())) == 4
