"""Tools of the user's own: what an entry of the option `tools` gives, and what is said where it gives nothing.

Source: protocol.md, Tools of your own.
"""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.protocol.errors import ConfigurationError
from sidecar.protocol.values import ToolSource
from sidecar.tools.builtin import BUILTIN
from sidecar.tools.loading import ENTRY_POINTS, add_tools, fault_of_entry, load_tools, starting_at
from sidecar.tools.registry import ToolRegistry

MEND = "mend it, or take it out of the option `tools`"

GREETER = '''
from sidecar import tool

@tool
def greet(name: str) -> str:
    """Says hello."""
    return f"hello {name}"
'''


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    """A file of tools; its path."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(file)


async def names(entry: str) -> list[str]:
    return [tool.name for tool in await load_tools(entry)]


async def refused(entry: str) -> ConfigurationError:
    path = list(sys.path)
    with pytest.raises(ConfigurationError) as raised:
        await load_tools(entry)
    assert (raised.value.kind, raised.value.path) == ("invalidConfiguration", "tools")
    assert sys.path == path
    return raised.value


# Files --------------------------------------------------------------------------------------------------


async def test_every_public_tool_at_the_top_level_of_a_file_joins_as_python(tmp_path: Path) -> None:
    entry = written(
        tmp_path,
        """
        from __future__ import annotations
        from dataclasses import dataclass
        from sidecar import ApprovalRequired, BaseTool, ToolContext, tool

        @dataclass
        class Place:
            city: str

        @tool(tags=["weather"])
        async def forecast(at: Place) -> str:
            '''Tells the weather.'''
            return f"rain in {at.city}"

        @tool(name="wipe")
        def _wipe() -> None:
            '''Removes everything.'''

        wipe = ApprovalRequired(_wipe)
        same_again = forecast

        class Clock(BaseTool):
            name = "clock"
            description = "Tells the time."
            parameters = {"type": "object"}

            async def execute(self, args: dict, ctx: ToolContext) -> str:
                return "noon"

        clock = Clock()

        def helper() -> None: ...
        """,
    )
    registry = ToolRegistry()
    await add_tools(registry, [entry])
    assert registry.list_tools() == ["clock", "forecast", "wipe"]
    assert {registry.find(name).source for name in registry.list_tools()} == {ToolSource(type="python")}
    assert registry.find("wipe").tool.requires_approval
    assert registry.find("forecast").tags == ("weather",)
    made = await registry.invoke("forecast", {"at": {"city": "Bergen"}})
    assert made.content == "rain in Bergen"


async def test_a_list_named_tools_says_which(tmp_path: Path) -> None:
    more = "\n@tool\ndef other() -> None: ...\n\n@tool\ndef _hidden() -> None: ...\n\nTOOLS = [_hidden, greet]\n"
    assert await names(written(tmp_path, GREETER + more)) == ["_hidden", "greet"]


async def test_files_of_one_name_are_modules_of_their_own(tmp_path: Path) -> None:
    one = written(tmp_path / "one", GREETER)
    two = written(tmp_path / "two", GREETER.replace("greet", "wave"))
    registry = ToolRegistry()
    await add_tools(registry, [one, two, f"{tmp_path}/two/../one/mine.py"])
    assert registry.list_tools() == ["greet", "wave"]
    assert (await registry.invoke("greet", {"name": "Ada"})).content == "hello Ada"


async def test_the_files_beside_a_file_can_be_imported_and_hide_nothing(tmp_path: Path) -> None:
    written(tmp_path, "NAME = 'found_beside'", "my_neighbour.py")
    written(tmp_path, "raise RuntimeError('not the installed one')", "attrs.py")
    own = "import attrs\nfrom my_neighbour import NAME\nfrom sidecar import tool\n"
    entry = written(tmp_path, own + "@tool(name=NAME)\ndef f() -> None: ...\n")
    assert await names(entry) == ["found_beside"]
    assert str(tmp_path) not in sys.path


async def test_a_file_may_run_an_event_loop_of_its_own_while_it_is_loaded(tmp_path: Path) -> None:
    slow = "import asyncio\nasyncio.run(asyncio.sleep(0))\n"
    assert await names(written(tmp_path, slow + GREETER)) == ["greet"]


async def test_a_file_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    entry = written(tmp_path, "import threading\nthreading.Event().wait(30)\n")
    with pytest.raises(ConfigurationError) as raised:
        await load_tools(entry, limit_secs=0.05)
    assert (
        raised.value.message == f"tools: {entry}: it was not loaded within 0.05 s; do slow work inside the tools"
    )


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("x = 1\ny = x / 0\n", 2, "ZeroDivisionError: division by zero"),
        ("def f():\n    raise ValueError('two\\nlines')\n\nf()\n", 2, "ValueError: two lines"),
        ("import json\njson.loads('{')\n", 2, "JSONDecodeError: Expecting property name enclosed in double"),
        ("raise KeyboardInterrupt_\n", 1, "NameError: name 'KeyboardInterrupt_' is not defined"),
        ("import sys\n\nsys.exit(3)\n", 3, "SystemExit: 3"),
        ("x = 1\nif x\n", 2, "SyntaxError: expected ':'"),
        ("from sidecar import tool\n@tool\ndef f(x: object()) -> None: ...\n", 2, "TypeError: f cannot be a tool"),
    ],
)
async def test_an_error_is_told_with_its_line(tmp_path: Path, text: str, line: int, reason: str) -> None:
    entry = written(tmp_path, text)
    modules = set(sys.modules)
    error = await refused(entry)
    assert error.message.startswith(f"tools: {entry}:{line}: {reason}")
    assert error.message.endswith(MEND)
    assert not [name for name in set(sys.modules) - modules if name.endswith("_mine")]
    assert error.data == {"path": "tools", "file": entry, "line": line}


async def test_a_module_that_is_not_installed_is_named_with_the_python_that_misses_it(tmp_path: Path) -> None:
    entry = written(tmp_path, "import no_such_module_anywhere\n")
    assert (await refused(entry)).message == (
        f"tools: {entry}:1: ModuleNotFoundError: No module named 'no_such_module_anywhere'; install what brings "
        f"it for {sys.executable}, or take this out of the option `tools`"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "def f() -> None: ...\n",
            "it holds no tool; decorate a function with @tool, or put instances of BaseTool into a list TOOLS",
        ),
        (f"{GREETER}\nTOOLS = greet\n", "TOOLS must be a list of tools, not a FunctionTool"),
        (
            f"{GREETER}\nTOOLS = [greet, len]\n",
            "TOOLS[1] is a builtin_function_or_method, not a tool; decorate a function with @tool",
        ),
        (
            "from sidecar import BaseTool\nclass Mine(BaseTool): ...\nTOOLS = [Mine]\n",
            "TOOLS[0] is the class Mine, not a tool; make an instance of it",
        ),
    ],
)
async def test_a_file_without_usable_tools_says_what_to_write(tmp_path: Path, text: str, reason: str) -> None:
    entry = written(tmp_path, text)
    assert (await refused(entry)).message == f"tools: {entry}: {reason}"


async def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    entry = str(tmp_path / "none.py")
    reason = "there is no such file; correct its path in the option `tools`"
    assert (await refused(entry)).message == f"tools: {entry}: {reason}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("name = 'read_file'", "the name 'read_file' is taken by a built-in tool; give the tool another, or"),
        ("name = 'a b'", "the tool 'a b' cannot join: a name has 1 to 128 printable characters and no spaces"),
        ("pass", "the tool 'Mine' cannot join: it has no name"),
        ("name = 'x'; description = None", "the tool 'x' cannot join: its description must be text"),
    ],
)
async def test_a_tool_that_cannot_join_is_named_with_its_file(tmp_path: Path, body: str, reason: str) -> None:
    described = "" if "name" not in body else "    parameters = {}\n"
    described += "    description = ''\n" if "description" not in body and described else ""
    head = "from sidecar import BaseTool\nclass Mine(BaseTool):\n"
    entry = written(
        tmp_path, f"{head}{described}    {body}\n    async def execute(self, args, ctx): ...\nmine = Mine()\n"
    )
    registry = ToolRegistry()
    registry.register(BUILTIN["read_file"](), source=ToolSource(type="builtin"))
    with pytest.raises(ConfigurationError) as raised:
        await add_tools(registry, [entry])
    assert raised.value.message.startswith(f"tools: {entry}: {reason}")
    assert raised.value.message.endswith(MEND)
    assert registry.list_tools() == ["read_file"]


# Modules and entry points -------------------------------------------------------------------------------


WAVE = """
@tool
def wave() -> None: ...

