"""Many servers, side by side. Source: protocol.md, mcp/*; limits are our own choice."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.manager import McpManager
from sidecar.mcp.results import McpToolDefinition
from sidecar.mcp.supervised import RestartPolicy
from sidecar.protocol.errors import ToolError
from sidecar.protocol.messages import ServerInfo
from tests.harness.mcp_http_server import McpHttpServer
from tests.harness.mcp_server import TOOLS, server_entry
from tests.harness.processes import descendants, no_process_left

BOUND_SECS = 10.0
QUICKLY = RestartPolicy(tries=3, first_delay_secs=0.01)


class Servers:
    """A manager, and everything that it reports."""

    def __init__(self, **options: Any) -> None:
        self.statuses: list[ServerInfo] = []
        self.tools: list[tuple[str, bool, int]] = []
        self.clients: dict[str, Client | None] = {}
        self.warnings: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self.manager = McpManager(
            on_status=self._on_status,
            on_tools=self._on_tools,
            on_warning=lambda server, warning: self.warnings.append((server, warning)),
            **{"restart": QUICKLY, **options},
        )

    def _on_status(self, info: ServerInfo) -> None:
        self.statuses.append(info)
        self._changed.set()

    def _on_tools(self, name: str, client: Client | None, tools: tuple[McpToolDefinition, ...]) -> None:
        self.clients[name] = client
        self.tools.append((name, client is not None, len(tools)))
        self._changed.set()

    def history(self, name: str) -> list[str]:
        return [info.status for info in self.statuses if info.name == name]

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Waits until something reported makes it so."""
        async with asyncio.timeout(BOUND_SECS):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def call(self, name: str, tool: str, **arguments: Any) -> Any:
        client = self.clients[name]
        assert client is not None
        return await client.call_tool(tool, arguments)


@contextlib.asynccontextmanager
async def managing(**options: Any) -> AsyncIterator[Servers]:
    with no_process_left():
        servers = Servers(**options)
        try:
            yield servers
        finally:
            async with asyncio.timeout(3):
                await servers.manager.aclose()


async def test_a_server_becomes_ready_and_its_tools_come_with_it() -> None:
    async with managing() as servers:
        info = await servers.manager.connect("s", server_entry())
        assert info == ServerInfo(
            name="s",
            status="ready",
            protocol_version="2025-11-25",
            server_info={"name": "harness", "version": "1"},
            offers=("tools",),
            tool_count=len(TOOLS),
            pid=info.pid,
        )
        assert info.pid in descendants(os.getpid())
        assert servers.manager.servers() == (info,)
        assert servers.tools == [("s", True, len(TOOLS))]
    assert servers.history("s") == ["starting", "ready", "stopped"]
    assert servers.tools[1:] == [("s", False, 0)]


async def test_servers_start_side_by_side_and_starting_one_waits_for_nothing() -> None:
    async with managing() as servers:
        began = time.perf_counter()
        for number in range(8):
            servers.manager.start(f"s{number}", server_entry())
        servers.manager.start("silent", server_entry("--never-initialize"))
        assert time.perf_counter() - began < 5  # The silent one would take 30 s.
        await servers.until(lambda: sum(info.status == "ready" for info in servers.manager.servers()) == 8)
        assert await servers.manager.wait_started(0.01) == ("silent",)


async def test_waiting_for_servers_ends_as_soon_as_none_is_starting() -> None:
    async with managing() as servers:
        assert await servers.manager.wait_started(BOUND_SECS) == ()
        servers.manager.start("good", server_entry())
        servers.manager.start("bad", {})
        async with asyncio.timeout(BOUND_SECS):
            assert await servers.manager.wait_started(60) == ()
        assert {info.name: info.status for info in servers.manager.servers()} == {"good": "ready", "bad": "failed"}


