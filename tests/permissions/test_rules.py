"""Which calls a rule takes, how it reads, and what a remembered approval keeps.

Source: protocol.md, "Permissions" and "Approvals"; the `*` argument is our own choice.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.permissions.rules import LONGEST_KEPT_CHARS, described, rule_for, rule_matches
from sidecar.protocol.messages import PermissionRule


def allow(tool: str, **arguments: str) -> PermissionRule:
    return PermissionRule(tool=tool, decision="allow", arguments=arguments or None)


def test_a_rule_without_arguments_takes_any_call_of_its_tools() -> None:
    assert rule_matches(allow("git__*"), "git__log", {"anything": [1]})
    assert not rule_matches(allow("git__*"), "github__log", {})


def test_every_argument_that_a_rule_names_must_match() -> None:
    rule = allow("copy", source="src/**", target="out/**")
    assert rule_matches(rule, "copy", {"source": "src/a", "target": "out/a", "force": True})
    assert not rule_matches(rule, "copy", {"source": "src/a", "target": "etc/a"})
    assert not rule_matches(rule, "copy", {"source": "src/a"})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (True, "true"),
        (None, "null"),
        (["a", 1], '["a",1]'),
        ({"b": "é", "a": 2.5}, '{"a":2.5,"b":"é"}'),
    ],
)
def test_an_argument_that_is_no_string_is_compared_as_compact_json(value: Any, text: str) -> None:
    rule = PermissionRule(tool="t", decision="allow", arguments={"x": text.replace("[", "[[]")})
    assert rule_matches(rule, "t", {"x": value})


def test_a_star_names_all_the_other_arguments() -> None:
    rule = allow("delete", **{"path": "out/**", "*": ""})
    assert rule_matches(rule, "delete", {"path": "out/a"})
    assert not rule_matches(rule, "delete", {"path": "out/a", "force": True})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (allow("write_file", path="src/**"), "write_file path=src/**"),
        (allow("write_file"), "write_file"),
        (allow("delete", **{"path": "a", "*": ""}), "delete path=a and nothing else"),
        (allow("now", **{"*": ""}), "now without arguments"),
        (allow("t", **{"a": "1", "*": "x*"}), "t a=1 any other=x*"),
    ],
)
def test_a_rule_reads_as_a_line(rule: PermissionRule, words: str) -> None:
    assert described(rule) == words


def test_a_remembered_approval_keeps_the_tool_and_the_arguments_shown() -> None:
    rule = rule_for("write_file", {"path": "src/*.py", "mode": 7}, complete=False)
    assert rule == allow("write_file", path="src/[*].py", mode="7")
    assert not rule_matches(rule, "write_file", {"path": "src/a.py", "mode": 7})


def test_a_remembered_approval_of_a_whole_call_takes_no_further_argument() -> None:
    rule = rule_for("delete", {"path": "a"})
    assert rule is not None
    assert rule_matches(rule, "delete", {"path": "a"})
    assert not rule_matches(rule, "delete", {"path": "a", "force": True})


def test_what_nobody_can_have_read_is_not_remembered() -> None:
    assert rule_for("t", {"x": "a" * LONGEST_KEPT_CHARS}) is not None
    assert rule_for("t", {"x": "a" * (LONGEST_KEPT_CHARS + 1)}) is None


def test_a_call_whose_argument_is_named_star_is_not_remembered() -> None:
    assert rule_for("t", {"*": "x"}) is None


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4)


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name != "*"), JSON, max_size=4))
def test_a_remembered_approval_takes_its_own_call_again(arguments: dict[str, Any]) -> None:
    rule = rule_for("a*b", arguments)
    assert rule is not None
    assert rule_matches(rule, "a*b", arguments)
    assert not rule_matches(rule, "aXb", arguments)
