"""How a conversation is opened with servers of every era.

Source: MCP 2026-07-28, server/discover and basic/versioning; MCP 2025-11-25, basic/lifecycle. What is done about
servers that do neither is our own choice.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sidecar.mcp.client import Client
from sidecar.mcp.config import Server, decode_server
from sidecar.mcp.verdicts import Verdicts
from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import TextBlock
from tests.harness.mcp_modern_server import modern_entry
from tests.harness.mcp_server import server_entry
from tests.harness.processes import descendants

BOUND_SECS = 10.0


@contextlib.asynccontextmanager
async def connected(entry: Any, **options: Any) -> AsyncIterator[Client]:
    client = Client("s", decode_server("s", entry), **options)
    try:
        await asyncio.wait_for(client.connect(), BOUND_SECS)
        yield client
    finally:
        await client.close()
        assert descendants(os.getpid()) == set()


async def told(client: Client, tool: str, **arguments: Any) -> Any:
    (block,) = (await asyncio.wait_for(client.call_tool(tool, arguments), BOUND_SECS)).content
    assert isinstance(block, TextBlock)
    return json.loads(block.text)


async def methods_received(client: Client) -> list[str]:
    return [message["method"] for message in await told(client, "received") if message["method"] != "tools/call"]


def processes(file: Path) -> int:
    """How many processes of the server there have been."""
    return len(file.read_text().splitlines())


# Modern servers -----------------------------------------------------------------------------------------


async def test_a_modern_server_is_asked_what_it_is_and_nothing_else() -> None:
    async with connected(modern_entry()) as client:
        assert client.protocol_version == "2026-07-28"
        assert client.session.is_modern
        assert client.server_info == {"name": "modern", "version": "1"}
        assert client.instructions == "be kind"
        assert "initialize" not in await methods_received(client)
        assert "notifications/initialized" not in await methods_received(client)


async def test_every_request_to_a_modern_server_says_what_it_is() -> None:
    async with connected(modern_entry()) as client:
        meta = (await told(client, "show"))["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "agent-sidecar"
        assert set(meta) == {
            f"io.modelcontextprotocol/{key}" for key in ("protocolVersion", "clientCapabilities", "clientInfo")
        }

        async def on_progress(done: float | None, total: float | None, message: str | None) -> None: ...

        (block,) = (await client.call_tool("show", {}, on_progress=on_progress)).content
        assert isinstance(block, TextBlock)
        assert set(json.loads(block.text)["_meta"]) == {*meta, "progressToken"}


async def test_a_server_that_rejects_the_revision_names_another_and_is_asked_with_that() -> None:
    async with connected(
        modern_entry("--on-discover", "reject", "--versions", "2026-07-28", "2099-01-01")
    ) as client:
        assert client.protocol_version == "2026-07-28"
        assert (await methods_received(client)).count("server/discover") == 2


async def test_a_modern_server_that_is_slow_to_answer_is_modern_all_the_same() -> None:
    async with connected(modern_entry("--on-discover", "late")) as client:
        assert client.session.is_modern
        assert (await methods_received(client))[:2] == ["server/discover", "initialize"]
        assert "notifications/initialized" not in await methods_received(client)


async def test_a_server_that_refuses_the_handshake_for_its_revision_is_asked_again_what_it_is() -> None:
    async with connected(modern_entry("--on-discover", "ignore-once")) as client:
        assert client.session.is_modern
        assert (await methods_received(client))[:3] == ["server/discover", "initialize", "server/discover"]


@pytest.mark.parametrize(
    "options", [("--versions", "2099-01-01"), ("--versions", "2099-01-01", "--on-discover", "reject")]
)
async def test_a_server_of_a_later_revision_alone_is_named_with_those_that_we_speak(
    options: tuple[str, ...],
) -> None:
    with pytest.raises(ToolError) as caught:
        async with connected(modern_entry(*options)):
            pass
    assert caught.value.kind == "mcpError"
    assert caught.value.message == (
        "server 's' speaks MCP revision 2099-01-01, and this client 2024-11-05, 2025-03-26, 2025-06-18, "
        "2025-11-25, 2026-07-28; use another version of the server"
    )


async def test_a_server_that_needs_a_richer_client_says_what_it_needs() -> None:
    with pytest.raises(ToolError) as caught:
        async with connected(modern_entry("--on-discover", "need")):
            pass
    assert caught.value.message == (
        "server 's' refused server/discover: too poor a client; it needs a client that offers sampling, roots"
    )


# Legacy servers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_discover", [None, "silent", "warn", "empty"])
async def test_a_server_that_does_not_know_the_question_is_asked_for_a_handshake(
    on_discover: str | None, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    options = () if on_discover is None else ("--on-discover", on_discover)
    async with connected(server_entry("--pids", str(pids), *options)) as client:
        assert client.protocol_version == "2025-11-25"
        assert not client.session.is_modern
        assert await told(client, "received", method="notifications/initialized") == [None]
        assert await told(client, "received", method="notifications/cancelled") == []
        assert "_meta" not in (await told(client, "received", method="initialize"))[0]
    assert processes(pids) == 1


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        (server_entry, ("--on-discover", "exit")),
        (modern_entry, ("--on-discover", "refuse-and-exit")),
        (modern_entry, ("--on-discover", "wedge")),
    ],
)
async def test_a_server_that_does_not_survive_the_question_is_started_again_without_it(
    entry: Any, options: tuple[str, ...], tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    raw = entry("--pids", str(pids), *options, startTimeoutSecs=4)
    verdicts = Verdicts()
    async with connected(raw, verdicts=verdicts) as client:
        assert client.protocol_version == "2025-11-25"
    assert processes(pids) == 2
    async with connected(raw, verdicts=verdicts):
        pass
    assert processes(pids) == 3


async def test_a_server_that_answers_nonsense_is_asked_for_a_handshake() -> None:
    async with connected(modern_entry("--on-discover", "garble")) as client:
        assert client.protocol_version == "2025-11-25"


async def test_a_server_that_lists_legacy_revisions_alone_is_asked_for_a_handshake() -> None:
    with pytest.raises(ToolError, match="refused initialize: no handshake here"):
        async with connected(modern_entry("--versions", "2025-06-18")):
            pass


# Verdicts -----------------------------------------------------------------------------------------------


async def test_what_a_server_is_gets_found_out_once(tmp_path: Path) -> None:
    file = tmp_path / "kept" / "verdicts.json"
    entry = server_entry()
    async with connected(entry, verdicts=Verdicts(file)) as client:
        assert len(await told(client, "received", method="server/discover")) == 1
    async with connected(entry, verdicts=Verdicts(file)) as client:
        assert len(await told(client, "received", method="server/discover")) == 0
    async with connected({**entry, "env": {"OTHER": "1"}}, verdicts=Verdicts(file)) as client:
        assert len(await told(client, "received", method="server/discover")) == 1


async def test_a_server_that_has_become_modern_is_found_out_again() -> None:
    entry = modern_entry()
    verdicts = Verdicts()
    verdicts.remember(decode_server("s", entry), "legacy")
    async with connected(entry, verdicts=verdicts) as client:
        assert client.session.is_modern
        assert (await methods_received(client))[:2] == ["initialize", "server/discover"]
    assert verdicts.get(decode_server("s", entry)) == "modern"


async def test_a_server_that_could_not_be_opened_is_asked_anew_the_next_time() -> None:
    entry = server_entry("--exit", "1")
    verdicts = Verdicts()
    verdicts.remember(decode_server("s", entry), "legacy")
    with pytest.raises(ToolError, match="exited with status 1"):
        async with connected(entry, verdicts=verdicts):
            pass
    assert verdicts.get(decode_server("s", entry)) is None


def server(**fields: Any) -> Server:
    return decode_server("s", {"command": "run-me", **fields})


def test_verdicts_are_shared_by_file_and_give_no_secret_away(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.json"
    one, other = Verdicts(file), Verdicts(file)
    assert other.get(server()) is None
    one.remember(server(env={"TOKEN": "s3cr3t-t0k3n"}), "modern")
    other.remember(server(args=["x"]), "legacy")
    assert Verdicts(file).get(server(env={"TOKEN": "s3cr3t-t0k3n"})) == "modern"
    assert Verdicts(file).get(server(args=["x"])) == "legacy"
    assert "s3cr3t-t0k3n" not in file.read_text()
    assert os.name != "posix" or file.stat().st_mode & 0o077 == 0
    other.forget(server(args=["x"]))
    assert Verdicts(file).get(server(args=["x"])) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"a": 1}', b'{"a": ["new", 1]}', b'{"a": ["modern", null]}', b"\xff\xfe", b"[" * 100_000],
)
def test_a_file_of_verdicts_that_makes_no_sense_is_an_empty_one(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.json"
    file.write_bytes(content)
    verdicts = Verdicts(file)
    assert verdicts.get(server()) is None
    verdicts.remember(server(), "modern")
    assert Verdicts(file).get(server()) == "modern"


def test_verdicts_that_cannot_be_written_hold_as_long_as_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    verdicts = Verdicts(tmp_path / "file" / "verdicts.json")
    verdicts.remember(server(), "modern")
    assert verdicts.get(server()) == "modern"


def test_a_verdict_is_forgotten_after_a_week_and_when_there_are_too_many() -> None:
    now = 1_000_000.0
    verdicts = Verdicts(now=lambda: now)
    verdicts.remember(server(), "legacy")
    now += 6 * 24 * 3600
    assert verdicts.get(server()) == "legacy"
    now += 24 * 3600
    assert verdicts.get(server()) is None
    for number in range(501):
        now += 1
        verdicts.remember(server(args=[str(number)]), "legacy")
    assert verdicts.get(server(args=["0"])) is None
    assert verdicts.get(server(args=["500"])) == "legacy"


async def test_a_server_that_is_no_longer_modern_and_keeps_silent_is_found_out_again() -> None:
    entry = server_entry("--on-discover", "silent", startTimeoutSecs=4)
    verdicts = Verdicts()
    verdicts.remember(decode_server("s", entry), "modern")
    async with connected(entry, verdicts=verdicts) as client:
        assert client.protocol_version == "2025-11-25"
    assert verdicts.get(decode_server("s", entry)) == "legacy"
