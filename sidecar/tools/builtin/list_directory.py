"""`list_directory`: what is in a folder."""

import os
from itertools import islice
from typing import ClassVar

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.file_tool import PATH, FileTool, parameters
from sidecar.tools.workspace import Place, folder_at

MAX_ENTRIES = 1000
"""The most entries that are listed (own choice)."""

MAX_SEEN = 100_000
"""The most entries that are looked at before sorting; a folder with more is told as one with at least so many."""


class ListDirectory(FileTool):
    """Result: `path`, `entries` of `name`, `type` (`file`, `directory`, `link`, `other`) and `size`, `total`."""

    name = "list_directory"
    description = "Lists a folder of the workspace: names, types, sizes in bytes. Not what is in its folders."
    parameters = parameters("", path={**PATH, "description": f"{PATH['description']}. Default: that folder"})
    required_permissions = (Permission.READ,)
    idempotent = True
    default_path: ClassVar[str] = "."

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        with folder_at(place) as folder, os.scandir(folder) as found:
            entries = sorted(islice(found, MAX_SEEN), key=lambda entry: entry.name)
            listed = [_described(entry) for entry in entries[:MAX_ENTRIES]]
        return ToolResult.success({"path": place.shown, "entries": listed, "total": len(entries)})


def _described(entry: "os.DirEntry[str]") -> JsonObject:
    if entry.is_symlink():
        return {"name": entry.name, "type": "link"}
    if entry.is_dir(follow_symlinks=False):
        return {"name": entry.name, "type": "directory"}
    if not entry.is_file(follow_symlinks=False):
        return {"name": entry.name, "type": "other"}
    try:
        return {"name": entry.name, "type": "file", "size": entry.stat(follow_symlinks=False).st_size}
    except OSError:  # It has gone since it was listed.
        return {"name": entry.name, "type": "file"}
