"""The embedding API is one list: in the package, in its stub, and in README.md; and each name says what it is.

Source: README.md, In Python.
"""

import ast
import importlib
import inspect
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sidecar

PACKAGE = Path(sidecar.__file__).parent
README = (PACKAGE.parent / "README.md").read_text(encoding="utf-8")


def test_the_package_offers_what_readme_lists_and_nothing_else() -> None:
    section = README[README.index("| to | import from `sidecar` |") : README.index("Each name has a docstring")]
    documented = re.findall(r"`(\w+)`", section.partition("|---|---|")[2])
    assert sorted(documented) == sorted(sidecar.EXPORTS)
    assert sidecar.__all__ == ["__version__", *sidecar.EXPORTS]
    assert dir(sidecar) == sorted(sidecar.__all__)


def test_the_stub_names_what_the_package_offers_from_where_it_comes() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imported = {
        alias.name: node.module for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == sidecar.EXPORTS
    assert all(
        alias.name == alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )


@pytest.mark.parametrize("name", sidecar.EXPORTS)
def test_a_name_is_defined_where_the_list_says_and_has_a_docstring(name: str) -> None:
    value, module = getattr(sidecar, name), importlib.import_module(sidecar.EXPORTS[name])
    assert value is getattr(module, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert value.__module__ == module.__name__
        assert vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    else:
        assert explained(module.__file__ or "", name), f"{name} has no docstring below its assignment"


def explained(file: str, name: str) -> bool:
    """Whether a string stands right below the assignment of a value that cannot have a docstring itself."""
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    for node, below in itertools.pairwise(body):
        match node, below:
            case (
                ast.Assign(targets=[ast.Name(id=given)]) | ast.AnnAssign(target=ast.Name(id=given)),
                ast.Expr(value=ast.Constant(value=str())),
            ) if given == name:
                return True
    return False


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'sidecar' has no attribute 'nothing_like_it'"):
        _ = sidecar.nothing_like_it


def test_importing_the_package_imports_none_of_it() -> None:
    """A name costs what it needs, when it is first used."""
    program = "import sys, sidecar; print([name for name in sys.modules if name.startswith('sidecar.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "[]\n"
