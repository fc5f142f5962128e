"""How fast a stream folds into a reply: the pieces of one answer through `ReplyFold`, without network or JSON.

A script: `python -m tests.bench.bench_fold [DELTAS]`. Prints a table; the target is our own choice.
"""

import sys
import time
from collections.abc import Callable

from sidecar.agent.reply import ReplyFold
from sidecar.providers.base import FinishPiece, ModelPiece, ReasoningPiece, TextPiece, ToolCallPiece

TARGET_DELTAS_PER_SEC = 50_000
ROUNDS = 5


def text(count: int) -> list[ModelPiece]:
    """An answer in words."""
    return [TextPiece(text="word ") for _ in range(count)]


def thinking_and_text(count: int) -> list[ModelPiece]:
    """A thought for every word."""
    return [ReasoningPiece(text="hm ") if number % 2 else TextPiece(text="word ") for number in range(count)]


def one_long_call(count: int) -> list[ModelPiece]:
    """A call whose arguments come in small fragments, such as a file to write."""
    first = ToolCallPiece(index=0, call_id="call_1", name="write_file", arguments='{"content": "')
    return [first, *(ToolCallPiece(index=0, arguments="line\\n") for _ in range(count - 2)), _end(0)]


def calls_side_by_side(count: int) -> list[ModelPiece]:
    """Fragments of eight calls in turns."""
    heads = [ToolCallPiece(index=n, call_id=f"call_{n}", name="look", arguments='{"at": "') for n in range(8)]
    fragments = [ToolCallPiece(index=number % 8, arguments="here ") for number in range(count - 16)]
    return [*heads, *fragments, *map(_end, range(8))]


def name_repeated(count: int) -> list[ModelPiece]:
    """A server that says the call's name with every fragment, and no id."""
    first = ToolCallPiece(index=0, name="look", arguments='{"at": "')
    more = (ToolCallPiece(index=0, name="look", arguments="here ") for _ in range(count - 2))
    return [first, *more, ToolCallPiece(index=0, name="look", arguments='"}')]


def id_repeated(count: int) -> list[ModelPiece]:
    """A server that says only the id with every fragment, of eight calls in turns."""
    ids = [f"call_{number}" for number in range(8)]
    heads = [ToolCallPiece(call_id=call_id, name="look", arguments='{"at": "') for call_id in ids]
    fragments = [ToolCallPiece(call_id=ids[number % 8], arguments="here ") for number in range(count - 16)]
    return [*heads, *fragments, *(ToolCallPiece(call_id=call_id, arguments='"}') for call_id in ids)]


def _end(index: int) -> ToolCallPiece:
    return ToolCallPiece(index=index, arguments='"}')


STREAMS: tuple[Callable[[int], list[ModelPiece]], ...] = (
    text,
    thinking_and_text,
    one_long_call,
    calls_side_by_side,
    name_repeated,
    id_repeated,
)


def deltas_per_sec(pieces: list[ModelPiece]) -> float:
    """The best of some rounds: others who use the machine only make it slower."""
    durations = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        fold = ReplyFold()
        for piece in pieces:
            fold.add(piece)
        fold.add(FinishPiece(reason="stop"))
        fold.reply()
        durations.append(time.perf_counter() - began)
    return len(pieces) / min(durations)


def main(count: int) -> None:
    rows = [f"| {count:,} deltas of | deltas a second | target |", "|---|---|---|"]
    for stream in STREAMS:
        rate = deltas_per_sec(stream(count))
        rows.append(f"| {stream.__name__.replace('_', ' ')} | {rate:,.0f} | {TARGET_DELTAS_PER_SEC:,} |")
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
