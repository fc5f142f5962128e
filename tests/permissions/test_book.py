"""Permissions in layers: workspace, session, and what was remembered.

Source: protocol.md, "Permissions".
"""

import pytest

from sidecar.permissions.book import InMemory, PermissionBook, Scope
from sidecar.permissions.entries import fault_of_options
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.messages import PermissionOptions, PermissionRule

RULE = PermissionRule(tool="write_file", decision="allow", arguments={"path": "src/**"})
OTHER = PermissionRule(tool="delete", decision="ask")


def write(book: PermissionBook, session_id: str | None, path: str = "src/a") -> str:
    checker = book.for_session(session_id)
    return checker.check("write_file", ["write"], arguments={"path": path}).decision


def test_a_session_has_what_the_workspace_has_until_it_is_set() -> None:
    book = PermissionBook()
    assert book.config("s1") == book.config() == PermissionConfig()
    book.set(PermissionOptions(ask=()), "session", "s1")
    assert book.config("s1") == PermissionConfig(ask=())
    assert book.config("s2") == book.config() == PermissionConfig()


def test_what_is_not_set_in_a_session_follows_the_workspace() -> None:
    book = PermissionBook()
    book.set(PermissionOptions(ask=("network",)), "session", "s1")
    book.set(PermissionOptions(denied=("write",), ask=("shell",)), "workspace")
    assert book.config("s1") == PermissionConfig(denied=("write",), ask=("network",))


def test_a_second_set_keeps_what_the_first_said() -> None:
    book = PermissionBook()
    book.set(PermissionOptions(allow_unspecified=False), "session", "s1")
    book.set(PermissionOptions(allowed=()), "session", "s1")
    assert book.config("s1") == PermissionConfig(allowed=(), allow_unspecified=False)


def test_a_checker_follows_changes_made_after_it_was_given_out() -> None:
    book = PermissionBook()
    checker = book.for_session("s1")
    assert checker.check("t", ["write"]).decision == "ask"
    book.set(PermissionOptions(denied=("write",)), "workspace")
    assert checker.check("t", ["write"]).decision == "deny"


def test_a_rule_for_the_session_holds_in_that_session_alone() -> None:
    book = PermissionBook()
    book.remember(RULE, "session", "s1")
    assert [write(book, "s1"), write(book, "s2"), write(book, None)] == ["allow", "ask", "ask"]


def test_a_rule_for_the_workspace_holds_in_every_session() -> None:
    book = PermissionBook()
    book.remember(RULE, "workspace", "s1")
    assert [write(book, "s1"), write(book, "s2"), write(book, None)] == ["allow", "allow", "allow"]
    assert write(book, "s1", "test/a") == "ask"


def test_a_rule_for_the_workspace_holds_also_in_a_session_with_rules_of_its_own() -> None:
    book = PermissionBook()
    book.set(PermissionOptions(rules=(OTHER,)), "session", "s1")
    book.remember(RULE, "workspace", "s1")
    assert book.config("s1").rules == (OTHER, RULE)


def test_remembered_rules_are_listed_once_and_last() -> None:
    book = PermissionBook(PermissionConfig(rules=(OTHER,)))
    for _ in range(2):
        book.remember(RULE, "workspace", "s1")
        book.remember(RULE, "session", "s1")
    assert book.config("s1").rules == book.config().rules == (OTHER, RULE)


@pytest.mark.parametrize("scope", ["session", "workspace"])
def test_a_remembered_rule_is_removed_by_setting_the_list_without_it(scope) -> None:  # type: ignore[no-untyped-def]
    book = PermissionBook(PermissionConfig(rules=(OTHER,)))
    book.remember(RULE, scope, "s1")
    book.set(PermissionOptions(rules=(OTHER,)), scope, "s1")
    assert book.config("s1").rules == (OTHER,)
    assert write(book, "s1") == "ask"


@pytest.mark.parametrize("scope", ["session", "workspace"])
def test_a_remembered_rule_that_is_set_again_outlives_the_book_and_what_is_new_does_not(scope: Scope) -> None:
    kept, asks = InMemory(), PermissionRule(tool="write_file", decision="ask")
    book = PermissionBook(PermissionConfig(rules=(asks,)), kept=kept)
    book.remember(RULE, scope, "s1")
    book.set(PermissionOptions(rules=(OTHER, RULE)), "workspace")
    if scope == "session":
        book.set(PermissionOptions(rules=(RULE,)), "session", "s1")
    again = PermissionBook(PermissionConfig(rules=(asks,)), kept=kept)
    assert write(again, "s1") == "allow", "what was remembered answers a rule that asks"
    assert OTHER not in again.config("s1").rules


def test_a_workspace_rule_can_be_removed_in_one_session() -> None:
    book = PermissionBook()
    book.remember(RULE, "workspace", None)
    book.set(PermissionOptions(rules=()), "session", "s1")
    assert [write(book, "s1"), write(book, "s2")] == ["ask", "allow"]


def test_a_rule_that_asks_is_answered_by_what_was_remembered() -> None:
    asks = PermissionRule(tool="write_file", decision="ask")
    book = PermissionBook(PermissionConfig(rules=(asks,)))
    book.remember(RULE, "session", "s1")
    assert [write(book, "s1"), write(book, "s2")] == ["allow", "ask"]


def test_a_forgotten_session_has_what_the_workspace_has() -> None:
    book = PermissionBook()
    book.remember(RULE, "session", "s1")
    book.forget_session("s1")
    book.forget_session("never seen")
    assert write(book, "s1") == "ask"


def test_the_session_scope_needs_a_session() -> None:
    book = PermissionBook()
    with pytest.raises(ValueError, match="needs a session id"):
        book.set(PermissionOptions(ask=()), "session", None)
    with pytest.raises(ValueError, match="needs a session id"):
        book.remember(RULE, "session", None)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        (PermissionOptions(), None),
        (PermissionOptions(allowed=("read", "mcp:git"), denied=("*",), ask=("mcp:*", "memory:st?re")), None),
        (PermissionOptions(allowed=("read",), denied=("shell", "delte")), "denied[1]"),
        (PermissionOptions(ask=("",)), "ask[0]"),
        (PermissionOptions(allowed=("mcp:",)), "allowed[0]"),
    ],
)
def test_an_entry_that_can_mean_nothing_is_found_by_its_path(options: PermissionOptions, path: str | None) -> None:
    fault = fault_of_options(options)
    assert (fault[0] if fault else None) == path
    assert fault is None or fault[1].startswith("unknown permission ")
