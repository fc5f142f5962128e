"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest

from tests.harness.data_home import USERS_OWN, contents, new_data_home
from tests.harness.frames import LEDGER

# Tests start hundreds of Python processes; compiling our modules anew in each would double their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# For whatever is started with our own environment; the harness gives each sidecar a folder of its own.
os.environ["XDG_DATA_HOME"] = new_data_home()


@pytest.fixture(scope="session", autouse=True)
def the_users_own_store() -> Iterator[None]:
    """No test touches it."""
    before = contents(USERS_OWN)
    yield
    assert contents(USERS_OWN) == before, f"a test has written into {USERS_OWN}"


@pytest.fixture(scope="session", autouse=True)
def frames_after_tests() -> Iterator[None]:
    """What was said when the last test was over fits the schema, too."""
    yield
    fail_on_complaints()


@pytest.fixture(autouse=True)
def frames() -> Iterator[None]:
    """What was said to sidecars, and by them, fits the schema."""
    yield
    fail_on_complaints()


def fail_on_complaints() -> None:
    """Names each frame that does not fit, and the test in which it was heard."""
    if complaints := LEDGER.take():
        pytest.fail("\n".join(["frames that do not fit the schema:", *complaints]), pytrace=False)
