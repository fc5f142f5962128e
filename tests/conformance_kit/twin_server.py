"""A sidecar that is wrong in one way: a proxy before the real one, with one switch a rule.

    python -m tests.conformance_kit.twin_server RULE,RULE… COMMAND …

What the switches do is in `server_twins.py`.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol

from sidecar.conformance.frames import Body, FrameReader, framed
from tests.conformance_kit.server_twins import chosen
from tests.conformance_kit.switches import Gone, Json, Twin, Wire

CHUNK_BYTES = 65536


class Child(Protocol):
    """The real sidecar, however it was started."""

    stdin: BinaryIO
    stdout: BinaryIO

    def wait(self) -> int:
        """Its status, once it has ended."""

    def kill(self) -> None:
        """Ends it at once."""


class Proxy:
    """Passes everything on, but for what the twin spoils."""

    def __init__(self, twin: Twin, child: Child, to_host: BinaryIO) -> None:
        self._twin = twin
        self._child = child
        self._to_host = to_host
        self._writing = threading.Lock()
        self._wire = Wire()

    def run(self, from_host: BinaryIO) -> int:
        """Until the sidecar has ended; the status that the host sees."""
        threading.Thread(target=self._pass_to_sidecar, args=(from_host,), daemon=True).start()
        try:
            self._pass_to_host()
            status = self._child.wait()
        except Gone as gone:
            self._child.kill()
            return gone.status
        return self._twin.status(self._wire, status)

    def _pass_to_host(self) -> None:
        reader = FrameReader()
        while data := os.read(self._child.stdout.fileno(), CHUNK_BYTES):
            for found in reader.feed(data):
                if isinstance(found, Body):
                    frame = self._wire.from_sidecar(found.data)
                    self._write(self._twin.told(self._wire, frame))

    def _write(self, frames: Sequence[object]) -> None:
        written = [frame if isinstance(frame, bytes) else framed(Wire.dumped(frame)) for frame in _sent(frames)]
        # In one go, so that what belongs together is read before the kit goes on to its next conversation.
        with self._writing, _pipe_that_may_be_closed():
            self._to_host.write(b"".join(written))
            self._to_host.flush()
        for frame in frames:
            if isinstance(frame, Gone):
                raise frame

    def _pass_to_sidecar(self, from_host: BinaryIO) -> None:
        reader = FrameReader()
        with _pipe_that_may_be_closed():
            while data := os.read(from_host.fileno(), CHUNK_BYTES):
                self._wire.raw = data
                frames = [
                    self._wire.from_host(found.data) for found in reader.feed(data) if isinstance(found, Body)
                ]
                self._child.stdin.write(self._heard(data, frames))
                self._child.stdin.flush()
        self._write(self._twin.at_end(self._wire))
        with _pipe_that_may_be_closed():
            self._child.stdin.close()

    def _heard(self, data: bytes, frames: Sequence[Json | None]) -> bytes:
        """What the sidecar gets: byte for byte what the host wrote, unless it is a frame that the twin changes."""
        match frames:
            case [dict(frame)] if (
                data.endswith(b"}") and (changed := self._twin.heard(self._wire, frame)) is not frame
            ):
                return framed(Wire.dumped(changed))
        return data


class _pipe_that_may_be_closed:
    """The other end may have gone, which its end shows elsewhere."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        return isinstance(error, OSError | ValueError)


def _sent(frames: Sequence[object]) -> Iterator[object]:
    return (frame for frame in frames if not isinstance(frame, Gone))


class Spawned:
    """The real sidecar as a child process."""

    def __init__(self, command: Sequence[str]) -> None:
        process = subprocess.Popen(list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        self.stdin: BinaryIO = process.stdin  # type: ignore[assignment]
        self.stdout: BinaryIO = process.stdout  # type: ignore[assignment]
        self.wait = process.wait
        self.kill = process.kill


def main(rules: str, command: Sequence[str]) -> int:
    """The status of the twin."""
    return Proxy(chosen(rules.split(",") if rules else ()), Spawned(command), sys.stdout.buffer).run(
        sys.stdin.buffer
    )


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
