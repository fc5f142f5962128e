"""What waits to be sent: in order, numbered without gaps, merged only where that is allowed.

Source: protocol.md, ground rules 5.1 to 6.3. A real pipe stands for a host that reads when the test says so.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sidecar.protocol.events import (
    AgentEvent,
    AssistantReasoningDelta,
    AssistantTextDelta,
    ToolExecutionProgress,
    Warned,
)
from sidecar.protocol.messages import AgentEventParams
from sidecar.server import outbox as limits
from sidecar.server.framing import FrameParser
from sidecar.server.outbox import Outbox
from sidecar.server.pipes import HIGH_WATER_BYTES, Writer

BOUND_SECS = 30


class SlowHost:
    """The far end of the pipe. Until `read_all`, nothing is read and the pipe is full."""

    def __init__(self, outbox: Outbox, writer: Writer, fd: int) -> None:
        self.outbox = outbox
        self._writer = writer
        self._fd = fd

    def fill(self) -> None:
        """Sends one message that is larger than all that can be under way."""
        self.outbox.send({"filler": "x" * (HIGH_WATER_BYTES + 1)})

    async def read_all(self) -> list[Any]:
        """Everything that was sent, but the filler."""
        reading = asyncio.create_task(asyncio.to_thread(read_to_the_end, self._fd))
        await self.outbox.close(BOUND_SECS)
        os.close(self._writer.fd)
        return [message for message in await reading if "filler" not in message]


def read_to_the_end(fd: int) -> list[Any]:
    parser, messages = FrameParser(), []
    with os.fdopen(fd, "rb", buffering=0) as pipe:
        while data := pipe.read(65536):
            parser.receive(data)
            while (body := parser.next_body()) is not None:
                messages.append(json.loads(body))
    return messages


@asynccontextmanager
async def slow_host() -> AsyncIterator[SlowHost]:
    ours, theirs = os.pipe()
    writer = Writer(theirs, on_broken=lambda: None)
    writer.start()
    host = SlowHost(Outbox(writer), writer, ours)
    async with asyncio.timeout(BOUND_SECS):
        yield host


def events_of(messages: list[Any], run: str = "r") -> list[tuple[int, str, str]]:
    params = [message["params"] for message in messages if message.get("method") == "agent/event"]
    return [
        (event["seq"], event["event"]["type"], event["event"].get("text", event["event"].get("message")))
        for event in params
        if event["runId"] == run
    ]


async def emit(host: SlowHost, *events: AgentEvent, run: str = "r") -> None:
    for event in events:
        await host.outbox.emit("s", run, event)


def text(words: str) -> AssistantTextDelta:
    return AssistantTextDelta(text=words)


def warning(words: str) -> Warned:
    return Warned(code="c", message=words)


async def test_messages_leave_in_the_order_they_came() -> None:
    async with slow_host() as host:
        host.outbox.open()
        host.outbox.send({"n": 1})
        host.outbox.answer({"n": 2})
        await emit(host, warning("x"))
        host.fill()
        host.outbox.send({"n": 3})
        await emit(host, warning("y"))
        host.outbox.answer({"n": 4})
        messages = await host.read_all()
    assert [message.get("n", message.get("method")) for message in messages] == [
        1, 2, "agent/event", 3, "agent/event", 4,
    ]  # fmt: skip


async def test_neighbouring_deltas_that_wait_become_one_with_one_number() -> None:
    async with slow_host() as host:
        host.outbox.open()
        host.fill()
        await emit(host, text("a"), text("b"), text("c"), warning("!"), text("d"), text("e"))
        messages = await host.read_all()
    assert events_of(messages) == [
        (0, "assistantTextDelta", "abc"),
        (1, "warning", "!"),
        (2, "assistantTextDelta", "de"),
    ]


async def test_deltas_of_different_kinds_or_runs_are_not_merged_and_other_runs_do_not_part_them() -> None:
    async with slow_host() as host:
        host.outbox.open()
        host.fill()
        await emit(
            host, text("a"), AssistantReasoningDelta(text="b"), AssistantReasoningDelta(text="c"), text("d")
        )
        await emit(host, text("A"), run="other")
        await emit(host, text("e"))
        await emit(host, text("B"), run="other")
        messages = await host.read_all()
    assert events_of(messages) == [
        (0, "assistantTextDelta", "a"),
        (1, "assistantReasoningDelta", "bc"),
        (2, "assistantTextDelta", "de"),
    ]
    assert events_of(messages, "other") == [(0, "assistantTextDelta", "AB")]


async def test_nothing_but_deltas_is_merged() -> None:
    progress = ToolExecutionProgress(call_id="c", message="x")
    async with slow_host() as host:
        host.outbox.open()
        host.fill()
        await emit(host, progress, progress, warning("x"), warning("x"))
        messages = await host.read_all()
    assert [seq for seq, _, _ in events_of(messages)] == [0, 1, 2, 3]


async def test_a_delta_that_was_sent_does_not_grow() -> None:
    async with slow_host() as host:
        host.outbox.open()
        await emit(host, text("a"), text("b"))
        messages = await host.read_all()
    assert events_of(messages) == [(0, "assistantTextDelta", "a"), (1, "assistantTextDelta", "b")]


async def test_an_event_that_the_host_opted_out_of_takes_no_number_and_parts_nothing() -> None:
    async with slow_host() as host:
        host.outbox.opt_out_events = frozenset({"warning"})
        host.outbox.open()
        host.fill()
        await emit(host, warning("x"), text("a"), warning("y"), text("b"))
        messages = await host.read_all()
    assert events_of(messages) == [(0, "assistantTextDelta", "ab")]


async def test_a_run_that_has_ended_is_forgotten_and_what_waits_keeps_its_numbers() -> None:
    async with slow_host() as host:
        host.outbox.open()
        host.fill()
        await emit(host, warning("1"), warning("2"))
        host.outbox.end_run("r")
        await emit(host, warning("again"))
        messages = await host.read_all()
    assert [seq for seq, _, _ in events_of(messages)] == [0, 1, 0]


async def test_who_keeps_events_gets_each_piece_before_it_is_sent() -> None:
    kept: list[AgentEventParams] = []

    def keep(params: AgentEventParams) -> bool:
        kept.append(params)
        return True

    async with slow_host() as host:
        host.outbox.keep = keep
        host.outbox.open()
        await emit(host, warning("first"))
        host.fill()
        await emit(host, text("a"), text("b"), warning("last"))
        messages = await host.read_all()
    assert [(params.seq, params.event) for params in kept] == [
        (0, warning("first")), (1, text("a")), (1, text("b")), (2, warning("last")),
    ]  # fmt: skip
    assert [seq for seq, _, _ in events_of(messages)] == [0, 1, 2]


async def test_an_event_that_cannot_be_kept_is_not_sent_and_takes_no_number() -> None:
    async with slow_host() as host:
        host.outbox.keep = lambda params: params.event != warning("lost")
        host.outbox.open()
        await emit(host, warning("x"), warning("lost"), warning("y"))
        messages = await host.read_all()
    assert [(seq, message) for seq, _, message in events_of(messages)] == [(0, "x"), (1, "y")]


async def test_before_it_is_open_only_answers_leave() -> None:
    async with slow_host() as host:
        host.outbox.send({"n": "notification"})
        await emit(host, warning("x"))
        host.outbox.answer({"n": "answer"})
        host.outbox.open()
        messages = await host.read_all()
    assert [message.get("n", message.get("method")) for message in messages] == [
        "answer", "notification", "agent/event",
    ]  # fmt: skip


async def test_what_waits_behind_a_failed_initialize_can_be_discarded() -> None:
    async with slow_host() as host:
        host.outbox.send({"n": 1})
        host.outbox.discard()
        host.outbox.open()
        host.outbox.send({"n": 2})
        messages = await host.read_all()
    assert messages == [{"n": 2}]


def waits(emitting: Coroutine[Any, Any, None]) -> bool:
    """Takes the first step of the coroutine; true where that is not the last."""
    try:
        emitting.send(None)
    except StopIteration:
        return False
    emitting.close()
    return True


async def test_who_emits_waits_while_too_much_is_unsent_and_goes_on_when_it_is_read() -> None:
    async with slow_host() as host:
        host.outbox.open()
        host.fill()
        emitted = 1
        while not waits(emit(host, warning("x" * 1000))):
            emitted += 1
        assert limits.HIGH_WATER_BYTES < host.outbox.waiting_bytes < limits.HIGH_WATER_BYTES + 2000
        assert waits(emit(host, warning("x")))
        waiting = asyncio.create_task(emit(host, warning("last")))
        messages = await host.read_all()
        await waiting
    assert [seq for seq, _, _ in events_of(messages)] == list(range(emitted + 2))


async def test_a_message_may_take_the_place_of_one_that_still_waits() -> None:
    async with slow_host() as host:
        host.outbox.open()
        sent = host.outbox.replace(None, {"n": 1})
        sent = host.outbox.replace(sent, {"n": 2})
        host.fill()
        waiting = host.outbox.replace(sent, {"n": 3})
        waiting = host.outbox.replace(waiting, {"n": 4})
        host.outbox.replace(waiting, {"n": 5})
        messages = await host.read_all()
    assert messages == [{"n": 1}, {"n": 2}, {"n": 5}]


@pytest.mark.parametrize("unfit", [{1, 2}, float("nan"), float("inf"), object()])
async def test_what_is_no_json_fails_where_it_is_sent_and_costs_no_number(unfit: Any) -> None:
    async with slow_host() as host:
        host.outbox.open()
        for send in (host.outbox.send, host.outbox.answer):
            with pytest.raises((TypeError, ValueError)):
                send({"unfit": unfit})
        with pytest.raises((TypeError, ValueError)):
            await emit(host, ToolExecutionProgress(call_id="c", partial=unfit))
        await emit(host, warning("x"))
        messages = await host.read_all()
    assert events_of(messages) == [(0, "warning", "x")]


async def test_a_host_that_closed_its_end_is_reported_once_and_nothing_piles_up() -> None:
    ours, theirs = os.pipe()
    broken: list[bool] = []
    writer = Writer(theirs, on_broken=lambda: broken.append(True))
    writer.start()
    outbox = Outbox(writer)
    outbox.open()
    os.close(ours)
    async with asyncio.timeout(BOUND_SECS):
        for _ in range(1000):
            await outbox.emit("s", "r", warning("x" * 10_000))
        await outbox.close(BOUND_SECS)
    assert broken == [True]
    assert (outbox.waiting_bytes, writer.waiting_bytes) == (0, 0)
    os.close(theirs)
