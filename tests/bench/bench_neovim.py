"""What the plugin costs a person in Neovim: its start, and how soon a key is answered while an answer streams in.

Keys are typed into a Neovim in a real terminal from outside, first while nothing happens and then at about
1,000 deltas a second; both in each of the rounds, which are runs of their own. Needs tmux. Prints a table.

    python -m tests.bench.bench_neovim [ROUNDS]
"""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from tests.harness.host import clean_environment
from tests.neovim.driving import play, play_on_a_screen

KEYS = 60
KEY_TARGET_MS = 50
START_TARGET_MS = 10


def middle_and_tail(times_ms: list[float]) -> tuple[float, float]:
    """The median and the 95th percentile."""
    return statistics.median(times_ms), statistics.quantiles(times_ms, n=20)[-1]


async def main(rounds: int) -> None:
    starts: list[float] = []
    idle: list[float] = []
    streaming: list[float] = []
    lines_a_second: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            starts.append((await play("start", {"folder": folder}, clean_environment()))["start_ms"])
            seen = await play_on_a_screen(Path(folder), KEYS)
        assert seen["was_streaming"], "the answer had ended before the last key"
        idle += seen["idle_ms"]
        streaming += seen["streaming_ms"]
        lines_a_second.append(seen["lines_a_second"])
    (idle_p50, idle_p95), (p50, p95) = middle_and_tail(idle), middle_and_tail(streaming)
    sys.stdout.write(
        f"| Neovim, {rounds} rounds of {KEYS} keys | p50 ms | p95 ms |\n|---|---|---|\n"
        f"| a key while nothing happens | {idle_p50:.1f} | {idle_p95:.1f} |\n"
        f"| a key while an answer streams, {statistics.median(lines_a_second):.0f} lines a second "
        f"(target: p95 at most {KEY_TARGET_MS}) | {p50:.1f} | {p95:.1f} |\n"
        f"| the plugin's start (target: below {START_TARGET_MS}) | {statistics.median(starts):.2f} | |\n"
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
