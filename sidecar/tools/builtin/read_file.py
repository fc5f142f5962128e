"""`read_file`: the text of a file, whole or by lines, with the version that conditional writes name."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.builtin.file_tool import PATH, FileTool, parameters
from sidecar.tools.builtin.text_file import UnfitFileError, read
from sidecar.tools.workspace import Place, spot_of


class ReadFile(FileTool):
    """Result: `path`, `content`, `startLine`, `endLine`, `totalLines`, `version`."""

    name = "read_file"
    description = (
        "Reads a text file of the workspace. Gives its content, the number of its lines and its version, "
        "which write_file and edit_file take."
    )
    parameters = parameters(
        "path",
        path=PATH,
        startLine={"type": "integer", "minimum": 1, "description": "The first line, counted from 1"},
        endLine={"type": "integer", "minimum": 1, "description": "The last line, itself included"},
    )
    required_permissions = (Permission.READ,)
    idempotent = True

    def run(self, place: Place, args: JsonObject) -> ToolResult:
        try:
            with spot_of(place) as spot:
                file = read(spot)
        except UnfitFileError as error:
            return ToolResult.error(f"{place.shown} {error}")
        lines = file.text.split("\n")
        if lines[-1] == "":
            lines.pop()  # What follows the last line end is no line.
        first, last = int(args.get("startLine", 1)), int(args.get("endLine", len(lines)))
        last = min(last, len(lines))
        if first > 1 and first > len(lines):
            return ToolResult.error(f"{place.shown} has {len(lines)} lines, so there is no line {first}")
        if first > last and lines:
            return ToolResult.error(f"endLine {last} comes before startLine {first}")
        is_whole = first == 1 and last == len(lines)
        content = file.text if is_whole else "".join(f"{line}\n" for line in lines[first - 1 : last])
        data = {
            "path": place.shown,
            "content": content,
            "startLine": first,
            "endLine": last,
            "totalLines": len(lines),
            "version": file.version,
        }
        # For a model the text as it is: JSON would hide line ends and quotes behind backslashes.
        head = f"{place.shown}, lines {first} to {last} of {len(lines)}, version {file.version}"
        return ToolResult.success(data, content=(TextBlock(text=f"{head}\n{content}"),))