TOOLS = [greet]
BOTH = (greet, wave)
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages; one of them offers tools by entry points."""
    folder = tmp_path / "site-packages"
    written(folder, GREETER + WAVE, "sidecar_test_pack/tools.py")
    written(folder, "from . import tools\n", "sidecar_test_pack/__init__.py")
    written(folder, "1 / 0\n", "sidecar_test_pack/broken.py")
    info = folder / "sidecar_test_pack-1.0.dist-info"
    written(info, "Metadata-Version: 2.1\nName: sidecar-test-pack\nVersion: 1.0\n", "METADATA")
    offers = ["all = sidecar_test_pack.tools", "one = sidecar_test_pack.tools:greet"]
    offers += ["broken = sidecar_test_pack.broken", "gone = sidecar_test_pack.tools:nobody"]
    written(info, "\n".join([f"[{ENTRY_POINTS}]", *offers]), "entry_points.txt")
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.startswith("sidecar_test_pack")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("sidecar_test_pack.tools:greet", ["greet"]),
        ("sidecar_test_pack.tools:BOTH", ["greet", "wave"]),
        ("sidecar_test_pack:tools", ["greet"]),
        ("sidecar_test_pack:tools.greet", ["greet"]),
        ("entry-point:all", ["greet"]),
        ("entry-point:one", ["greet"]),
    ],
)
async def test_a_member_of_a_module_and_an_entry_point_give_their_tools(
    packages: Path, entry: str, found: list[str]
) -> None:
    assert await names(entry) == found


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("sidecar_test_pack.tools:nobody", "AttributeError: module 'sidecar_test_pack.tools' has no attribute"),
        ("sidecar_test_pack:__file__", "sidecar_test_pack:__file__ is a str, not a tool; decorate a function"),
        (
            "no_such_package_at_all:x",
            "ModuleNotFoundError: No module named 'no_such_package_at_all'; install what",
        ),
        ("entry-point:gone", "AttributeError: module 'sidecar_test_pack.tools' has no attribute 'nobody'"),
    ],
)
async def test_what_is_not_there_is_named(packages: Path, entry: str, reason: str) -> None:
    assert reason in (await refused(entry)).message


async def test_an_error_in_a_package_is_told_with_its_file_and_line(packages: Path) -> None:
    error = await refused("entry-point:broken")
    file = packages / "sidecar_test_pack/broken.py"
    assert error.message.startswith(f"tools: entry-point:broken: {file}:1: ZeroDivisionError: division by zero; ")
    assert error.data == {"path": "tools", "file": str(file), "line": 1}


async def test_an_entry_point_that_nobody_offers_is_told_with_those_that_are(packages: Path) -> None:
    message = (await refused("entry-point:every")).message
    assert message.startswith("tools: entry-point:every: no package in ")
    assert message.endswith(f"offers it in the group {ENTRY_POINTS}; offered are: all, broken, gone, one")


async def test_an_entry_point_that_several_packages_offer_is_ambiguous(packages: Path) -> None:
    info = packages / "sidecar_other_pack-2.0.dist-info"
    written(info, "Metadata-Version: 2.1\nName: sidecar-other-pack\nVersion: 2.0\n", "METADATA")
    written(info, f"[{ENTRY_POINTS}]\none = sidecar_test_pack.tools:greet\n", "entry_points.txt")
    assert (await refused("entry-point:one")).message == (
        "tools: entry-point:one: several packages offer it: sidecar-other-pack, sidecar-test-pack; "
        "name what is meant as 'module:name'"
    )


# The form of an entry -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry", ["a.py", "../a b.py", "C:\\tools\\a.py", "a:b", "a.b:c.d", "entry-point:any name"]
)
def test_an_entry_is_a_file_a_member_or_an_entry_point(entry: str) -> None:
    assert fault_of_entry(entry) is None


@pytest.mark.parametrize(
    "entry", ["", "a", "a.b", "a.txt", "a:", ":b", "a-b:c", "a:b()", "entry-point:", "a..b:c"]
)
async def test_anything_else_is_none(entry: str) -> None:
    reason = f"{entry!r} is neither a .py file nor written as 'module:name' or 'entry-point:NAME'"
    assert fault_of_entry(entry) == reason
    assert (await refused(entry)).message == f"tools: {entry}: {reason}"


def test_only_the_paths_of_files_start_somewhere(tmp_path: Path) -> None:
    assert starting_at(tmp_path, "tools/a.py") == str(tmp_path / "tools/a.py")
    assert starting_at(tmp_path, "/a.py") == "/a.py"
    assert starting_at(tmp_path, "~/a.py") == str(Path.home() / "a.py")
    assert starting_at(tmp_path, "~nobody-at-all/a.py") == str(tmp_path / "~nobody-at-all/a.py")
    assert starting_at(tmp_path, "a.b:c") == "a.b:c"
