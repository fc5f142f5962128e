"""Which calls are allowed, asked about and denied, and which entry says so.

Source: protocol.md, "Permissions"; the order of rules and the words of `rule` are our own choice.
"""

import itertools

import pytest

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import BUILTIN_PERMISSIONS, Permission, PermissionConfig, PermissionDecision
from sidecar.protocol.messages import PermissionRule


def decided(decision: str, rule: str, permission: str | None = None) -> PermissionDecision:
    return PermissionDecision(decision=decision, rule=rule, permission=permission)  # type: ignore[arg-type]


def config(
    allowed: str = "",
    denied: str = "",
    ask: str = "",
    unspecified: bool = True,
    rules: tuple[PermissionRule, ...] = (),
) -> PermissionConfig:
    return PermissionConfig(
        allowed=tuple(allowed.split()),
        denied=tuple(denied.split()),
        ask=tuple(ask.split()),
        allow_unspecified=unspecified,
        rules=rules,
    )


# The table ----------------------------------------------------------------------------------------------

IN_DENIED = 'permissions.denied: "write"'
IN_ASK = 'permissions.ask: "write"'
IN_ALLOWED = 'permissions.allowed: "write"'
NOT_LISTED = 'permissions.allowed is a white list without "write"'

TABLE = [
    # allowed, denied, ask, the decision about `write`, the entry that decides
    ("", "write", "", "deny", IN_DENIED),
    ("write", "write", "", "deny", IN_DENIED),
    ("read", "write", "", "deny", IN_DENIED),
    ("", "write", "write", "deny", IN_DENIED),
    ("write", "write", "write", "deny", IN_DENIED),
    ("", "", "write", "ask", IN_ASK),
    ("write", "", "write", "ask", IN_ASK),
    ("read", "delete", "write", "ask", IN_ASK),
    ("write", "", "", "allow", IN_ALLOWED),
    ("read write", "delete", "shell", "allow", IN_ALLOWED),
    ("read", "", "", "deny", NOT_LISTED),
    ("read", "delete", "shell", "deny", NOT_LISTED),
]


@pytest.mark.parametrize("unspecified", [True, False])
@pytest.mark.parametrize(("allowed", "denied", "ask", "decision", "rule"), TABLE)
def test_a_listed_permission_is_decided_by_the_first_list_that_applies(
    allowed: str, denied: str, ask: str, decision: str, rule: str, unspecified: bool
) -> None:
    checker = PermissionChecker(config(allowed, denied, ask, unspecified))
    assert checker.check("tool", [Permission.WRITE]) == decided(decision, rule, "write")


@pytest.mark.parametrize(
    ("unspecified", "decision", "rule"),
    [
        (True, "allow", "permissions.allowUnspecified: true"),
        (False, "deny", "permissions.allowUnspecified: false"),
    ],
)
def test_an_unlisted_permission_and_a_tool_without_any_are_decided_by_allow_unspecified(
    unspecified: bool, decision: str, rule: str
) -> None:
    without_a_white_list = PermissionChecker(config("", "delete", "shell", unspecified))
    assert without_a_white_list.check("tool", ["write"]) == decided(decision, rule, "write")
    with_a_white_list = PermissionChecker(config("read", "", "", unspecified))
    assert with_a_white_list.check("tool", []) == decided(decision, rule)


def of_two_lists(permission: str, allowed: tuple[str, ...], denied: tuple[str, ...], unspecified: bool) -> str:
    """The rule with no list of what is asked about, written down independently of the code."""
    if permission in denied:
        return "deny"
    if permission in allowed:
        return "allow"
    if allowed:
        return "deny"
    return "allow" if unspecified else "deny"


@pytest.mark.parametrize("unspecified", [True, False])
@pytest.mark.parametrize("needed", [*BUILTIN_PERMISSIONS, "mcp:github"])
def test_without_ask_the_two_lists_alone_decide(needed: str, unspecified: bool) -> None:
    names = ("read", "write", "mcp:github")
    subsets = [s for size in range(4) for s in itertools.combinations(names, size)]
    for allowed, denied in itertools.product(subsets, subsets):
        checker = PermissionChecker(
            PermissionConfig(allowed=allowed, denied=denied, ask=(), allow_unspecified=unspecified)
        )
        decision = checker.check("tool", [needed]).decision
        assert decision == of_two_lists(needed, allowed, denied, unspecified), (allowed, denied)


