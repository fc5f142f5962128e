"""The built-in file tools, through a registry and on real files.

Source: protocol.md, "Built-in tools"; limits, versions and words are our own choice.
"""

import asyncio
import hashlib
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import ToolError
from sidecar.protocol.messages import PermissionRule
from sidecar.protocol.values import JsonObject, ToolInvocation
from sidecar.tools.approval import ApprovalAnswer, ApprovalQuestion
from sidecar.tools.builtin import BUILTIN
from sidecar.tools.builtin.list_directory import MAX_ENTRIES
from sidecar.tools.builtin.text_file import MAX_FILE_BYTES
from sidecar.tools.registry import InvocationScope, ToolRegistry
from tests.harness.tools import Witness

OPEN = PermissionConfig(allowed=(), denied=(), ask=())
POSIX = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX system")


class Project:
    """A workspace folder and a registry with all built-in tools."""

    def __init__(self, folder: Path, config: PermissionConfig = OPEN) -> None:
        self.folder = folder
        self.registry = ToolRegistry(permissions=PermissionChecker(config))
        self.registry.register_all(tool() for tool in BUILTIN.values())

    def scope(self, **more: Any) -> InvocationScope:
        return InvocationScope(workspace=(self.folder,), **more)

    async def run(self, name: str, **args: Any) -> ToolInvocation:
        return await self.registry.invoke(name, args, self.scope())

    async def data(self, name: str, **args: Any) -> Any:
        made = await self.run(name, **args)
        assert made.result is not None
        assert made.result.ok, made.result.error
        return made.result.data

    async def error(self, name: str, **args: Any) -> str:
        """What the tool answers as its own failure."""
        made = await self.run(name, **args)
        assert made.result is not None
        assert not made.result.ok
        return made.result.error or ""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text("one\ntwo\nthree\n")
    return Project(tmp_path)


def version(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:32]


def test_every_tool_is_in_the_table_by_its_name_with_what_it_needs() -> None:
    assert {name: (tool.name, tuple(tool.required_permissions), tool.kind) for name, tool in BUILTIN.items()} == {
        "read_file": ("read_file", ("read",), "file"),
        "list_directory": ("list_directory", ("read",), "file"),
        "write_file": ("write_file", ("write",), "file"),
        "edit_file": ("edit_file", ("write",), "file"),
        "delete": ("delete", ("delete",), "file"),
        "find_files": ("find_files", ("read",), "file"),
        "search_text": ("search_text", ("read",), "file"),
        "move": ("move", ("write",), "file"),
        "run_command": ("run_command", ("shell",), "code"),
        "fetch_url": ("fetch_url", ("network",), "web"),
        "ask_user": ("ask_user", (), "custom"),
    }


def test_the_protocol_document_has_each_tool_with_what_it_needs() -> None:
    text = (Path(__file__).parents[2] / "protocol.md").read_text("utf-8")
    section = text.partition("\n## Built-in tools\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\| `?(\w+)`? \|", section, re.MULTILINE)
    assert dict(rows) == {
        name: ", ".join(tool.required_permissions) or "nothing" for name, tool in BUILTIN.items()
    }


# Reading ------------------------------------------------------------------------------------------------


async def test_a_file_is_read_whole_with_its_version(project: Project) -> None:
    made = await project.run("read_file", path="src/a.py")
    assert made.result is not None
    assert made.result.data == {
        "path": "src/a.py",
        "content": "one\ntwo\nthree\n",
        "startLine": 1,
        "endLine": 3,
        "totalLines": 3,
        "version": version(b"one\ntwo\nthree\n"),
    }
    head = f"src/a.py, lines 1 to 3 of 3, version {made.result.data['version']}"
    assert made.content == f"{head}\none\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("lines", "content", "first", "last"),
    [
        ({"startLine": 2}, "two\nthree\n", 2, 3),
        ({"endLine": 2}, "one\ntwo\n", 1, 2),
        ({"startLine": 2, "endLine": 2}, "two\n", 2, 2),
        ({"startLine": 2, "endLine": 99}, "two\nthree\n", 2, 3),
    ],
)
async def test_lines_are_counted_from_one_and_the_last_is_included(
    project: Project, lines: dict[str, int], content: str, first: int, last: int
) -> None:
    data = await project.data("read_file", path="src/a.py", **lines)
    assert (data["content"], data["startLine"], data["endLine"], data["totalLines"]) == (content, first, last, 3)


