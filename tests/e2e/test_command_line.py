"""How `agent-sidecar` and `agent-sidecar serve` take what they cannot use: one line on stderr and a status.

Source: own choice. Exit status: 0 done, 1 failed, 2 wrong usage or configuration.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.host import clean_environment

LIMIT_SECS = 20


def run(*arguments: str, stdout: int = subprocess.PIPE) -> tuple[int, str]:
    """The status, and what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "sidecar", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=clean_environment(),
        timeout=LIMIT_SECS,
        check=False,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        (
            "--log-file",
            "/no/such/folder/log",
            "'/no/such/folder/log' cannot be written: No such file or directory",
        ),
        ("--cwd", "/no/such/folder", "'/no/such/folder' is no folder"),
        ("--log-level", "loud", "invalid choice: 'loud'"),
        ("--whatever", "x", "unrecognized arguments: --whatever x"),
    ],
)
@pytest.mark.parametrize("command", [["serve"], [], ["ask", "hi"]])
def test_a_flag_that_cannot_be_used_is_told_in_one_line(
    command: list[str], flag: str, value: str, said: str
) -> None:
    status, printed = run(*command, flag, value)
    assert status == 2
    assert printed.startswith("agent-sidecar: error: ")
    assert said in printed
    assert printed.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_an_output_that_takes_no_more_is_told_in_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        status, printed = run("demo", stdout=full.fileno())
    assert status == 1
    assert printed == "agent-sidecar: error: [Errno 28] No space left on device\n"
