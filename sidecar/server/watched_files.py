"""Files of the workspace of whose changes the editor tells us (LSP 3.17, workspace/didChangeWatchedFiles)."""

import logging
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sidecar.protocol.values import JsonObject
from sidecar.server.folders import Folders, path_of
from sidecar.server.host import Host
from sidecar.server.unanswered import HostError

REGISTER_SECS = 30.0
"""How long an editor may take to agree. Own choice; nothing waits for it."""

METHOD = "workspace/didChangeWatchedFiles"

log = logging.getLogger("sidecar.server")


class WatchedFiles:
    """Calls `changed` when one of the files of these `names` in the first workspace folder may have changed.

    An editor that offers no watching tells nothing, and then nothing is called.
    """

    def __init__(self, host: Host, folders: Folders, names: Sequence[str], changed: Callable[[], None]) -> None:
        self._host = host
        self._folders = folders
        self._names = names
        self._changed = changed

    async def register(self) -> None:
        """Asks the editor to watch, where it offers that."""
        if not self._host.capabilities.watched_files:
            return
        watchers = [{"globPattern": f"**/{name}"} for name in self._names]
        registration: JsonObject = {
            "id": f"watch_{uuid.uuid4().hex[:16]}",
            "method": METHOD,
            "registerOptions": {"watchers": watchers},
        }
        try:
            await self._host.request("client/registerCapability", {"registrations": [registration]}, REGISTER_SECS)
        except HostError as error:
            log.warning("the editor does not watch files: %s", error)

    def heed(self, params: Any) -> None:
        """Takes a notification of the editor; what is none in it is passed over."""
        changes = params.get("changes") if isinstance(params, dict) else None
        changed = {path for change in changes if (path := path_of(change))} if isinstance(changes, list) else set()
        if self._folders.paths and changed & self._watched(self._folders.paths[0]):
            self._changed()

    def _watched(self, folder: Path) -> set[Path]:
        """As the editor may spell them: it may name the folder by a link or by what that leads to."""
        return {each / name for each in (folder, folder.resolve()) for name in self._names}
