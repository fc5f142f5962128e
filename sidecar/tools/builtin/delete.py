"""`delete`: a file or folder into the system's trash, or a file for good."""

import os
import stat
from typing import ClassVar

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.file_tool import PATH, FileTool, parameters
from sidecar.tools.builtin.text_file import locked
from sidecar.tools.workspace import Place, Spot, became_another, spot_of


class Delete(FileTool):
    """Result: `path`, `inTrash`. A link is removed itself, not what it leads to."""

    name = "delete"
    description = (
        "Moves a file or folder of the workspace to the system's trash. With permanently true a file is "
        "deleted for good; folders are not."
    )
    parameters = parameters(
        "path", path=PATH, permanently={"type": "boolean", "description": "Delete for good. Default false"}
    )
    required_permissions = (Permission.DELETE,)
    follows_links: ClassVar[bool] = False

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        is_for_good = args.get("permanently", False)
        with locked(place), spot_of(place) as spot:
            status = spot.stat()
            if status is None:
                raise FileNotFoundError
            if not is_for_good:
                return _to_trash(place, spot)
            if stat.S_ISDIR(status.st_mode):
                return ToolResult.error(f"{place.shown} is a folder, and only files can be deleted for good")
            spot.remove()
        return ToolResult.success({"path": place.shown, "inTrash": False})


def _to_trash(place: Place, spot: Spot) -> ToolResult:
    import send2trash  # noqa: PLC0415

    # The trash takes paths alone, so that one is looked at once more: it must lead to the folder held open.
    if spot.folder is not None and not os.path.samestat(os.fstat(spot.folder), place.path.parent.lstat()):
        raise became_another(place.shown)
    try:
        send2trash.send2trash(place.path)
    except (OSError, send2trash.TrashPermissionError) as error:
        return ToolResult.error(
            f"{place.shown} cannot be moved to the trash ({error}); set permanently to delete it for good"
        )
    return ToolResult.success({"path": place.shown, "inTrash": True})
