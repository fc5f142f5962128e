"""Permissions as values: names, configuration, decisions."""

from typing import TypeVar

from attrs import frozen

from sidecar.protocol.messages import PermissionOptions, PermissionRule, RuleDecision

T = TypeVar("T")


class Permission(str):
    """What a tool needs: one of six words, or a namespaced one of your own such as `mcp:github`.

    Raises ValueError for anything else, so that a misspelt permission cannot slip past a `denied` list.
    """

    __slots__ = ()

    READ: "Permission"
    WRITE: "Permission"
    DELETE: "Permission"
    NETWORK: "Permission"
    SHELL: "Permission"
    FILESYSTEM: "Permission"

    def __new__(cls, name: str) -> "Permission":
        namespace, colon, rest = name.partition(":")
        if name not in BUILTIN_PERMISSIONS and not (namespace and colon and rest):
            known = ", ".join(BUILTIN_PERMISSIONS)
            raise ValueError(
                f"unknown permission {name!r}: use one of {known}, or a namespaced one like 'mcp:github'"
            )
        return super().__new__(cls, name)


BUILTIN_PERMISSIONS = ("read", "write", "delete", "network", "shell", "filesystem")
for _name in BUILTIN_PERMISSIONS:
    setattr(Permission, _name.upper(), Permission(_name))


@frozen(kw_only=True)
class PermissionConfig:
    """Who may do what. Entries are permissions or globs over them (`mcp:*`).

    By default reading is free, writing and MCP servers ask, deleting and shells are closed.
    """

    allowed: tuple[str, ...] = ("read", "network")
    denied: tuple[str, ...] = ("delete", "shell")
    ask: tuple[str, ...] = ("write", "filesystem", "mcp:*")
    allow_unspecified: bool = True
    rules: tuple[PermissionRule, ...] = ()

    def updated(self, options: PermissionOptions) -> "PermissionConfig":
        """With every field that `options` gives."""
        return PermissionConfig(
            allowed=_either(options.allowed, self.allowed),
            denied=_either(options.denied, self.denied),
            ask=_either(options.ask, self.ask),
            allow_unspecified=_either(options.allow_unspecified, self.allow_unspecified),
            rules=_either(options.rules, self.rules),
        )


def _either(given: T | None, otherwise: T) -> T:
    return otherwise if given is None else given


@frozen(kw_only=True)
class PermissionDecision:
    """What happens to a call, the rule that says so, and the permission it said it of."""

    decision: RuleDecision
    rule: str
    permission: str | None = None