@pytest.mark.parametrize(
    ("needed", "decision", "rule"),
    [
        ("read", "allow", 'permissions.allowed: "read"'),
        ("network", "allow", 'permissions.allowed: "network"'),
        ("delete", "deny", 'permissions.denied: "delete"'),
        ("shell", "deny", 'permissions.denied: "shell"'),
        ("write", "ask", 'permissions.ask: "write"'),
        ("filesystem", "ask", 'permissions.ask: "filesystem"'),
        ("mcp:github", "ask", 'permissions.ask: "mcp:*"'),
        ("memory:store", "deny", 'permissions.allowed is a white list without "memory:store"'),
    ],
)
def test_by_default_reading_is_free_writing_asks_and_deleting_is_closed(
    needed: str, decision: str, rule: str
) -> None:
    assert PermissionChecker().check("tool", [needed]) == decided(decision, rule, needed)


@pytest.mark.parametrize(
    ("needed", "decision", "permission"),
    [
        (("read", "write", "delete"), "deny", "delete"),
        (("write", "unheard:of"), "deny", "unheard:of"),
        (("read", "write"), "ask", "write"),
        (("read", "network"), "allow", "read"),
    ],
)
def test_of_several_permissions_the_strictest_decision_counts(
    needed: tuple[str, ...], decision: str, permission: str
) -> None:
    made = PermissionChecker().check("tool", needed)
    assert (made.decision, made.permission) == (decision, permission)


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        ((), decided("ask", "the tool requires approval")),
        (("read",), decided("ask", "the tool requires approval")),
        (("write",), decided("ask", 'permissions.ask: "write"', "write")),
        (("delete",), decided("deny", 'permissions.denied: "delete"', "delete")),
    ],
)
def test_a_tool_that_requires_approval_is_asked_about_unless_it_is_denied(
    needed: tuple[str, ...], expected: PermissionDecision
) -> None:
    assert PermissionChecker().check("tool", needed, requires_approval=True) == expected


# Rules --------------------------------------------------------------------------------------------------


def rule(decision: str, tool: str = "write_file", **arguments: str) -> PermissionRule:
    return PermissionRule(tool=tool, decision=decision, arguments=arguments or None)  # type: ignore[arg-type]


def check(rules: list[PermissionRule], *needed: str, path: str = "src/a.py", **more: bool) -> PermissionDecision:
    checker = PermissionChecker(config("read", "delete", "write", rules=tuple(rules)))
    return checker.check("write_file", needed, arguments={"path": path}, **more)


ALLOW_SRC = rule("allow", path="src/**")
ASK_ALL = rule("ask")
DENY_KEYS = rule("deny", "*", path="**/*.key")


def test_a_rule_that_denies_wins_over_everything() -> None:
    rules = [ALLOW_SRC, ASK_ALL, DENY_KEYS]
    for needed in ("read", "delete"):
        assert check(rules, needed, path="src/a.key") == decided("deny", "rule 3: * path=**/*.key")


def test_no_rule_opens_a_denied_permission() -> None:
    assert check([ALLOW_SRC], "write", "delete") == decided("deny", 'permissions.denied: "delete"', "delete")


def test_a_rule_that_asks_wins_over_one_that_allows() -> None:
    assert check([ALLOW_SRC, ASK_ALL], "read") == decided("ask", "rule 2: write_file")


@pytest.mark.parametrize("needed", ["write", "mcp:unlisted"])
def test_a_rule_that_allows_answers_what_would_be_asked_or_is_not_listed(needed: str) -> None:
    expected = decided("allow", "rule 1: write_file path=src/**")
    assert check([ALLOW_SRC], needed) == expected
    assert check([ALLOW_SRC], needed, requires_approval=True) == expected


def test_a_rule_for_other_arguments_decides_nothing() -> None:
    assert check([ALLOW_SRC], "write", path="test/a.py") == decided("ask", 'permissions.ask: "write"', "write")


def test_what_was_remembered_answers_a_rule_that_asks_but_none_that_denies() -> None:
    asks = PermissionChecker(config(rules=(ASK_ALL,)), remembered=[ALLOW_SRC])
    assert asks.check("write_file", [], arguments={"path": "src/a"}) == decided(
        "allow", "rule 2: write_file path=src/**"
    )
    denies = PermissionChecker(config(rules=(rule("deny"),)), remembered=[ALLOW_SRC])
    assert denies.check("write_file", [], arguments={"path": "src/a"}).decision == "deny"


@pytest.mark.parametrize("name", ["", "reed", ":x", "mcp:", "Read", "*"])
def test_a_permission_that_does_not_exist_cannot_be_needed(name: str) -> None:
    with pytest.raises(ValueError, match="unknown permission"):
        Permission(name)
