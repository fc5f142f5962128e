"""The extension as it is packaged, on any machine with Node. Source: VS Code's documentation of the manifest, of
webviews' content security and of workspace trust; what a person may expect of an extension that runs programs.
"""

import json
import re
import zipfile
from typing import Any

import pytest

from tests.harness.vscode_extension import SOURCE, Extension, extension

__all__ = ["extension"]

pytestmark = pytest.mark.timeout(480)  # The first to come installs and builds.

LARGEST_PACKAGE_BYTES = 1_500_000


@pytest.fixture
def package(extension: Extension) -> zipfile.ZipFile:
    return zipfile.ZipFile(extension.package)


@pytest.fixture
def manifest(package: zipfile.ZipFile) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(package.read("extension/package.json"))
    return read


def test_the_package_holds_what_runs_and_nothing_else(extension: Extension, package: zipfile.ZipFile) -> None:
    names = {name.removeprefix("extension/") for name in package.namelist()}
    assert {"package.json", "dist/extension.js"} <= names
    assert not {
        name for name in names if name.startswith(("src/", "node_modules/", "test/")) or name.endswith(".map")
    }
    assert extension.package.stat().st_size < LARGEST_PACKAGE_BYTES


def test_every_command_that_is_offered_is_there(manifest: dict[str, Any]) -> None:
    commands = {command["command"]: command["title"] for command in manifest["contributes"]["commands"]}
    (known,) = sources("commands.ts")
    assert commands and all(commands.values())
    assert [name for name in commands if not re.search(rf"\b{name.split('.')[-1]}\b", known)] == []


def test_the_readme_names_what_is_there(manifest: dict[str, Any], package: zipfile.ZipFile) -> None:
    (readme,) = [name for name in package.namelist() if name.lower() == "extension/readme.md"]
    text = " ".join(package.read(readme).decode().split())
    commands = manifest["contributes"]["commands"]
    said = re.findall(r"\*Agent Sidecar: ([^*]+)\*", text)
    assert said and set(said) <= {command["title"] for command in commands}
    names = {*settings_of(manifest), *(command["command"] for command in commands)}
    assert set(re.findall(r"agentSidecar\.\w+", text)) <= names


def test_an_untrusted_workspace_can_set_nothing_that_starts_a_program(manifest: dict[str, Any]) -> None:
    trust = manifest["capabilities"]["untrustedWorkspaces"]
    assert trust["supported"] == "limited" and trust["description"]
    # What is of the machine no workspace can set, trusted or not.
    from_workspaces = {name for name, each in settings_of(manifest).items() if each["scope"] != "machine"}
    assert from_workspaces - {"agentSidecar.showReasoning"} == set(trust["restrictedConfigurations"])


def test_no_folder_of_a_workspace_is_run_as_the_sidecar() -> None:
    source = "".join(sources("*.ts"))
    assert '"-P", "-m", "sidecar"' in source
    assert source.count('"-m", "sidecar"') == source.count('"-P", "-m", "sidecar"')


def test_no_setting_asks_for_a_key(manifest: dict[str, Any]) -> None:
    assert "apiKey" not in all_names(settings_of(manifest))


def test_servers_are_completed_by_a_schema(manifest: dict[str, Any]) -> None:
    (servers,) = [value for name, value in settings_of(manifest).items() if name.endswith(".mcpServers")]
    assert {"command", "args", "env", "url", "headers"} <= all_names(servers)


def test_the_chat_runs_no_script_but_its_own(package: zipfile.ZipFile) -> None:
    page = "".join(sources("page.ts"))
    policy = " ".join(re.findall(r"[a-z]+-src[^;`\"]*", page))
    assert "default-src 'none'" in policy
    assert "nonce-" in policy
    assert "unsafe" not in policy
    assert not re.findall(r"\son[a-z]+=", page)
    (script,) = [name for name in package.namelist() if name.endswith("dist/chat.js")]
    assert not re.search(rb"</?script", package.read(script), re.IGNORECASE), "it would end within the page"
    colours = "".join(file.read_text() for file in (SOURCE / "src/webview").glob("*.css"))
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", colours), "themes have their own colours"


def test_what_needs_no_editor_works(extension: Extension) -> None:
    done = extension.run("npm", "test", "--silent")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "# fail 0" in done.stdout


def settings_of(manifest: dict[str, Any]) -> dict[str, Any]:
    groups = manifest["contributes"]["configuration"]
    return {
        name: value
        for group in (groups if isinstance(groups, list) else [groups])
        for name, value in group["properties"].items()
    }


def all_names(schema: Any) -> set[str]:
    """The names of all properties in a schema, however deep."""
    if isinstance(schema, list):
        return {name for each in schema for name in all_names(each)}
    if not isinstance(schema, dict):
        return set()
    return {*schema.get("properties", {}), *(name for each in schema.values() for name in all_names(each))}


def sources(pattern: str) -> list[str]:
    return [file.read_text(encoding="utf-8") for file in (SOURCE / "src").glob(pattern)]
