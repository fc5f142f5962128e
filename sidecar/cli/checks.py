"""What `doctor` finds out without a sidecar: versions, the configuration file, variables, folders. Values out.

A check never shows what a key variable holds.
"""

import importlib.metadata
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import platformdirs

from sidecar import __version__
from sidecar.config_files.trust import TrustBook
from sidecar.config_files.workspace import read_workspace

JsonObject = dict[str, Any]
Status = Literal["ok", "warn", "fail"]

OLDEST_PYTHON = (3, 11)

PACKAGES = ("pygls", "attrs", "cattrs", "httpx", "httpx-sse", "jsonschema", "platformdirs", "tomlkit")

KEY_VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY")
PLACE_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_MODEL", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "OLLAMA_HOST")
"""The variables that providers known by name look at; see README.md."""

KNOWN_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "": (
        "model",
        "system",
        "providers",
        "mcpServers",
        "inputs",
        "permissions",
        "cycle",
        "store",
        "builtinTools",
        "tools",
        "workspaceFolders",
        "maxFrameBytes",
        "trustWorkspace",
    ),
    "providers.*": (
        "api",
        "baseUrl",
        "apiKey",
        "apiKeyEnv",
        "headers",
        "timeoutSecs",
        "connectTimeoutSecs",
        "idleTimeoutSecs",
        "contextTokens",
        "parameters",
        "file",
        "record",
    ),
    "permissions": ("allowed", "denied", "ask", "allowUnspecified", "rules"),
    "cycle": (
        "maxTurns",
        "toolTimeoutSecs",
        "maxToolResultBytes",
        "errorPolicy",
        "repeatWarning",
        "repeatLimit",
        "maxRetries",
        "maxRetryDelaySecs",
        "summary",
        "serverWaitSecs",
        "approvalTimeoutSecs",
    ),
    "store": ("path", "maxAgeDays", "maxBytes"),
}
"""The options by table, as in protocol.md. The sidecar passes over others; here they are most likely misspelt."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One finding. `fix` says what to do about it."""

    status: Status
    subject: str
    message: str
    fix: str = ""


def versions() -> Iterator[Check]:
    """Python and the packages that the sidecar is made of."""
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        yield Check(status="fail", subject="python", message=version, fix="use Python 3.11 or newer")
    else:
        yield Check(status="ok", subject="python", message=f"{version} at {sys.executable}")
    found, missing = [f"agent-sidecar {__version__}"], []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        fix = "install it again: pip install --force-reinstall agent-sidecar"
        yield Check(status="fail", subject="packages", message=f"not found: {', '.join(missing)}", fix=fix)
    yield Check(status="ok", subject="packages", message=", ".join(found))


def configuration(file: Path, *, is_given: bool) -> tuple[list[Check], JsonObject]:
    """The configuration file: whether it is there, parses, and holds nothing unknown; and what it holds.

    Types are the sidecar's to check, which says so when it starts.
    """
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if is_given:
            return [_config("fail", f"{file}: there is no such file", "correct --config")], {}
        return [_config("ok", f"none at {file}; all options are at their defaults")], {}
    except (OSError, UnicodeDecodeError) as error:
        return [_config("fail", f"{file}: cannot be read: {error}", "make it a UTF-8 file that you may read")], {}
    except tomllib.TOMLDecodeError as error:
        return [_config("fail", f"{file}: {error}", "mend the TOML there")], {}
    unknown = list(_unknown_options(raw))
    if not unknown:
        return [_config("ok", str(file))], raw
    fix = "look for a slip of the pen; unknown options do nothing"
    return [_config("warn", f"{file}: unknown option {name}", fix) for name in unknown], raw


def user_configuration() -> Path:
    """Where the sidecar looks for the user's own file."""
    return Path(platformdirs.user_config_dir("agent-sidecar", appauthor=False)) / "config.toml"


def _config(status: Status, message: str, fix: str = "") -> Check:
    return Check(status=status, subject="configuration", message=message, fix=fix)


def _unknown_options(raw: JsonObject) -> Iterator[str]:
    for place, known in KNOWN_OPTIONS.items():
        for path, table in _tables_at(raw, place):
            yield from (f"{path}.{name}".lstrip(".") for name in table if name not in known)


def _tables_at(raw: JsonObject, place: str) -> Iterator[tuple[str, JsonObject]]:
    """The tables that `place` names, each with its path; `*` stands for every name."""
    if place == "":
        yield "", raw
        return
    name, _, rest = place.partition(".")
    table = raw.get(name)
    if isinstance(table, dict) and not rest:
        yield name, table
    elif isinstance(table, dict):
        yield from ((f"{name}.{key}", inner) for key, inner in table.items() if isinstance(inner, dict))


def variables(config: JsonObject, environ: Mapping[str, str]) -> Iterator[Check]:
    """Which key variables are set. What they hold is nobody's business."""
    providers = config.get("providers")
    wanted = {
        str(options["apiKeyEnv"]): name
        for name, options in (providers.items() if isinstance(providers, dict) else ())
        if isinstance(options, dict) and options.get("apiKeyEnv")
    }
    for variable, provider in wanted.items():
        if environ.get(variable):
            yield Check(status="ok", subject="keys", message=f"{variable} is set, for provider {provider!r}")
        else:
            fix = "put the key into it, where you start the editor"
            message = f"{variable} is not set; provider {provider!r} takes its key from there"
            yield Check(status="warn", subject="keys", message=message, fix=fix)
    known = [variable for variable in (*KEY_VARIABLES, *PLACE_VARIABLES) if variable not in wanted]
    set_ones = [variable for variable in known if environ.get(variable)]
    others = [variable for variable in known if variable not in set_ones]
    if set_ones:
        yield Check(status="ok", subject="keys", message=f"set: {', '.join(set_ones)}")
    if others:
        yield Check(status="ok", subject="keys", message=f"not set: {', '.join(others)}")


def workspace(folder: Path, book: TrustBook) -> Iterator[Check]:
    """What the workspace brings along, and whether it is used."""
    found = read_workspace(folder)
    for reason in (*found.refused, *(warning for file in found.files for warning in file.warnings)):
        yield Check(status="warn", subject="workspace", message=reason)
    if not found.says_something:
        return
    names = ", ".join(file.name for file in found.files)
    match book.standing(found.folder, found.digests):
        case "trusted":
            yield Check(status="ok", subject="workspace", message=f"{names}: trusted as they are")
        case "never":
            yield Check(status="ok", subject="workspace", message=f"{names}: not used, as you decided")
        case _:
            fix = "agent-sidecar trust shows what is in there, and asks"
            yield Check(status="warn", subject="workspace", message=f"{names}: not trusted, not used", fix=fix)


def folders() -> Iterator[Check]:
    """Where sessions will be kept, and whether that can be written."""
    data = Path(platformdirs.user_data_dir("agent-sidecar", appauthor=False))
    existing = next((folder for folder in (data, *data.parents) if folder.exists()), data)
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        yield Check(status="ok", subject="data folder", message=f"{data} can be written")
    else:
        fix = f"make {existing} writable, or set HOME (or XDG_DATA_HOME) to a folder that is"
        yield Check(status="warn", subject="data folder", message=f"{data} cannot be written", fix=fix)