@pytest.mark.parametrize(
    ("raw", "content", "total"),
    [
        (b"", "", 0),
        (b"no end", "no end", 1),
        (b"\n", "\n", 1),
        (b"a\r\nb\r\n", "a\nb\n", 2),
        (b"a\r\nb\n", "a\r\nb\n", 2),
        (b"\xef\xbb\xbfbom\n", "bom\n", 1),
        ("é\u2028x\x0by\n".encode(), "é\u2028x\x0by\n", 1),
    ],
)
async def test_text_comes_as_it_is_with_one_kind_of_line_end(
    project: Project, raw: bytes, content: str, total: int
) -> None:
    (project.folder / "f").write_bytes(raw)
    data = await project.data("read_file", path="f")
    assert (data["content"], data["totalLines"], data["version"]) == (content, total, version(raw))


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"path": "missing"}, "missing does not exist"),
        ({"path": "src"}, "src is a folder, not a file"),
        ({"path": "."}, ". is a folder, not a file"),
        ({"path": "src/a.py/x"}, "src/a.py/x is not a folder, or lies below a file"),
        ({"path": "binary"}, "binary is binary, not text"),
        ({"path": "half"}, "half begins as utf-16-le, but byte 4 does not fit"),
        (
            {"path": "large"},
            f"large has {MAX_FILE_BYTES + 1} bytes, and no more than {MAX_FILE_BYTES} can be read whole; "
            "give startLine, and endLine",
        ),
        ({"path": "large", "startLine": 1}, "large is binary, not text"),
        ({"path": "large", "startLine": 7}, "large has fewer than 7 lines"),
        (
            {"path": "src/a.py", "startLine": -2, "endLine": 2},
            "endLine cannot be given with a startLine from the end",
        ),
        ({"path": "src/a.py", "startLine": 9}, "src/a.py has 3 lines, so there is no line 9"),
        ({"path": "src/a.py", "startLine": 3, "endLine": 2}, "endLine 2 comes before startLine 3"),
    ],
)
async def test_what_cannot_be_read_is_told_to_the_model(project: Project, args: Any, error: str) -> None:
    (project.folder / "binary").write_bytes(b"\x7fELF\0\0")
    (project.folder / "half").write_bytes(b"\xff\xfea\0\0\xd8b\0")
    with (project.folder / "large").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert await project.error("read_file", **args) == error


@POSIX
async def test_a_pipe_is_refused_at_once(project: Project) -> None:
    os.mkfifo(project.folder / "pipe")
    async with asyncio.timeout(5):
        assert await project.error("read_file", path="pipe") == "pipe is no ordinary file"
        assert "pipe is no ordinary file" in await project.error("write_file", path="pipe", content="x")


async def test_a_long_file_is_cut_for_the_model_with_its_first_and_last_lines(project: Project) -> None:
    (project.folder / "log").write_text("".join(f"line {n}\n" for n in range(10_000)))
    made = await project.registry.invoke("read_file", {"path": "log"}, project.scope(max_result_bytes=2000))
    assert isinstance(made.content, str)
    assert made.content.startswith("log, lines 1 to 10000 of 10000")
    assert made.content.endswith("line 9998\nline 9999\n")
    assert made.truncated


@pytest.mark.parametrize(
    ("raw", "content", "encoding"),
    [
        (b"n\xe9e \x80\n", "n\xe9e €\n", "cp1252"),
        ("\ufeffzwei\n".encode("utf-16-le"), "zwei\n", "utf-16-le"),
        ("\ufeffzwei\n".encode("utf-32-be"), "zwei\n", "utf-32-be"),
        ("Это обычный русский текст в старой кодировке.\n".encode("cp1251"), None, "cp1251"),
    ],
)
async def test_the_encoding_of_a_file_is_found_and_kept(
    project: Project, raw: bytes, content: str | None, encoding: str
) -> None:
    (project.folder / "f").write_bytes(raw)
    data = await project.data("read_file", path="f")
    assert data["encoding"] == encoding
    assert content is None or data["content"] == content
    await project.data("write_file", path="f", content=data["content"])
    assert (project.folder / "f").read_bytes() == raw


