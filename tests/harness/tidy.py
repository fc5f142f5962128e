"""The rules about the source, each a pure function from a parsed module to its complaints.

`tests/test_tidy.py` runs them over the tree and shows that each can fail. The tables at the top are the rules'
content; a change of architecture is a change of a table.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).resolve().parents[2]

MAY_IMPORT: dict[str, frozenset[str]] = {
    "protocol": frozenset(),
    "web": frozenset({"protocol"}),
    "config_files": frozenset({"protocol"}),
    "permissions": frozenset({"protocol"}),
    "providers": frozenset({"web", "protocol"}),
    "mcp": frozenset({"web", "protocol"}),
    "store": frozenset({"protocol"}),
    "tools": frozenset({"permissions", "mcp", "store", "web", "protocol"}),
    "agent": frozenset({"tools", "permissions", "providers", "mcp", "store", "protocol"}),
    "server": frozenset({"agent", "tools", "permissions", "providers", "mcp", "store", "protocol"}),
    "config": frozenset(
        {"agent", "tools", "permissions", "providers", "mcp", "store", "config_files", "protocol"}
    ),
    "workspace": frozenset({"config", "config_files", "server", "protocol"}),
    "app": frozenset(
        {
            "workspace",
            "config",
            "config_files",
            "server",
            "agent",
            "tools",
            "permissions",
            "providers",
            "mcp",
            "store",
            "protocol",
        }
    ),
    "schema": frozenset({"config", "mcp", "protocol"}),
    "conformance": frozenset({"schema", "protocol"}),
    "cli": frozenset({"schema", "conformance", "sidecar_client", "config_files", "protocol"}),
    "__main__": frozenset({"app", "cli"}),
    "__init__": frozenset({"agent", "tools", "permissions", "providers", "mcp", "store", "protocol"}),
    "sidecar_client": frozenset(),
}
"""Which parts of the project a package or top-level module may import, besides itself."""

THIRD_PARTY: dict[str, frozenset[str]] = {
    "protocol": frozenset({"attrs", "cattrs"}),
    "web": frozenset({"attrs", "httpx"}),
    "config_files": frozenset({"attrs"}),
    "permissions": frozenset({"attrs"}),
    "providers": frozenset({"attrs", "httpx", "httpx_sse"}),
    "mcp": frozenset({"attrs", "httpx", "httpx_sse", "jwt", "cryptography", "keyring"}),
    "store": frozenset({"attrs"}),
    "tools": frozenset({"attrs", "cattrs", "jsonschema", "referencing", "regex", "docstring_parser"})
    | {"pathspec", "charset_normalizer", "markdownify", "send2trash"},
    "agent": frozenset({"attrs"}),
    "server": frozenset({"attrs", "cattrs", "pygls", "lsprotocol"}),
    "config": frozenset({"attrs", "platformdirs"}),
    "workspace": frozenset({"attrs"}),
    "app": frozenset({"attrs", "platformdirs"}),
    "schema": frozenset({"attrs"}),
    "conformance": frozenset({"attrs"}),
    "cli": frozenset({"attrs", "platformdirs", "tomlkit"}),
    "__main__": frozenset(),
    "__init__": frozenset(),
    "sidecar_client": frozenset(),
}
"""Which libraries a package may import. A foreign vocabulary lives in one package only."""

LAZY_IMPORTS: dict[tuple[str, str], str] = {
    ("sidecar/__init__.py", "EXPORTS[name]"): "a name of the embedding API, imported when it is first used",
    ("sidecar/__main__.py", "sidecar.cli"): "serving needs nothing of the command line",
    ("sidecar/__main__.py", "sidecar.app"): "the command line needs nothing of the server",
    ("sidecar/cli/__init__.py", "sidecar.cli.runner"): "asyncio, for which --version has no use",
    ("sidecar/cli/runner.py", "module"): "a command, imported when it is run",
    ("sidecar/cli/chat.py", "readline"): "its import makes input() edit; Windows has none",
    ("sidecar/providers/__init__.py", "sidecar.providers.openai_chat"): "httpx, 90 ms",
    ("sidecar/providers/__init__.py", "sidecar.providers.anthropic"): "httpx, 90 ms",
    ("sidecar/providers/__init__.py", "sidecar.providers.replay"): "its shapes, 5 ms, for those who replay",
    ("sidecar/providers/__init__.py", "sidecar.providers.recording"): "as replay, for those who record",
    ("sidecar/mcp/life.py", "sidecar.mcp.http_transport"): "httpx, 90 ms, and needed for servers with a url alone",
    ("sidecar/mcp/life.py", "sidecar.mcp.http_sse_transport"): "as the one above",
    ("sidecar/mcp/oauth/sign_ins.py", "sidecar.mcp.oauth.authorization"): "httpx, for servers with a url alone",
    ("sidecar/mcp/oauth/signing.py", "sidecar.mcp.oauth.jose"): "PyJWT, 150 ms, for servers that want a signature",
    ("sidecar/mcp/oauth/system_keyring.py", "keyring"): "400 ms, and needed by servers with OAuth alone",
    ("sidecar/server/lean_lsp.py", "lsprotocol.types"): "its classes are made under a condition",
    ("sidecar/tools/arguments.py", "jsonschema"): "100 ms, and needed by the first call alone",
    ("sidecar/tools/arguments.py", "jsonschema.validators"): "as jsonschema",
    ("sidecar/tools/arguments.py", "referencing"): "as jsonschema",
    ("sidecar/tools/arguments.py", "sidecar.tools.bounded_check"): "jsonschema again",
    ("sidecar/tools/bounded_check.py", "regex"): "30 ms, and needed for schemas with patterns alone",
    ("sidecar/tools/schema.py", "docstring_parser"): "15 ms, and needed by who makes tools of functions alone",
    ("sidecar/tools/loading.py", "module"): "a module that the user named",
    ("sidecar/tools/loading.py", "importlib.metadata"): "20 ms, and needed by who names an entry point alone",
    ("sidecar/tools/builtin/find_files.py", "sidecar.tools.builtin.tree"): "pathspec, 60 ms",
    ("sidecar/tools/builtin/search_text.py", "sidecar.tools.builtin.searching"): "pathspec and regex, 90 ms",
    ("sidecar/tools/builtin/fetch_url.py", "sidecar.web.addresses"): "httpx, 90 ms",
    ("sidecar/tools/builtin/fetch_url.py", "sidecar.web.fetching"): "httpx, 90 ms",
    ("sidecar/tools/builtin/fetch_url.py", "sidecar.tools.builtin.page_text"): "an HTML parser, 150 ms",
    ("sidecar/tools/builtin/delete.py", "send2trash"): "50 ms, and needed by deletions alone",
    ("sidecar/tools/builtin/decoding.py", "charset_normalizer"): "60 ms, and needed for old encodings alone",
    ("sidecar/tools/builtin/unified_diff.py", "difflib"): "10 ms, and needed by edits alone",
    ("sidecar/store/database.py", "sqlite3"): "10 ms, and needed when something is first kept or read",
    ("sidecar/tools/registry.py", "difflib"): "10 ms, and needed for invented tool names alone",
}
"""Imports inside functions: (file, module) and the reason, which is start-up time almost always."""

SLEEPS: dict[tuple[str, str], str] = {
    ("tests/bench/mcp_side.py", "one_huge"): "the beat that is measured",
    ("tests/bench/bench_invoke.py", "pause"): "the calls that are measured take time and do nothing else",
}
"""Sleeps in tests: (file, outermost function or class) and the reason why no event can be waited for."""

LONG_MODULES: dict[str, str] = {
    "sidecar/protocol/messages.py": "one page of params and results, in the order of protocol.md, no code",
}
"""Modules over the limit, and why they read better whole."""

MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 400
MAX_TEST_MODULE_LINES = 700
"""Tests are read from top to bottom and hold data; a module of the product is read back and forth."""

FORBIDDEN_WORDS = (
    r"(?<![\w.-])/(wor[k]|roo[t])/",
    r"/tmp/(ven[v]|brie[f])\b",
    r"\.\./share[d]\b",
    r"\bprotocol-outlin[e]\b|\bmissio[n]\.md\b",
    r"\b(pyp[i]\.org|pythonhoste[d]\.org|npmj[s]\.org|crate[s]\.io|prox[y]\.golang\.org)\b",
    r"\b[Ii]ssue[s]? #?\d+\b",
)
"""Regular expressions of what the project does not speak of: machines, registries, how it was made."""

_MOCKS = {"mock", "Mock", "MagicMock", "AsyncMock", "mocker", "pytest_mock"}
_PATCHES = {"setattr", "delattr", "setitem", "delitem", "patch"}
_VAGUE_NAMES = re.compile(r"(Manager|Helper|Helpers|Util|Utils)$")
_WELL_KNOWN_NAMES = {"McpManager"}


@frozen
class Module:
    """A source file: where it lies from the project's root, its text, its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The part of the project it belongs to: a key of MAY_IMPORT for `sidecar` and its client."""
        parts = Path(self.path).with_suffix("").parts
        if parts[0] == "sidecar":
            return parts[1]
        return parts[2] if parts[:2] == ("clients", "python") else parts[0]


