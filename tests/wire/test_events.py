"""Events and progress as a host gets them.

Source: protocol.md, ground rules 5.1 to 5.3, Progress; LSP 3.17, "Work Done Progress".
"""

import json
from typing import Any

import pytest

from tests.harness.wire import Wire, request
from tests.wire.conftest import Spawn


def submit(server: Wire, *events: list[Any], run: str = "r", **params: Any) -> int:
    return server.ask("agent/submit", {"prompt": json.dumps(events), "runId": run, **params})


def seen(server: Wire, run: str = "r") -> list[tuple[int, str]]:
    return [(event["seq"], event["event"]["type"]) for event in server.events() if event["runId"] == run]


def test_all_events_come_before_the_answer_numbered_without_gap(server: Wire) -> None:
    run = submit(server, ["warning", "x", 3])
    server.answer(run)
    assert seen(server) == [
        (0, "runStarted"),
        (1, "warning"),
        (2, "warning"),
        (3, "warning"),
        (4, "runCompleted"),
    ]


def test_runs_are_numbered_each_for_itself(server: Wire) -> None:
    runs = [submit(server, ["warning", name, 50], run=name) for name in ("a", "b", "c")]
    for run in runs:
        server.answer(run)
    numbers: dict[str, list[int]] = {}
    for event in server.events():
        numbers.setdefault(event["runId"], []).append(event["seq"])
    assert numbers == {name: list(range(52)) for name in ("a", "b", "c")}


def test_what_the_listener_heard_is_what_was_sent(server: Wire) -> None:
    before = len(server.call("recorded")["seq"])
    server.answer(submit(server, ["text", "word ", 100], ["progress", "x", 2]))
    sent = server.events()
    recorded = server.call("recorded")
    assert recorded["seq"][before:] == [event["seq"] for event in sent]


def test_an_event_that_cannot_be_json_fails_the_run_and_not_the_wire(server: Wire) -> None:
    assert server.answer(submit(server, ["nonsense", "x", 1]))["error"]["code"] == -32603
    assert seen(server) == [(0, "runStarted")]


def test_a_host_gets_no_event_that_it_opted_out_of(spawn: Spawn) -> None:
    with spawn() as server:
        server.initialize({"experimental": {"agentSidecar": {"optOutEvents": ["warning", "runStarted"]}}})
        server.answer(submit(server, ["warning", "x", 2], ["progress", "x", 2]))
        assert seen(server) == [
            (0, "toolExecutionProgress"),
            (1, "toolExecutionProgress"),
            (2, "runCompleted"),
        ]


def test_a_token_shows_a_progress_bar_around_the_work(server: Wire) -> None:
    params = {"name": "report", "arguments": {}, "workDoneToken": "bar"}
    server.send(request("a", "tools/call", params))
    frames = [server.read() for _ in range(4)]
    assert [frame.get("method") for frame in frames] == ["$/progress", "$/progress", "$/progress", None]
    assert [frame["params"] for frame in frames[:3]] == [
        {"token": "bar", "value": {"kind": "begin", "title": "report"}},
        {"token": "bar", "value": {"kind": "report", "message": "half", "percentage": 50}},
        {"token": "bar", "value": {"kind": "end"}},
    ]


@pytest.mark.parametrize("tool", ["crash", "refuse"])
def test_the_bar_is_taken_away_when_the_work_fails(server: Wire, tool: str) -> None:
    server.send(request("a", "tools/call", {"name": tool, "workDoneToken": 7}))
    kinds = [server.read()["params"]["value"]["kind"] for _ in range(2)]
    assert (kinds, "error" in server.read()) == (["begin", "end"], True)


def test_without_a_token_there_is_no_bar(server: Wire) -> None:
    server.send(request("a", "tools/call", {"name": "report"}))
    assert server.read()["id"] == "a"
