"""Hands its streams to a forked twin, passes SIGTERM on, and ends with the twin's status.

python -I -S zygote_client.py ADDRESS RULE
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path

LOST_STATUS = 70


def main(address: str, rules: list[str]) -> int:
    """The status of the twin."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    signal.signal(signal.SIGTERM, lambda number, frame: connection.send(b"T") and None)
    order = {"rules": rules, "cwd": str(Path.cwd()), "env": dict(os.environ)}
    socket.send_fds(connection, [json.dumps(order).encode()], [0, 1, 2])
    for number in (0, 1, 2):
        os.close(number)
    with connection.makefile("rb") as answers:
        line = answers.readline()
    return int(line) if line.strip() else LOST_STATUS


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2:]))
