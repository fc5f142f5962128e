"""Every path ends inside the workspace, or is refused by name: `..`, absolute paths, links, links put there late.

Source: protocol.md, "Workspace"; opening folder by folder is our own choice.
"""

import os
import threading
from pathlib import Path

import pytest

from sidecar.protocol.errors import ToolError
from sidecar.tools.workspace import Place, Workspace, folder_at, spot_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`project/` is the workspace, `outside/secret` lies beside it."""
    (tmp_path / "project/src").mkdir(parents=True)
    (tmp_path / "project/src/a.py").write_text("a")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (tmp_path / "project-2").mkdir()
    return tmp_path.resolve()


def place(root: Path, path: str, **more: bool) -> Place:
    return Workspace((root / "project",)).place(path, **more)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("src/a.py", "src/a.py"),
        ("./src//a.py", "src/a.py"),
        ("src/../src/a.py", "src/a.py"),
        ("new/deep/file", "new/deep/file"),
        (".", "."),
        ("", "."),
        ("src/..", "."),
        ("../project/src/a.py", "src/a.py"),
        ("..a/b", "..a/b"),
    ],
)
def test_a_path_inside_has_one_spelling(root: Path, path: str, shown: str) -> None:
    assert place(root, path).shown == shown
    assert place(root, str(root / "project" / path)).shown == shown


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../outside/secret",
        "src/../../outside/secret",
        "src/../../../../../../../../etc/passwd",
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "../project-2/x",
        "/dev/stdin",
        "/proc/self/environ",
    ],
)
def test_a_path_outside_is_refused_with_the_path_and_the_scope(root: Path, path: str) -> None:
    with pytest.raises(ToolError) as failed:
        place(root, path)
    scope = (root / "project").as_posix()
    assert failed.value.kind == "permissionDenied"
    assert failed.value.message == f"{path!r} cannot be reached: it is outside the workspace ({scope})"
    assert failed.value.data == {"path": path, "scope": [scope]}


def test_a_link_is_where_it_leads(root: Path) -> None:
    (root / "project/inner").symlink_to("src")
    (root / "project/file").symlink_to("src/a.py")
    (root / "project/outer").symlink_to("../outside")
    (root / "project/dangling").symlink_to("../outside/new")
    (root / "project/loop").symlink_to("loop")
    assert place(root, "inner/a.py").shown == "src/a.py"
    assert place(root, "file").shown == "src/a.py"
    assert place(root, "file", follow=False).shown == "file"
    for path in ("outer/secret", "outer", "outer/../x", "dangling", "inner/../../outside/secret"):
        with pytest.raises(ToolError, match="outside the workspace"):
            place(root, path)
    with pytest.raises(ToolError, match="outside the workspace"):
        place(root, "outer/secret", follow=False)


def test_a_workspace_that_is_a_link_itself_is_the_folder_it_leads_to(root: Path) -> None:
    (root / "link").symlink_to("project")
    workspace = Workspace((root / "link",))
    assert workspace.place("src/a.py").path == root / "project/src/a.py"
    assert workspace.place(str(root / "link/src/a.py")).shown == "src/a.py"


def test_with_several_folders_relative_paths_start_at_the_first(root: Path) -> None:
    workspace = Workspace((root / "project", root / "outside"))
    assert workspace.place("src/a.py").shown == "src/a.py"
    assert workspace.place(str(root / "outside/secret")).shown == (root / "outside/secret").as_posix()
    assert workspace.place("../outside/secret").parts == ("secret",)


def test_without_a_folder_nothing_can_be_reached() -> None:
    with pytest.raises(ToolError, match="no workspace folder is open") as failed:
        Workspace(()).place("a")
    assert failed.value.data == {"path": "a", "scope": []}


def test_a_null_character_is_no_path(root: Path) -> None:
    with pytest.raises(ToolError) as failed:
        place(root, "a\0b")
    assert failed.value.kind == "invalidArguments"


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system has no descriptors of folders")
def test_a_folder_that_becomes_a_link_after_the_check_is_refused(root: Path) -> None:
    found = place(root, "src/a.py")
    (root / "project/src").rename(root / "project/was")
    (root / "project/src").symlink_to("../outside")
    with pytest.raises(ToolError, match="was changed while it was being used"), spot_of(found):
        pass


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system has no descriptors of folders")
def test_a_file_that_becomes_a_link_after_the_check_is_not_opened(root: Path) -> None:
    found = place(root, "src/a.py")
    (root / "project/src/a.py").unlink()
    (root / "project/src/a.py").symlink_to("../../outside/secret")
    with spot_of(found) as spot, pytest.raises(OSError, match="symbolic links"):
        spot.open(os.O_RDONLY)


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="this system has no descriptors of folders")
def test_nothing_outside_is_reached_while_folders_and_links_are_swapped_all_the_time(root: Path) -> None:
    project, stop = root / "project", threading.Event()
    (project / "link").symlink_to("../outside")
    (project / "src/secret").write_text("harmless")

    def swap() -> None:
        while not stop.is_set():
            (project / "src").rename(project / "aside")
            (project / "link").rename(project / "src")
            (project / "src").rename(project / "link")
            (project / "aside").rename(project / "src")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                with spot_of(place(root, "src/secret")) as spot, os.fdopen(spot.open(os.O_RDONLY)) as file:
                    seen.add(file.read())
            except (ToolError, OSError):
                continue
    finally:
        stop.set()
        swapping.join()
    assert seen == {"harmless"}


def test_missing_folders_are_made_inside_alone(root: Path) -> None:
    with spot_of(place(root, "x/y/z"), create_parents=True) as spot:
        assert spot.stat() is None
    assert (root / "project/x/y").is_dir()
    with pytest.raises(FileNotFoundError), spot_of(place(root, "missing/z")):
        pass
    with pytest.raises(NotADirectoryError), spot_of(place(root, "src/a.py/z"), create_parents=True):
        pass


def test_a_folder_is_listed_through_its_place(root: Path) -> None:
    with folder_at(place(root, ".")) as folder:
        assert [entry.name for entry in os.scandir(folder)] == ["src"]
    with folder_at(place(root, "src")) as folder:
        assert [entry.name for entry in os.scandir(folder)] == ["a.py"]
    with pytest.raises(NotADirectoryError), folder_at(place(root, "src/a.py")):
        pass
