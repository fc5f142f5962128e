"""What `${input:id}` asks a person for (protocol.md, "MCP servers"; decided case 8)."""

import json
from typing import Any

from tests.harness.host import sidecar
from tests.harness.mcp_server import server_entry

INPUTS = [
    {"id": "token", "type": "promptString", "description": "GitHub token", "password": True},
    {"id": "region", "type": "pickString", "options": ["eu", {"label": "US", "value": "us"}], "default": "eu"},
]


async def environ_of(host: Any, server: str) -> dict[str, str]:
    done = await host.request("tools/call", {"name": f"{server}__environment", "arguments": {}})
    environ: dict[str, str] = json.loads(done["content"][0]["text"])["environ"]
    return environ


async def test_a_person_is_asked_once_in_the_words_of_the_definition() -> None:
    given = {"GitHub token": "t0ken!", "value for ${input:region}": "us", "value for ${input:bare}": "plain"}
    servers = {
        "one": server_entry(env={"TOKEN": "${input:token}", "REGION": "${input:region}"}),
        "two": server_entry(env={"AGAIN": "${input:token}", "BARE": "${input:bare}"}),
    }
    options = {"inputs": INPUTS, "permissions": {"allowed": ["mcp:*"], "ask": []}}
    async with sidecar(options) as host:
        host.answers["agent/requestInput"] = lambda params: {
            "action": "accept",
            "content": {"value": given[params["message"]]},
        }
        for name, entry in servers.items():
            connected = await host.request("mcp/connect", {"name": name, "config": entry})
            assert connected["status"] == "ready"
        one, two = await environ_of(host, "one"), await environ_of(host, "two")
    # An answer is a secret: the servers have it, and it is hidden where one of them shows it.
    assert {name: one[name] for name in ("TOKEN", "REGION")} == {"TOKEN": "***", "REGION": "us"}
    assert {name: two[name] for name in ("AGAIN", "BARE")} == {"AGAIN": "***", "BARE": "plain"}
    asked = {params["message"]: params["schema"]["properties"]["value"] for _, params in host.asked}
    assert len(host.asked) == len(asked), "an answer is kept"
    assert asked == {
        "GitHub token": {"type": "string", "format": "password", "writeOnly": True},
        "value for ${input:region}": {"type": "string", "enum": ["eu", "us"], "default": "eu"},
        "value for ${input:bare}": {"type": "string"},
    }


async def test_what_is_not_among_the_choices_is_no_answer() -> None:
    async with sidecar({"inputs": INPUTS}) as host:
        host.answers["agent/requestInput"] = lambda params: {"action": "accept", "content": {"value": "mars"}}
        entry = server_entry(env={"REGION": "${input:region}"})
        connected = await host.request("mcp/connect", {"name": "one", "config": entry})
    assert (connected["status"], connected["error"]["kind"]) == ("failed", "invalidConfiguration")
    assert "${input:region}" in connected["error"]["message"]