@pytest.mark.parametrize(
    ("raw", "kind", "message"),
    [
        (7, "invalidConfiguration", "mcpServers.bad: must be an object with a command"),
        ({"command": 7}, "invalidConfiguration", "mcpServers.bad.command: must be a string, not number"),
        ({"url": 7}, "invalidConfiguration", "mcpServers.bad.url: must be"),
        ({"command": "no-such-program"}, "invalidConfiguration", "mcpServers.bad.command: the program 'no-such"),
        (
            {"command": "x", "args": ["${NOT_SET}"]},
            "invalidConfiguration",
            "mcpServers.bad.args[0]: ${NOT_SET} stands for nothing: the environment variable NOT_SET is not set",
        ),
        (server_entry("--exit", "3", "--say", "boom"), "mcpError", "server 'bad' exited with status 3"),
        (
            server_entry("--never-initialize", "--say", "boom", startTimeoutSecs=1.5),
            "mcpTimeout",
            "server 'bad' did not answer initialize within 1.5 s",
        ),
        (server_entry("--refuse-page", "0"), "mcpError", "server 'bad' refused tools/list: no such page"),
    ],
)
async def test_a_server_that_does_not_start_has_failed_and_takes_no_other_along(
    raw: Any, kind: str, message: str
) -> None:
    async with managing(environ=os.environ) as servers:
        servers.manager.start("good", server_entry())
        info = await asyncio.wait_for(servers.manager.connect("bad", raw), BOUND_SECS)
        assert info.status == "failed"
        assert info.error is not None
        assert (info.error.kind, info.error.message[: len(message)]) == (kind, message)
        assert info.error.stderr_tail == ("boom" if "--say" in str(raw) else None)
        await servers.manager.wait_started(BOUND_SECS)
        assert servers.manager.servers()[0].status == "ready"
    assert servers.history("bad")[-2:] == ["failed", "stopped"]


async def test_a_disabled_server_is_stopped() -> None:
    async with managing() as servers:
        info = await servers.manager.connect("s", server_entry(disabled=True))
        assert info == ServerInfo(name="s", status="stopped")


async def test_a_server_that_dies_is_reported_at_once_and_started_again() -> None:
    async with managing() as servers:
        before = await servers.manager.connect("s", server_entry())
        with pytest.raises(ToolError):
            await servers.call("s", "die")
        await servers.until(lambda: servers.history("s") == ["starting", "ready", "failed", "starting", "ready"])
        death = servers.statuses[2].error
        assert death is not None
        assert death.message.startswith("server 's' exited with status 3; it is started again in 0.0")
        assert death.stderr_tail == "dying words"
        assert servers.tools == [("s", True, len(TOOLS)), ("s", False, 0), ("s", True, len(TOOLS))]
        (after,) = servers.manager.servers()
        assert after.pid != before.pid
        await servers.call("s", "echo")


async def test_a_server_that_keeps_dying_stays_down_until_it_is_restarted() -> None:
    async with managing() as servers:
        await servers.manager.connect("s", server_entry())
        for death in range(1, 5):
            with pytest.raises(ToolError):
                await servers.call("s", "die")
            await servers.until(lambda deaths=death: servers.history("s").count("failed") == deaths)  # type: ignore[misc]
            if death < 4:
                await servers.until(lambda: servers.statuses[-1].status == "ready")
        error = servers.statuses[-1].error
        assert error is not None
        assert error.message == (
            "server 's' exited with status 3; after 4 ends in a short time it stays down until it is restarted"
        )
        assert await servers.manager.wait_started(BOUND_SECS) == ()
        assert (await servers.manager.restart("s")).status == "ready"


async def test_a_restart_that_fails_counts_as_a_death(tmp_path: Path) -> None:
    needed = tmp_path / "needed"
    needed.touch()
    async with managing() as servers:
        await servers.manager.connect("s", server_entry("--exit-unless", str(needed)))
        needed.unlink()
        with pytest.raises(ToolError):
            await servers.call("s", "die")
        await servers.until(lambda: "stays down" in str(servers.statuses[-1].error))
        assert servers.history("s") == ["starting", "ready", *["failed", "starting"] * 3, "failed"]


