"""The rules about the source hold, and each of them is able to fail.

Source: `sidecar/ARCHITECTURE.md` (imports, code map, invariants); everything else is our own choice of style.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import attrs
import pytest

from sidecar.protocol import errors, events, messages, methods, values
from tests.harness import tidy
from tests.harness.tidy import ROOT, Module, parse

Rule = Callable[[Module], Iterator[str]]

PRODUCT_RULES: tuple[Rule, ...] = (
    tidy.imports_against_the_direction,
    tidy.foreign_libraries,
    tidy.imports_inside_functions,
    tidy.missing_docstrings,
    tidy.vague_class_names,
    tidy.prints,
    tidy.unexplained_catches,
    tidy.wrong_loggers,
)
TEST_RULES: tuple[Rule, ...] = (tidy.mocks, tidy.sleeps)
COMMON_RULES: tuple[Rule, ...] = (tidy.type_checking_blocks, tidy.long_functions, tidy.long_modules)


@cache
def files() -> tuple[str, ...]:
    """Every file that is or would be tracked, from the project's root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return tuple(sorted(name for name in set(listed.stdout.splitlines()) if (ROOT / name).is_file()))


@cache
def modules() -> tuple[Module, ...]:
    return tuple(parse(name, (ROOT / name).read_text("utf-8")) for name in files() if name.endswith(".py"))


def product() -> list[Module]:
    return [module for module in modules() if module.path.startswith(("sidecar/", "clients/python/"))]


def suite() -> list[Module]:
    return [module for module in modules() if module.path.startswith("tests/")]


def complaints(rule: Rule, subjects: list[Module]) -> list[str]:
    return [complaint for module in subjects for complaint in rule(module)]


def name_of(rule: Rule) -> str:
    return rule.__name__


# The tree -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", PRODUCT_RULES, ids=name_of)
def test_the_product_has_no(rule: Rule) -> None:
    assert complaints(rule, product()) == []


@pytest.mark.parametrize("rule", TEST_RULES, ids=name_of)
def test_the_tests_have_no(rule: Rule) -> None:
    assert complaints(rule, suite()) == []


@pytest.mark.parametrize("rule", COMMON_RULES, ids=name_of)
def test_no_module_has(rule: Rule) -> None:
    assert complaints(rule, list(modules())) == []


def test_every_exception_to_a_rule_is_still_needed() -> None:
    lazy = {(module.path, name) for module in product() for _, name in tidy.lazy_imports(module)}
    asleep = {(module.path, function) for module in suite() for _, function in tidy.sleeping_functions(module)}
    long = {module.path for module in modules() if tidy.is_long(module)}
    assert tidy.LAZY_IMPORTS.keys() - lazy == set()
    assert tidy.SLEEPS.keys() - asleep == set()
    assert tidy.LONG_MODULES.keys() - long == set()


def test_no_tracked_file_speaks_of_machines_registries_or_how_it_was_made() -> None:
    found = []
    for name in files():
        if name.startswith(".ci/"):  # What prepares a machine has to name what is on it.
            continue
        try:
            found += tidy.forbidden_words(name, (ROOT / name).read_text("utf-8"))
        except UnicodeDecodeError:
            continue
    assert found == []


def test_the_code_map_names_every_part() -> None:
    top = ROOT / "sidecar"
    packages = {f"{path.parent.relative_to(top)}/" for path in top.glob("*/**/__init__.py")}
    parts = packages | {path.name for path in top.glob("*.py")}
    assert list(tidy.unmapped_parts((ROOT / "sidecar/ARCHITECTURE.md").read_text("utf-8"), parts)) == []


# The rules can fail -------------------------------------------------------------------------------------

