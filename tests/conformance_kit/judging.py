"""What the tests of both halves of the kit ask of a report, and of a kit."""

from sidecar.conformance.report import Report
from sidecar.conformance.rules import Outcome
from sidecar.conformance.transcripts import Kit


def troubles(report: Report) -> dict[str, str]:
    """What did not pass, with the reason."""
    return {
        verdict.rule.id: verdict.reason or "; ".join(f"{each.place}: {each.why}" for each in verdict.failures)
        for verdict in report.verdicts
        if verdict.outcome is not Outcome.PASSED
    }


def named(kit: Kit, *conversations: str) -> Kit:
    """The kit with these conversations, and the rules that they prove."""
    chosen = tuple(each for each in kit.conversations if each.name in conversations)
    proven = {rule for each in chosen for rule in each.rules}
    return Kit(rules=tuple(rule for rule in kit.rules if rule.id in proven or rule.watch), conversations=chosen)
