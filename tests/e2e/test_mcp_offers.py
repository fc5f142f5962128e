"""What MCP servers offer beside tools, through the whole sidecar.

Source: protocol.md, `mcp/resources` to `mcp/setLogLevel`, `mcp/offersChanged`; MCP 2025-11-25, server.
"""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest
import pytest_asyncio

from tests.harness.host import Host, Json, RequestFailed, sidecar
from tests.harness.mcp_box import Box, box_in
from tests.harness.mcp_modern_server import modern_entry
from tests.harness.mcp_offering import OUTPUT_SCHEMA, PIXEL, offering_entry
from tests.harness.model_server import ScriptedModel, calls, says
from tests.harness.npm import NpmServers, npm_servers

__all__ = ["npm_servers"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPTIONS: Json = {"permissions": {"allowed": ["read", "mcp:*"], "ask": []}, "builtinTools": False}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host() -> AsyncIterator[Host]:
    """The sidecar that the tests of this module share, unless they have a model."""
    async with sidecar(OPTIONS) as host:
        yield host


@pytest_asyncio.fixture(loop_scope="module")
async def box(host: Host) -> AsyncIterator[Box]:
    """A server of the test's own."""
    async with box_in(host) as box:
        yield box


def with_model(model: ScriptedModel, **servers: Json) -> AbstractAsyncContextManager[Host]:
    """A sidecar with a model and these servers."""
    providers = {"test": {"api": "openai-chat", "baseUrl": model.base_url}}
    options = {**OPTIONS, "model": "test/m", "providers": providers, "mcpServers": servers}
    return sidecar({**options, "cycle": {"serverWaitSecs": 30}})


def tool_messages(model: ScriptedModel) -> list[Json]:
    """The results of calls, as the model saw them last."""
    return [message for message in model.requests[-1].messages if message["role"] == "tool"]


# From the wire ------------------------------------------------------------------------------------------


async def test_a_host_reaches_all_that_a_server_offers(box: Box) -> None:
    resources = (await box.request("mcp/resources"))["resources"]
    assert [entry["uri"] for entry in resources] == ["doc://1", "doc://2", "doc://3"]
    listed = {server["name"]: server for server in (await box.host.request("mcp/list"))["servers"]}
    assert listed[box.name]["offers"] == ["completions", "logging", "prompts", "resources", "tools"]
    assert resources[1] == {"uri": "doc://2", "name": "page 2", "mimeType": "text/plain", "x-own": [2]}
    assert await box.request("mcp/resourceTemplates") == {
        "resourceTemplates": [{"uriTemplate": "doc://{number}", "name": "any page"}]
    }
    assert await box.request("mcp/readResource", uri="doc://7") == {
        "contents": [{"uri": "doc://7", "mimeType": "text/plain", "text": "text of doc://7"}]
    }
    assert await box.request("mcp/prompts") == {
        "prompts": [{"name": "greet", "arguments": [{"name": "whom", "required": True}]}]
    }
    assert await box.request("mcp/getPrompt", name="greet", arguments={"whom": "Ada"}) == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Greet Ada."}}]
    }
    assert await box.request(
        "mcp/complete",
        ref={"type": "ref/prompt", "name": "greet"},
        argument={"name": "whom", "value": "A"},
        context={"arguments": {"how": "warmly"}},
    ) == {"completion": {"values": ["A!", "warmly"], "hasMore": False}}


