"""`delete`: removes one file."""

import stat
from typing import ClassVar

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.builtin.file_tool import PATH, FileTool, parameters
from sidecar.tools.builtin.text_file import locked
from sidecar.tools.workspace import Place, spot_of


class Delete(FileTool):
    """Result: `path`. A link is removed itself, not what it leads to."""

    name = "delete"
    description = "Deletes a file of the workspace for good. Folders are not deleted."
    parameters = parameters("path", path=PATH)
    required_permissions = (Permission.DELETE,)
    follows_links: ClassVar[bool] = False

    def run(self, place: Place, args: JsonObject) -> ToolResult:
        with locked(place), spot_of(place) as spot:
            status = spot.stat()
            if status is not None and stat.S_ISDIR(status.st_mode):
                return ToolResult.error(f"{place.shown} is a folder, and only files can be deleted")
            spot.remove()
        return ToolResult.success({"path": place.shown})
