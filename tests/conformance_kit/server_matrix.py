"""Each twin of the server half against the kit: which rules it breaks.

python -m tests.conformance_kit.server_matrix [RULE …]          twins against all conversations; takes long
python -m tests.conformance_kit.server_matrix --near [RULE …]   against those alone that prove their rules
"""

import asyncio
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import zip_longest
from pathlib import Path

from attrs import frozen

from sidecar.conformance.judge_server import judge_server
from sidecar.conformance.rules import Verdict
from sidecar.conformance.transcripts import Kit, read_kit
from tests.conformance_kit import zygote
from tests.conformance_kit.server_twins import TWINS, WATCHED_IN

ROOT = Path(__file__).resolve().parents[2]
SIDECAR = (sys.executable, "-P", "-m", "sidecar", "serve")
START_SECS = 30.0
PATIENCE_SECS = 4.0
"""For frames that a twin withholds. Nothing that comes takes near as long."""

ALONE = frozenset({"S011"})
"""Twins that take others along: this one ends its process."""

Starts = Callable[[Sequence[str]], tuple[str, ...]]
"""From switches to the command line of a sidecar that has them."""


@asynccontextmanager
async def twin_commands() -> AsyncIterator[Starts]:
    """What starts twins: forks where the system can fork, else processes from the beginning."""
    if sys.platform == "win32":
        yield lambda rules: (
            sys.executable,
            "-m",
            "tests.conformance_kit.twin_server",
            ",".join(rules),
            *SIDECAR,
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "zygote")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.conformance_kit.zygote",
            address,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "clients/python")])},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            async with asyncio.timeout(START_SECS):
                await process.stdout.readline()
            yield lambda rules: zygote.command(address, rules)
        finally:
            process.stdin.close()
            await process.wait()


@frozen(kw_only=True)
class Batch:
    """Twins that are judged in one go: each spoils a conversation of its own."""

    conversations: dict[str, tuple[str, ...]]
    """Rule to the conversations that its twin spoils."""

    def chosen(self, kit: Kit) -> Kit:
        """All rules, and these conversations."""
        names = {name for those in self.conversations.values() for name in those}
        return Kit(rules=kit.rules, conversations=tuple(each for each in kit.conversations if each.name in names))

    def wrong(self, verdicts: Sequence[Verdict]) -> Iterator[str]:
        """Rules that held in spite of their twin, and failures that are not a twin's own."""
        found = {
            (verdict.rule.id, failure.conversation): failure.why
            for verdict in verdicts
            for failure in verdict.failures
        }
        own = {(rule, name) for rule, names in self.conversations.items() for name in names}
        for rule, names in self.conversations.items():
            if not any((rule, name) in found for name in names):
                yield f"{rule} holds in spite of its twin"
        for rule, name in sorted(found.keys() - own):
            yield f"{rule} is broken in {name} without its twin: {found[rule, name]}"


def batches(kit: Kit, rules: Sequence[str]) -> list[Batch]:
    """As few as can be, so that many twins share a process."""
    by_conversation: dict[str, list[str]] = defaultdict(list)
    places = {rule: places_of(kit, rule) for rule in rules}
    for rule in rules:
        if rule not in ALONE:
            by_conversation[places[rule][0]].append(rule)
    rounds = zip_longest(*by_conversation.values())
    found = [Batch(conversations={rule: places[rule] for rule in round_ if rule}) for round_ in rounds]
    return found + [Batch(conversations={rule: places[rule]}) for rule in rules if rule in ALONE]


def places_of(kit: Kit, rule: str) -> tuple[str, ...]:
    """The conversations in which the twin of a rule does what is wrong."""
    proven = tuple(each.name for each in kit.conversations if rule in each.rules)
    return WATCHED_IN.get(rule, proven)


async def all_judged(rules: Sequence[str], *, side_by_side: int, is_near: bool = True) -> list[str]:
    """What is wrong with the twins of these rules; `is_near`: in the conversations alone that they spoil."""
    kit, room = read_kit("server"), asyncio.Semaphore(side_by_side)

    async def judged(starts: Starts, batch: Batch) -> list[str]:
        async with room:
            conversations = batch.chosen(kit) if is_near else kit
            report = await judge_server(
                starts(tuple(batch.conversations)), conversations, bound_secs=PATIENCE_SECS
            )
        return list(batch.wrong(report.verdicts))

    async with twin_commands() as starts:
        found = await asyncio.gather(*(judged(starts, batch) for batch in batches(kit, rules)))
    return [complaint for complaints in found for complaint in complaints]


def main(words: Sequence[str]) -> int:
    """The exit status: 1 where a twin breaks anything but its own rule."""
    began, is_near = time.monotonic(), "--near" in words
    rules = [word for word in words if word != "--near"] or list(TWINS)
    wrong = asyncio.run(all_judged(rules, side_by_side=2, is_near=is_near))
    sys.stdout.writelines(f"{complaint}\n" for complaint in wrong)
    sys.stdout.write(f"{len(rules)} twins, {len(wrong)} wrong, {time.monotonic() - began:.0f} s\n")
    return min(1, len(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
