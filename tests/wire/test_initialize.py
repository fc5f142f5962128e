"""What a host says at first, and what it is told.

Source: protocol.md, Handshake, and decided case 6; LSP 3.17, "Initialize Request".
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import sidecar
from sidecar.protocol.events import EVENTS
from sidecar.server.host import HostCapabilities, host_capabilities
from tests.harness.wire import Wire, notification, request
from tests.wire.conftest import Spawn

GARBAGE: list[Any] = [
    {},
    [],
    None,
    5,
    "x",
    True,
    [1, 2],
    {"textDocument": 5, "window": "x", "workspace": [], "general": None, "experimental": 5},
    {
        "textDocument": {
            "synchronization": {"didSave": "yes"},
            "completion": {"completionItemKind": {"valueSet": "x"}},
        }
    },
    {"general": {"positionEncodings": ["utf-8"]}},
    {"general": {"positionEncodings": "utf-8"}},
    {"general": {"positionEncodings": [5, None]}},
    {"window": {"showMessage": {"messageActionItem": {"additionalPropertiesSupport": "x"}}}},
    {"experimental": {"agentSidecar": [1]}},
    {"experimental": {"agentSidecar": {"approvals": "false", "input": 1, "hostTools": None, "optOutEvents": "x"}}},
    {"unknown": {"unknown": 1}, "": 5},
]


@pytest.fixture(scope="module")
def servers(spawn: Spawn) -> Any:
    """One process: `initialize` that fails at the services can be sent again."""
    with spawn() as server:
        yield server


@pytest.mark.parametrize("capabilities", GARBAGE, ids=json.dumps)
def test_no_capabilities_fail_initialize(servers: Wire, capabilities: Any) -> None:
    """The refusal comes from the services, which are opened after the capabilities were read."""
    params = {"capabilities": capabilities, "initializationOptions": {"fail": "configuration"}}
    with servers.being_odd():
        assert servers.error("initialize", params)["code"] == -31040
    assert host_capabilities(capabilities).approvals is False


@pytest.mark.parametrize(
    ("params", "path"),
    [
        (5, "params"),
        ("x", "params"),
        ({"processId": "5"}, "params.processId"),
        ({"rootUri": 5}, "params.rootUri"),
        ({"rootUri": "file://["}, "params.rootUri"),
        ({"rootPath": ["x"]}, "params.rootPath"),
        ({"rootPath": "/a\0b"}, "params.rootPath"),
        ({"workspaceFolders": 5}, "params.workspaceFolders"),
        ({"workspaceFolders": [{"name": "x"}]}, "params.workspaceFolders[0].uri"),
        ({"workspaceFolders": [{"uri": None, "name": "x"}]}, "params.workspaceFolders[0].uri"),
        ({"workspaceFolders": [{"uri": "file:///a%00", "name": "x"}]}, "params.workspaceFolders[0].uri"),
        ({"clientInfo": {"name": 5}}, "params.clientInfo.name"),
        ({"initializationOptions": {"maxFrameBytes": "5"}}, "params.initializationOptions.maxFrameBytes"),
        ({"initializationOptions": 5}, "params.initializationOptions"),
    ],
    ids=json.dumps,
)
def test_what_we_act_on_is_refused_by_its_path(servers: Wire, params: Any, path: str) -> None:
    error = servers.error("initialize", params)
    assert (error["code"], error["data"]["path"]) == (-32602, path)


def test_a_failed_initialize_can_be_sent_again_and_leaves_nothing_open(spawn: Spawn, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    with spawn() as server:
        for fail, code in (("configuration", -31040), ("crash", -32603)):
            options = {"fail": fail, "announce": True, "closeFile": str(closed)}
            assert server.error("initialize", {"initializationOptions": options})["code"] == code
        assert server.error("tools/list")["code"] == -32002
        server.send(request("hung", "initialize", {"initializationOptions": {"hang": True, "announce": True}}))
        server.send(notification("$/cancelRequest", {"id": "hung"}))
        assert server.answer("hung")["error"]["code"] == -32800
        assert not closed.exists()
        announcing = server.ask("initialize", {"initializationOptions": {"announce": True}})
        assert server.read()["id"] == announcing, "nothing is sent before the answer"
        assert server.read()["method"] == "tools/changed", "and nothing is lost"
        assert server.result("tools/list") == {"tools": []}


def test_the_answer_says_who_we_are_and_what_we_can_do(spawn: Spawn, tmp_path: Path) -> None:
    other = tmp_path / "with space"
    with spawn() as server, server.being_odd():
        result = server.initialize(
            {
                "general": {"positionEncodings": ["utf-8", "utf-16"]},
                "window": {"showMessage": []},
                "experimental": {"agentSidecar": {"approvals": True, "optOutEvents": ["warning", "unknown", 5]}},
            },
            processId=os.getpid(),
            clientInfo={"name": "an editor"},
            rootUri="file:///elsewhere",
            workspaceFolders=[
                {"uri": tmp_path.as_uri(), "name": "a"},
                {"uri": other.as_uri(), "name": "b"},
                {"uri": "vscode-remote://host/a", "name": "not on a disk"},
            ],
        )
        assert result["serverInfo"] == {"name": "agent-sidecar", "version": sidecar.__version__}
        assert result["capabilities"]["positionEncoding"] == "utf-16"
        assert result["capabilities"]["textDocumentSync"] == {"openClose": True, "change": 2, "save": False}
        assert result["capabilities"]["experimental"]["agentSidecar"] == {
            "protocolVersion": "1.0",
            "methods": ["agent/submit", "tools/list", "tools/call"],
            "events": list(EVENTS),
            "models": ["scripted/one"],
        }
        assert server.call("introduction") == {
            "folders": [str(tmp_path), str(other)],
            "client": "an editor",
            "processId": os.getpid(),
            "approvals": True,
            "showMessage": True,
            "optOutEvents": ["unknown", "warning"],
        }
        assert server.call("capabilities_in_pygls") == {"positionEncodings": ["utf-8", "utf-16"]}


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({"rootUri": "file:///a/b%20c", "rootPath": "/other"}, ["/a/b c"]),
        ({"rootUri": None, "rootPath": "/a"}, ["/a"]),
        ({"workspaceFolders": [], "rootUri": "file:///a"}, ["/a"]),
        ({"workspaceFolders": None, "rootUri": "untitled:x"}, []),
    ],
    ids=json.dumps,
)
def test_the_workspace_is_where_the_host_says(params: Any, folders: list[str]) -> None:
    from sidecar.server.initialize import initialization, read_initialize

    assert [str(folder) for folder in initialization(read_initialize(params)).workspace_folders] == folders


def test_a_host_can_what_it_says_it_can() -> None:
    ours = {"approvals": True, "input": True, "hostTools": True, "hostModel": True, "optOutEvents": ["warning"]}
    window = {"showMessage": {}, "workDoneProgress": True}
    assert host_capabilities({"experimental": {"agentSidecar": ours}, "window": window}) == HostCapabilities(
        approvals=True,
        input=True,
        host_tools=True,
        host_model=True,
        opt_out_events=frozenset({"warning"}),
        show_message=True,
        work_done_progress=True,
    )


@pytest.mark.parametrize(("value", "can"), [({}, True), ([], True), (True, True), (False, False), (None, False)])
def test_a_host_can_show_messages_where_lsp_says_so_in_whatever_form(value: Any, can: bool) -> None:
    assert host_capabilities({"window": {"showMessage": value}}).show_message is can


def test_the_answer_has_the_names_that_lsprotocol_would_give_it() -> None:
    from lsprotocol import types
    from lsprotocol.converters import get_converter

    from sidecar.server.lsp import as_json

    result = types.InitializeResult(
        capabilities=types.ServerCapabilities(
            position_encoding=types.PositionEncodingKind.Utf16,
            text_document_sync=types.TextDocumentSyncOptions(
                open_close=True, change=types.TextDocumentSyncKind.Full
            ),
            execute_command_provider=types.ExecuteCommandOptions(commands=["a"]),
            workspace=types.WorkspaceOptions(
                workspace_folders=types.WorkspaceFoldersServerCapabilities(
                    supported=True, change_notifications="x"
                )
            ),
        ),
        server_info=types.ServerInfo(name="a", version="b"),
    )
    assert as_json(result) == get_converter().unstructure(result)
