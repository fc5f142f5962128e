"""The decision about one call: rules first, then the permissions it needs. Pure."""

from collections.abc import Iterable, Sequence

from sidecar.permissions.globs import name_matches
from sidecar.permissions.model import PermissionConfig, PermissionDecision
from sidecar.permissions.rules import described, rule_matches
from sidecar.protocol.messages import PermissionRule, RuleDecision
from sidecar.protocol.values import JsonObject


class PermissionChecker:
    """Decides who may do what. The first of these that applies:

    1. a rule that denies; 2. a permission in `denied`; 3. a remembered rule that allows; 4. a rule that asks;
    5. a rule that allows; 6. for each permission that the tool needs: `ask`, `allowed`, `allowed` as a white
    list, `allow_unspecified`, which also decides on a tool that needs none; 7. the tool's wish to be asked about.
    """

    def __init__(self, config: PermissionConfig | None = None, remembered: Sequence[PermissionRule] = ()) -> None:
        self._config = config or PermissionConfig()
        self._remembered = tuple(remembered)

    @property
    def config(self) -> PermissionConfig:
        return self._config

    @property
    def remembered(self) -> tuple[PermissionRule, ...]:
        return self._remembered

    def _in_force(self) -> tuple[PermissionConfig, tuple[PermissionRule, ...]]:
        return self._config, self._remembered

    def check(
        self,
        tool_name: str,
        permissions: Sequence[str],
        *,
        requires_approval: bool = False,
        arguments: JsonObject | None = None,
    ) -> PermissionDecision:
        """What happens to a call of `tool_name` with `arguments`; `rule` names the entry that decides.

        Rules are numbered from 1, those of the configuration first, then the remembered ones.
        """
        config, remembered = self._in_force()
        rules = [
            _Match(number, rule, number > len(config.rules))
            for number, rule in enumerate((*config.rules, *remembered), 1)
            if rule_matches(rule, tool_name, arguments or {})
        ]
        return (
            _by_rule(rules, "deny")
            or _by_denied(config, permissions)
            or _by_rule((rule for rule in rules if rule.remembered), "allow")
            or _by_rule(rules, "ask")
            or _by_rule(rules, "allow")
            or _by_permissions(config, permissions, requires_approval)
        )


class _Match:
    """A rule that takes the call, and where it stands."""

    def __init__(self, number: int, rule: PermissionRule, remembered: bool) -> None:
        self.number = number
        self.rule = rule
        self.remembered = remembered


def _by_rule(matches: Iterable[_Match], decision: RuleDecision) -> PermissionDecision | None:
    found = next((match for match in matches if match.rule.decision == decision), None)
    if found is None:
        return None
    return PermissionDecision(decision=decision, rule=f"rule {found.number}: {described(found.rule)}")


def _by_denied(config: PermissionConfig, permissions: Sequence[str]) -> PermissionDecision | None:
    decisions = (_by_entry("denied", config.denied, "deny", permission) for permission in permissions)
    return next(filter(None, decisions), None)


def _by_permissions(
    config: PermissionConfig, permissions: Sequence[str], requires_approval: bool
) -> PermissionDecision:
    """The strictest of what is decided for each permission, and the first of those."""
    decisions = [_of_permission(config, permission) for permission in permissions]
    decisions = decisions or [_unspecified(config, None)]
    for wanted in ("deny", "ask"):
        if found := next((d for d in decisions if d.decision == wanted), None):
            return found
    if requires_approval:
        return PermissionDecision(decision="ask", rule="the tool requires approval")
    return decisions[0]


def _of_permission(config: PermissionConfig, permission: str) -> PermissionDecision:
    return (
        _by_entry("denied", config.denied, "deny", permission)
        or _by_entry("ask", config.ask, "ask", permission)
        or _by_entry("allowed", config.allowed, "allow", permission)
        or _by_white_list(config, permission)
        or _unspecified(config, permission)
    )


def _by_entry(
    field: str, entries: Sequence[str], decision: RuleDecision, permission: str
) -> PermissionDecision | None:
    entry = next((entry for entry in entries if name_matches(entry, permission)), None)
    if entry is None:
        return None
    return PermissionDecision(decision=decision, rule=f'permissions.{field}: "{entry}"', permission=permission)


def _by_white_list(config: PermissionConfig, permission: str) -> PermissionDecision | None:
    if not config.allowed:
        return None
    rule = f'permissions.allowed is a white list without "{permission}"'
    return PermissionDecision(decision="deny", rule=rule, permission=permission)


def _unspecified(config: PermissionConfig, permission: str | None) -> PermissionDecision:
    return PermissionDecision(
        decision="allow" if config.allow_unspecified else "deny",
        rule=f"permissions.allowUnspecified: {str(config.allow_unspecified).lower()}",
        permission=permission,
    )