async def test_characters_that_an_encoding_has_not_are_refused(project: Project) -> None:
    (project.folder / "f").write_bytes(b"n\xe9e\n")
    assert await project.error("edit_file", path="f", oldText="n", newText="→") == (
        "f is in cp1252, which has no '→' (U+2192), so it was not changed"
    )


async def test_the_last_lines_are_read_from_the_end(project: Project) -> None:
    data = await project.data("read_file", path="src/a.py", startLine=-2)
    assert (data["content"], data["startLine"], data["endLine"]) == ("two\nthree\n", 2, 3)


async def test_lines_of_a_file_too_large_to_be_read_whole(project: Project) -> None:
    with (project.folder / "log").open("w") as file:
        file.writelines(f"line {number}\n" for number in range(1, 1_200_001))
    first = await project.data("read_file", path="log", startLine=600_000, endLine=600_001)
    assert (first["content"], first["endLine"]) == ("line 600000\nline 600001\n", 600_001)
    last = await project.data("read_file", path="log", startLine=-2)
    assert (last["content"], last["startLine"], last["endLine"]) == ("line 1199999\nline 1200000\n", -2, -1)
    assert last["version"] == first["version"]
    open_ended = await project.data("read_file", path="log", startLine=2)
    assert open_ended["content"].startswith("line 2\nline 3\n")
    assert open_ended["content"].endswith(f"\nline {open_ended['endLine']}\n")


# Writing ------------------------------------------------------------------------------------------------


async def test_a_new_file_is_written_with_its_folders(project: Project) -> None:
    data = await project.data("write_file", path="x/y/new.txt", content="héllo\n")
    assert (project.folder / "x/y/new.txt").read_bytes() == "héllo\n".encode()
    assert data == {"path": "x/y/new.txt", "version": version("héllo\n".encode()), "bytes": 7, "created": True}


async def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(project: Project) -> None:
    data = await project.data("write_file", path="src/a.py", content="new")
    assert (project.folder / "src/a.py").read_text() == "new"
    assert data["created"] is False
    assert [entry.name for entry in (project.folder / "src").iterdir()] == ["a.py"]


@POSIX
async def test_the_mode_of_a_file_is_kept(project: Project) -> None:
    file = project.folder / "src/a.py"
    file.chmod(0o751)
    await project.data("write_file", path="src/a.py", content="new")
    await project.data("edit_file", path="src/a.py", oldText="new", newText="newer")
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


@POSIX
async def test_a_file_that_is_closed_to_writing_stays_as_it_is(project: Project) -> None:
    file = project.folder / "src/a.py"
    file.chmod(0o444)
    for name, args in (("write_file", {"content": "x"}), ("edit_file", {"oldText": "two", "newText": "x"})):
        assert (
            await project.error(name, path="src/a.py", **args) == "src/a.py is closed to this user by the system"
        )
    assert file.read_text() == "one\ntwo\nthree\n"


async def test_line_ends_and_byte_order_mark_of_a_file_are_kept(project: Project) -> None:
    file = project.folder / "dos.txt"
    file.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await project.data("edit_file", path="dos.txt", oldText="one\ntwo", newText="1\n2")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"
    await project.data("write_file", path="dos.txt", content="a\nb\n")
    assert file.read_bytes() == b"\xef\xbb\xbfa\r\nb\r\n"


@pytest.mark.parametrize(
    ("name", "args"), [("write_file", {"content": "x"}), ("edit_file", {"oldText": "two", "newText": "x"})]
)
async def test_a_stale_version_is_refused_and_the_one_of_now_is_told(
    project: Project, name: str, args: JsonObject
) -> None:
    seen = (await project.data("read_file", path="src/a.py"))["version"]
    (project.folder / "src/a.py").write_text("two, changed\n")
    made = await project.run(name, path="src/a.py", version=seen, **args)
    assert made.result is not None
    assert made.result.error == f"src/a.py has changed since version {seen} was read; read it again"
    assert made.result.data == {"path": "src/a.py", "version": version(b"two, changed\n")}
    assert (project.folder / "src/a.py").read_text() == "two, changed\n"
    made = await project.run(name, path="src/a.py", version=version(b"two, changed\n"), **args)
    assert made.result is not None
    assert made.result.ok


