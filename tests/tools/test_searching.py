"""`find_files` and `search_text`. Source: gitignore(5), as git itself applies it; the rest is our own choice.

What ripgrep finds and what Python finds is compared wherever ripgrep is installed, and told by name where not.
"""

import asyncio
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sidecar.protocol.values import JsonObject
from sidecar.tools.base import CancellationToken, ToolContext
from sidecar.tools.builtin.find_files import FindFiles
from sidecar.tools.builtin.found import Found
from sidecar.tools.builtin.python_search import python_search
from sidecar.tools.builtin.ripgrep import ripgrep_path, ripgrep_search
from sidecar.tools.builtin.search_query import Search, SearchError
from sidecar.tools.builtin.search_text import MAX_LINE_CHARACTERS, SearchText
from sidecar.tools.builtin.tree import Glob
from sidecar.tools.workspace import Workspace
from tests.harness.processes import still_there_after

POSIX = pytest.mark.skipif(os.name == "nt", reason="needs a POSIX system")

TREE = {
    ".gitignore": "*.log\nbuild/\n/top.txt\n!kept.log\ndocs/**/draft*\n# nothing\n\\#odd\n",
    "top.txt": "needle ignored",
    "a.py": "needle = 1\nother\nNeedle\n",
    "src/top.txt": "needle seen\n",
    "src/b.py": "x\r\nneedle here\r\nno\r\n",
    "src/kept.log": "needle kept\n",
    "src/x.log": "needle ignored\n",
    "src/build/out.py": "needle ignored\n",
    "src/.hidden/c.ts": "needle hidden\n",
    "docs/deep/draft1.md": "needle ignored\n",
    "docs/deep/final.md": "a needle, two needles\n",
    "#odd": "needle ignored\n",
    ".git/config": "needle of git\n",
    "inner/.git/HEAD": "needle of git\n",
    "inner/.gitignore": "secret*\n",
    "inner/x.log": "needle of another repository\n",
    "inner/secret.txt": "needle ignored\n",
    "last": "no line end: needle",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for path, text in TREE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    (root / "binary").write_bytes(b"needle\0needle\n")
    (root / "late-binary").write_bytes(b"needle\n" * 20_000 + b"\0")
    (root / "latin").write_bytes(b"n\xe9e needle\n")
    (root / "wide").write_bytes("\ufeffwide needle\n".encode("utf-16-le"))
    return root


def context(root: Path) -> ToolContext:
    return ToolContext(workspace=(root,))


async def found_files(root: Path, **args: Any) -> list[str]:
    result: Any = await FindFiles().execute(args, context(root))
    assert result.ok, result.error
    return list(result.data["files"])


async def searched(root: Path, **args: Any) -> Any:
    result: Any = await SearchText().execute(args, context(root))
    return result.data if result.ok else result.error


# Finding ------------------------------------------------------------------------------------------------


async def test_what_git_ignores_is_not_found(tree: Path) -> None:
    assert await found_files(tree, pattern="*.{py,log,txt,md,ts}") == [
        "a.py",
        "docs/deep/final.md",
        "inner/x.log",
        "src/.hidden/c.ts",
        "src/b.py",
        "src/kept.log",
        "src/top.txt",
    ]


async def test_what_is_ignored_is_found_when_asked_for(tree: Path) -> None:
    assert await found_files(tree, pattern="*.log", includeIgnored=True) == [
        "inner/x.log",
        "src/kept.log",
        "src/x.log",
    ]


RULES = ["*.o", "!keep.o", "/root", "a/b/", "c/", "**/d", "e/**", "f*g", "[hi]x", "\\!j", "l/*/m", "!e/n"]
NAMES = ("x.o", "keep.o", "root", "n", "fzg", "hx", "!j", "m", "plain")
FOLDERS = ("", "a", "a/b", "c", "sub", "sub/c", "e", "e/e", "l/q", "sub/d", "a/e")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("below", ["", "a", "sub"])
def test_git_itself_would_list_the_same_files(tmp_path: Path, below: str) -> None:
    chance = random.Random(7)
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        for name in NAMES:
            (tmp_path / folder / name).write_text("x")
    (tmp_path / ".gitignore").write_text("\n".join(RULES))
    for folder in ("sub", "a"):
        (tmp_path / folder / ".gitignore").write_text("\n".join(chance.sample(RULES, 4)))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    command = ["git", "ls-files", "-z", "--others", "--exclude-per-directory=.gitignore", "--", below or "."]
    listed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout.decode()
    ours = asyncio.run(found_files(tmp_path, pattern="*", path=below or ".", limit=5000))
    assert ours == sorted(listed.rstrip("\0").split("\0"))


async def test_an_ignored_folder_can_be_searched_by_its_name(tree: Path) -> None:
    assert await found_files(tree, pattern="*", path="src/build") == ["src/build/out.py"]


async def test_a_rule_of_a_folder_above_counts_below(tree: Path) -> None:
    assert await found_files(tree, pattern="*", path="src") == [
        "src/.hidden/c.ts",
        "src/b.py",
        "src/kept.log",
        "src/top.txt",
    ]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("src/*.py", ["src/b.py"]),
        ("**/*.ts", ["src/.hidden/c.ts"]),
        ("{a,src/b}.py", ["a.py", "src/b.py"]),
        ("docs", ["docs/deep/final.md"]),
        ("!odd", []),
        ("nothing", []),
    ],
)
async def test_globs(tree: Path, pattern: str, files: list[str]) -> None:
    assert await found_files(tree, pattern=pattern) == files


