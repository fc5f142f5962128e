"""`find_files`: the files whose paths a glob takes."""

from typing import ClassVar

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.file_tool import INCLUDE_IGNORED, PATH, FileTool, limit, parameters
from sidecar.tools.workspace import Place, Spot

DEFAULT_LIMIT = 200
FILES_PER_REPORT = 20_000
"""How often a long search says how far it is. Own choice: about twice a second."""

MAX_LIMIT = 5000
"""Own choices: a model is better served by a narrower glob than by a longer list."""


class FindFiles(FileTool):
    """Result: `path`, `files` below it in alphabetical order, `total`, `truncated`."""

    name = "find_files"
    description = (
        "Finds files of the workspace by a glob, such as *.py, src/**/*.ts or {a,b}.json. Passes over what "
        ".gitignore names, unless includeIgnored is true."
    )
    parameters = parameters(
        "pattern",
        pattern={
            "type": "string",
            "minLength": 1,
            "description": "A glob. Without a / it is of names at any depth, else of paths below `path`",
        },
        path={**PATH, "description": "The folder to search. Default: the first workspace folder"},
        includeIgnored=INCLUDE_IGNORED,
        limit=limit(DEFAULT_LIMIT, MAX_LIMIT, "files"),
    )
    required_permissions = (Permission.READ,)
    idempotent = True
    default_path: ClassVar[str] = "."

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        from sidecar.tools.builtin.tree import Glob, walk  # noqa: PLC0415

        most = int(args.get("limit", DEFAULT_LIMIT))
        try:
            glob = Glob(args["pattern"])
        except ValueError as error:
            return ToolResult.error(f"the pattern cannot be used: {error}")
        found: list[str] = []
        seen = 0

        def visit(path: str, spot: Spot) -> bool:
            nonlocal seen
            seen += 1
            if seen % FILES_PER_REPORT == 0:
                ctx.from_thread(ctx.progress(seen, None, f"{seen} files looked at"))
            if glob.matches(path):
                found.append(path)
            return not ctx.cancellation.cancelled

        walked = walk(place, visit, with_ignored=args.get("includeIgnored", False))
        found.sort()
        files = [place.shown_below(path) for path in found[:most]]
        data = {
            "path": place.shown,
            "files": files,
            "total": len(found),
            "truncated": len(found) > most,
            **({"unreadableFolders": walked.unreadable} if walked.unreadable else {}),
        }
        return ToolResult.success(data, content=(TextBlock(text=_told(files, len(found))),))


def _told(files: list[str], total: int) -> str:
    if not files:
        return "no files found"
    more = f"\n[{total - len(files)} more; narrow the pattern]" if total > len(files) else ""
    return "\n".join(files) + more