async def test_a_version_of_a_file_that_is_gone_is_stale_and_makes_no_folder(project: Project) -> None:
    error = await project.error("write_file", path="src/b.py", content="x", version="abc")
    assert error == "src/b.py does not exist any more, so it is not version abc"
    assert (
        await project.error("write_file", path="gone/b.py", content="x", version="abc")
        == "gone/b.py does not exist"
    )
    assert not (project.folder / "gone").exists()


async def test_what_is_no_text_is_not_overwritten(project: Project) -> None:
    (project.folder / "binary").write_bytes(b"\x7fELF\0\0")
    error = await project.error("write_file", path="binary", content="x")
    assert error == "binary is binary, not text, so it was not changed"
    assert await project.error("write_file", path="src", content="x") == "src is a folder, not a file"


@POSIX
async def test_a_link_stays_a_link_and_its_file_is_written(project: Project) -> None:
    (project.folder / "link").symlink_to("src/a.py")
    data = await project.data("write_file", path="link", content="new")
    assert data["path"] == "src/a.py"
    assert (project.folder / "link").is_symlink()
    assert (project.folder / "src/a.py").read_text() == "new"


# Editing ------------------------------------------------------------------------------------------------


async def test_a_text_that_occurs_once_is_replaced(project: Project) -> None:
    data = await project.data("edit_file", path="src/a.py", oldText="two\nth", newText="2\nTh")
    assert (project.folder / "src/a.py").read_text() == "one\n2\nThree\n"
    diff = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+Three\n"
    changed = {"path": "src/a.py", "version": version(b"one\n2\nThree\n")}
    assert data == {**changed, "diff": diff, "replacements": 1}


async def test_a_diff_is_applied_where_its_lines_stand_whatever_numbers_it_has(project: Project) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -70,2 +70,3 @@\n two\n+two and a half\n three\n"
    data = await project.data("edit_file", path="src/a.py", diff=diff)
    assert (project.folder / "src/a.py").read_text() == "one\ntwo\ntwo and a half\nthree\n"
    assert "replacements" not in data


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"diff": "@@ @@\n-four\n"}, "the lines of hunk 1 are not in the file (any more); read it again"),
        ({"diff": "two\n"}, "the diff has no hunk: each begins with a line such as @@ -1,3 +1,4 @@"),
        ({"diff": "@@ @@\n+x\n"}, "hunk 1 has no line that says where its own belong"),
        ({"diff": "@@ @@\n*x\n"}, "a line of the diff begins with neither space, + nor -: '*x'"),
        ({"diff": "@@ @@\n-one\n", "oldText": "one", "newText": ""}, "give either oldText and newText, or diff"),
        ({"oldText": "one"}, "give either oldText and newText, or diff"),
        ({}, "give either oldText and newText, or diff"),
    ],
)
async def test_a_change_that_does_not_fit_changes_nothing(project: Project, args: Any, error: str) -> None:
    assert await project.error("edit_file", path="src/a.py", **args) == error
    assert (project.folder / "src/a.py").read_text() == "one\ntwo\nthree\n"


async def test_a_text_that_occurs_often_is_replaced_everywhere_only_when_asked(project: Project) -> None:
    assert await project.error("edit_file", path="src/a.py", oldText="e", newText="E") == (
        "oldText occurs 3 times in src/a.py; give more of what is around it, or set replaceAll"
    )
    data = await project.data("edit_file", path="src/a.py", oldText="e", newText="E", replaceAll=True)
    assert (project.folder / "src/a.py").read_text() == "onE\ntwo\nthrEE\n"
    assert data["replacements"] == 3


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            {"path": "src/a.py", "oldText": "four"},
            "oldText does not occur in src/a.py; read the file and copy it exactly",
        ),
        ({"path": "missing", "oldText": "x"}, "missing does not exist"),
        ({"path": "src", "oldText": "x"}, "src is a folder, not a file"),
    ],
)
async def test_what_cannot_be_edited_is_told_to_the_model(project: Project, args: Any, error: str) -> None:
    assert await project.error("edit_file", newText="y", **args) == error


async def test_edits_of_one_file_at_the_same_time_are_all_kept(project: Project) -> None:
    (project.folder / "count").write_text("".join(f"<{n}>\n" for n in range(30)))
    calls = [("edit_file", {"path": "count", "oldText": f"<{n}>", "newText": f"[{n}]"}) for n in range(30)]
    await project.registry.invoke_all(calls, project.scope())
    assert (project.folder / "count").read_text() == "".join(f"[{n}]\n" for n in range(30))