def test_waits_between_restarts_grow_and_differ() -> None:
    policy = RestartPolicy(first_delay_secs=1.0, longest_delay_secs=8.0)
    for deaths, longest in ((1, 1.0), (2, 2.0), (4, 8.0), (9, 8.0)):
        delays = {policy.delay_secs(deaths) for _ in range(50)}
        assert len(delays) > 1
        assert all(longest / 2 <= delay <= longest for delay in delays)


async def test_a_server_over_http_that_is_away_at_its_start_is_used_when_it_is_there() -> None:
    patient = RestartPolicy(tries=1000, first_delay_secs=0.01, longest_delay_secs=0.05)
    async with McpHttpServer() as server, managing(restart=patient) as servers:
        await server.stop()
        info = await servers.manager.connect("s", server.entry())
        assert info.status == "failed" and info.error is not None
        assert "Connection refused" in info.error.message and "it is started again in" in info.error.message
        assert await servers.manager.wait_started(BOUND_SECS) == (), "nobody waits for it"
        await server.start()
        await servers.until(lambda: servers.history("s")[-1] == "ready")
        await servers.call("s", "echo", text="here")


async def test_what_the_host_wished_of_a_server_is_told_again_in_a_new_session() -> None:
    offered = {"logging": {}, "resources": {"subscribe": True}}
    async with McpHttpServer(capabilities=offered) as server, managing() as servers:
        await servers.manager.connect("s", server.entry())
        await servers.manager.set_log_level("s", "error")
        await servers.manager.watch_resources("s", ["doc://1", "doc://2"])
        server.sessions.clear()
        await servers.call("s", "echo", text="again")
        assert (await server.received("logging/setLevel", 2)).params == {"level": "error"}
        await server.received("resources/subscribe", 4)
        assert [seen.params["uri"] for seen in server.all("resources/subscribe")] == ["doc://1", "doc://2"] * 2
        await servers.manager.watch_resources("s", ["doc://2"])
        assert [seen.params["uri"] for seen in server.all("resources/unsubscribe")] == ["doc://1"]
    assert servers.warnings == []


async def test_a_server_may_be_stopped_and_started_again() -> None:
    async with managing() as servers:
        first = await servers.manager.connect("s", server_entry())
        assert await servers.manager.disconnect("s") == ServerInfo(name="s", status="stopped")
        assert servers.clients["s"] is None
        second = await servers.manager.restart("s")
        assert second.status == "ready"
        assert second.pid != first.pid


async def test_connecting_again_replaces_the_server() -> None:
    async with managing() as servers:
        await servers.manager.connect("s", server_entry())
        info = await servers.manager.connect("s", server_entry("--no-tools"))
        assert (info.status, info.tool_count) == ("ready", 0)
        assert len(servers.manager.servers()) == 1


@pytest.mark.parametrize("act", ["disconnect", "restart"])
async def test_an_unknown_server_is_named_with_those_that_are_known(act: str) -> None:
    async with managing() as servers:
        servers.manager.start("s", server_entry())
        with pytest.raises(ToolError) as caught:
            await getattr(servers.manager, act)("t")
        assert (caught.value.kind, caught.value.message) == (
            "notFound",
            "there is no MCP server 't'; known: s",
        )


async def test_orders_given_at_once_leave_the_server_as_the_last_one_says() -> None:
    async with managing() as servers:
        await servers.manager.connect("s", server_entry("--ignore-eof"))
        connecting = asyncio.create_task(servers.manager.connect("s", server_entry()))
        acts = [
            servers.manager.restart("s"),
            servers.manager.disconnect("s"),
            servers.manager.restart("s"),
            servers.manager.restart("s"),
        ]
        infos = await asyncio.wait_for(asyncio.gather(connecting, *acts), BOUND_SECS)
        assert [info.status for info in infos] == ["ready"] * 5
        assert len({info.pid for info in infos}) == 1
        await servers.call("s", "echo")


