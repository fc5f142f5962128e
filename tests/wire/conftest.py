"""A wire server for each test that needs its own, and one for all that do not: starting takes half a second."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.harness.wire import Wire, wire

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(Path(__file__).with_name("wire_server.py"))]

Spawn = Callable[..., AbstractContextManager[Wire]]


@pytest.fixture(scope="session")
def spawn() -> Spawn:
    """Starts a wire server that nobody has said `initialize` to; takes what `wire` takes."""
    return partial(wire, COMMAND, env={"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="session")
def shared_server(spawn: Spawn) -> Iterator[Wire]:
    with spawn() as server:
        server.initialize(
            {"experimental": {"agentSidecar": {"approvals": True, "input": True, "hostTools": True}}}
        )
        yield server


@pytest.fixture
def server(shared_server: Wire) -> Iterator[Wire]:
    """An initialized server that tests share. Each must leave it answering, and nothing unread."""
    yield shared_server
    shared_server.assert_all_read()
