"""Messages of servers, good and bad. Source: JSON-RPC 2.0, MCP 2025-11-25 basic; leniency is our own choice."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.mcp import envelope
from sidecar.mcp.envelope import (
    Answer,
    BrokenAnswer,
    Incoming,
    Junk,
    Refusal,
    ServerNotification,
    ServerRequest,
    read_line,
)
from sidecar.mcp.framing import OversizedLine


def typed(messages: list[Incoming]) -> list[tuple[str, Incoming]]:
    """Named tuples of different kinds compare equal; with their kind they do not."""
    return [(type(message).__name__, message) for message in messages]


def read(line: str) -> list[tuple[str, Incoming]]:
    return typed(read_line(line.encode("utf-8", "surrogateescape")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"jsonrpc":"2.0","id":5,"result":{"a":1}}', Answer(5, {"a": 1})),
        ('{"id":5,"result":{"a":1}}', Answer(5, {"a": 1})),
        ('{"jsonrpc":"2.0","id":"5","result":{}}', Answer(5, {})),
        ('{"jsonrpc":"2.0","id":5.0,"result":{}}', Answer(5, {})),
        ('{"jsonrpc":"2.0","id":5,"result":[]}', Answer(5, {})),
        ('{"jsonrpc":"2.0","id":5,"result":{},"error":null}', Answer(5, {})),
        ('  {"jsonrpc":"2.0","id":5,"result":{}}  ', Answer(5, {})),
        ('{"jsonrpc":"2.0","id":5,"result":{"x":NaN,"y":-Infinity}}', Answer(5, {"x": None, "y": None})),
        ('{"jsonrpc":"2.0","id":5,"result":{"x":"\\ud800","\\uDFFF":1}}', Answer(5, {"x": "�", "�": 1})),
        ('{"jsonrpc":"2.0","id":5,"result":{"x":"\\ud83d\\ude00"}}', Answer(5, {"x": "😀"})),
        ('{"jsonrpc":"2.0","id":5,"result":{"x":"\udcff"}}', Answer(5, {"x": "�"})),
        ('{"jsonrpc":"2.0","id":5,"error":{"code":-1,"message":"no","data":7}}', Refusal(5, -1, "no", 7)),
        ('{"jsonrpc":"2.0","id":5,"error":{"code":"-32602","message":"no"}}', Refusal(5, -32602, "no")),
        ('{"jsonrpc":"2.0","id":5,"error":{"code":true,"message":"no"}}', Refusal(5, None, "no")),
        ('{"jsonrpc":"2.0","id":5,"error":"no"}', Refusal(5, None, "no")),
        ('{"jsonrpc":"2.0","id":5,"error":[1]}', Refusal(5, None, "[1]")),
        ('{"jsonrpc":"2.0","id":5,"error":{}}', Refusal(5, None, "an error without a message: {}")),
        ('{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}', Refusal(None, -1, "no")),
        ('{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}', Refusal(None, -1, "no")),
        ('{"jsonrpc":"2.0","id":true,"error":{"code":-1,"message":"no"}}', Refusal(None, -1, "no")),
        ('{"jsonrpc":"2.0","id":"x","method":"ping"}', ServerRequest("x", "ping", {})),
        ('{"jsonrpc":"2.0","id":0,"method":"ping","params":{"a":1}}', ServerRequest(0, "ping", {"a": 1})),
        ('{"jsonrpc":"2.0","method":"n","params":[1]}', ServerNotification("n", {})),
        ('{"jsonrpc":"2.0","id":null,"method":"n"}', ServerNotification("n", {})),
    ],
)
def test_what_is_clear_is_taken(line: str, message: Incoming) -> None:
    assert read(line) == typed([message])


@pytest.mark.parametrize(
    ("line", "ids", "reason"),
    [
        ('{"jsonrpc":"2.0","id":5}', (5,), "neither a result nor an error"),
        ('{"jsonrpc":"2.0","id":5,"result":null}', (5,), "is null instead of an object"),
        ('{"jsonrpc":"2.0","id":5,"result":"ok"}', (5,), "is a string instead of an object"),
        ('{"jsonrpc":"2.0","id":5,"result":[1]}', (5,), "is an array instead of an object"),
        ('{"jsonrpc":"2.0","id":5,"result":true}', (5,), "is a boolean instead of an object"),
        ('{"jsonrpc":"2.0","id":5,"result":1.5}', (5,), "is a number instead of an object"),
        ('{"jsonrpc":"2.0","id":5.5,"result":{}}', (), "no usable id"),
        ('{"jsonrpc":"2.0","id":[5],"result":{}}', (), "no usable id"),
        ('{"jsonrpc":"2.0","result":{}}', (), "no usable id"),
        ('{"jsonrpc":"2.0","id":5,"result":{"a":', (5,), "no JSON (Expecting value"),
        ("{'jsonrpc': '2.0', 'id': 5, 'result': {}}", (5,), "no JSON"),
        ('{"jsonrpc":"2.0","result":{"a":{"id":7}},"id":5,,}', (7, 5), "no JSON"),
        ('{"jsonrpc":"2.0","id":5,"result":' + "[" * 5000, (5,), "nested too deeply"),
        ('  "id": 5,', (5,), "spread over several lines"),
    ],
)
def test_what_was_meant_as_an_answer_shows_whose_it_may_be(line: str, ids: tuple[int, ...], reason: str) -> None:
    (message,) = read_line(line.encode())
    assert isinstance(message, BrokenAnswer)
    assert message.ids == ids
    assert reason in message.reason


@pytest.mark.parametrize(
    "line",
    [
        "Server running on stdio",
        "[INFO] started",
        "2026-11-29 12:00:00 ready",
        'got {"jsonrpc":"2.0","id":5,"method":"tools/call"}',
        '{"level":30,"msg":"handling","id":5}',
        '{"level":"error","error":"boom"}',
        "{ not json",
        "{}",
        "[]",
        "[1, 2]",
        "42",
        "null",
        '"text"',
        "}",
        '  "jsonrpc": "2.0",',
        "\x00\x01",
    ],
)
def test_talk_is_junk(line: str) -> None:
    assert [kind for kind, _ in read(line)] == ["Junk"] * len(read(line))


def test_a_line_may_hold_several_messages() -> None:
    answers = typed([Answer(1, {}), Answer(2, {})])
    first, second = '{"jsonrpc":"2.0","id":1,"result":{}}', '{"jsonrpc":"2.0","id":2,"result":{}}'
    assert read(f"[{first},{second}]") == answers
    assert read(f"{first} {second}") == answers
    assert read(f"[{first},3]")[:1] == answers[:1]
    assert read(f"{first} done in 3 ms") == [answers[0], ("Junk", Junk("done in 3 ms"))]


def test_an_oversized_line_shows_its_ids_at_either_end() -> None:
    (message,) = read_line(OversizedLine(b'{"jsonrpc":"2.0","id":5,"result":{"x":"', b'aaa"}}'))
    assert message == BrokenAnswer((5,), "its answer is longer than this client takes")
    (message,) = read_line(OversizedLine(b'{"result":{"x":"', b'aaa"}, "id": 6}'))
    assert isinstance(message, BrokenAnswer)
    assert message.ids == (6,)


@given(st.binary(max_size=200))
def test_reading_never_raises(line: bytes) -> None:
    read_line(line)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "result", "error", "method", "params", "jsonrpc", "code", "message"]), inner
        )
    ),
    max_leaves=10,
)


@given(json_values)
def test_reading_never_raises_for_json_either(value: Any) -> None:
    read_line(json.dumps(value).encode())


def test_what_we_send_is_one_line_of_ascii() -> None:
    line = envelope.request(7, "tools/call", {"text": "a\nb\u2028✓\ud800"})
    assert line.isascii()
    assert b"\n" not in line
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"text": "a\nb\u2028✓\ud800"},
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_is_no_json_is_not_sent(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        envelope.request(7, "tools/call", {"value": value})


@pytest.mark.parametrize("part", ['"error":', '"error":{"code":1,"data":', '"result":{"half":"\\ud800","a":'])
def test_no_depth_is_too_much(part: str) -> None:
    for depth in (*range(900, 1010, 10), 5000):
        end = "}" * (part.count("{") + 1)
        (message,) = read_line(
            ('{"jsonrpc":"2.0","id":5,' + part + '{"a":' * depth + "1" + "}" * depth + end).encode()
        )
        assert isinstance(message, Answer | Refusal | BrokenAnswer)
