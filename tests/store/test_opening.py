"""The file of a store: made for its owner alone, brought up to date, set aside where it cannot be read.

Source: protocol.md, "Durability" 6; `user_version` and `application_id` are SQLite's ("PRAGMA Statements").
"""

import os
import shutil
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from sidecar.protocol.events import Warned
from sidecar.protocol.messages import AuditListParams
from sidecar.store.checkpoints import COMMITS_BETWEEN
from sidecar.store.errors import StoreError
from sidecar.store.opening import open_file
from sidecar.store.schema import APPLICATION_ID, MIGRATIONS, VERSION
from sidecar.store.store import Store, StorePlace


class Opened:
    """A store on a file, and what it warns of."""

    def __init__(self, file: Path, *, is_chosen: bool = True) -> None:
        self.warnings: list[Warned] = []
        self.store = Store(StorePlace(file=file, is_chosen=is_chosen), on_warning=self.warnings.append)

    def titles(self) -> list[str | None]:
        return [session.title for session in self.store.sessions.page(None, 100)]

    @property
    def codes(self) -> list[str]:
        return [warning.code for warning in self.warnings]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "store.sqlite3"


def keep(file: Path, title: str) -> None:
    opened = Opened(file)
    opened.store.sessions.create(f"ses_{title}", title)
    opened.store.close()


@pytest.mark.skipif(os.name == "nt", reason="rights are those of the user's folder there")
def test_the_file_and_what_lies_beside_it_are_its_owners_alone(file: Path) -> None:
    opened = Opened(file)
    opened.store.sessions.create("ses_1", None)
    assert {path.name for path in file.parent.iterdir()} > {"store.sqlite3", "store.sqlite3-wal"}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()}
    assert (modes, stat.S_IMODE(file.parent.stat().st_mode)) == ({0o600}, 0o700)


def test_what_was_kept_is_there_again_and_nothing_is_opened_before_it_is_needed(file: Path) -> None:
    keep(file, "first")
    opened = Opened(file)
    assert not opened.store.is_open
    assert opened.titles() == ["first"]
    assert opened.warnings == []


def test_what_was_committed_moves_into_the_file_while_the_store_is_in_use(file: Path) -> None:
    opened = Opened(file)
    for number in range(COMMITS_BETWEEN + 1):
        opened.store.sessions.create(f"ses_{number}", "x" * 500)
    assert opened.store._checkpoints is not None
    opened.store._checkpoints.stop()
    assert file.stat().st_size > COMMITS_BETWEEN * 500
    assert len(opened.store.sessions.page(None, 1000)) == COMMITS_BETWEEN + 1


def test_a_file_of_version_1_is_brought_up_to_date_with_all_that_is_in_it(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as connection:
        MIGRATIONS[0](connection)
        connection.execute(
            "INSERT INTO sessions (id, title, created_ms, updated_ms, message_count) "
            "VALUES ('ses_old', 'old', 1, 2, 1)"
        )
        connection.execute("""INSERT INTO messages VALUES (1, 0, '{"role":"user","content":"hello"}')""")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    opened = Opened(file)
    assert opened.titles() == ["old"]
    assert [message.content for message in opened.store.sessions.messages("ses_old")[0]] == ["hello"]
    assert opened.store.audit.page(AuditListParams(), None, 10) == []
    assert opened.warnings == []
    assert pragma(file, "user_version") == VERSION


def test_a_damaged_file_is_set_aside_whole_and_a_new_one_is_begun(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"this is no database, and may still be worth something" * 100)
    opened = Opened(file)
    assert opened.titles() == []
    (kept,) = file.parent.glob("store.sqlite3.damaged-*")
    assert kept.read_bytes().startswith(b"this is no database")
    assert opened.codes == ["storeSetAside"]
    assert str(kept) in opened.warnings[0].message


def test_a_newer_file_is_set_aside_and_found_again_under_its_new_name(file: Path) -> None:
    keep(file, "from the future")
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    opened = Opened(file)
    assert opened.titles() == []
    (kept,) = file.parent.glob(f"store.sqlite3.version-{VERSION + 1}-*[0-9]")
    assert pragma(kept, "user_version") == VERSION + 1
    assert opened.codes == ["storeSetAside"]


def test_a_second_file_that_is_set_aside_gets_another_name(file: Path) -> None:
    for _ in range(2):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"broken" * 1000)
        assert Opened(file).titles() == []
        for path in file.parent.glob("store.sqlite3*"):
            if "damaged" not in path.name:
                path.unlink()
    assert len(list(file.parent.glob("*damaged*"))) == 2


def test_the_database_of_another_program_is_left_alone(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match="the database of another program; name another file"):
        Opened(file).titles()
    assert file.read_bytes() == before


def test_a_file_that_was_named_and_cannot_be_used_is_an_error_each_time(tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("")
    opened = Opened(tmp_path / "in the way" / "store.sqlite3")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"cannot be used: .*; name another file by store\.path"):
            opened.titles()
    assert opened.warnings == []


def test_where_the_users_own_file_cannot_be_used_memory_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("")
    opened = Opened(tmp_path / "in the way" / "store.sqlite3", is_chosen=False)
    opened.store.sessions.create("ses_1", "in memory")
    assert opened.titles() == ["in memory"]
    assert opened.codes == ["storeInMemory"]


def test_a_store_is_begun_anew_where_somebody_has_removed_it(file: Path) -> None:
    keep(file, "gone")
    shutil.rmtree(file.parent)
    assert Opened(file).titles() == []


def pragma(file: Path, name: str) -> int:
    with sqlite3.connect(file) as connection:
        value = connection.execute(f"PRAGMA {name}").fetchone()[0]
    connection.close()
    return int(value)


def test_sidecars_that_begin_a_file_at_the_same_moment_all_take_it(tmp_path: Path) -> None:
    at_once = 6
    with ThreadPoolExecutor(at_once) as pool:
        for number in range(15):
            file, start = tmp_path / f"{number}.sqlite3", Barrier(at_once)

            def begin(file: Path = file, start: Barrier = start) -> None:
                start.wait(10)
                open_file(file, is_in_use=lambda: True, on_warning=print).close()

            for opened in [pool.submit(begin) for _ in range(at_once)]:
                opened.result(30)
