"""What the tools of MCP servers looked like when they were last seen, by digest."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sidecar.store.database import Database


class PinnedTools:
    """One row for each server of a workspace. Raises StoreError."""

    def __init__(self, database: Database, workspace: Callable[[], Sequence[Path]]) -> None:
        self._database = database
        self._workspace = workspace

    def changed(self, server: str, digests: Mapping[str, str]) -> list[str]:
        """The tools that were seen before and looked otherwise then; from now on they are as they are now.

        A tool that is missing now stays pinned: it may come back as something else.
        """
        scope = json.dumps([server, *sorted(str(folder) for folder in self._workspace())])
        row = self._database.row("SELECT digests FROM pins WHERE scope = ?", scope)
        pinned: dict[str, str] = {} if row is None else json.loads(row[0])
        if now := {tool: digest for tool, digest in digests.items() if pinned.get(tool) != digest}:
            self._database.change(
                "INSERT INTO pins VALUES (?, ?) ON CONFLICT (scope) DO UPDATE SET digests = excluded.digests",
                scope,
                json.dumps({**pinned, **now}),
            )
        return [tool for tool in now if tool in pinned]
