"""What `initializationOptions` hold is taken at its word or refused by its path (protocol.md, Options)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_run import options
from tests.harness.host import clean_environment, sidecar
from tests.harness.model_server import ScriptedModel, calls, says
from tests.harness.wire import Json, Wire, wire


@pytest.fixture
def spawned() -> Iterator[Wire]:
    """A sidecar that nobody has said `initialize` to."""
    with wire([sys.executable, "-m", "sidecar"], env=clean_environment()) as spawned:
        yield spawned


def initialize(host: Wire, said: Any) -> Json:
    return host.answer(
        host.ask("initialize", {"processId": None, "capabilities": {}, "initializationOptions": said})
    )


@pytest.mark.parametrize("said", [None, {}, []])
def test_nothing_said_is_fine(said: Any, spawned: Wire) -> None:
    assert "result" in initialize(spawned, said)


@pytest.mark.parametrize(
    ("said", "path"),
    [
        (False, ""),
        (0, ""),
        ("", ""),
        ({"model": "gpt"}, ".model"),
        ({"model": "/gpt"}, ".model"),
        ({"model": "openai/"}, ".model"),
        ({"workspaceFolders": [{"uri": ""}]}, ".workspaceFolders[0].uri"),
        ({"workspaceFolders": [{"uri": "file://"}]}, ".workspaceFolders[0].uri"),
        ({"workspaceFolders": [{"uri": "src"}]}, ".workspaceFolders[0].uri"),
        ({"maxFrameBytes": 1}, ".maxFrameBytes"),
        ({"maxFrameBytes": 1023}, ".maxFrameBytes"),
        ({"providers": {"x": {"baseUrl": "http://h", "apiKey": "sk-secret\n2"}}}, ".providers.x.apiKey"),
    ],
)
def test_a_bad_option_is_refused_by_its_path(said: Any, path: str, spawned: Wire) -> None:
    error = initialize(spawned, said)["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, f"params.initializationOptions{path}")
    assert "secret" not in str(error)
    assert "result" in initialize(spawned, {}), "initialize may be sent again"


async def test_a_folder_that_is_not_on_a_disk_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("here")
    folders = [{"uri": "untitled:x"}, {"uri": tmp_path.as_uri()}]
    async with sidecar({"workspaceFolders": folders}) as host:
        done = await host.request("tools/call", {"name": "read_file", "arguments": {"path": "a.txt"}})
    assert "here" in done["content"][0]["text"]


@pytest.mark.parametrize("secs", [1e308, 1e30])
async def test_a_limit_beyond_all_measure_is_a_long_one(secs: float) -> None:
    script = (calls(("t", {})), says("done"))
    async with (
        ScriptedModel(*script) as model,
        sidecar(options(model, cycle={"approvalTimeoutSecs": secs, "toolTimeoutSecs": secs})) as host,
    ):
        tool = {"name": "t", "description": "d", "inputSchema": {"type": "object"}, "requiresApproval": True}
        await host.request("tools/register", {"tools": [tool]})
        host.answers["agent/requestApproval"] = lambda params: {"decision": "allowOnce"}
        host.answers["tools/execute"] = lambda params: {"ok": True}
        await host.submit()
    assert host.asked[0][1]["deadlineMs"] == 365 * 24 * 3600 * 1000
