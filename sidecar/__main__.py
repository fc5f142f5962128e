"""`agent-sidecar` and `python -m sidecar`: serves a host on pipes, and is a small host itself on a terminal."""

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        return _serve(given[1:])
    if _is_spawned() and not any(word in ASKS_ABOUT_US or not word.startswith("-") for word in given[:1]):
        return _serve(given)
    # The command line needs nothing of the server, nor the server of it; both start quickly so.
    from sidecar.cli import main as run_command  # noqa: PLC0415

    return run_command(given)


ASKS_ABOUT_US = ("-h", "--help", "--version")


def _is_spawned() -> bool:
    """Whether stdin is a host's pipe rather than somebody's terminal; a closed one is the end of a pipe."""
    return sys.stdin is None or not sys.stdin.isatty()


def _serve(flags: list[str]) -> int:
    # Half of the start-up time goes into making classes, which leaves some 10 MB of garbage, all of it young.
    usual = gc.get_threshold()
    gc.set_threshold(10_000, 1_000, 1_000)
    from sidecar.app import serve, serve_flags  # noqa: PLC0415  see main

    launch = serve_flags(flags)
    gc.set_threshold(*usual)
    gc.freeze()
    return serve(launch)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` looks for modules in the current folder first, and that is most likely a workspace.
        del sys.path[0]
    sys.exit(main())