# Listing and deleting -----------------------------------------------------------------------------------


@POSIX
async def test_a_folder_is_listed_by_name_with_types_and_sizes(project: Project) -> None:
    (project.folder / "b.txt").write_text("12345")
    (project.folder / "link").symlink_to("/etc")
    os.mkfifo(project.folder / "pipe")
    assert await project.data("list_directory") == {
        "path": ".",
        "entries": [
            {"name": "b.txt", "type": "file", "size": 5},
            {"name": "link", "type": "link"},
            {"name": "pipe", "type": "other"},
            {"name": "src", "type": "directory"},
        ],
        "total": 4,
    }


async def test_a_large_folder_is_listed_in_part_with_its_total(project: Project) -> None:
    for n in range(MAX_ENTRIES + 5):
        (project.folder / f"src/{n:05}").touch()
    data = await project.data("list_directory", path="src")
    assert (len(data["entries"]), data["total"]) == (MAX_ENTRIES, MAX_ENTRIES + 6)
    assert data["entries"][0]["name"] == "00000"


async def test_what_is_no_folder_cannot_be_listed(project: Project) -> None:
    assert await project.error("list_directory", path="src/a.py") == (
        "src/a.py is not a folder, or lies below a file"
    )
    assert await project.error("list_directory", path="missing") == "missing does not exist"


async def test_a_file_is_deleted_and_a_folder_is_not(project: Project) -> None:
    gone = await project.data("delete", path="src/a.py", permanently=True)
    assert gone == {"path": "src/a.py", "inTrash": False}
    assert not (project.folder / "src/a.py").exists()
    assert await project.error("delete", path="src/a.py", permanently=True) == "src/a.py does not exist"
    refusal = "src is a folder, and only files can be deleted for good"
    assert await project.error("delete", path="src", permanently=True) == refusal
    assert await project.error("delete", path=".") == ". is a folder, not a file"


@pytest.mark.skipif(sys.platform != "linux", reason="asks where Linux keeps its trash")
async def test_a_folder_goes_to_the_trash_where_it_can_be_had_back_from(project: Project, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    script = (
        "import asyncio, pathlib, sys; from sidecar.tools.builtin.delete import Delete; "
        "from sidecar.tools.base import ToolContext; folder = pathlib.Path(sys.argv[1]); "
        "print(asyncio.run(Delete().execute({'path': 'src'}, ToolContext(workspace=(folder,)))).data)"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        str(project.folder),
        env={**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(20):
        told, _ = await process.communicate()
    assert told.decode().strip() == str({"path": "src", "inTrash": True})
    assert not (project.folder / "src").exists()
    assert (home / "Trash/files/src/a.py").read_text() == "one\ntwo\nthree\n"


@POSIX
async def test_deleting_a_link_keeps_what_it_leads_to(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("elsewhere") / "target"
    target.write_text("kept")
    (project.folder / "link").symlink_to(target)
    await project.data("delete", path="link", permanently=True)
    assert target.read_text() == "kept"
    assert not (project.folder / "link").is_symlink()


# Moving -------------------------------------------------------------------------------------------------


async def test_a_file_is_moved_with_the_folders_that_it_needs(project: Project) -> None:
    moved = await project.data("move", path="src/a.py", to="x/y/b.py")
    assert moved == {"path": "src/a.py", "to": "x/y/b.py"}
    assert (project.folder / "x/y/b.py").read_text() == "one\ntwo\nthree\n"
    assert not (project.folder / "src/a.py").exists()


async def test_what_is_there_is_overwritten_only_when_asked(project: Project) -> None:
    (project.folder / "b").write_text("kept")
    assert (
        await project.error("move", path="src/a.py", to="b") == "b exists; set overwrite if it is to be replaced"
    )
    assert (project.folder / "b").read_text() == "kept"
    await project.data("move", path="src/a.py", to="b", overwrite=True)
    assert (project.folder / "b").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"path": "missing", "to": "b"}, "missing does not exist"),
        ({"path": "src", "to": "src/in/it"}, "src cannot be moved to src/in/it, which is itself or in it"),
        ({"path": "src/a.py", "to": "src"}, "src is a folder; give the new path with the name in it"),
        ({"path": ".", "to": "b"}, ". cannot be moved to b, which is itself or in it"),
    ],
)
async def test_moves_that_cannot_be(project: Project, args: Any, error: str) -> None:
    assert await project.error("move", **args) == error


