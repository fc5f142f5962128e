"""What a run of the kit found, as text for people in 80 columns, as JSON, and as JUnit XML."""

import textwrap
from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree

from attrs import frozen

from sidecar.conformance.rules import Outcome, Rule, Verdict, counted
from sidecar.protocol.values import JsonObject

WIDTH = 80


@frozen(kw_only=True)
class Report:
    """One run. `half` is `server` or `host`, `subject` the command that was judged, `notes` what hampered it."""

    half: str
    subject: str
    protocol_version: str
    verdicts: tuple[Verdict, ...]
    elapsed_secs: float
    notes: tuple[str, ...] = ()


def as_text(report: Report) -> str:
    """For people: a line for each section, more for what did not pass, the sum at the end."""
    lines = [f"Agent Sidecar protocol {report.protocol_version}, conformance of a {report.half}"]
    lines += _wrapped(report.subject, "")
    lines += ["", *(line for note in report.notes for line in _wrapped(note, "note: "))]
    for section, verdicts in _by_section(report.verdicts):
        lines += _section(section, verdicts)
    lines += ["", _sum(report.verdicts, f" in {report.elapsed_secs:.1f} s")]
    return "\n".join(_printable(line) for line in lines) + "\n"


def as_json(report: Report) -> JsonObject:
    """For programs."""
    return {
        "half": report.half,
        "subject": report.subject,
        "protocolVersion": report.protocol_version,
        "elapsedSecs": round(report.elapsed_secs, 3),
        "counts": {str(outcome): count for outcome, count in counted(report.verdicts).items()},
        "notes": list(report.notes),
        "rules": [_rule_as_json(verdict) for verdict in report.verdicts],
    }


def as_junit(report: Report) -> str:
    """For servers that run builds: a test case for each rule. What was not reached is an error, not a failure."""
    counts = counted(report.verdicts)
    suite = ElementTree.Element(
        "testsuite",
        name=f"agent-sidecar conformance {report.half}",
        tests=str(len(report.verdicts)),
        failures=str(counts[Outcome.FAILED]),
        errors=str(counts[Outcome.NOT_REACHED]),
        skipped=str(counts[Outcome.SKIPPED]),
        time=f"{report.elapsed_secs:.3f}",
    )
    for verdict in report.verdicts:
        _test_case(suite, verdict)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def listed(rules: tuple[Rule, ...]) -> str:
    """What is judged, without judging anything."""
    lines = []
    for section, those in groupby(rules, key=lambda rule: rule.section):
        lines += [section, *(line for rule in those for line in _wrapped(rule.must, f"  {rule.id} "))]
    return "\n".join(lines) + "\n"


def _by_section(verdicts: tuple[Verdict, ...]) -> Iterator[tuple[str, list[Verdict]]]:
    sections: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        sections.setdefault(verdict.rule.section, []).append(verdict)
    yield from sections.items()


def _section(title: str, verdicts: list[Verdict]) -> Iterator[str]:
    counts = counted(verdicts)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    yield f"{title} ".ljust(WIDTH - len(told) - 1, ".") + f" {told}"
    for verdict in verdicts:
        if verdict.outcome in (Outcome.FAILED, Outcome.NOT_REACHED):
            yield from _troubled(verdict)


def _troubled(verdict: Verdict) -> Iterator[str]:
    yield from _wrapped(f"{verdict.outcome}: {verdict.rule.must}", f"  {verdict.rule.id} ")
    for failure in verdict.failures:
        yield from _wrapped(f"{failure.place}: {failure.why}", "       - ")
    if verdict.reason:
        yield from _wrapped(verdict.reason, "       - ")


def _sum(verdicts: tuple[Verdict, ...], end: str) -> str:
    counts = counted(verdicts)
    told = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
    return f"{len(verdicts)} rules: {told or 'none'}{end}"


def _wrapped(text: str, lead: str) -> list[str]:
    one_line = " ".join(text.split())
    return textwrap.wrap(one_line, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead)) or [lead]


def _printable(line: str) -> str:
    """What was received may hold anything; a terminal is shown none of it that it could act on."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)


def _rule_as_json(verdict: Verdict) -> JsonObject:
    rule = verdict.rule
    failures = [
        {"conversation": failure.conversation, "step": failure.step, "why": failure.why}
        for failure in verdict.failures
    ]
    return {
        "rule": rule.id,
        "must": rule.must,
        "section": rule.section,
        "outcome": str(verdict.outcome),
        **({"failures": failures} if failures else {}),
        **({"reason": verdict.reason} if verdict.reason else {}),
    }


def _test_case(suite: ElementTree.Element, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=verdict.rule.section, name=f"{verdict.rule.id} {verdict.rule.must}"
    )
    told = "\n".join(f"{failure.place}: {failure.why}" for failure in verdict.failures) or verdict.reason
    match verdict.outcome:
        case Outcome.FAILED:
            ElementTree.SubElement(case, "failure", message=_in_xml(told.partition("\n")[0])).text = _in_xml(told)
        case Outcome.NOT_REACHED:
            ElementTree.SubElement(case, "error", message=_in_xml(told))
        case Outcome.SKIPPED:
            ElementTree.SubElement(case, "skipped", message=_in_xml(told))


def _in_xml(text: str) -> str:
    """Without the characters that XML 1.0 cannot hold."""
    return "".join(c if c in "\n\t" or (c.isprintable() and c.isascii()) or ord(c) > 0x9F else "?" for c in text)