VIOLATIONS = [
    (tidy.imports_against_the_direction, "sidecar/tools/x.py", "from sidecar.providers.base import Provider"),
    (tidy.imports_against_the_direction, "sidecar/mcp/x.py", "import sidecar.permissions.model"),
    (tidy.imports_against_the_direction, "sidecar/permissions/x.py", "from sidecar.mcp import client"),
    (tidy.imports_against_the_direction, "sidecar/protocol/x.py", "from sidecar import tools"),
    (tidy.imports_against_the_direction, "sidecar/protocol/x.py", "from ..tools import base"),
    (tidy.imports_against_the_direction, "sidecar/agent/x.py", "def f():\n    import sidecar.server.rpc"),
    (tidy.imports_against_the_direction, "sidecar/server/handlers/x.py", "from sidecar.config import Options"),
    (tidy.imports_against_the_direction, "sidecar/cli/x.py", "from sidecar.agent.cycle import LlmCycle"),
    (tidy.imports_against_the_direction, "sidecar/agent/x.py", "from sidecar import ToolRegistry"),
    (tidy.imports_against_the_direction, "sidecar/newcomer/x.py", "import json"),
    (tidy.imports_against_the_direction, "clients/python/sidecar_client/x.py", "import sidecar.app"),
    (tidy.foreign_libraries, "sidecar/agent/x.py", "from pygls.lsp.server import LanguageServer"),
    (tidy.foreign_libraries, "sidecar/app.py", "import lsprotocol.types"),
    (tidy.foreign_libraries, "sidecar/server/x.py", "import httpx"),
    (tidy.foreign_libraries, "sidecar/protocol/x.py", "import jsonschema"),
    (tidy.foreign_libraries, "sidecar/mcp/x.py", "import requests"),
    (tidy.imports_inside_functions, "sidecar/tools/x.py", "def f():\n    import jsonschema"),
    (tidy.imports_inside_functions, "sidecar/tools/x.py", "async def f():\n    from json import dumps"),
    (tidy.imports_inside_functions, "sidecar/tools/x.py", "def f():\n    importlib.import_module('json')"),
    (tidy.type_checking_blocks, "sidecar/tools/x.py", "import typing\nif typing.TYPE_CHECKING:\n    pass"),
    (tidy.type_checking_blocks, "tests/x.py", "from typing import TYPE_CHECKING"),
    (tidy.long_functions, "sidecar/tools/x.py", "def f():\n" + "    pass\n" * tidy.MAX_FUNCTION_LINES),
    (tidy.long_modules, "sidecar/tools/x.py", "\n" * (tidy.MAX_MODULE_LINES + 1)),
    (tidy.long_modules, "tests/x.py", "\n" * (tidy.MAX_TEST_MODULE_LINES + 1)),
    (tidy.missing_docstrings, "sidecar/tools/x.py", "x = 1"),
    (tidy.missing_docstrings, "sidecar/tools/x.py", '"""Doc."""\nclass Public:\n    pass'),
    (tidy.missing_docstrings, "sidecar/tools/x.py", '"""Doc."""\nasync def public(): ...'),
    (
        tidy.missing_docstrings,
        "sidecar/tools/x.py",
        '"""D."""\nclass Public:\n    """D."""\n    def do(self): ...',
    ),
    (tidy.vague_class_names, "sidecar/tools/x.py", "class ToolManager: ..."),
    (tidy.prints, "sidecar/tools/x.py", "print('hello')"),
    (tidy.unexplained_catches, "sidecar/x.py", "try: ...\nexcept Exception: # noqa" + ": BLE001\n    pass"),
    (tidy.wrong_loggers, "sidecar/tools/x.py", "logging.getLogger(__name__)"),
    (tidy.wrong_loggers, "sidecar/tools/x.py", "logging.getLogger('sidecar.mcp')"),
    (tidy.mocks, "tests/x.py", "from unittest import mock"),
    (tidy.mocks, "tests/x.py", "from unittest.mock import patch"),
    (tidy.mocks, "tests/x.py", "import unittest.mock"),
    (tidy.mocks, "tests/x.py", "def test_x(mocker): ..."),
    (tidy.mocks, "tests/x.py", "def test_x(monkeypatch):\n    monkeypatch.setattr(module, 'name', 1)"),
    (tidy.sleeps, "tests/x.py", "import time\ntime.sleep(1)"),
    (tidy.sleeps, "tests/x.py", "async def test_x():\n    await asyncio.sleep(0.1)"),
]


