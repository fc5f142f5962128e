"""Ways out of the workspace, and none of them leads there. Source: our own choice.

Every tool that takes a path is tried with each of the hostile ones, and while links are swapped under it.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject
from sidecar.tools.builtin import BUILTIN
from sidecar.tools.registry import InvocationScope, ToolRegistry

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs links that everybody can make")

SECRET = "the secret outside"
NEW = "written by a tool"

OUR_ROOT = "/proc/self/root"
"""A link of the kernel to the folder that we see as the root."""

HOSTILE_PATHS = [
    "../outside/secret",
    "../outside",
    "..",
    "../",
    "./..",
    "../workspace/../outside/secret",
    "sub/../../outside/secret",
    "sub/../../outside",
    "sub/./../../outside/secret",
    "sub//..//..//outside//secret",
    "sub/deep/../../../outside/secret",
    "missing/../../outside/secret",
    "file/../../outside/secret",
    "file/../../outside",
    ".//../outside/secret",
    "...//../../outside/secret",
    "{outside}/secret",
    "{outside}",
    "{outside}/",
    "/{outside}/secret",
    "//{outside}/secret",
    "{workspace}/../outside/secret",
    "{workspace}/sub/../../outside/secret",
    "{workspace}2/secret",
    "{workspace}/../workspace2/secret",
    "/",
    "/etc/passwd",
    "/etc/../etc/passwd",
    f"{OUR_ROOT}/etc/passwd",
    "/proc/self/cwd",
    "/proc/self/environ",
    "/proc/1/environ",
    "/dev/null",
    "/dev/zero",
    "/dev/stdin",
    "/dev/fd/0",
    "/dev/tty",
    "/sys/kernel/uevent_helper",
    "link-to-file",
    "link-to-folder",
    "link-to-folder/",
    "link-to-folder/secret",
    "link-to-folder/new",
    "link-to-folder/../outside/secret",
    "link-to-folder/../workspace/../outside/secret",
    "sub/link-up",
    "sub/link-up/outside/secret",
    "sub/link-up/../outside/secret",
    "link-to-link",
    "link-to-link/secret",
    "link-relative",
    "link-relative/secret",
    f"link-to-proc/{Path(OUR_ROOT).name}/etc/passwd",
    "link-to-proc/cwd",
    "link-to-device",
    "link-to-nowhere",
    "link-to-nowhere/new",
    "circle",
    "circle/secret",
    "sub/circle-up/circle",
    "pipe",
    "socket",
    "~/secret",
    "~root/secret",
    "$HOME/secret",
    "file:///etc/passwd",
    "file://{outside}/secret",
    "..\\outside\\secret",
    "%2e%2e/outside/secret",
    "..%2foutside/secret",
    "a\0b",
    "\0",
    "../outside/secret\0.txt",
    "x" * 5000,
    ("x" * 60 + "/") * 100 + "y",
    "../" * 1000 + "etc/passwd",
    "\uff0e\uff0e/outside/secret",
    "\u2025/outside/secret",
    "..\u2044outside\u2044secret",
    "nul",
    "con.txt",
    "C:\\Windows\\win.ini",
    "\\\\server\\share\\secret",
    "file:stream",
]

CALLS: list[tuple[str, JsonObject]] = [
    ("read_file", {}),
    ("list_directory", {}),
    ("find_files", {"pattern": "*", "includeIgnored": True}),
    ("search_text", {"pattern": "secret", "includeIgnored": True}),
    ("write_file", {"content": NEW}),
    ("edit_file", {"oldText": SECRET, "newText": NEW}),
    ("delete", {"permanently": True}),
    ("move", {"to": "stolen", "overwrite": True}),
]


class World:
    """A workspace full of traps, and what lies outside of it."""

    def __init__(self, root: Path) -> None:
        self.workspace, self.outside = root / "workspace", root / "outside"
        for folder in (self.workspace, self.outside, root / "workspace2", self.workspace / "sub/deep"):
            folder.mkdir(parents=True)
        for file in (self.outside / "secret", root / "workspace2/secret"):
            file.write_text(SECRET)
        (self.workspace / "file").write_text("inside")
        os.mkfifo(self.workspace / "pipe")
        links = {
            "link-to-file": self.outside / "secret",
            "link-to-folder": self.outside,
            "sub/link-up": "../..",
            "link-to-link": "link-to-folder",
            "link-relative": "../outside",
            "link-to-proc": "/proc/self",
            "link-to-device": "/dev/zero",
            "link-to-nowhere": self.outside / "nothing",
            "circle": "circle",
            "sub/circle-up": "..",
        }
        for name, target in links.items():
            (self.workspace / name).symlink_to(target)
        self.registry = ToolRegistry(
            permissions=PermissionChecker(PermissionConfig(allowed=(), denied=(), ask=()))
        )
        self.registry.register_all(tool() for tool in BUILTIN.values())
        self.root = root

    async def shown(self, name: str, args: JsonObject) -> str:
        """All that a call gives away, be it a result or an error."""
        scope = InvocationScope(workspace=(self.workspace,))
        try:
            made = await self.registry.invoke(name, args, scope)
        except ToolError as error:
            return f"{error.message} {error.data}"
        return f"{made.content} {made.result}"

    def outside_as_it_is(self) -> dict[str, str]:
        folders = (self.outside, self.root / "workspace2")
        files = [file for folder in folders for file in folder.rglob("*")]
        return {str(file.relative_to(self.root)): file.read_text() for file in files}


UNTOUCHED = {"outside/secret": SECRET, "workspace2/secret": SECRET}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_there_are_enough_hostile_paths() -> None:
    assert len(set(HOSTILE_PATHS)) >= 60


@pytest.mark.parametrize(("name", "args"), CALLS, ids=[name for name, _ in CALLS])
async def test_no_path_leads_out(world: World, name: str, args: JsonObject) -> None:
    for path in HOSTILE_PATHS:
        path = path.replace("{outside}", str(world.outside)).replace("{workspace}", str(world.workspace))
        shown = await world.shown(name, {"path": path, **args})
        assert SECRET not in shown, path
        assert "root:" not in shown, path
        assert world.outside_as_it_is() == UNTOUCHED, path


@pytest.mark.parametrize("path", [path for path in HOSTILE_PATHS if "\0" not in path], ids=range(81))
async def test_nothing_is_moved_out(world: World, path: str) -> None:
    path = path.replace("{outside}", str(world.outside)).replace("{workspace}", str(world.workspace))
    await world.shown("move", {"path": "file", "to": path, "overwrite": True})
    assert world.outside_as_it_is() == UNTOUCHED


# Races --------------------------------------------------------------------------------------------------

TRIES = int(os.environ.get("ESCAPE_TRIES", "40"))
"""A few here; `ESCAPE_TRIES=10000` tries long enough to mean something."""


@contextmanager
def swapping(workspace: Path, outside: Path) -> Iterator[None]:
    """Puts a link to outside in the place of a folder and back, as fast as it goes, in a thread."""
    (workspace / "real").mkdir()
    (workspace / "real/secret").write_text("inside")
    (workspace / "trap").symlink_to(outside)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            for name in ("real", "trap"):
                with suppress(OSError):
                    (workspace / name).rename(workspace / "d")
                    (workspace / "d").rename(workspace / name)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


RACES: list[tuple[str, JsonObject]] = [
    ("read_file", {"path": "d/secret"}),
    ("list_directory", {"path": "d"}),
    ("search_text", {"path": "d", "pattern": "secret outside", "includeIgnored": True}),
    ("write_file", {"path": "d/secret", "content": NEW}),
    ("write_file", {"path": "d/new/file", "content": NEW}),
    ("edit_file", {"path": "d/secret", "oldText": SECRET, "newText": NEW}),
    ("delete", {"path": "d/secret", "permanently": True}),
    ("move", {"path": "d/secret", "to": "stolen", "overwrite": True}),
    ("move", {"path": "file", "to": "d/arrived", "overwrite": True}),
]


@pytest.mark.parametrize(("name", "args"), RACES, ids=[f"{name}-{args['path']}" for name, args in RACES])
async def test_a_link_that_is_swapped_in_between_check_and_use_leads_nowhere(
    world: World, name: str, args: Any
) -> None:
    tries = TRIES if name != "search_text" else TRIES // 10
    with swapping(world.workspace, world.outside):
        for _ in range(tries):
            assert SECRET not in await world.shown(name, args)
    assert world.outside_as_it_is() == UNTOUCHED