FAILURES = [
    ("mcp/resources", {"server": "bix"}, "notFound", "there is no MCP server 'bix'"),
    ("mcp/prompts", {"server": "down"}, "mcpNotInitialized", "server 'down' is not ready (failed)"),
    ("mcp/resources", {"server": "bare"}, "mcpError", "server 'bare' offers no resources; it offers tools"),
    ("mcp/resourceTemplates", {"server": "bare"}, "mcpError", "offers no resources"),
    ("mcp/readResource", {"server": "bare", "uri": "doc://1"}, "mcpError", "offers no resources"),
    ("mcp/prompts", {"server": "bare"}, "mcpError", "offers no prompts"),
    ("mcp/getPrompt", {"server": "bare", "name": "greet"}, "mcpError", "offers no prompts"),
    ("mcp/setLogLevel", {"server": "bare", "level": "info"}, "mcpError", "offers no logging"),
    ("mcp/complete", {"server": "bare", "ref": {}, "argument": {}}, "mcpError", "offers no completions"),
    ("mcp/prompts", {"server": "quiet"}, "mcpError", "offers no prompts; it offers resources, tools"),
    ("mcp/watchResources", {"server": "quiet", "uris": ["doc://1"]}, "mcpError", "does not tell of changes"),
    ("mcp/readResource", {"server": "box", "uri": "doc://gone"}, "notFound", "has no resource 'doc://gone'"),
    ("mcp/readResource", {"server": "box", "uri": "doc://gone-since-2026"}, "notFound", "has no resource"),
    ("mcp/readResource", {"server": "box", "uri": "doc://forbidden"}, "mcpError", "not for you"),
    ("mcp/readResource", {"server": "box", "uri": "doc://nothing"}, "mcpError", "without contents"),
    ("mcp/getPrompt", {"server": "box", "name": "curse"}, "invalidArguments", "unknown prompt curse"),
    (
        "mcp/complete",
        {"server": "box", "ref": {"type": "ref/tool"}, "argument": {"name": "a", "value": ""}},
        "invalidArguments",
        "refused to complete 'a'",
    ),
    ("mcp/setLogLevel", {"server": "box", "level": "loud"}, "invalidParams", "params.level"),
]


async def test_what_cannot_be_had_is_refused_with_its_reason(host: Host) -> None:
    entries = {
        "box": offering_entry(),
        "bare": offering_entry("--offers", "tools"),
        "quiet": offering_entry("--no-subscribe", "--offers", "resources,tools,null"),
        "down": {"command": "no-such"},
    }
    for name, entry in entries.items():
        await host.request("mcp/connect", {"name": name, "config": entry})
    for method, params, kind, reason in FAILURES:
        with pytest.raises(RequestFailed) as failed:
            await host.request(method, params)
        assert (failed.value.data["kind"], reason in failed.value.message) == (kind, True), failed.value
    with pytest.raises(RequestFailed) as failed:
        await host.request("mcp/readResource", {"server": "box", "uri": "doc://gone"})
    assert failed.value.data == {"kind": "notFound", "server": "box", "uri": "doc://gone"}


async def test_a_server_hears_that_nobody_waits_for_a_resource_any_more(box: Box) -> None:
    reading = box.host.send("mcp/readResource", {"server": box.name, "uri": "doc://never"}, request_id="read-1")
    await box.told("received", {"method": "resources/read", "count": 1})
    box.host.notify("$/cancelRequest", {"id": "read-1"})
    with pytest.raises(RequestFailed) as failed:
        await reading
    assert failed.value.code == -32800
    (cancelled,) = await box.told("received", {"method": "notifications/cancelled", "count": 1})
    assert "requestId" in cancelled


async def test_a_log_level_is_kept_when_the_server_is_restarted(box: Box) -> None:
    assert (await box.request("mcp/setLogLevel", level="error"))["status"] == "ready"
    await box.host.request("mcp/restart", {"name": box.name})
    assert await box.told("received", {"method": "logging/setLevel", "count": 1}) == [{"level": "error"}]


async def test_a_host_hears_once_of_what_changed_however_often_the_server_says_so(box: Box) -> None:
    await box.tell("notifications/resources/list_changed", *[{}] * 50)
    await box.tell("notifications/prompts/list_changed", {})
    await box.tell("notifications/resources/updated", *[{"uri": "doc://1"}] * 50, {"uri": 7})
    await box.host.wait_for(lambda: any(what == "resource" for what, _ in _changes(box)))
    assert set(_changes(box)) == {("prompts", None), ("resource", "doc://1"), ("resources", None)}
    assert len(_changes(box)) <= 6, "each change is told once for each pause in which it is said"


