"""The workspace folders: those that the host began with, and what it opens and closes later."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pygls import uris

log = logging.getLogger("sidecar.server")


class Folders:
    """`paths` is what is open now. Folders that were `given` by option stay, whatever the editor does."""

    def __init__(self, paths: tuple[Path, ...], *, are_given: bool = False) -> None:
        self.paths = paths
        self._are_given = are_given
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """`listener` is called after each change."""
        self._listeners.append(listener)

    def change(self, params: Any) -> None:
        """Takes a `workspace/didChangeWorkspaceFolders` (LSP 3.17); what is none in it is passed over."""
        event = params.get("event") if isinstance(params, dict) else None
        if self._are_given or not isinstance(event, dict):
            return
        removed = set(_paths(event.get("removed")))
        kept = [path for path in self.paths if path not in removed]
        paths = tuple(dict.fromkeys([*kept, *_paths(event.get("added"))]))
        if paths != self.paths:
            self.paths = paths
            for listener in self._listeners:
                listener()


def _paths(folders: Any) -> Iterator[Path]:
    for folder in folders if isinstance(folders, list) else ():
        if (path := path_of(folder)) is not None:
            yield path
        else:
            log.warning("a workspace folder that is not on a disk was passed over")


def path_of(place: Any) -> Path | None:
    """Where on a disk the `uri` of a JSON object leads; None where it does not, or where there is none."""
    uri = place.get("uri") if isinstance(place, dict) else None
    try:
        path = uris.to_fs_path(uri) if isinstance(uri, str) else None
    except ValueError:
        return None
    return Path(path) if path and "\0" not in path else None
