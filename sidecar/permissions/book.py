"""The permissions in force: those of the workspace, and what a session has on top of them. In memory, no I/O."""

from typing import Literal

from attrs import define, evolve

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.messages import PermissionOptions, PermissionRule

Scope = Literal["session", "workspace"]
Rules = tuple[PermissionRule, ...]


@define(eq=False)
class _Layer:
    """A session's own: `options` replace fields of the workspace, `remembered` rules come after all others."""

    options: PermissionOptions
    remembered: Rules = ()


class PermissionBook:
    """Keeps permissions, changes them, and gives out checkers that follow every change at once."""

    def __init__(self, config: PermissionConfig | None = None) -> None:
        self._workspace = config or PermissionConfig()
        self._remembered: Rules = ()
        self._sessions: dict[str, _Layer] = {}

    def config(self, session_id: str | None = None) -> PermissionConfig:
        """What is in force, remembered rules as the last of the rules; `session_id` None: in the workspace."""
        config = self._config(session_id)
        return evolve(config, rules=config.rules + self._remembered_in(session_id))

    def for_session(self, session_id: str | None = None) -> PermissionChecker:
        """A checker of what is in force at the moment of each check, not of what is now."""
        return _FollowingChecker(self, session_id)

    def set(self, options: PermissionOptions, scope: Scope, session_id: str | None = None) -> None:
        """Replaces each field that `options` gives. Rules replace all there are, remembered ones among them.

        Raises ValueError for the scope "session" without a `session_id`.
        """
        if scope == "workspace":
            self._workspace = self._workspace.updated(options)
            self._remembered = () if options.rules is not None else self._remembered
            return
        layer = self._layer(session_id)
        layer.options = _merged(layer.options, options)
        layer.remembered = () if options.rules is not None else layer.remembered

    def remember(self, rule: PermissionRule, scope: Scope, session_id: str | None = None) -> None:
        """Adds a rule, once. One for the workspace also holds in the session whose call it was about.

        Raises ValueError for the scope "session" without a `session_id`.
        """
        if scope == "workspace" and rule not in self.config().rules:
            self._remembered = (*self._remembered, rule)
        if (scope == "session" or session_id is not None) and rule not in self.config(session_id).rules:
            layer = self._layer(session_id)
            layer.remembered = (*layer.remembered, rule)

    def forget_session(self, session_id: str) -> None:
        """Drops what a session had on top."""
        self._sessions.pop(session_id, None)

    def _config(self, session_id: str | None) -> PermissionConfig:
        layer = self._sessions.get(session_id or "")
        return self._workspace if layer is None else self._workspace.updated(layer.options)

    def _remembered_in(self, session_id: str | None) -> Rules:
        layer = self._sessions.get(session_id or "")
        if layer is None:
            return self._remembered
        # A session with rules of its own has taken leave of all that the workspace had.
        below = self._remembered if layer.options.rules is None else ()
        return below + layer.remembered

    def _layer(self, session_id: str | None) -> _Layer:
        if not session_id:
            raise ValueError('the scope "session" needs a session id')
        return self._sessions.setdefault(session_id, _Layer(PermissionOptions()))


class _FollowingChecker(PermissionChecker):
    """Asks the book anew at every check."""

    def __init__(self, book: PermissionBook, session_id: str | None) -> None:
        super().__init__()
        self._book = book
        self._session_id = session_id

    @property
    def config(self) -> PermissionConfig:
        return self._book._config(self._session_id)

    @property
    def remembered(self) -> Rules:
        return self._book._remembered_in(self._session_id)


def _merged(below: PermissionOptions, above: PermissionOptions) -> PermissionOptions:
    """`above` where it says something, `below` elsewhere."""
    return PermissionOptions(
        allowed=below.allowed if above.allowed is None else above.allowed,
        denied=below.denied if above.denied is None else above.denied,
        ask=below.ask if above.ask is None else above.ask,
        allow_unspecified=below.allow_unspecified if above.allow_unspecified is None else above.allow_unspecified,
        rules=below.rules if above.rules is None else above.rules,
    )
