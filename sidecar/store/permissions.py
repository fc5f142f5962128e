"""What was remembered of people's decisions, in a workspace or in a session."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from sidecar.protocol.messages import PermissionOptions, PermissionRule
from sidecar.store.bodies import body_of, value_of
from sidecar.store.database import Database

Rules = tuple[PermissionRule, ...]


class KeptPermissions:
    """One row for each session and for each workspace, which is known by its folders. Raises StoreError."""

    def __init__(self, database: Database, workspace: Callable[[], Sequence[Path]]) -> None:
        self._database = database
        self._workspace = workspace

    def load(self, session_id: str | None) -> tuple[PermissionOptions, Rules]:
        """What replaces the options below, and the rules that answers have left; None: those of the workspace."""
        row = self._database.row(
            "SELECT options, remembered FROM permissions WHERE scope = ?", self._scope(session_id)
        )
        if row is None:
            return PermissionOptions(), ()
        return value_of(row[0], PermissionOptions), value_of(row[1], Rules)

    def save(self, session_id: str | None, options: PermissionOptions, remembered: Rules) -> None:
        """Replaces what was there."""
        self._database.change(
            "INSERT INTO permissions VALUES (?, ?, ?) "
            "ON CONFLICT (scope) DO UPDATE SET options = excluded.options, remembered = excluded.remembered",
            self._scope(session_id),
            body_of(options),
            self._database.secrets.hide(body_of(remembered)),
        )

    def forget(self, session_id: str) -> None:
        """Drops what a session had."""
        self._database.change("DELETE FROM permissions WHERE scope = ?", self._scope(session_id))

    def forget_rules(self, is_forgotten: Callable[[PermissionRule], bool]) -> None:
        """Drops rules that answers have left, in every session and workspace."""
        for scope, remembered in self._database.rows("SELECT scope, remembered FROM permissions"):
            rules = value_of(remembered, Rules)
            kept = tuple(rule for rule in rules if not is_forgotten(rule))
            if kept != rules:
                self._database.change(
                    "UPDATE permissions SET remembered = ? WHERE scope = ?", body_of(kept), scope
                )

    def _scope(self, session_id: str | None) -> str:
        if session_id is not None:
            return session_scope(session_id)
        return f"workspace:{json.dumps(sorted(str(folder) for folder in self._workspace()))}"


def session_scope(session_id: str) -> str:
    """The key of a session's row."""
    return f"session:{session_id}"
