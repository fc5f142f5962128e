"""`write_file`: a file with this content, in one step, on condition of its version where one is given."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.changing import RefusedChangeError, change_file, file_at
from sidecar.tools.builtin.file_tool import PATH, VERSION, FileTool, link_to, parameters
from sidecar.tools.builtin.text_file import TextFile
from sidecar.tools.builtin.unified_diff import unified_diff
from sidecar.tools.threads import in_thread
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

    async def preview(self, args: JsonObject, ctx: ToolContext) -> str | None:
        return await in_thread(self._preview, args, ctx)

    def _preview(self, args: JsonObject, ctx: ToolContext) -> str:
        place = self.permitted_place(args, ctx)
        before = _before(place, ctx)
        return unified_diff(before.text if before else "", args["content"], place.shown)

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        try:
            changed = change_file(
                place, ctx, lambda before: args["content"], wanted=args.get("version"), create=True
            )
        except RefusedChangeError as refusal:
            return refusal.result()
        data = {**changed.described(place), "bytes": changed.size_bytes, "created": changed.before is None}
        said = f"{place.shown} was written, {changed.size_bytes} bytes, and is version {changed.version} now"
        return ToolResult.success(data, content=(TextBlock(text=said), link_to(place)))


def _before(place: Place, ctx: ToolContext) -> TextFile | None:
    try:
        return file_at(place, ctx)
    except FileNotFoundError:  # Nor is its folder there.
        return None
