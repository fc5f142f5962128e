"""`write_file`: a file with this content, in one step, on condition of its version where one is given."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.changing import RefusedChangeError, change_file
from sidecar.tools.builtin.file_tool import PATH, VERSION, FileTool, parameters
from sidecar.tools.workspace import Place


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
        try:
            changed = change_file(
                place, ctx, lambda before: args["content"], wanted=args.get("version"), create=True
            )
        except RefusedChangeError as refusal:
            return refusal.result()
        return ToolResult.success(
            {**changed.described(place), "bytes": changed.size_bytes, "created": changed.before is None}
        )
