"""Where sign-ins are kept: a keyring that works, else a file that its owner alone can read.

Source: protocol.md, Signing in; what is done about damage and about keyrings that hang is our own choice.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sidecar.mcp.oauth.keeping import Place
from sidecar.mcp.oauth.secret_file import SecretFile, locked
from sidecar.mcp.oauth.store import TokenStore
from sidecar.mcp.oauth.values import ClientIdentity, Tokens
from tests.harness.tidy import ROOT

PLACE = Place(issuer="https://as.example", resource="https://mcp.example/mcp", client_id="c")
TOKENS = Tokens(
    access_token="access-secret", refresh_token="refresh-secret", renew_at=2e9, scopes=("a", "b"), is_dpop=True
)
CLIENT = ClientIdentity(
    client_id="c", client_secret="hush", redirect_uri="http://127.0.0.1:1/x", is_registered=True
)


class Keyring:
    """A keyring in memory; `largest` is the size that it takes, `gate` what it waits for."""

    def __init__(self, *, largest: int = 10**6, gate: threading.Event | None = None) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.largest = largest
        self.gate = gate
        self.asked = 0

    def get_password(self, service: str, username: str) -> str | None:
        self._wait()
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._wait()
        if len(password) > self.largest:
            raise OSError("too large")
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._wait()
        del self.entries[service, username]

    def _wait(self) -> None:
        self.asked += 1
        if self.gate is not None:
            self.gate.wait(30)


def file_store(folder: Path) -> TokenStore:
    return TokenStore(folder / "data" / "sign-ins.json", find_keyring=lambda: None)


def file_of(folder: Path) -> Path:
    return folder / "data" / "sign-ins.json"


async def test_what_is_kept_comes_back_and_can_be_taken_away(tmp_path: Path) -> None:
    store = file_store(tmp_path)
    assert await store.tokens(PLACE) is None and not file_of(tmp_path).exists()
    await store.keep_tokens(PLACE, TOKENS)
    await store.keep_client("https://as.example", "r", CLIENT)
    again = file_store(tmp_path)
    assert await again.tokens(PLACE) == TOKENS
    assert await again.client("https://as.example", "r") == CLIENT
    await again.keep_tokens(PLACE, None)
    assert await store.tokens(PLACE) is None


@pytest.mark.parametrize(
    "other",
    [
        Place(issuer="https://other.example", resource=PLACE.resource, client_id="c"),
        Place(issuer=PLACE.issuer, resource="https://mcp.example/other", client_id="c"),
        Place(issuer=PLACE.issuer, resource=PLACE.resource, client_id="d"),
    ],
)
async def test_nothing_is_found_for_another_issuer_resource_or_client(other: Place, tmp_path: Path) -> None:
    store = file_store(tmp_path)
    await store.keep_tokens(PLACE, TOKENS)
    await store.keep_client(PLACE.issuer, PLACE.resource, CLIENT)
    assert await store.tokens(other) is None
    assert (await store.client(other.issuer, other.resource) is None) is (other.client_id == "c")


@pytest.mark.skipif(os.name != "posix", reason="on Windows the profile's folder says who may read")
async def test_the_file_is_for_its_owner_alone_and_becomes_so_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = file_store(tmp_path)
    await store.keep_tokens(PLACE, TOKENS)
    file = file_of(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    file.chmod(0o644)
    assert await store.tokens(PLACE) == TOKENS
    assert file.stat().st_mode & 0o777 == 0o600 and "could be read by others" in caplog.text


@pytest.mark.parametrize(
    "damage", [b"{", b"[]", b"", b"\xff\xfe", b"[" * 100_000], ids=lambda damage: repr(damage[:4])
)
async def test_a_damaged_file_is_set_aside_with_a_warning(
    damage: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = file_store(tmp_path)
    await store.keep_tokens(PLACE, TOKENS)
    file_of(tmp_path).write_bytes(damage)
    assert await store.tokens(PLACE) is None
    (aside,) = file_of(tmp_path).parent.glob("*.damaged-*")
    assert aside.read_bytes() == damage and "is set aside" in caplog.text and aside.name in caplog.text
    await store.keep_tokens(PLACE, TOKENS)
    assert await store.tokens(PLACE) == TOKENS


@pytest.mark.parametrize("entry", [{}, {"accessToken": 7}, [], "x", None])
async def test_an_entry_that_is_not_understood_is_as_good_as_none(entry: object, tmp_path: Path) -> None:
    store = file_store(tmp_path)
    await store.keep_tokens(PLACE, TOKENS)
    file_of(tmp_path).write_text(json.dumps({PLACE.name: entry}))
    assert await store.tokens(PLACE) is None


async def test_a_disk_that_takes_nothing_is_no_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    store = file_store(tmp_path)
    await store.keep_tokens(PLACE, TOKENS)
    assert await store.tokens(PLACE) is None
    assert "cannot be used" in caplog.text and "secret" not in caplog.text


def test_many_sidecars_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from sidecar.mcp.oauth.secret_file import SecretFile\n"
        "file = SecretFile(pathlib.Path(sys.argv[1]))\n"
        "for number in range(10): file.put(f'{sys.argv[2]}-{number}', {'token': 'x' * 1000})\n"
    )
    file = tmp_path / "sign-ins.json"
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(file), name], cwd=ROOT, env={"PYTHONPATH": str(ROOT)})
        for name in "abc"
    ]
    assert [writer.wait(30) for writer in writers] == [0, 0, 0]
    assert len(json.loads(file.read_bytes())) == 30
    assert {path.name for path in tmp_path.iterdir()} == {"sign-ins.json", "sign-ins.json.lock"}


def test_a_lock_that_is_held_for_ever_is_not_waited_for_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with locked(tmp_path / "x"), locked(tmp_path / "x", 0.1):
        assert "going on without it" in caplog.text


async def test_one_refresh_at_a_time_also_between_stores(tmp_path: Path) -> None:
    order: list[str] = []

    async def refresh(store: TokenStore, name: str) -> None:
        async with store.refreshing(PLACE):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(*(refresh(file_store(tmp_path), name) for name in "abc"))
    assert all(order[i].split()[0] == order[i + 1].split()[0] for i in (0, 2, 4)) and len(order) == 6


async def test_of_a_keyring_and_a_file_the_newer_counts(tmp_path: Path) -> None:
    late, keyring = Tokens(access_token="late"), Keyring()
    with_keyring = TokenStore(file_of(tmp_path), find_keyring=lambda: keyring)
    await with_keyring.keep_tokens(PLACE, late)
    await file_store(tmp_path).keep_tokens(PLACE, TOKENS)
    assert await with_keyring.tokens(PLACE) == TOKENS
    await with_keyring.keep_tokens(PLACE, late)
    assert await with_keyring.tokens(PLACE) == late and await file_store(tmp_path).tokens(PLACE) is None


# The keyring --------------------------------------------------------------------------------------------


async def test_a_keyring_that_works_is_used_and_no_file_written(tmp_path: Path) -> None:
    keyring = Keyring()
    store = TokenStore(file_of(tmp_path), find_keyring=lambda: keyring)
    await store.keep_tokens(PLACE, TOKENS)
    assert await store.tokens(PLACE) == TOKENS and not file_of(tmp_path).exists()
    ((service, name),) = keyring.entries
    assert service == "agent-sidecar MCP sign-ins" and name == PLACE.name
    await store.keep_tokens(PLACE, None)
    assert not keyring.entries and await store.tokens(PLACE) is None


async def test_what_a_keyring_does_not_take_goes_into_the_file(tmp_path: Path) -> None:
    keyring = Keyring(largest=300)
    store = TokenStore(file_of(tmp_path), find_keyring=lambda: keyring)
    await store.keep_tokens(PLACE, TOKENS)
    large = Tokens(access_token="x" * 5000)
    await store.keep_tokens(PLACE, large)
    assert await store.tokens(PLACE) == large and not keyring.entries
    await store.keep_tokens(PLACE, TOKENS)
    assert await store.tokens(PLACE) == TOKENS and len(keyring.entries) == 1
    assert json.loads(file_of(tmp_path).read_bytes()) == {}


async def test_a_keyring_that_never_answers_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gate = threading.Event()
    keyring = Keyring(gate=gate)
    store = TokenStore(file_of(tmp_path), find_keyring=lambda: keyring, keyring_limit_secs=0.1)
    began = time.monotonic()
    await store.keep_tokens(PLACE, TOKENS)
    assert await store.tokens(PLACE) == TOKENS
    assert time.monotonic() - began < 5 and keyring.asked == 1
    assert "the keyring did not answer" in caplog.text
    gate.set()


async def test_a_keyring_that_raises_is_as_good_as_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise RuntimeError("no bus: secret")

    store = TokenStore(file_of(tmp_path), find_keyring=broken)
    await store.keep_tokens(PLACE, TOKENS)
    assert await store.tokens(PLACE) == TOKENS and "secret" not in caplog.text


async def test_a_damaged_entry_of_a_keyring_is_passed_over(tmp_path: Path) -> None:
    keyring = Keyring()
    store = TokenStore(file_of(tmp_path), find_keyring=lambda: keyring)
    await store.keep_tokens(PLACE, TOKENS)
    for key in keyring.entries:
        keyring.entries[key] = "{"
    assert await store.tokens(PLACE) is None


@pytest.mark.parametrize("name", ["null", "fail"])
def test_a_stand_in_for_a_keyring_is_none(name: str) -> None:
    """`keyring` chooses its backend by this variable, once in a process."""
    script = "from sidecar.mcp.oauth.system_keyring import system_backend; print(system_backend())"
    environ = {"PYTHONPATH": str(ROOT), "PYTHON_KEYRING_BACKEND": f"keyring.backends.{name}.Keyring"}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, timeout=30)
    assert done.stdout == "None\n", done.stderr


def test_names_of_entries_hold_no_secret_and_no_address(tmp_path: Path) -> None:
    SecretFile(tmp_path / "f").put(PLACE.name, {"a": 1})
    assert "example" not in (tmp_path / "f").read_text() and PLACE.name.startswith("tokens-")
