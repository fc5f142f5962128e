"""A host that speaks raw bytes: starts any command, sends what it is told to, and reads frames under a bound.

Nothing may be left unread: `close` fails the test where a frame came that the test did not ask for.
"""

import json
import os
import queue
import select
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from tests.harness.frames import Conversation

BOUND_SECS = 30.0
"""No single wait is longer. Generous, as machines that run tests are busy; nothing should come near it."""

Json = dict[str, Any]


def framed(body: bytes | Json | list[Any] | str | float | None) -> bytes:
    """A body, or a JSON value, as a frame."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


def request(request_id: Any, method: str, params: Any = None) -> Json:
    """A request; without params where those are None."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **({} if params is None else {"params": params})}


def notification(method: str, params: Any = None) -> Json:
    """A notification; without params where those are None."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def is_answer(frame: Json, request_id: Any) -> bool:
    """Whether this answers that request."""
    return "method" not in frame and frame["id"] == request_id


class Wire:
    """One running process. Frames that come are kept in order until they are read."""

    def __init__(self, process: "subprocess.Popen[bytes]", *, drain_stderr: bool = True) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.process = process
        self.printed = b""
        self._printing = threading.Condition()
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._frames: queue.Queue[Json | Noise | None] = queue.Queue()
        self._passed_over: list[Json] = []
        self._conversation = Conversation()
        self._ids = count(1)
        self._reads_on = True
        self._may_read = threading.Event()
        self._may_read.set()
        jobs = [self._read_frames, *([self._read_printed] if drain_stderr else [])]
        self._threads = [threading.Thread(target=job, daemon=True) for job in jobs]
        for thread in self._threads:
            thread.start()

    # Out --------------------------------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        """Exactly these bytes, whatever they hold."""
        self._conversation.sent_unseen()
        self._write(data)

    def send(self, *messages: Any) -> None:
        """Each as a frame, all in one write."""
        for message in messages:
            self._conversation.sent(message)
        self._write(b"".join(map(framed, messages)))

    def send_odd(self, *messages: Any) -> None:
        """As `send`, what is wrong on purpose and yet never refused."""
        with self.being_odd():
            self.send(*messages)

    def being_odd(self) -> AbstractContextManager[None]:
        """What is sent in the block is wrong on purpose and yet never refused."""
        return self._conversation.being_odd()

    def notify(self, method: str, params: Any = None) -> None:
        self.send(notification(method, params))

    def ask(self, method: str, params: Any = None) -> int:
        """Sends a request; returns its id."""
        request_id = next(self._ids)
        self.send(request(request_id, method, params))
        return request_id

    def _write(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def send_until_full(self, data: bytes) -> int:
        """As much as the pipe takes until it took nothing for a second; returns how much."""
        self._conversation.sent_unseen()
        sent, fd = 0, self._stdin.fileno()
        os.set_blocking(fd, False)
        while sent < len(data) and select.select([], [fd], [], 1.0)[1]:
            sent += os.write(fd, data[sent : sent + 65536])
        os.set_blocking(fd, True)
        return sent

    def end_input(self) -> None:
        with suppress(BrokenPipeError):  # It closes all the same.
            self._stdin.close()

    # In ---------------------------------------------------------------------------------------------------

    def read(self) -> Json:
        """The next frame, whatever it is."""
        frame = self._next()
        assert frame is not None, f"the process ended its output; it printed: {self.printed.decode()}"
        return frame

    def read_until(self, method: str) -> Json:
        """The next message of this method; what came before it is kept for `take`."""
        while (frame := self.read()).get("method") != method:
            self._passed_over.append(frame)
        return frame

    def answer(self, request_id: Any) -> Json:
        """The answer to a request, which may have been passed over; what comes before it is kept for `take`."""
        for frame in self._passed_over:
            if is_answer(frame, request_id):
                self._passed_over.remove(frame)
                return frame
        while not is_answer(frame := self.read(), request_id):
            self._passed_over.append(frame)
        return frame

    def result(self, method: str, params: Any = None) -> Any:
        """Asks and reads the result; fails on an error."""
        answer = self.answer(self.ask(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def error(self, method: str, params: Any = None) -> Json:
        """Asks and reads the error; fails on a result."""
        answer = self.answer(self.ask(method, params))
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    def take(self) -> list[Json]:
        """The frames that were passed over so far, in order."""
        taken, self._passed_over = self._passed_over, []
        return taken

    def events(self) -> list[Json]:
        """The params of the `agent/event`s passed over so far; other frames stay."""
        events = [frame["params"] for frame in self._passed_over if frame.get("method") == "agent/event"]
        self._passed_over = [frame for frame in self._passed_over if frame.get("method") != "agent/event"]
        return events

    def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool of the wire server gives; see `tests/wire/wire_server.py`."""
        return self.result("tools/call", {"name": tool, "arguments": arguments})["result"].get("data")

    def begin(self, tool: str, **arguments: Any) -> int:
        """Starts such a call; returns its id."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def assert_all_read(self) -> None:
        """Fails on frames that nobody read, having waited for all that were sent so far."""
        fence = f"fence {next(self._ids)}"
        self.send(request(fence, "tools/list"))
        self.answer(fence)
        assert self.take() == [], "frames that nobody read"

    def wait_until_printed(self, text: str) -> None:
        """Waits until the process has printed this to stderr."""
        with self._printing:
            assert self._printing.wait_for(lambda: text.encode() in self.printed, BOUND_SECS), (
                self.printed.decode()
            )

    def pause_reading(self) -> None:
        """Reads no more than what is under way: the pipe fills up."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def stop_reading(self) -> None:
        """Closes our end of the process' output."""
        self._reads_on = False
        self.answer(self.ask("tools/list"))  # The thread that reads closes it, behind this.
        self._threads[0].join(BOUND_SECS)

    # The process -----------------------------------------------------------------------------------------

    def initialize(self, capabilities: Any = None, **params: Any) -> Json:
        """The usual handshake; returns the result."""
        result = self.result("initialize", {"processId": None, "capabilities": capabilities or {}, **params})
        self.notify("initialized", {})
        assert isinstance(result, dict)
        return result

    def exit_status(self) -> int:
        """Waits for the end of the process."""
        return self.process.wait(BOUND_SECS)

    def resident_bytes(self) -> int:
        """Memory in use (Linux)."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()

    def close(self, *, leftovers: bool = False) -> None:
        """Ends the process, in good order if it still runs, and fails on frames that nobody read."""
        self.resume_reading()
        if self.process.poll() is None and not self._stdin.closed:
            self.answer(self.ask("shutdown"))
            self.notify("exit")
        self.exit_status()
        for thread in self._threads:
            thread.join(BOUND_SECS)
        if leftovers:
            return
        while (frame := self._next()) is not None:
            self._passed_over.append(frame)
        assert self.take() == [], "frames that nobody read"

    def _next(self) -> Json | None:
        try:
            came = self._frames.get(timeout=BOUND_SECS)
        except queue.Empty:
            raise AssertionError(f"no frame within {BOUND_SECS} s; printed: {self.printed.decode()}") from None
        if isinstance(came, Noise):
            raise AssertionError(f"on stdout, but no frame: {came.data!r}")
        return came

    def _read_frames(self) -> None:
        while self._may_read.wait() and (header := self._stdout.readline()):
            name, _, length = header.partition(b": ")
            blank = self._stdout.readline()
            if name != b"Content-Length" or blank != b"\r\n":
                self._frames.put(Noise(header + blank))
                return
            body = self._stdout.read(int(length))
            if len(body) < int(length):
                self._frames.put(Noise(header + blank + body))
                return
            frame = json.loads(body)
            self._conversation.received(frame)
            self._frames.put(frame)
            if not self._reads_on:
                self._stdout.close()
                break
        self._frames.put(None)

    def _read_printed(self) -> None:
        while data := os.read(self._stderr.fileno(), 65536):
            with self._printing:
                self.printed += data
                self._printing.notify_all()


class Noise:
    """Bytes on stdout that are no whole frame."""

    def __init__(self, data: bytes) -> None:
        self.data = data


@contextmanager
def wire(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    leftovers: bool = False,
    drain_stderr: bool = True,
    **how: Any,
) -> Iterator[Wire]:
    """A running command, ended in good order after the block.

    `leftovers` allows unread frames, `drain_stderr=False` leaves what the process prints unread; `how` goes
    to Popen.
    """
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, **(env or {})}
    with subprocess.Popen(list(command), env=environment, **{**streams, **how}) as process:
        wire = Wire(process, drain_stderr=drain_stderr)
        try:
            yield wire
            wire.close(leftovers=leftovers)
        finally:
            wire.kill()
            wire.end_input()
