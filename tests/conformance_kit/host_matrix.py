"""Each twin of the host half against the kit: `python -m tests.conformance_kit.host_matrix [RULE…]` takes all
conversations, and is run by hand; the suite takes those alone that touch the twin's rule.
"""

import asyncio
import sys
from collections.abc import Mapping

from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.rules import Outcome, Rule
from sidecar.conformance.transcripts import Kit, read_kit
from tests.conformance_kit.host_twins import TWINS, twin

SHORT = ("requests", "cancel")
"""Conversations that are enough to show that a watch sees something."""


async def failed_by_twins(
    kit: Kit, twins: Mapping[str, str], *, at_once: int, whole: bool = False
) -> dict[str, list[str]]:
    """The rules that each twin fails, by the rule that it is meant to fail."""
    turnstile = asyncio.Semaphore(at_once)

    async def judge(rule_id: str, fault: str) -> list[str]:
        (rule,) = [rule for rule in kit.rules if rule.id == rule_id]
        chosen = kit if whole else touching(kit, rule)
        async with turnstile:
            report = await judge_host(twin(fault), chosen, side_by_side=3 if whole else 2)
        return [each.rule.id for each in report.verdicts if each.outcome is Outcome.FAILED]

    found = await asyncio.gather(*(judge(rule_id, fault) for rule_id, fault in twins.items()))
    return dict(zip(twins, found, strict=True))


def touching(kit: Kit, rule: Rule) -> Kit:
    """All rules, and the conversations that prove this one."""
    conversations = tuple(
        each for each in kit.conversations if (each.name in SHORT if rule.watch else rule.id in each.rules)
    )
    return Kit(rules=kit.rules, conversations=conversations)


async def main(rule_ids: list[str]) -> int:
    """Prints a line for each twin; 1 where one fails anything but its own rule."""
    kit, status = read_kit("host"), 0
    for rule_id in rule_ids or TWINS:
        found = await failed_by_twins(kit, {rule_id: TWINS[rule_id]}, at_once=1, whole=True)
        is_right = found[rule_id] == [rule_id]
        status = status if is_right else 1
        sys.stdout.write(f"{rule_id} {TWINS[rule_id]}: {'as meant' if is_right else found[rule_id]}\n")
        sys.stdout.flush()
    return status


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
