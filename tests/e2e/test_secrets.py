"""A run of everything with planted keys, and none of them shows anywhere (protocol.md, Security).

What is looked at: every frame, the log, stderr, the store's files, a recording, an export, the audit log, and
what a child process and a command are given. Keys lie in the environment, in the configuration of a provider and
of MCP servers, and servers and files say them aloud.
"""

import json
from pathlib import Path
from typing import Any

from tests.harness.host import Host, RequestFailed, sidecar
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import ScriptedModel, calls, says

IN_ENVIRONMENT = "sk-environment-1f8a2b3c4d5e6f70"
IN_PROVIDER = "sk-provider-aa11bb22cc33dd44ee55"
IN_HEADER = "header-token-99887766554433221100"
OF_SERVER = "server-token-0102030405060708090a"
TYPED_IN = "typed-in-password-5a5b5c5d5e5f"
KEYS = (IN_ENVIRONMENT, IN_PROVIDER, IN_HEADER, OF_SERVER, TYPED_IN)


def options(model: ScriptedModel, folder: Path) -> dict[str, Any]:
    return {
        "model": "test/m",
        "providers": {
            "test": {
                "api": "openai-chat",
                "baseUrl": model.base_url,
                "apiKey": IN_PROVIDER,
                "headers": {"X-Auth": f"Bearer {IN_HEADER}"},
                "record": str(folder / "recording.json"),
            }
        },
        "mcpServers": {
            "leaky": server_entry(env={"SERVICE_TOKEN": OF_SERVER, "OTHER_PASSWORD": "${input:password}"}),
            "dying": {
                "command": "/bin/sh",
                "args": ["-c", "echo my key is $SERVICE_TOKEN >&2; exit 1"],
                "env": {"SERVICE_TOKEN": OF_SERVER},
            },
        },
        "permissions": {"allowed": ["read", "write", "shell", "mcp:*"], "denied": [], "ask": []},
        "store": {"path": str(folder / "store.sqlite3")},
    }


def shown_by(host: Host) -> str:
    """Everything that the host was told, asked and answered."""
    return json.dumps([host.events, host.notifications, host.asked], ensure_ascii=False)


def leaks(text: str) -> list[str]:
    return [key for key in KEYS if key in text]


def leaking_files(folder: Path, *, but: set[str]) -> list[tuple[str, str]]:
    files = [file for file in folder.rglob("*") if file.is_file() and file.name not in but]
    return [(file.name, key) for file in files for key in KEYS if key.encode() in file.read_bytes()]


async def refusal(host: Host, method: str, params: Any) -> str:
    """An error's own words, or the answer where there is none."""
    try:
        return json.dumps(await host.request(method, params))
    except RequestFailed as failed:
        return f"{failed.message} {failed.data}"


async def test_no_planted_key_shows_anywhere(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / ".env").write_text(f"OPENAI_API_KEY={IN_ENVIRONMENT}\nPROVIDER={IN_PROVIDER}\n")
    script = (
        calls(
            ("leaky__environment", {}),
            ("read_file", {"path": ".env"}),
            ("search_text", {"pattern": "KEY|PROVIDER"}),
            ("run_command", {"shell": "env; cat .env; cat no-such-file"}),
            ("leaky__fail", {}),
            ("write_file", {"path": "copy", "content": "no key\n"}),
        ),
        says("All done."),
    )
    async with ScriptedModel(*script) as model:
        async with sidecar(
            options(model, tmp_path),
            folders=[workspace],
            env={"MY_SERVICE_API_KEY": IN_ENVIRONMENT},
            args=["--log-file", str(tmp_path / "log"), "--log-level", "debug"],
            answers={"agent/requestInput": lambda asked: {"action": "accept", "content": {"value": TYPED_IN}}},
        ) as host:
            policy = {"executionFailed": "tellModel", "mcpError": "tellModel", "permissionDenied": "tellModel"}
            done = await host.submit("leak", errorPolicy=policy)
            session = {"sessionId": done["sessionId"]}
            answers = [
                done,
                await host.request("session/get", session),
                await host.request("session/events", session),
                await host.request("audit/list", {}),
                await host.request("mcp/list", None),
                await refusal(host, "mcp/restart", {"name": "dying"}),
                await refusal(host, "tools/call", {"name": "leaky__environment", "arguments": {}}),
                *[
                    await host.request("session/export", {**session, "format": f})
                    for f in ("json", "markdown", "replay")
                ],
            ]
            shown = shown_by(host) + json.dumps(answers, ensure_ascii=False)
        asked = json.dumps([request.messages for request in model.requests], ensure_ascii=False)
    assert "***" in shown, "nothing was said aloud, so that this test shows nothing"
    assert leaks(shown) == []
    assert leaks(asked) == [], "the model was told"
    assert leaking_files(tmp_path, but={".env"}) == []
    environment = next(e["event"] for e in host.events if "environ" in str(e["event"].get("output", "")))
    assert "MY_SERVICE_API_KEY" not in environment["output"], "a child process was given it"
