"""Twins that start at once: a process that has imported the sidecar already forks for each.

The sidecar is the real one; only its imports are not done over and over, which is most of what a short life
costs. What `command` names hands its streams to a fork and ends with its status. POSIX only; elsewhere
`twin_server.py` does the same more slowly.

    python -m tests.conformance_kit.zygote ADDRESS     serves at the address of a socket until stdin ends
"""

import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from sidecar.__main__ import main
from sidecar.app import serve as serve_sidecar
from tests.conformance_kit.server_twins import chosen
from tests.conformance_kit.twin_server import Proxy

CLIENT = Path(__file__).with_name("zygote_client.py")


def command(address: str, rules: Sequence[str]) -> tuple[str, ...]:
    """The command line of a twin with these switches; without any it is the sidecar itself."""
    return (sys.executable, "-I", "-S", str(CLIENT), address, *rules)


def serve(address: str) -> None:
    """Forks a twin for each connection, until stdin ends."""
    assert serve_sidecar, "imported for those who are forked"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    _accept(listener)


def _accept(listener: socket.socket) -> None:
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os._exit(_twin(connection))
        connection.close()


def _twin(connection: socket.socket) -> int:
    """In the fork: takes over the streams of whoever asked, and is the twin."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    order = json.loads(data)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        if stream > 2:
            os.close(stream)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    child = _Forked(connection)
    threading.Thread(target=_obey, args=(connection, child), daemon=True).start()
    with os.fdopen(os.dup(0), "rb", 0) as from_host, os.fdopen(os.dup(1), "wb", 0) as to_host:
        status = Proxy(chosen(order["rules"]), child, to_host).run(from_host)
    for number in (0, 1, 2):
        os.close(number)
    connection.sendall(b"%d\n" % status)
    return 0


def _obey(connection: socket.socket, child: "_Forked") -> None:
    """A byte is a SIGTERM that the client got; the end of the connection is the end of all."""
    while connection.recv(1):
        child.signal(signal.SIGTERM)
    child.kill()
    os._exit(0)


class _Forked:
    """The real sidecar, forked from here."""

    def __init__(self, connection: socket.socket) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.setsid()
            connection.close()
            os.dup2(theirs_in, 0)
            os.dup2(theirs_out, 1)
            for number in (theirs_in, theirs_out, ours_in, ours_out):
                os.close(number)
            os._exit(_sidecar())
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin: BinaryIO = os.fdopen(ours_in, "wb", 0)
        self.stdout: BinaryIO = os.fdopen(ours_out, "rb", 0)

    def wait(self) -> int:
        """Its status; that of a signal as a shell tells it."""
        status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return status if status >= 0 else 128 - status

    def kill(self) -> None:
        """Ends it at once."""
        self.signal(signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        try:
            os.kill(self._pid, number)
        except ProcessLookupError:
            return


def _sidecar() -> int:
    sys.argv = ["sidecar", "serve"]
    try:
        return main(["serve"])
    except SystemExit as end:
        return int(end.code or 0)


if __name__ == "__main__":
    serve(sys.argv[1])
