"""What no host could read does not reach one (protocol.md, Transport and `ContentBlock`).

Half a pair of surrogates is no Unicode. Many JSON readers refuse a whole frame for it.
"""

import pytest

from tests.e2e.test_run import options
from tests.harness.host import sidecar
from tests.harness.mcp_server import server_entry
from tests.harness.model_server import ScriptedModel, delta, events, says


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("half \ud83d pair", "half \ufffd pair"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("whole \U0001f600 pair", "whole \U0001f600 pair"),
        (r"written \ud83d out", r"written \ud83d out"),
        ("\\\ud83d\n", "\\\ufffd\n"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    ],
)
async def test_half_a_character_is_replaced(text: str, seen: str) -> None:
    reply = events(delta(content=text), delta("stop"))
    async with ScriptedModel(reply, is_strict=False) as model, sidecar(options(model)) as host:
        result = await host.submit(text)
        session = await host.request("session/get", {"sessionId": result["sessionId"]})
    assert host.kinds("runStarted")[0]["prompt"] == seen
    assert "".join(e["text"] for e in host.kinds("assistantTextDelta")) == seen
    assert [message["content"] for message in session["messages"]] == [seen, seen]


async def test_a_character_that_was_cut_in_two_is_joined() -> None:
    pieces = ("so \ud83d", "\ude00 far \ud83d", "", "\ude00", " and \ud83d", "x", "\ud83d")
    reply = events(*(delta(content=piece) for piece in pieces), delta("stop"))
    async with ScriptedModel(reply) as model, sidecar(options(model)) as host:
        result = await host.submit()
    said = "so \U0001f600 far \U0001f600 and \ufffdx\ufffd"
    assert result["message"]["content"] == said
    assert "".join(e["text"] for e in host.kinds("assistantTextDelta")) == said


async def test_broken_content_of_a_server_is_shown_as_text() -> None:
    async with ScriptedModel(says("x")) as model, sidecar(options(model)) as host:
        await host.request("mcp/connect", {"name": "one", "config": server_entry()})
        call = {"name": "one__garbage", "arguments": {"kind": "content of unknown kind"}}
        done = await host.request("tools/call", call)
    assert done["content"][:2] == [
        {"type": "hologram", "data": "…"},
        {"type": "text", "text": '{"type": "text"}'},
    ]
