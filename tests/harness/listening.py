"""Listens in on hosts that start their own sidecar. Standard library only; POSIX only.

    python -I -S listening.py FOLDER COMMAND...

becomes COMMAND, with two small processes between it and whoever started it: each hands on one direction and keeps
a copy in FOLDER, for `frames.py`. So the process id, the signals and the status are those of COMMAND.
"""

import os
import sys

CHUNK_BYTES = 64 * 1024
STDIN, STDOUT, STDERR = 0, 1, 2


def main() -> None:
    folder, *command = sys.argv[1:]
    copy = os.open(f"{folder}/{os.getpid()}.heard", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    from_host, to_sidecar = os.pipe()
    from_sidecar, to_host = os.pipe()
    if os.fork() == 0:
        close(STDOUT, STDERR, from_host, from_sidecar, to_host)
        hand_on(STDIN, to_sidecar, copy, b">")
    if os.fork() == 0:
        close(STDIN, STDERR, from_host, to_sidecar, to_host)
        hand_on(from_sidecar, STDOUT, copy, b"<")
    os.dup2(from_host, STDIN)
    os.dup2(to_host, STDOUT)
    close(from_host, to_sidecar, from_sidecar, to_host, copy)
    os.execvp(command[0], command)


def close(*ends: int) -> None:
    """What a process holds open keeps others from seeing the end."""
    for end in ends:
        os.close(end)


def hand_on(source: int, target: int, copy: int, mark: bytes) -> None:
    """Until either end is closed. The copy is made first, in one write, so that it has the order of the frames."""
    try:
        while data := os.read(source, CHUNK_BYTES):
            os.write(copy, b"%b%d\n%b" % (mark, len(data), data))
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(target, rest) :]
    except BrokenPipeError:
        pass  # Who was to get it is gone, which ends the other direction, too.
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
