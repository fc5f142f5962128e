"""Where other programs keep their servers, by platform. Source: their own documents, November 2026."""

from pathlib import Path

import pytest

from sidecar.config_files.places import PROGRAMS, places

HOME = Path("/home/ada")
REPO = Path("/repo")


def files(program: str, platform: str, workspace: Path | None = None, **environ: str) -> list[str]:
    found = places(environ, home=HOME, workspace=workspace, platform=platform)
    return [str(place.file) for place in found if place.program == program]


@pytest.mark.parametrize(
    ("program", "platform", "file"),
    [
        ("claude-desktop", "linux", "/home/ada/.config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", "/home/ada/Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude-desktop", "win32", "/home/ada/AppData/Roaming/Claude/claude_desktop_config.json"),
        ("claude-code", "linux", "/home/ada/.claude.json"),
        ("vscode", "linux", "/home/ada/.config/Code/User/mcp.json"),
        ("vscode", "darwin", "/home/ada/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "linux", "/home/ada/.config/VSCodium/User/settings.json"),
        ("cursor", "darwin", "/home/ada/.cursor/mcp.json"),
        ("windsurf", "linux", "/home/ada/.codeium/windsurf/mcp_config.json"),
        ("zed", "darwin", "/home/ada/.config/zed/settings.json"),
        ("zed", "win32", "/home/ada/AppData/Roaming/Zed/settings.json"),
        ("gemini", "win32", "/home/ada/.gemini/settings.json"),
    ],
)
def test_a_program_has_its_place_on_each_platform(program: str, platform: str, file: str) -> None:
    assert file in files(program, platform)


def test_variables_move_the_places() -> None:
    assert files("claude-code", "linux", CLAUDE_CONFIG_DIR="/c") == ["/c/.claude.json"]
    assert files("claude-desktop", "linux", XDG_CONFIG_HOME="/x") == ["/x/Claude/claude_desktop_config.json"]
    assert files("claude-desktop", "win32", APPDATA="/r") == ["/r/Claude/claude_desktop_config.json"]


def test_the_workspace_comes_first_and_every_program_has_a_place() -> None:
    assert files("claude-code", "linux", REPO) == ["/repo/.mcp.json", "/home/ada/.claude.json"]
    assert files("vscode", "linux", REPO)[0] == "/repo/.vscode/mcp.json"
    assert all(files(program, "linux") for program in PROGRAMS)