def _changes(box: Box) -> list[tuple[str, str | None]]:
    changed = [params for params in box.notified("mcp/offersChanged") if params["server"] == box.name]
    return [(params["what"], params.get("uri")) for params in changed]


async def test_a_server_is_asked_for_word_of_the_resources_that_the_host_watches(box: Box) -> None:
    async def asked(method: str, count: int = 0) -> list[str]:
        params = await box.told("received", {"method": f"resources/{method}", "count": count})
        return [each["uri"] for each in params]

    await box.request("mcp/watchResources", uris=["doc://1", "doc://2"])
    with pytest.raises(RequestFailed) as failed:
        await box.request("mcp/watchResources", uris=["doc://2", "doc://gone"])
    assert (failed.value.data["kind"], failed.value.data["uri"]) == ("notFound", "doc://gone")
    await box.request("mcp/watchResources", uris=["doc://3", "doc://2"])
    assert await asked("subscribe") == ["doc://1", "doc://2", "doc://gone", "doc://3"]
    assert await asked("unsubscribe") == ["doc://1"]
    await box.host.request("mcp/restart", {"name": box.name})
    assert await asked("subscribe", 2) == ["doc://2", "doc://3"], "also after a restart"
    await box.request("mcp/watchResources", uris=[])
    assert await asked("unsubscribe", 2) == ["doc://2", "doc://3"]


async def test_a_stateless_server_is_asked_for_word_of_resources_by_one_subscription(host: Host) -> None:
    """Source: MCP 2026-07-28, basic/patterns/subscriptions."""
    await host.request("mcp/connect", {"name": "modern", "config": modern_entry()})
    modern = Box(host, "modern")
    await modern.request("mcp/watchResources", uris=["doc://1"])
    listened = [
        message["params"]["notifications"]
        for message in await modern.told("received", {"method": "subscriptions/listen"})
    ]
    lists = {"toolsListChanged": True, "promptsListChanged": True}
    assert listened == [lists, {**lists, "resourceSubscriptions": ["doc://1"]}]


async def test_every_kind_of_content_reaches_the_host_as_it_is(box: Box) -> None:
    assert (await box.call("show", {}))["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "doc://1", "text": "inside"}},
        {"type": "resource_link", "uri": "doc://2", "name": "page 2"},
    ]


async def test_a_permission_that_does_not_exist_fails_its_server_by_its_path(host: Host) -> None:
    entry = offering_entry(permissions={"sh*": ["read"], "re*": ["reed"]})
    info = await host.request("mcp/connect", {"name": "misspelt", "config": entry})
    assert (info["status"], info["error"]["kind"]) == ("failed", "invalidConfiguration")
    assert info["error"]["message"].startswith("mcpServers.misspelt.permissions.re*: unknown permission 'reed'")


# In the loop --------------------------------------------------------------------------------------------


async def test_a_model_finds_and_reads_resources() -> None:
    script = (
        calls(("box__list_resources", {}, "c1")),
        calls(
            ("box__read_resource", {"uri": "doc://2"}, "c2"),
            ("box__read_resource", {"uri": "doc://gone"}, "c3"),
            ("box__read_resource", {"uri": "doc://picture"}, "c4"),
        ),
        says("read"),
    )
    async with ScriptedModel(*script) as model:
        servers = {"box": offering_entry(), "bare": offering_entry("--offers", "tools")}
        async with with_model(model, **servers) as host:
            result = await host.submit("go")
            names = [tool["name"] for tool in (await host.request("tools/list"))["tools"]]
            about = {"name": "box__read_resource", "arguments": {"uri": "doc://1"}}
            await host.request("permissions/set", {"scope": "workspace", "ask": ["mcp:box"]})
            decision = await host.request("permissions/check", about)
    assert result["message"]["content"] == "read"
    listed, found, gone, picture = (message["content"] for message in tool_messages(model))
    assert [entry["uri"] for entry in json.loads(listed)["resources"]] == ["doc://1", "doc://2", "doc://3"]
    assert json.loads(listed)["resourceTemplates"] == [{"uriTemplate": "doc://{number}", "name": "any page"}]
    assert found == "text of doc://2"
    assert gone == "error: server 'box' has no resource 'doc://gone': Resource not found"
    assert PIXEL in json.dumps([picture, model.requests[-1].messages])
    assert [name for name in names if name.endswith("_resource")] == ["box__read_resource"]
    assert (decision["decision"], decision["permission"]) == ("ask", "mcp:box")


