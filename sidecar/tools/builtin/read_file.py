"""`read_file`: the text of a file, whole or by lines, with the version that conditional writes name."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.changing import file_at
from sidecar.tools.builtin.file_tool import PATH, FileTool, parameters
from sidecar.tools.builtin.large_file import read_lines
from sidecar.tools.builtin.text_file import LargeFileError, TextFile, UnfitFileError
from sidecar.tools.workspace import Place, spot_of


class ReadFile(FileTool):
    """Result: `path`, `content`, `startLine`, `endLine`, `totalLines`, `version`, and `encoding` if not UTF-8.

    Of a file over MAX_FILE_BYTES only lines are read; instead of `totalLines` there is `bytes` then, and line
    numbers from the end, as `startLine` was, are negative.
    """

    name = "read_file"
    description = (
        "Reads a text file of the workspace. Gives its content, the number of its lines and its version, "
        "which write_file and edit_file take."
    )
    parameters = parameters(
        "path",
        path=PATH,
        startLine={
            "type": "integer",
            "not": {"const": 0},
            "description": "The first line, counted from 1; or from the end: -20 for the last 20 lines",
        },
        endLine={"type": "integer", "minimum": 1, "description": "The last line, itself included"},
    )
    required_permissions = (Permission.READ,)
    idempotent = True

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        first, last = int(args.get("startLine", 1)), args.get("endLine")
        if first < 0 and last is not None:
            return ToolResult.error("endLine cannot be given with a startLine from the end")
        last = None if last is None else int(last)
        if last is not None and first > last:
            return ToolResult.error(f"endLine {last} comes before startLine {first}")
        try:
            file = file_at(place, ctx)
        except LargeFileError as error:
            if "startLine" not in args and last is None:
                return ToolResult.error(f"{place.shown} {error}; give startLine, and endLine")
            return _of_large(place, first, last)
        except UnfitFileError as error:
            return ToolResult.error(f"{place.shown} {error}")
        if file is None:
            raise FileNotFoundError
        return _of_whole(place, file, first, last)


def _of_whole(place: Place, file: TextFile, first: int, last: int | None) -> ToolResult:
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()  # What follows the last line end is no line.
    total = len(lines)
    first = max(1, total + 1 + first) if first < 0 else first
    last = total if last is None else min(last, total)
    if first > 1 and first > total:
        return ToolResult.error(f"{place.shown} has {total} lines, so there is no line {first}")
    is_whole = first == 1 and last == total
    content = file.text if is_whole else "".join(f"{line}\n" for line in lines[first - 1 : last])
    data: JsonObject = {"totalLines": total, "version": file.version}
    if file.encoding.name != "utf-8":
        data["encoding"] = file.encoding.name
    return _told(place, content, first, last, data, f" of {total}")


def _of_large(place: Place, first: int, end: int | None) -> ToolResult:
    try:
        with spot_of(place) as spot:
            lines = read_lines(spot, first, end)
    except UnfitFileError as error:
        return ToolResult.error(f"{place.shown} {error}")
    last = lines.first + lines.lines - 1
    data = {"bytes": lines.size_bytes, "version": lines.version}
    return _told(place, lines.text, lines.first, last, data, f" of a file of {lines.size_bytes} bytes")


def _told(place: Place, content: str, first: int, last: int, data: JsonObject, of_what: str) -> ToolResult:
    # For a model the text as it is: JSON would hide line ends and quotes behind backslashes.
    head = f"{place.shown}, lines {first} to {last}{of_what}, version {data['version']}"
    whole = {"path": place.shown, "content": content, "startLine": first, "endLine": last, **data}
    return ToolResult.success(whole, content=(TextBlock(text=f"{head}\n{content}"),))
