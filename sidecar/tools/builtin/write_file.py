"""`write_file`: a file with this content, in one step, on condition of its version where one is given."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.file_tool import PATH, VERSION, FileTool, parameters
from sidecar.tools.builtin.text_file import TextFile, UnfitFileError, locked, read_if_there, write
from sidecar.tools.workspace import Place, spot_of


class WriteFile(FileTool):
    """Result: `path`, `version`, `bytes`, `created`."""

    name = "write_file"
    description = (
        "Writes a text file of the workspace, replacing what it held; makes missing folders. "
        "To change a part of a file, use edit_file."
    )
    parameters = parameters(
        "path content",
        path=PATH,
        content={"type": "string", "description": "All that the file is to hold"},
        version=VERSION,
    )
    required_permissions = (Permission.WRITE,)

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        wanted = args.get("version")
        try:
            with locked(place), spot_of(place, create_parents=wanted is None) as spot:
                before = read_if_there(spot)
                if refused := stale(place, before, wanted):
                    return refused
                raw = before.encoded(args["content"]) if before else args["content"].encode()
                version = write(spot, raw, mode=before.mode if before else None)
        except UnfitFileError as error:
            return ToolResult.error(f"{place.shown} {error}, so it was not overwritten")
        return ToolResult.success(
            {"path": place.shown, "version": version, "bytes": len(raw), "created": before is None}
        )


def stale(place: Place, before: TextFile | None, wanted: str | None) -> ToolResult | None:
    """The refusal where the file is not the one that the caller has read."""
    if wanted is None or (before is not None and before.version == wanted):
        return None
    if before is None:
        return ToolResult.error(f"{place.shown} does not exist any more, so it is not version {wanted}")
    return ToolResult.error_with_data(
        f"{place.shown} has changed since version {wanted} was read; read it again",
        {"path": place.shown, "version": before.version},
    )
