"""Everything that goes to the host passes here, in order: numbered, merged and held back when the host is slow.

An event takes its number when it joins the queue. Two neighbouring text deltas of a run become one while the
first still waits; nothing else is merged, and nothing is dropped.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from attrs import evolve

from sidecar.protocol.codec import encode
from sidecar.protocol.events import AgentEvent, AssistantReasoningDelta, AssistantTextDelta
from sidecar.protocol.messages import AgentEventParams
from sidecar.protocol.values import JsonObject
from sidecar.server.framing import frame
from sidecar.server.json_text import to_json
from sidecar.server.pipes import Writer

HIGH_WATER_BYTES = 1024 * 1024
"""Above this much unsent, whoever emits an event waits. Own choice."""

LOW_WATER_BYTES = 256 * 1024
"""At this much or less, they go on."""

FULL_BYTES = 16 * 1024 * 1024
"""Above this much unsent, no more input is read from a host that does not read our output. Own choice."""

_ENTRY_BYTES = 200
"""About what an entry of the queue costs beside its text."""

DELTAS = (AssistantTextDelta, AssistantReasoningDelta)
DELTA_TYPES = frozenset(delta.type for delta in DELTAS)

_SURROGATES = re.compile(r"(\\u(?:d[89ab]..\\ud[c-f]..|(?!d[89a-f])....)|\\[^u])|\\u....")
"""Every escape of JSON; the group takes all but half a pair of surrogates, which many hosts refuse to read."""

Keep = Callable[[AgentEventParams], bool]
"""Takes an event before it joins the queue; False keeps it from being sent, and from taking a number."""


def _keep_nothing(event: AgentEventParams) -> bool:
    """Nobody wants to see the events again."""
    return True


class Waiting:
    """An entry of the queue. The frame of a delta is empty until it is sent, as its text can still grow."""

    __slots__ = ("event", "frame", "more", "sent", "size")

    def __init__(self, frame: bytes, size: int, event: AgentEventParams | None = None) -> None:
        self.frame = frame
        self.size = size
        self.event = event
        self.more: list[str] = []
        self.sent = False

    def grown(self) -> AgentEventParams | None:
        """The event with all the text that joined it."""
        if self.event is None or not self.more:
            return self.event
        delta = self.event.event
        assert isinstance(delta, DELTAS), "nothing else grows"
        return evolve(self.event, event=evolve(delta, text=delta.text + "".join(self.more)))


class _Run:
    """Where the numbering of a run stands, and its last event, which may still wait and grow."""

    __slots__ = ("last", "next_seq")

    def __init__(self) -> None:
        self.next_seq = 0
        self.last: Waiting | None = None


class Outbox:
    """The one way out. Used from the event loop's thread alone.

    Starts closed: until `open` is called, only answers leave, because a host must not hear anything else
    before the answer to its `initialize` (LSP 3.17, "Initialize Request").
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        writer.on_room = self.pump
        self._queue: deque[Waiting] = deque()
        self._waiting_bytes = 0
        self._runs: dict[str, _Run] = {}
        self._waiters: list[Callable[[], None]] = []
        self._emptied = asyncio.Event()
        self._is_open = False
        self.opt_out_events: frozenset[str] = frozenset()
        self.keep: Keep = _keep_nothing

    def open(self) -> None:
        """From now on everything leaves; what waited leaves first."""
        self._is_open = True
        self.pump()

    def discard(self) -> None:
        """Forgets what waits behind an `initialize` that failed."""
        self._queue.clear()
        self._runs.clear()
        self._waiting_bytes = 0
        self._wake()

    def answer(self, message: JsonObject) -> None:
        """Sends an answer. Raises TypeError or ValueError, having sent nothing, where it is not JSON."""
        data = _framed(message)
        if self._is_open:
            self._join(Waiting(data, len(data)))
        else:
            self._writer.write(data)

    def send(self, message: JsonObject) -> Waiting:
        """Sends a request or notification; raises as `answer` does."""
        data = _framed(message)
        return self._join(Waiting(data, len(data)))

    def replace(self, earlier: Waiting | None, message: JsonObject) -> Waiting:
        """Sends a message in the place of an earlier one that it makes pointless, if that still waits."""
        if earlier is None or earlier.sent:
            return self.send(message)
        data = _framed(message)
        self._waiting_bytes += len(data) - earlier.size
        earlier.frame, earlier.size = data, len(data)
        return earlier

    async def emit(self, session_id: str, run_id: str, event: AgentEvent) -> None:
        """Sends an event of a run; waits while too much is unsent. Raises as `answer` does.

        An event of a type that the host opted out of takes no number, nor does a delta that joins another.
        Before anything else the event is given to `keep`.
        """
        if event.type in self.opt_out_events:
            return
        run = self._runs.get(run_id)
        if run is None:
            run = self._runs[run_id] = _Run()
        earlier = _growing(run, event)
        seq = run.next_seq if earlier is None else run.next_seq - 1
        params = AgentEventParams(session_id=session_id, run_id=run_id, seq=seq, event=event)
        data = b"" if event.type in DELTA_TYPES else _event_framed(params)
        if not self.keep(params):
            return
        if earlier is None:
            self._append(run, params, data)
        else:
            self._merge(earlier, event)
        if self._waiting_bytes > HIGH_WATER_BYTES:
            await self._room()

    def end_run(self, run_id: str) -> None:
        """Forgets the numbering of a run, after its last event."""
        self._runs.pop(run_id, None)

    @property
    def waiting_bytes(self) -> int:
        """What was not handed to the writer yet, about."""
        return self._waiting_bytes

    @property
    def is_full(self) -> bool:
        """Whether the host has so much to read that nothing more should be read from it."""
        return self._waiting_bytes > FULL_BYTES

    def when_room(self, callback: Callable[[], None]) -> None:
        """Calls back, once, when little enough is unsent."""
        self._waiters.append(callback)

    def pump(self) -> None:
        """Hands entries to the writer while it has room; the writer calls it when it has room again."""
        if not self._is_open:
            return
        while self._queue and self._writer.has_room:
            waiting = self._queue.popleft()
            self._waiting_bytes -= waiting.size
            waiting.sent = True
            self._hand_over(waiting.frame, waiting.grown())
        if self._waiters and self._waiting_bytes <= LOW_WATER_BYTES:
            self._wake()
        if not self._queue:
            self._emptied.set()

    async def close(self, limit_secs: float) -> None:
        """Waits until everything is written, at most so long."""
        if self._queue and self._is_open:
            self._emptied.clear()
            began = asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_secs):
                    await self._emptied.wait()
            limit_secs -= asyncio.get_running_loop().time() - began
        await self._writer.close(max(0.0, limit_secs))

    async def _room(self) -> None:
        """How long it takes is the host's affair; the caller may be cancelled."""
        while self._waiting_bytes > LOW_WATER_BYTES:
            room = asyncio.Event()
            self.when_room(room.set)
            await room.wait()

    def _join(self, waiting: Waiting) -> Waiting:
        self._queue.append(waiting)
        self._waiting_bytes += waiting.size
        self.pump()
        return waiting

    def _merge(self, earlier: Waiting, delta: AgentEvent) -> None:
        """Adds a delta to the one before it."""
        assert isinstance(delta, DELTAS)
        earlier.more.append(delta.text)
        earlier.size += len(delta.text)
        self._waiting_bytes += len(delta.text)

    def _append(self, run: "_Run", params: AgentEventParams, data: bytes) -> None:
        run.next_seq += 1
        if self._is_open and not self._queue and self._writer.has_room:
            run.last = None
            self._hand_over(data, params)
        else:
            run.last = Waiting(data, len(data) or _delta_size(params.event), params)
            self._join(run.last)

    def _hand_over(self, data: bytes, event: AgentEventParams | None) -> None:
        if event is not None and not data:
            data = _event_framed(event)
        self._writer.write(data)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for callback in waiters:
            callback()


