"""The permissions in force: those of the workspace, and what a session has on top of them."""

from collections.abc import Callable
from typing import Literal, Protocol

from attrs import evolve

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.messages import PermissionOptions, PermissionRule

Scope = Literal["session", "workspace"]
Rules = tuple[PermissionRule, ...]
Layer = tuple[PermissionOptions, Rules]
"""What replaces fields of the layer below, and the rules that answers have left, which come after all others."""


class Kept(Protocol):
    """Where layers are kept, by session; None stands for the workspace, whose layer has remembered rules alone."""

    def load(self, session_id: str | None) -> Layer:
        """The layer, empty where there is none."""

    def save(self, session_id: str | None, options: PermissionOptions, remembered: Rules) -> None:
        """Replaces the layer."""

    def forget(self, session_id: str) -> None:
        """Drops the layer."""

    def forget_rules(self, is_forgotten: Callable[[PermissionRule], bool]) -> None:
        """Drops remembered rules, in every layer."""


class InMemory:
    """Keeps layers as long as the program runs."""

    def __init__(self) -> None:
        self._layers: dict[str | None, Layer] = {}

    def load(self, session_id: str | None) -> Layer:
        """See Kept."""
        return self._layers.get(session_id, (PermissionOptions(), ()))

    def save(self, session_id: str | None, options: PermissionOptions, remembered: Rules) -> None:
        """See Kept."""
        self._layers[session_id] = (options, remembered)

    def forget(self, session_id: str) -> None:
        """See Kept."""
        self._layers.pop(session_id, None)

    def forget_rules(self, is_forgotten: Callable[[PermissionRule], bool]) -> None:
        """See Kept."""
        for key, (options, rules) in self._layers.items():
            self._layers[key] = (options, tuple(rule for rule in rules if not is_forgotten(rule)))


class PermissionBook:
    """Keeps permissions, changes them, and gives out checkers that follow every change at once.

    `config` are the workspace's own, for as long as the program runs; what people answer outlives it in `kept`.
    """

    def __init__(self, config: PermissionConfig | None = None, *, kept: Kept | None = None) -> None:
        self._workspace = config or PermissionConfig()
        self._kept: Kept = kept or InMemory()

    def config(self, session_id: str | None = None) -> PermissionConfig:
        """What is in force, remembered rules as the last of the rules; `session_id` None: in the workspace."""
        config, remembered = self._in_force(session_id)
        return evolve(config, rules=config.rules + remembered)

    def for_session(self, session_id: str | None = None) -> PermissionChecker:
        """A checker of what is in force at the moment of each check, not of what is now."""
        return _FollowingChecker(self, session_id)

    def set(self, options: PermissionOptions, scope: Scope, session_id: str | None = None) -> None:
        """Replaces each field that `options` gives. Rules replace all there are: a remembered one stays
        remembered where it is among them, and is forgotten where it is not.

        Raises ValueError for the scope "session" without a `session_id`.
        """
        below, remembered = self._kept.load(_key(scope, session_id))
        if options.rules is not None:
            rules = options.rules
            remembered = tuple(rule for rule in remembered if rule in rules)
            options = evolve(options, rules=tuple(rule for rule in rules if rule not in remembered))
        if scope == "workspace":
            self._workspace = self._workspace.updated(options)
        merged = _merged(below, options) if scope == "session" else below
        self._kept.save(_key(scope, session_id), merged, remembered)

    def reconfigure(self, options: PermissionOptions) -> None:
        """Replaces fields of the workspace's own configuration; rules that answers have left stay as they are."""
        self._workspace = self._workspace.updated(options)

    def remember(self, rule: PermissionRule, scope: Scope, session_id: str | None = None) -> None:
        """Adds a rule, once. One for the workspace also holds in the session whose call it was about.

        Raises ValueError for the scope "session" without a `session_id`.
        """
        if scope == "workspace" and rule not in self.config().rules:
            self._add(rule, None)
        if (scope == "session" or session_id is not None) and rule not in self.config(session_id).rules:
            self._add(rule, _key("session", session_id))

    def forget_session(self, session_id: str) -> None:
        """Drops what a session had on top."""
        self._kept.forget(session_id)

    def forget_tool(self, tool: str) -> None:
        """Drops what people have allowed of a tool, which is not what it was: they are asked again."""
        self._kept.forget_rules(lambda rule: rule.tool == tool and rule.decision == "allow")

    def _add(self, rule: PermissionRule, key: str | None) -> None:
        options, remembered = self._kept.load(key)
        self._kept.save(key, options, (*remembered, rule))

    def _in_force(self, session_id: str | None) -> tuple[PermissionConfig, Rules]:
        """The configuration, and the rules that answers have left."""
        if not session_id:
            return self._workspace, self._kept.load(None)[1]
        options, remembered = self._kept.load(session_id)
        # A session with rules of its own has taken leave of all that the workspace had.
        below = self._kept.load(None)[1] if options.rules is None else ()
        return self._workspace.updated(options), below + remembered


def _key(scope: Scope, session_id: str | None) -> str | None:
    if scope == "workspace":
        return None
    if not session_id:
        raise ValueError('the scope "session" needs a session id')
    return session_id


class _FollowingChecker(PermissionChecker):
    """Asks the book anew at every check."""

    def __init__(self, book: PermissionBook, session_id: str | None) -> None:
        super().__init__()
        self._book = book
        self._session_id = session_id

    @property
    def config(self) -> PermissionConfig:
        return self._in_force()[0]

    @property
    def remembered(self) -> Rules:
        return self._in_force()[1]

    def _in_force(self) -> tuple[PermissionConfig, Rules]:
        return self._book._in_force(self._session_id)


def _merged(below: PermissionOptions, above: PermissionOptions) -> PermissionOptions:
    """`above` where it says something, `below` elsewhere."""
    return PermissionOptions(
        allowed=below.allowed if above.allowed is None else above.allowed,
        denied=below.denied if above.denied is None else above.denied,
        ask=below.ask if above.ask is None else above.ask,
        allow_unspecified=below.allow_unspecified if above.allow_unspecified is None else above.allow_unspecified,
        rules=below.rules if above.rules is None else above.rules,
    )