@pytest.mark.parametrize(("rule", "path", "text"), VIOLATIONS, ids=[f"{r.__name__}-{p}" for r, p, _ in VIOLATIONS])
def test_a_violation_is_named_with_its_file(rule: Rule, path: str, text: str) -> None:
    found = list(rule(parse(path, text)))
    assert found and all(complaint.startswith(path) for complaint in found)


def test_what_follows_the_rules_is_not_complained_about() -> None:
    text = '"""Doc."""\nfrom sidecar import __version__\nfrom sidecar.protocol.codec import encode\n'
    module = parse("sidecar/server/x.py", text)
    assert [complaint for rule in (*PRODUCT_RULES, *COMMON_RULES) for complaint in rule(module)] == []


def test_every_rule_has_been_seen_to_fail() -> None:
    assert {rule for rule, _, _ in VIOLATIONS} == {*PRODUCT_RULES, *TEST_RULES, *COMMON_RULES}


@pytest.mark.parametrize(
    "text",
    [
        "see /wor" + "k/main",
        "in /roo" + "t/x",
        "../share" + "d/y",
        "https://pyp" + "i.org/x",
        "as issue" + " 2 asks",
    ],
)
def test_a_forbidden_word_is_named_with_its_line(text: str) -> None:
    (complaint,) = tidy.forbidden_words("a.md", f"fine\n{text}\n")
    assert complaint.startswith("a.md:2: ")


def test_ordinary_words_are_not_forbidden() -> None:
    assert list(tidy.forbidden_words("a.md", "a network/path, an issue of 2 kinds, a root, shared state")) == []


def test_a_code_map_that_is_behind_is_noticed_both_ways() -> None:
    behind = "| `tools/` | tools |\n| `gone/` | what was |\n"
    assert list(tidy.unmapped_parts(behind, {"tools/", "app.py"})) == [
        "sidecar/app.py is not in the code map",
        "the code map names gone/, which is not there",
    ]


# Values and names ---------------------------------------------------------------------------------------

VALUES = [
    member
    for module in (errors, events, messages, methods, values)
    for member in vars(module).values()
    if isinstance(member, type) and attrs.has(member) and member.__module__ == module.__name__
]

NOUNS_AS_PARAMS_OR_RESULTS = {messages.ServerInfo: "a server is told in one shape wherever it occurs"}


@pytest.mark.parametrize("value", VALUES, ids=[value.__name__ for value in VALUES])
def test_a_value_of_the_protocol_is_frozen(value: type) -> None:
    blank = object.__new__(value)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        blank.some_field = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", methods.METHODS.values(), ids=list(methods.METHODS))
def test_a_method_and_its_types_are_named_by_the_rules(method: methods.Method) -> None:
    assert re.fullmatch(r"[a-z]+/[a-z][A-Za-z]*", method.name)
    for shape, ending in ((method.params, "Params"), (method.result, "Result")):
        assert shape is None or shape in NOUNS_AS_PARAMS_OR_RESULTS or shape.__name__.endswith(ending)


@pytest.mark.parametrize("event", events.EVENTS.values(), ids=list(events.EVENTS))
def test_an_event_is_named_as_on_the_wire(event: type) -> None:
    on_the_wire = vars(event)["type"]
    expected = "Warned" if on_the_wire == "warning" else on_the_wire[0].upper() + on_the_wire[1:]
    assert event.__name__ == expected  # `Warning` is taken by Python.


# Linters ------------------------------------------------------------------------------------------------


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "command",
    ["ruff check .", "ruff format --check sidecar clients tests", "mypy"],
    ids=lambda command: " ".join(command.split()[:2]),
)
def test_the_linters_have_nothing_to_say(command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_top_level_holds_what_a_visitor_expects() -> None:
    top = {Path(name).parts[0] for name in files() if not name.startswith(".")}
    assert top - {"pyproject.toml", "sidecar", "clients", "tests", "protocol.md", "README.md", "LICENSE"} == set()