async def test_a_long_list_is_cut_and_says_so(tree: Path) -> None:
    result: Any = await FindFiles().execute({"pattern": "*", "limit": 2}, context(tree))
    assert result.data["truncated"]
    assert len(result.data["files"]) == 2
    assert result.content[0].text.endswith(f"[{result.data['total'] - 2} more; narrow the pattern]")


@pytest.mark.parametrize("pattern", ["/", "{a,}", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"])
async def test_what_is_no_glob_is_told_to_the_model(tree: Path, pattern: str) -> None:
    result: Any = await FindFiles().execute({"pattern": pattern}, context(tree))
    assert result.error.startswith("the pattern cannot be used: ")


@POSIX
async def test_no_link_is_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/out").symlink_to(tree)
    (tmp_path / "in/file").symlink_to(tree / "a.py")
    assert await found_files(tmp_path / "in", pattern="*") == []
    assert (await searched(tmp_path / "in", pattern="needle"))["matches"] == []


# Searching ----------------------------------------------------------------------------------------------


async def test_lines_are_found_with_their_place(tree: Path) -> None:
    data = await searched(tree, pattern="needles?", glob="*.md")
    assert data == {
        "path": ".",
        "matches": [{"path": "docs/deep/final.md", "line": 1, "text": "a needle, two needles"}],
        "total": 1,
        "truncated": False,
    }


async def test_lines_around_are_shown_as_grep_shows_them(tree: Path) -> None:
    result: Any = await SearchText().execute({"pattern": "^other", "contextLines": 1}, context(tree))
    assert result.data["matches"] == [
        {"path": "a.py", "line": 2, "text": "other", "before": ["needle = 1"], "after": ["Needle"]}
    ]
    assert result.content[0].text == "a.py-1-needle = 1\na.py:2:other\na.py-3-Needle"


async def test_a_single_file_is_searched_even_if_it_is_ignored(tree: Path) -> None:
    data = await searched(tree, pattern="needle", path="src/x.log")
    assert [match["path"] for match in data["matches"]] == ["src/x.log"]


async def test_a_long_line_is_shown_around_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "min.js").write_text("x" * 5000 + "needle" + "y" * 5000)
    (match,) = (await searched(tmp_path, pattern="needle"))["matches"]
    assert len(match["text"]) == MAX_LINE_CHARACTERS + 2
    assert "needle" in match["text"]


async def test_what_ripgrep_does_not_know_python_does(tree: Path) -> None:
    data = await searched(tree, pattern=r"needle(?= here)")
    assert [match["path"] for match in data["matches"]] == ["src/b.py"]


async def test_a_pattern_that_is_none_is_told_to_the_model(tree: Path) -> None:
    assert "is no regular expression" in await searched(tree, pattern="(")
    assert await searched(tree, pattern="x", glob="/") == "the glob cannot be used: a glob must name something"
    assert await searched(tree, pattern="x", path="missing") == "missing does not exist"


async def test_a_cancelled_search_ends(tree: Path) -> None:
    token = CancellationToken()
    token.cancel("enough")
    found = python_search(Search(pattern="needle"), Workspace([tree]).place("."), lambda: token.cancelled)
    assert found == Found([], False)


# Ripgrep and Python -------------------------------------------------------------------------------------

SEARCHES: list[JsonObject] = [
    {"pattern": "needle"},
    {"pattern": "NEEDLE", "ignoreCase": True},
    {"pattern": "needle = 1", "literal": True},
    {"pattern": "two nee.*s$"},
    {"pattern": "^needle"},
    {"pattern": r"\bneedle\b", "contextLines": 2},
    {"pattern": "needle", "glob": "*.{py,ts}"},
    {"pattern": "needle", "glob": "src/**"},
    {"pattern": "needle", "includeIgnored": True},
    {"pattern": r"\w+\s\w+"},
    {"pattern": "é|e"},
    {"pattern": "a.c", "literal": True},
]


@pytest.mark.skipif(ripgrep_path() is None, reason="ripgrep is not installed")
@pytest.mark.parametrize("args", SEARCHES, ids=str)
@pytest.mark.parametrize("path", [".", "src", "docs", "docs/deep", "inner", "docs/deep/final.md"])
async def test_ripgrep_and_python_find_the_same(tree: Path, args: JsonObject, path: str) -> None:
    program = ripgrep_path()
    assert program is not None
    place, search = Workspace([tree]).place(path), Search.of(args)
    async with asyncio.timeout(20):
        assert await ripgrep_search(program, search, place) == python_search(search, place, lambda: False)


@pytest.mark.skipif(ripgrep_path() is None, reason="ripgrep is not installed")
async def test_ripgrep_passes_over_what_is_too_large_as_python_does(tmp_path: Path) -> None:
    for name, lines in (("fits.txt", 10_000), ("large.txt", 11_000)):
        (tmp_path / name).write_text("needle\n" + f"{'some text' * 111}\n" * lines)
    program = ripgrep_path()
    assert program is not None
    place, search = Workspace([tmp_path]).place("."), Search(pattern="needle")
    found = await ripgrep_search(program, search, place)
    assert [match.path for match in found.matches] == ["fits.txt"]
    assert found == python_search(search, place, lambda: False)


@POSIX
async def test_a_search_of_ripgrep_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")
    program = tmp_path / "rg"  # As ripgrep in a very large tree where there is nothing to find.
    program.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nexec sleep 60\n')
    program.chmod(0o755)
    place = Workspace([tmp_path]).place(".")
    searching = asyncio.create_task(ripgrep_search(str(program), Search(pattern="needle"), place))
    pid = int(await asyncio.to_thread((tmp_path / "pid").read_text))
    searching.cancel()
    await asyncio.wait({searching})
    assert searching.cancelled()
    assert still_there_after({pid}, 5) == set()


def test_a_pattern_that_takes_forever_ends(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 40 + "b\n")
    with pytest.raises(SearchError, match="use a simpler pattern"):
        python_search(Search(pattern="(a|a)*$", limit_secs=0.2), Workspace([tmp_path]).place("."), lambda: False)


def test_a_glob_of_names_is_known_as_one() -> None:
    assert Glob("*.{b,a}").names == ("*.a", "*.b")
    assert Glob("src/*.a").names is None