def parse(path: str, text: str) -> Module:
    """The module as the rules take it."""
    return Module(path, text, ast.parse(text, filename=path))


# Imports ------------------------------------------------------------------------------------------------


def imports_against_the_direction(module: Module) -> Iterator[str]:
    """A package imports from packages below it only."""
    if module.package not in MAY_IMPORT:
        yield f"{module.path}: {module.package!r} has no row in MAY_IMPORT"
        return
    for line, name in _imported(module):
        target = _project_part(name)
        if target not in {None, "__version__", module.package, *MAY_IMPORT[module.package]}:
            yield f"{module.path}:{line}: {module.package} must not import {name}"


def foreign_libraries(module: Module) -> Iterator[str]:
    """A library is imported only where its vocabulary belongs."""
    allowed = THIRD_PARTY.get(module.package, frozenset())
    for line, name in _imported(module):
        top = name.partition(".")[0]
        if _project_part(name) is None and top not in sys.stdlib_module_names and top not in allowed:
            yield f"{module.path}:{line}: {module.package} must not import {top}"


def imports_inside_functions(module: Module) -> Iterator[str]:
    """Imports stand at the top, so that a cycle shows at once; LAZY_IMPORTS lists the exceptions."""
    for line, name in lazy_imports(module):
        if (module.path, name) not in LAZY_IMPORTS:
            yield f"{module.path}:{line}: {name} is imported inside a function and is not in LAZY_IMPORTS"


