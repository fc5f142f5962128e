"""`edit_file`: one exact text in a file replaced by another."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.builtin.file_tool import PATH, VERSION, FileTool, parameters
from sidecar.tools.builtin.text_file import UnfitFileError, locked, read, write
from sidecar.tools.builtin.write_file import stale
from sidecar.tools.workspace import Place, spot_of


class EditFile(FileTool):
    """Result: `path`, `version`, `replacements`."""

    name = "edit_file"
    description = (
        "Replaces a text in a file of the workspace. oldText must occur exactly once, spaces and line ends "
        "included, unless replaceAll is true."
    )
    parameters = parameters(
        "path oldText newText",
        path=PATH,
        oldText={"type": "string", "minLength": 1, "description": "The text as it stands in the file"},
        newText={"type": "string", "description": "What takes its place"},
        replaceAll={"type": "boolean", "description": "Replace every occurrence. Default false"},
        version=VERSION,
    )
    required_permissions = (Permission.WRITE,)

    def run(self, place: Place, args: JsonObject) -> ToolResult:
        old, new = args["oldText"], args["newText"]
        try:
            with locked(place), spot_of(place) as spot:
                file = read(spot)
                if refused := stale(place, file, args.get("version")):
                    return refused
                if file.has_windows_line_ends:
                    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
                count = file.text.count(old)
                if count == 0 or (count > 1 and not args.get("replaceAll", False)):
                    return _not_once(place, count)
                version = write(spot, file.encoded(file.text.replace(old, new)), mode=file.mode)
        except UnfitFileError as error:
            return ToolResult.error(f"{place.shown} {error}, so it was not changed")
        return ToolResult.success({"path": place.shown, "version": version, "replacements": count})


def _not_once(place: Place, count: int) -> ToolResult:
    if count == 0:
        return ToolResult.error(f"oldText does not occur in {place.shown}; read the file and copy it exactly")
    return ToolResult.error(
        f"oldText occurs {count} times in {place.shown}; give more of what is around it, or set replaceAll"
    )