def _growing(run: "_Run", event: AgentEvent) -> Waiting | None:
    """The delta that this one can join: the last event of its run, of its kind, not sent yet."""
    last = run.last
    if event.type not in DELTA_TYPES or last is None or last.sent or last.event is None:
        return None
    return last if type(last.event.event) is type(event) else None


def _delta_size(event: AgentEvent) -> int:
    assert isinstance(event, DELTAS)
    return _ENTRY_BYTES + len(event.text)


def _framed(message: JsonObject) -> bytes:
    return _framed_text(to_json(message))


def _framed_text(text: str) -> bytes:
    if "\\ud" in text:
        text = _SURROGATES.sub(lambda found: found[0] if found[1] else "\\ufffd", text)
    return frame(text.encode("ascii"))


def _event_framed(params: AgentEventParams) -> bytes:
    # Joined from texts: what comes before the number is the same for all events of a run, and half of the work.
    beginning = _event_beginning(params.session_id, params.run_id)
    return _framed_text(f'{beginning}{params.seq},"event":{to_json(encode(params.event))}}}}}')


@lru_cache(maxsize=64)
def _event_beginning(session_id: str, run_id: str) -> str:
    message = {"jsonrpc": "2.0", "method": "agent/event", "params": {"sessionId": session_id, "runId": run_id}}
    return f'{to_json(message)[:-2]},"seq":'
