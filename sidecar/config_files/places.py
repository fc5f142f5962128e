"""Where other programs keep their MCP servers, on each platform. Pure: nothing is looked at here."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PROGRAMS = ("claude-desktop", "claude-code", "vscode", "cursor", "windsurf", "zed", "cline", "roo", "gemini")
"""The programs whose files are known, in the order in which they are looked at."""

_IN_WORKSPACE: Mapping[str, tuple[str, ...]] = {
    "claude-code": (".mcp.json",),
    "vscode": (".vscode/mcp.json", ".vscode/settings.json"),
    "cursor": (".cursor/mcp.json",),
    "zed": (".zed/settings.json",),
    "roo": (".roo/mcp.json",),
    "gemini": (".gemini/settings.json",),
}

_IN_HOME: Mapping[str, tuple[str, ...]] = {
    "claude-code": (".claude.json",),
    "cursor": (".cursor/mcp.json",),
    "windsurf": (".codeium/windsurf/mcp_config.json",),
    "gemini": (".gemini/settings.json",),
}

_IN_CODE: Mapping[str, tuple[str, ...]] = {
    "vscode": ("User/mcp.json", "User/settings.json"),
    "cline": ("User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",),
    "roo": ("User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",),
}
"""Below the folder of VS Code, and of those built from it."""

_CODES = ("Code", "Code - Insiders", "VSCodium")


class Place(NamedTuple):
    """A file that a program may have."""

    program: str
    file: Path


def places(
    environ: Mapping[str, str], *, home: Path, workspace: Path | None, platform: str = sys.platform
) -> Iterator[Place]:
    """All files of all programs, the workspace's first, which a program itself lets outweigh the others.

    `platform` is as `sys.platform` has it.
    """
    data = _application_data(environ, home, platform)
    for program in PROGRAMS:
        if workspace is not None:
            yield from (_place(program, workspace, path) for path in _IN_WORKSPACE.get(program, ()))
        own_home = home
        if program == "claude-code" and environ.get("CLAUDE_CONFIG_DIR"):
            own_home = Path(environ["CLAUDE_CONFIG_DIR"])
        yield from (_place(program, own_home, path) for path in _IN_HOME.get(program, ()))
        yield from (_place(program, data / code, path) for code in _CODES for path in _IN_CODE.get(program, ()))
        if program == "claude-desktop":
            yield _place(program, data, "Claude/claude_desktop_config.json")
        if program == "zed":
            # Zed keeps to `.config` on macOS, too.
            folder = data / "Zed" if platform == "win32" else _config_home(environ, home) / "zed"
            yield _place(program, folder, "settings.json")


def _application_data(environ: Mapping[str, str], home: Path, platform: str) -> Path:
    match platform:
        case "win32":
            return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        case "darwin":
            return home / "Library" / "Application Support"
        case _:
            return _config_home(environ, home)


def _config_home(environ: Mapping[str, str], home: Path) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _place(program: str, folder: Path, path: str) -> Place:
    return Place(program=program, file=folder / path)