def lazy_imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and name of each import inside a function, `import_module("…")` included."""
    for function in _functions(module.tree):
        for node in ast.walk(function):
            yield from _names_of_import(node, module.path)
            if isinstance(node, ast.Call) and _last_name(node.func) == "import_module":
                yield node.lineno, ast.unparse(node.args[0]).strip("'\"") if node.args else ""


def type_checking_blocks(module: Module) -> Iterator[str]:
    """Needing TYPE_CHECKING means that a layer is wrong."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.alias) and _last_name(node) == "TYPE_CHECKING":
            yield f"{module.path}:{getattr(node, 'lineno', 1)}: TYPE_CHECKING"


def _imported(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        yield from _names_of_import(node, module.path)


def _names_of_import(node: ast.AST, path: str) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Import(names=names):
            yield from ((node.lineno, alias.name) for alias in names)
        case ast.ImportFrom(module="sidecar", level=0, names=names):
            yield from ((node.lineno, f"sidecar.{alias.name}") for alias in names)
        case ast.ImportFrom(module=str(name), level=0):
            yield node.lineno, name
        case ast.ImportFrom(module=name, level=level):
            base = Path(path).parts[: -level or None]
            yield node.lineno, ".".join((*base, *([name] if name else [])))


def _project_part(name: str) -> str | None:
    """Which part of the project a dotted name belongs to; None for a library."""
    parts = name.split(".")
    if parts[0] == "sidecar":
        return parts[1] if len(parts) > 1 else "__init__"
    return "sidecar_client" if parts[0] == "sidecar_client" else None


# Shape of the code --------------------------------------------------------------------------------------


def long_functions(module: Module) -> Iterator[str]:
    """A function holds one thought."""
    for function in _functions(module.tree):
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > MAX_FUNCTION_LINES:
            yield f"{module.path}:{function.lineno}: {function.name} has {lines} lines"


def long_modules(module: Module) -> Iterator[str]:
    """A module is read in one go; LONG_MODULES lists the exceptions."""
    if is_long(module) and module.path not in LONG_MODULES:
        lines = module.text.count("\n")
        yield f"{module.path}: {lines} lines"


def is_long(module: Module) -> bool:
    """Whether a module is over its limit."""
    limit = MAX_TEST_MODULE_LINES if module.path.startswith("tests/") else MAX_MODULE_LINES
    return module.text.count("\n") > limit


def missing_docstrings(module: Module) -> Iterator[str]:
    """Modules, public classes and public functions say what they are for.

    Methods too, except where a base class says it already; properties are told by their names.
    """
    if not ast.get_docstring(module.tree):
        yield f"{module.path}:1: the module has no docstring"
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _undocumented(module, node, node.name)
            for method in () if node.bases else _public_functions(node):
                yield from _undocumented(module, method, f"{node.name}.{method.name}")
    for function in _public_functions(module.tree):
        yield from _undocumented(module, function, function.name)


def vague_class_names(module: Module) -> Iterator[str]:
    """A class is named for what it is, not for managing or helping."""
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.ClassDef)
            and _VAGUE_NAMES.search(node.name)
            and node.name not in _WELL_KNOWN_NAMES
        ):
            yield f"{module.path}:{node.lineno}: {node.name} does not say what it is"