async def test_a_server_may_be_stopped_while_it_starts_and_while_it_waits_for_its_restart() -> None:
    async with managing(restart=RestartPolicy(first_delay_secs=60)) as servers:
        servers.manager.start("slow", server_entry("--never-initialize"))
        assert (await asyncio.wait_for(servers.manager.disconnect("slow"), BOUND_SECS)).status == "stopped"
        await servers.manager.connect("dead", server_entry())
        with pytest.raises(ToolError):
            await servers.call("dead", "die")
        await servers.until(lambda: servers.statuses[-1].status == "failed")
        assert (await asyncio.wait_for(servers.manager.disconnect("dead"), BOUND_SECS)).status == "stopped"


async def test_everything_ends_within_3_s_whatever_servers_do() -> None:
    async with managing() as servers:
        servers.manager.start("starting", server_entry("--never-initialize", "--ignore-eof", "--ignore-term"))
        servers.manager.start(
            "stubborn", server_entry("--ignore-eof", "--ignore-term", "--grandchild", "detached")
        )
        servers.manager.start("flooding", server_entry("--junk"))
        await servers.manager.connect("polite", server_entry())
    assert {info.status for info in servers.manager.servers()} == {"stopped"}


async def test_after_the_end_nothing_is_started() -> None:
    async with managing() as servers:
        pass
    with pytest.raises(ToolError, match="we are stopping"):
        servers.manager.start("s", server_entry())


async def test_changed_tools_are_reported_with_the_new_count() -> None:
    async with managing() as servers:
        await servers.manager.connect("s", server_entry())
        await servers.call("s", "change_tools")
        await servers.until(lambda: servers.statuses[-1].tool_count == len(TOOLS) + 1)
        assert servers.tools[-1] == ("s", True, len(TOOLS) + 1)


async def test_what_is_ignored_and_mended_is_reported_with_the_server() -> None:
    async with managing() as servers:
        await servers.manager.connect("s", server_entry("--broken-tools", autoApprove=["echo"]))
    assert servers.warnings[0] == (
        "s",
        "mcpServers.s.autoApprove is ignored; what runs unasked is said in `permissions`",
    )
    assert ("s", "tool 'good' is listed twice; the second is left out") in servers.warnings


async def test_an_input_is_asked_for_once_and_kept(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask_input(input_id: str) -> str | None:
        asked.append(input_id)
        return None if input_id == "declined" else f"answer to {input_id}"

    async with managing(ask_input=ask_input, workspace=(tmp_path,)) as servers:
        entry = server_entry(env={"A": "${input:a}", "W": "${workspaceFolder}"})
        infos = await asyncio.gather(*(servers.manager.connect(name, entry) for name in ("s", "t")))
        assert [info.status for info in infos] == ["ready", "ready"]
        (block,) = (await servers.call("s", "environment")).content
        assert '"A": "answer to a"' in block.text
        assert f'"W": "{tmp_path}"' in block.text
        assert f'"cwd": "{tmp_path}"' in block.text
        await servers.manager.restart("s")
        info = await servers.manager.connect("u", server_entry(env={"D": "${input:declined}"}))
        assert info.error is not None
        assert info.error.message == (
            "mcpServers.u.env.D: ${input:declined} stands for nothing: nobody gave this input"
        )
    assert asked == ["a", "declined"]


async def test_a_question_holds_up_only_the_servers_that_need_its_answer() -> None:
    async def ask_input(input_id: str) -> str | None:
        return await asyncio.Event().wait() and "never"

    async with managing(ask_input=ask_input) as servers:
        servers.manager.start("asking", server_entry(env={"A": "${input:a}"}))
        assert (await asyncio.wait_for(servers.manager.connect("s", server_entry()), BOUND_SECS)).status == "ready"
        assert await servers.manager.wait_started(0.01) == ("asking",)


async def test_the_folder_of_a_file_is_where_relative_paths_start_without_a_workspace(tmp_path: Path) -> None:
    async with managing() as servers:
        await servers.manager.connect("s", server_entry(), folder=tmp_path)
        (block,) = (await servers.call("s", "environment")).content
        assert f'"cwd": "{tmp_path}"' in block.text