# Permission ---------------------------------------------------------------------------------------------

OUTSIDE = [
    ("read_file", {"path": "../secret"}),
    ("write_file", {"path": "../new", "content": "x"}),
    ("edit_file", {"path": "../secret", "oldText": "s", "newText": "x"}),
    ("list_directory", {"path": ".."}),
    ("delete", {"path": "../secret"}),
    ("delete", {"path": "../secret", "permanently": True}),
    ("find_files", {"pattern": "*", "path": ".."}),
    ("search_text", {"pattern": "s", "path": "../secret"}),
    ("move", {"path": "../secret", "to": "here"}),
    ("move", {"path": "src", "to": "../there"}),
    ("run_command", {"command": ["ls"], "cwd": ".."}),
]


@pytest.mark.parametrize(("name", "args"), OUTSIDE)
async def test_nothing_outside_the_workspace_is_touched_nor_asked_about(
    tmp_path: Path, name: str, args: JsonObject
) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "project").mkdir()
    project, witness = Project(tmp_path / "project", PermissionConfig(denied=())), Witness()
    with pytest.raises(ToolError) as failed:
        await project.registry.invoke(name, args, witness.scope(workspace=(project.folder,)))
    assert failed.value.kind == "permissionDenied"
    assert failed.value.data == {
        "path": next(path for path in args.values() if isinstance(path, str) and ".." in path),
        "scope": [project.folder.resolve().as_posix()],
        "tool": name,
    }
    assert witness.questions == []
    assert sorted(entry.name for entry in project.folder.parent.iterdir()) == ["project", "secret"]
    assert (tmp_path / "secret").read_text() == "s"


@pytest.mark.parametrize("path", ["src/a.py", "./src/a.py", "src/x/../a.py", "{root}/src/a.py", "link/a.py"])
async def test_rules_see_one_spelling_of_a_path(project: Project, path: str) -> None:
    (project.folder / "link").symlink_to("src")
    allow = PermissionRule(tool="write_file", decision="allow", arguments={"path": "src/**"})
    guarded = Project(project.folder, PermissionConfig(rules=(allow,)))
    args = {"path": path.format(root=project.folder), "content": "x"}
    assert (await guarded.registry.decide("write_file", args, guarded.scope())).decision == "allow"
    args["path"] = args["path"].replace("a.py", "../b.py")
    assert (await guarded.registry.decide("write_file", args, guarded.scope())).decision == "ask"


@pytest.mark.parametrize("args", [{}, {"path": 3}, {"path": "src/a.py"}])
async def test_permissions_can_be_asked_about_a_call_that_is_not_complete(
    project: Project, args: JsonObject
) -> None:
    guarded = Project(project.folder, PermissionConfig())
    decision = await guarded.registry.decide("write_file", args, guarded.scope())
    assert (decision.decision, decision.rule) == ("ask", 'permissions.ask: "write"')


async def test_a_remembered_approval_keeps_the_path_and_not_the_content(project: Project) -> None:
    guarded, witness = Project(project.folder, PermissionConfig()), Witness()
    args = {"path": str(project.folder / "src/a.py"), "content": "x" * 10_000}
    await guarded.registry.invoke("write_file", args, witness.scope(workspace=(project.folder,)))
    kept = PermissionRule(tool="write_file", decision="allow", arguments={"path": "src/a.py"})
    assert witness.questions[0].options[1].rule == kept


@POSIX
async def test_a_path_that_leads_elsewhere_after_it_was_permitted_is_refused(project: Project) -> None:
    (project.folder / "other").mkdir()
    (project.folder / "link").symlink_to("src")

    async def approve(question: ApprovalQuestion) -> ApprovalAnswer:
        (project.folder / "link").unlink()
        (project.folder / "link").symlink_to("other")
        return ApprovalAnswer(decision="allowOnce", by="host")

    guarded = Project(project.folder, PermissionConfig())
    with pytest.raises(ToolError, match="was changed while it was being used"):
        await guarded.registry.invoke(
            "write_file", {"path": "link/a.py", "content": "x"}, guarded.scope(approve=approve)
        )
    assert list((project.folder / "other").iterdir()) == []