def prints(module: Module) -> Iterator[str]:
    """stdout carries frames only; the command line alone writes for people."""
    if module.package == "cli":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "print":
            yield f"{module.path}:{node.lineno}: print"


def unexplained_catches(module: Module) -> Iterator[str]:
    """Catching everything is for named boundaries, with the reason on the line."""
    for number, line in enumerate(module.text.splitlines(), 1):
        if re.search(r"# noqa: BLE001\W*$", line):
            yield f"{module.path}:{number}: a broad except without its reason"


def wrong_loggers(module: Module) -> Iterator[str]:
    """Loggers are named for their package, so that a host can set their levels."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "getLogger":
            name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if name not in ("pygls", "sidecar", module.package, f"sidecar.{module.package}"):
                yield f"{module.path}:{node.lineno}: logger {name!r} instead of 'sidecar.{module.package}'"


def _public_functions(owner: ast.ClassDef | ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those that need words of their own: no properties, no spellings of an overloaded function."""
    for member in owner.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
            decorators = set(map(_last_name, member.decorator_list))
            if not decorators & {"property", "overload", "setter"}:
                yield member


def _undocumented(
    module: Module, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[str]:
    if not ast.get_docstring(node):
        yield f"{module.path}:{node.lineno}: {name} has no docstring"


# Tests --------------------------------------------------------------------------------------------------


def mocks(module: Module) -> Iterator[str]:
    """Tests use real parts. `monkeypatch` is for the environment alone."""
    for node in ast.walk(module.tree):
        names = {_last_name(node)} if isinstance(node, ast.Name | ast.Attribute | ast.alias | ast.arg) else set()
        if names & _MOCKS or (isinstance(node, ast.ImportFrom) and "mock" in (node.module or "").split(".")):
            yield f"{module.path}:{getattr(node, 'lineno', 1)}: a mock"
        match node:
            case ast.Attribute(value=ast.Name(id="monkeypatch"), attr=attr) if attr in _PATCHES:
                yield f"{module.path}:{node.lineno}: monkeypatch.{attr} replaces a part of the program"


def sleeps(module: Module) -> Iterator[str]:
    """A test waits for what it is about; SLEEPS lists the exceptions. `asyncio.sleep(0)` waits for nothing."""
    for line, function in sleeping_functions(module):
        if (module.path, function) not in SLEEPS:
            yield f"{module.path}:{line}: {function or 'the module'} sleeps"


def sleeping_functions(module: Module) -> Iterator[tuple[int, str]]:
    """Line of each sleep and the outermost function or class it stands in."""
    for top in module.tree.body:
        for node in ast.walk(top):
            if isinstance(node, ast.Call) and _last_name(node.func) == "sleep" and not _is_zero(node):
                yield node.lineno, getattr(top, "name", "")


def _is_zero(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


# Every tracked file -------------------------------------------------------------------------------------


def forbidden_words(path: str, text: str) -> Iterator[str]:
    """The project speaks of itself alone."""
    for number, line in enumerate(text.splitlines(), 1):
        for pattern in FORBIDDEN_WORDS:
            if found := re.search(pattern, line):
                yield f"{path}:{number}: {found.group()!r}"


def unmapped_parts(architecture: str, parts: set[str]) -> Iterator[str]:
    """The code map names each part (`tools/`, `app.py`), and no part that is not there."""
    named = set(re.findall(r"^\| `([\w/.]+)` \|", architecture, re.MULTILINE))
    yield from (f"sidecar/{part} is not in the code map" for part in sorted(parts - named))
    yield from (f"the code map names {part}, which is not there" for part in sorted(named - parts))


# Syntax trees -------------------------------------------------------------------------------------------


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _last_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) | ast.arg(arg=name):
            return name.rpartition(".")[2]
        case _:
            return ""
