"""Who of several processes is alive, told by locks that end with them.

Source: protocol.md, "Durability" 3 and 4; locks on bytes of a file are our own choice.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.protocol.errors import RequestError
from sidecar.store.errors import StoreError
from sidecar.store.store import Store, StorePlace
from tests.harness.tidy import ROOT

HOLDS = """
import sys
from pathlib import Path
from sidecar.store.store import Store, StorePlace
store = Store(StorePlace(file=Path(sys.argv[1]), is_chosen=True))
store.sessions.create("ses_1", None)
held = store.sessions.hold("ses_1", "run_1")
store.sessions.begin_run(held, "run_1", "test/m", [], 0)
print("holds", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
def other(file: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that holds a session until it is killed."""
    command = [sys.executable, "-c", HOLDS, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"holds\n"
        yield process
        process.kill()


def test_what_another_process_does_is_its_own_until_it_dies(file: Path, other: "subprocess.Popen[bytes]") -> None:
    store = Store(StorePlace(file=file, is_chosen=True))
    with pytest.raises(RequestError, match="busy with run run_1"):
        store.sessions.hold("ses_1", "run_2")
    assert store.sessions.take_over("ses_1", is_ours_idle=True) is None
    other.kill()
    other.wait()
    assert store.sessions.take_over("ses_1", is_ours_idle=False) == "run_1"
    store.sessions.conclude("ses_1", "run_1", [], [], "failed", "error")
    store.sessions.hold("ses_1", "run_2")
    store.close()


def test_a_file_that_another_process_works_with_is_not_set_aside(
    file: Path, other: "subprocess.Popen[bytes]"
) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    store = Store(StorePlace(file=file, is_chosen=True))
    with pytest.raises(StoreError, match=r"has version 99, .* another sidecar works with it"):
        store.sessions.page(None, 1)
    assert list(file.parent.glob("*version*")) == []
