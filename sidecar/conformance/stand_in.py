"""The process that a host under test starts as its sidecar: the judge's hands, for there is no thought in it.

    python -I -S stand_in.py PORT TOKEN

What the host writes goes to the judge over TCP on this machine, in pieces that each begin with their size in four
bytes; an empty one is the end of stdin. What the judge writes are orders, one JSON object a line:

    {"write": "base64", "pieceBytes": 7, "pauseMs": 1}   to stdout; in pieces, with pauses between them
    {"stderr": "text"}                                   to stderr
    {"reads": false}                                     leaves the host's bytes in the pipe, until true
    {"exit": 3}                                          ends

Nothing but the standard library is imported, so that it starts as fast as Python does.
"""

import base64
import json
import os
import socket
import sys
import threading
import time
from typing import Any

CONNECT_SECS = 10.0
READ_BYTES = 65536
STATUS_WITHOUT_JUDGE = 70
"""EX_SOFTWARE of BSD's sysexits: the judge went away."""


def main(port: int, token: str) -> None:
    """Obeys until told to exit, or until the judge is gone."""
    judge = socket.create_connection(("127.0.0.1", port), timeout=CONNECT_SECS)
    judge.settimeout(None)
    judge.sendall(token.encode() + b"\n")
    reads = threading.Event()
    reads.set()
    threading.Thread(target=_pass_on, args=(judge, reads), daemon=True).start()
    with judge.makefile("rb") as orders:
        for line in orders:
            _obey(json.loads(line), reads)
    os._exit(STATUS_WITHOUT_JUDGE)


def _pass_on(judge: socket.socket, reads: threading.Event) -> None:
    while True:
        reads.wait()
        data = os.read(0, READ_BYTES)
        reads.wait()  # What was read while the order not to came is passed on when reading goes on.
        judge.sendall(len(data).to_bytes(4, "big") + data)
        if not data:
            return


def _obey(order: dict[str, Any], reads: threading.Event) -> None:
    match order:
        case {"write": str(encoded)}:
            _write(base64.b64decode(encoded), order.get("pieceBytes"), order.get("pauseMs", 0))
        case {"stderr": str(text)}:
            _write_all(2, text.encode())
        case {"reads": bool(whether)}:
            if whether:
                reads.set()
            else:
                reads.clear()
        case {"exit": int(status)}:
            os._exit(status)


def _write(data: bytes, piece_bytes: int | None, pause_ms: float) -> None:
    step = piece_bytes or len(data)
    for start in range(0, len(data), step):
        _write_all(1, data[start : start + step])
        if pause_ms:
            time.sleep(pause_ms / 1000)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(fd, view) :]
    except OSError:  # The host has closed its end or is gone. What it was told is not heard, and that is all.
        return


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