async def test_structured_content_is_held_to_its_schema_and_never_lost() -> None:
    results: list[Json] = [
        {"structuredContent": {"count": 3}},
        {"structuredContent": {"count": "three"}},
        {},
        {"structuredContent": {"count": None}, "isError": True},
    ]
    script = [
        calls(*(("box__count", {"result": result}, f"c{i}") for i, result in enumerate(results))),
        says("ok"),
    ]
    async with ScriptedModel(*script) as model, with_model(model, box=offering_entry()) as host:
        await host.submit("go")
    assert OUTPUT_SCHEMA["required"] == ["count"]
    seen = [message["content"] for message in tool_messages(model)]
    assert seen == ["counted", "counted", "counted", 'error: counted\n{"count":null}']
    warned = [w["message"] for w in host.kinds("warning") if w["code"] == "resultMismatch"]
    promise = "the structured content of box__count does not fit its output schema: "
    assert sorted(warned) == [
        promise + 'count must be an integer, not "three"',
        promise + "it must be an object, not null",
    ]


# The official server ------------------------------------------------------------------------------------


async def test_the_everything_server_is_used_with_all_that_it_has(npm_servers: NpmServers) -> None:
    entry = npm_servers.entry("@modelcontextprotocol/server-everything")
    script = (
        calls(("all__read_resource", {"uri": "demo://resource/dynamic/text/1"}, "c1")),
        calls(("all__trigger-sampling-request", {"prompt": "hi", "maxTokens": 50}, "c2")),
        says("Hello, server."),
        calls(
            ("all__trigger-elicitation-request", {}, "c3"),
            ("all__get-roots-list", {}, "c4"),
            ("all__get-structured-content", {"location": "New York"}, "c5"),
        ),
        says("done"),
    )
    async with ScriptedModel(*script) as model, with_model(model, all=entry) as host:
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "allowOnce"}
        host.answers["agent/requestInput"] = lambda asked: {"action": "accept", "content": {"name": "Ada"}}
        await host.wait_for(lambda: "all__trigger-sampling-request" in _added(host))
        await host.submit("go")
        templates = (await host.request("mcp/resourceTemplates", {"server": "all"}))["resourceTemplates"]
        blob = await host.request("mcp/readResource", {"server": "all", "uri": "demo://resource/dynamic/blob/1"})
        prompt = {"server": "all", "name": "args-prompt", "arguments": {"city": "Bonn"}}
        messages = (await host.request("mcp/getPrompt", prompt))["messages"]
        ref = {"type": "ref/prompt", "name": "completable-prompt"}
        argument = {"name": "department", "value": "S"}
        completed = await host.request("mcp/complete", {"server": "all", "ref": ref, "argument": argument})
        level = await host.request("mcp/setLogLevel", {"server": "all", "level": "debug"})
    read, sampled, elicited, roots, structured = (message["content"] for message in tool_messages(model))
    assert read.startswith("Resource 1: This is a plaintext resource")
    assert "Hello, server." in sampled
    assert all(filled in elicited for filled in ("Ada", "It was a dark and stormy night.", "42", "hero-1"))
    assert "No roots" in roots or "0 total" in roots or "empty" in roots.lower(), roots
    assert "temperature" in structured
    assert not [w for w in host.kinds("warning") if w["code"] == "resultMismatch"]
    assert {template["uriTemplate"] for template in templates} >= {"demo://resource/dynamic/text/{resourceId}"}
    assert "blob" in blob["contents"][0]
    assert messages[0]["content"]["text"] == "What's weather in Bonn?"
    assert completed["completion"]["values"] == ["Sales", "Support"]
    assert level["status"] == "ready"


def _added(host: Host) -> set[str]:
    return {name for method, params in host.notifications if method == "tools/changed" for name in params["added"]}
