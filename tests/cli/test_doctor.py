"""`agent-sidecar doctor`, for real: a real sidecar, a real MCP server, files and variables as people have them.

Source: own choice.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from sidecar import app, config
from sidecar.cli import checks
from sidecar.cli.demo import HERE
from sidecar.protocol.codec import camel
from sidecar.protocol.messages import PermissionOptions
from sidecar.providers.options import ProviderOptions
from tests.harness.scripted_sidecar import scripted
from tests.harness.terminal import cli, environment

LIMIT_SECS = 45


def doctor(
    folder: Path, *arguments: str, sidecar: tuple[str, ...] | None = None, **changes: str
) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        cli("doctor", "--json", *arguments, sidecar=sidecar),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(HOME=str(folder), **changes),
        cwd=folder,
        timeout=LIMIT_SECS,
        check=False,
    )
    assert done.stderr == b""
    report = json.loads(done.stdout)
    assert report["ok"] == (done.returncode == 0)
    return done.returncode, report["checks"]


def of(found: list[dict[str, Any]], subject: str) -> list[dict[str, Any]]:
    return [check for check in found if check["subject"] == subject]


def configured(folder: Path, text: str) -> str:
    """A configuration whose model is replayed, and more; its path."""
    script = folder / "hello.json"
    script.write_text('["Hello."]')
    file = folder / "config.toml"
    file.write_text(f'model = "replay/hello"\n{text}\n[providers.replay]\napi = "replay"\nfile = "{script}"\n')
    return str(file)


def test_all_is_well_with_a_model_and_a_server(tmp_path: Path) -> None:
    server = f"[mcpServers.demo]\ncommand = '{sys.executable}'\nargs = ['-I', '-S', '{HERE / 'server.py'}']"
    status, found = doctor(tmp_path, "--config", configured(tmp_path, server))
    assert (status, {check["status"] for check in found}) == (0, {"ok"})
    assert of(found, "model")[0]["message"] == "replay/hello is offered by its endpoint"
    assert of(found, "mcp server")[0]["message"].startswith("demo: 2 tools after ")


def test_a_server_that_cannot_start_fails_with_its_reason(tmp_path: Path) -> None:
    server = "[mcpServers.broken]\ncommand = '/no/such/server'"
    status, found = doctor(tmp_path, "--config", configured(tmp_path, server))
    (check,) = of(found, "mcp server")
    assert (status, check["status"]) == (1, "fail")
    assert check["message"].startswith("broken: ") and "/no/such/server" in check["message"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 3", "config.toml:1: model: must be a string, not number"),
        ("a = 1\nmodel == 2", "config.toml:2: Invalid value (at line 2, column 8)"),
    ],
)
def test_a_wrong_configuration_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    status, found = doctor(tmp_path, "--config", str(file))
    assert status == 1
    assert any(check["status"] == "fail" and message in check["message"] for check in found), found


def test_unknown_options_are_named_and_no_failure(tmp_path: Path) -> None:
    text = "modle = 'x'\n[cycle]\nmaxturns = 3\n[providers.other]\nbaseurl = 'http://127.0.0.1:9'"
    status, found = doctor(tmp_path, "--config", configured(tmp_path, text))
    named = [check["message"].rpartition(" ")[2] for check in found if check["status"] == "warn"]
    assert (status, named) == (0, ["modle", "providers.other.baseurl", "cycle.maxturns"])


def test_keys_are_set_or_not_and_never_shown(tmp_path: Path) -> None:
    text = "[providers.own]\nbaseUrl = 'http://127.0.0.1:9/v1'\napiKeyEnv = 'MY_KEY'"
    file = configured(tmp_path, text)
    _, found = doctor(tmp_path, "--config", file, OPENROUTER_API_KEY="sk-secret")
    messages = [check["message"] for check in of(found, "keys")]
    assert messages[0] == "MY_KEY is not set; provider 'own' takes its key from there"
    assert "set: OPENROUTER_API_KEY" in messages
    assert "sk-secret" not in json.dumps(found)


def test_what_a_workspace_brings_along_is_named_with_what_becomes_of_it(tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "/no/such/server"}}}')
    status, found = doctor(tmp_path, "--config", configured(tmp_path, ""))
    (check,) = of(found, "workspace")
    assert (status, check["status"], check["message"]) == (0, "warn", ".mcp.json: not trusted, not used")
    assert of(found, "mcp server") == []


def test_without_a_model_it_fails_and_says_what_to_do(tmp_path: Path) -> None:
    status, found = doctor(tmp_path)
    (check,) = of(found, "model")
    assert (status, check["status"]) == (1, "fail")
    assert "OPENAI_API_KEY" in check["fix"]


def test_an_endpoint_that_does_not_answer_fails(tmp_path: Path) -> None:
    status, found = doctor(tmp_path, "--model", "llamacpp/any")
    (check,) = of(found, "model")
    assert (status, check["status"]) == (1, "fail")
    assert check["message"].startswith("llamacpp/any: ")


def test_a_model_that_is_not_offered_is_compared_with_those_that_are(tmp_path: Path) -> None:
    status, found = doctor(tmp_path, "--config", configured(tmp_path, ""), "--model", "replay/hallo")
    (check,) = of(found, "model")
    assert (status, check["status"], check["fix"]) == (0, "warn", "did you mean replay/hello?")


def test_a_sidecar_that_does_not_start_is_a_finding(tmp_path: Path) -> None:
    broken = scripted(tmp_path, {"initialize": [{"stderr": "no memory\n"}, {"exit": 7}]})
    status, found = doctor(tmp_path, sidecar=broken)
    assert status == 1
    assert found[-1]["message"] == "the sidecar exited with status 7: no memory"


def test_a_file_of_tools_that_fails_is_a_finding_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from sidecar import tool\n\n1 / 0\n")
    status, found = doctor(tmp_path, "--tools", "mine.py")
    assert status == 1
    said = f"tools: {tmp_path}/mine.py:3: ZeroDivisionError: division by zero; mend it, or take it out"
    assert found[-1]["status"] == "fail" and said in found[-1]["message"]


def test_people_get_one_line_each(tmp_path: Path) -> None:
    done = subprocess.run(
        cli("doctor", "--config", configured(tmp_path, "")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(HOME=str(tmp_path)),
        cwd=tmp_path,
        timeout=LIMIT_SECS,
        check=True,
    )
    lines = done.stdout.decode().splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert lines[0].startswith("ok    python         ")


def test_the_known_options_are_those_of_the_configuration() -> None:
    shapes = {
        "": config.Options,
        "providers.*": ProviderOptions,
        "permissions": PermissionOptions,
        "cycle": config.CycleOptions,
        "store": config.StoreOptions,
    }
    assert {place: set(names) for place, names in checks.KNOWN_OPTIONS.items()} == {
        place: {camel(attribute.name) for attribute in attrs.fields(shape)} for place, shape in shapes.items()
    }


def test_the_file_is_looked_for_where_the_sidecar_looks() -> None:
    assert checks.user_configuration() == app.config_path()
