"""What a kit says: rules, and the evidence for and against each of them that makes its verdict."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from attrs import field, frozen


@frozen(kw_only=True)
class Rule:
    """One promise that can be checked.

    `section` is the heading of `protocol.md` that makes it. `watch` names a check of everything that is said
    in any conversation; a rule without one is proven by steps of transcripts.
    """

    id: str
    must: str
    section: str
    watch: str | None = None


class Outcome(StrEnum):
    """What became of a rule. `NOT_REACHED`: what had to come before it failed, or it was never tried."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not reached"
    SKIPPED = "skipped"


@frozen(kw_only=True)
class Failure:
    """Where a rule was broken. `step` counts from 1; None: no single step shows it."""

    conversation: str
    step: int | None = None
    why: str

    @property
    def place(self) -> str:
        """The place in words."""
        return self.conversation if self.step is None else f"{self.conversation}, step {self.step}"


@frozen(kw_only=True)
class Verdict:
    """What became of one rule. `reason` says why it was skipped or not reached."""

    rule: Rule
    outcome: Outcome
    failures: tuple[Failure, ...] = ()
    reason: str = ""


MOST_FAILURES = 5
"""Failures that are kept of one rule: more of them say nothing new."""


@frozen
class Evidence:
    """Gathers what conversations show of the rules, and gives the verdicts. One that was broken once is broken."""

    rules: Sequence[Rule]
    _passed: set[str] = field(factory=set, init=False)
    _failures: dict[str, list[Failure]] = field(factory=dict, init=False)
    _unreached: dict[str, str] = field(factory=dict, init=False)
    _skipped: dict[str, str] = field(factory=dict, init=False)
    _broken_off: list[str] = field(factory=list, init=False)
    _declined: list[str] = field(factory=list, init=False)

    def passed(self, rule_id: str) -> None:
        """A step showed what the rule says."""
        self._passed.add(rule_id)

    def failed(self, rule_id: str, failure: Failure) -> None:
        """A step showed something else."""
        failures = self._failures.setdefault(rule_id, [])
        if len(failures) < MOST_FAILURES and failure not in failures:
            failures.append(failure)

    def unreached(self, rule_ids: Iterable[str], reason: str) -> None:
        """Steps that would have shown it were not come to."""
        for rule_id in rule_ids:
            self._unreached.setdefault(rule_id, reason)

    def skipped(self, rule_ids: Iterable[str], reason: str) -> None:
        """It does not apply to what is judged."""
        for rule_id in rule_ids:
            self._skipped.setdefault(rule_id, reason)

    def declined(self, rule_ids: Iterable[str], reason: str) -> None:
        """What is judged does not take part in a conversation, of which these rules were still to come.

        So no watch sees anything there either.
        """
        self.skipped(rule_ids, reason)
        self._declined.append(reason)

    def broke_off(self, where: str, why: str, at: str | None, after: Iterable[str]) -> None:
        """A conversation ended early, in a step about the rule `at`, and those `after` it were not come to.

        `why` is told by the rule `at`, else by the first after it that is judged, else by those that none came to.
        """
        self._broken_off.append(why)
        judged = {rule.id for rule in self.rules}
        rest = [rule_id for rule_id in after if rule_id in judged]
        if at not in judged:
            self.unreached(rest[:1], f"{where}: {why}")
        self.unreached(rest, where)

    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each rule, in the order of the rules."""
        return tuple(map(self._verdict, self.rules))

    def _verdict(self, rule: Rule) -> Verdict:
        if rule.id in self._failures:
            return Verdict(rule=rule, outcome=Outcome.FAILED, failures=tuple(self._failures[rule.id]))
        if rule.id in self._unreached:
            return Verdict(rule=rule, outcome=Outcome.NOT_REACHED, reason=self._unreached[rule.id])
        if rule.id in self._passed:
            return Verdict(rule=rule, outcome=Outcome.PASSED)
        if rule.id in self._skipped:
            return Verdict(rule=rule, outcome=Outcome.SKIPPED, reason=self._skipped[rule.id])
        if rule.watch and self._declined and not self._broken_off:
            return Verdict(rule=rule, outcome=Outcome.SKIPPED, reason=self._declined[0])
        reason = ": ".join(["no conversation came to it", *self._broken_off[:1]])
        return Verdict(rule=rule, outcome=Outcome.NOT_REACHED, reason=reason)


def counted(verdicts: Iterable[Verdict]) -> Mapping[Outcome, int]:
    """How many rules ended how."""
    counts = dict.fromkeys(Outcome, 0)
    for verdict in verdicts:
        counts[verdict.outcome] += 1
    return counts


def all_passed(verdicts: Iterable[Verdict]) -> bool:
    """Whether every rule passed, or did not apply. A rule that was not reached is not proven."""
    return all(verdict.outcome in (Outcome.PASSED, Outcome.SKIPPED) for verdict in verdicts)
