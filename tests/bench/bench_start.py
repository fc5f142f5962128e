"""From spawning to the answer to `initialize`, and memory after it: the whole sidecar against bare pygls.

Both are started in turns, so that a busy machine slows both alike; compare the ratio. Bytecode must be there,
as it is after an installation. Prints a table.

    python -m tests.bench.bench_start [ROUNDS]
"""

import os
import statistics
import sys

from tests.bench.wire_speed import BARE, resident_megabytes, start_up_secs

WHOLE = [sys.executable, "-m", "sidecar"]


def main(rounds: int) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for command in (BARE, WHOLE):
        start_up_secs(command)  # Writes the bytecode.
    pairs = [(start_up_secs(BARE), start_up_secs(WHOLE)) for _ in range(rounds)]
    bare, whole = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    ratio = statistics.median(ours / floor for floor, ours in pairs)
    memory = f"{resident_megabytes(BARE):.0f} | {resident_megabytes(WHOLE):.0f}"
    sys.stdout.write(
        "| start-up | bare pygls | sidecar | ratio | target |\n|---|---|---|---|---|\n"
        f"| spawn to `initialize` answer, ms | {bare:.0f} | {whole:.0f} | {ratio:.2f} | at most 1.15 |\n"
        f"| resident memory, MB | {memory} | | at most 60 |\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
