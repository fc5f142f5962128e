"""`edit_file`: a change to a part of a file, as a text and what takes its place, or as a diff."""

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.changing import RefusedChangeError, change_file, file_at
from sidecar.tools.builtin.file_tool import PATH, VERSION, FileTool, link_to, parameters
from sidecar.tools.builtin.text_file import TextFile
from sidecar.tools.builtin.unified_diff import DiffError, applied, unified_diff
from sidecar.tools.threads import in_thread
from sidecar.tools.workspace import Place


class EditError(Exception):
    """The change does not fit the file; the message says why."""


class EditFile(FileTool):
    """Result: `path`, `version`, `replacements` (of a text), `diff` of what changed."""

    name = "edit_file"
    description = (
        "Changes a part of a file of the workspace. Either oldText, which must occur exactly once, spaces and "
        "line ends included (or with replaceAll anywhere), and newText; or diff, a unified diff of this file."
    )
    parameters = parameters(
        "path",
        path=PATH,
        oldText={"type": "string", "minLength": 1, "description": "The text as it stands in the file"},
        newText={"type": "string", "description": "What takes its place"},
        replaceAll={"type": "boolean", "description": "Replace every occurrence. Default false"},
        diff={"type": "string", "minLength": 1, "description": "Hunks of a unified diff, in place of the texts"},
        version=VERSION,
    )
    required_permissions = (Permission.WRITE,)

    async def preview(self, args: JsonObject, ctx: ToolContext) -> str | None:
        return await in_thread(self._preview, args, ctx)

    def _preview(self, args: JsonObject, ctx: ToolContext) -> str | None:
        place = self.permitted_place(args, ctx)
        before = file_at(place, ctx)
        if before is None:
            return None
        return unified_diff(before.text, edited(before, args, place.shown)[0], place.shown)

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        count: int | None = None

        def new_text(before: TextFile | None) -> str:
            nonlocal count
            assert before is not None, "only a file that is there is edited"
            text, count = edited(before, args, place.shown)
            return text

        try:
            changed = change_file(place, ctx, new_text, wanted=args.get("version"))
        except RefusedChangeError as refusal:
            return refusal.result()
        except (EditError, DiffError) as error:
            return ToolResult.error(str(error))
        assert changed.before is not None
        diff = unified_diff(changed.before.text, changed.after, place.shown)
        data = {**changed.described(place), "diff": diff, **({} if count is None else {"replacements": count})}
        head = f"{place.shown} was changed and is version {changed.version} now"
        return ToolResult.success(data, content=(TextBlock(text=f"{head}\n{diff}"), link_to(place)))


def edited(file: TextFile, args: JsonObject, path: str) -> tuple[str, int | None]:
    """The new text, and how often a text was replaced. Raises EditError and DiffError."""
    old, new, diff = args.get("oldText"), args.get("newText"), args.get("diff")
    if (diff is None) == (old is None) or (old is None) != (new is None):
        raise EditError("give either oldText and newText, or diff")
    if diff is not None:
        return applied(file.text, diff), None
    assert old is not None
    assert new is not None
    if file.has_windows_line_ends:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    count = file.text.count(old)
    if count == 0:
        raise EditError(f"oldText does not occur in {path}; read the file and copy it exactly")
    if count > 1 and not args.get("replaceAll", False):
        raise EditError(
            f"oldText occurs {count} times in {path}; give more of what is around it, or set replaceAll"
        )
    return file.text.replace(old, new), count
