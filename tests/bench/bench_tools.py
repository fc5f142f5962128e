"""The built-in file tools on large input: a search beside ripgrep, a walk over many files, a range of a log.

Each is the tool itself, as the registry calls it; the search and ripgrep alone run in turns. Prints a table.

    python -m tests.bench.bench_tools [ROUNDS]
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.find_files import FindFiles
from sidecar.tools.builtin.read_file import ReadFile
from sidecar.tools.builtin.ripgrep import ripgrep_path
from sidecar.tools.builtin.search_text import SearchText

SEARCHED_FILES = 5_000
WALKED_FILES = 50_000
LOG_BYTES = 100_000_000
IGNORED = "*.log\nbuild/\nnode_modules/\n*.pyc\n__pycache__/\n/dist\n.cache/\n*.o\n!keep.o\n"


def make_tree(root: Path, files: int, lines: int) -> None:
    """Python files in folders of a hundred; a needle in one of fifty."""
    for number in range(files):
        folder = root / f"package{number // 2000}" / f"module{number // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"value_{number}_{line} = compute({line})\n" for line in range(lines))
        needle = "needle = find_me\n" if number % 50 == 0 else ""
        (folder / f"file{number}.py").write_text(text + needle)
    (root / ".gitignore").write_text(IGNORED)


async def seconds(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


def ripgrep_seconds(root: Path) -> float:
    began = time.perf_counter()
    command = [ripgrep_path() or "rg", "--json", "--hidden", "--no-config", "find_me", "./"]
    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


async def measure(root: Path, rounds: int) -> None:
    searched, walked = root / "searched", root / "walked"
    make_tree(searched, SEARCHED_FILES, 100)
    make_tree(walked, WALKED_FILES, 1)
    line = b"2026-01-01T00:00:00Z INFO something happened, and it was written down here\n"
    (root / "log").write_bytes(line * (LOG_BYTES // len(line)))
    search, find, read = SearchText(), FindFiles(), ReadFile()

    def searching() -> Any:
        return search.execute({"pattern": "find_me"}, ToolContext(workspace=(searched,)))

    def finding() -> Any:
        return find.execute({"pattern": "*1.py"}, ToolContext(workspace=(walked,)))

    def reading(**lines: int) -> Callable[[], Any]:
        return lambda: read.execute({"path": "log", **lines}, ToolContext(workspace=(root,)))

    for warm_up in (searching, finding, reading(startLine=-10)):
        await warm_up()
    print_row("tool", "time, ms", "ratio", "target")
    print_row("---", "---", "---", "---")
    if ripgrep_path():
        pairs = [(await seconds(searching), ripgrep_seconds(searched)) for _ in range(rounds)]
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        ours_ms = statistics.median(ours for ours, _ in pairs) * 1000
        print_row(f"search_text, {SEARCHED_FILES} files, beside ripgrep", f"{ours_ms:.0f}", f"{ratio:.2f}", "1.2")
    for name, work, target in (
        (f"find_files, {WALKED_FILES} files", finding, "1,000 ms"),
        ("read_file, first 100 lines of 100 MB", reading(startLine=1, endLine=100), "what it needs"),
        ("read_file, last 100 lines of 100 MB", reading(startLine=-100), "what it needs"),
    ):
        times = [await seconds(work) for _ in range(rounds)]
        print_row(name, f"{statistics.median(times) * 1000:.1f}", "", target)


def print_row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), rounds))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
