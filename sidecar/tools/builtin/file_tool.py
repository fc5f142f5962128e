"""What all file tools share: the workspace, a thread, one spelling of a path, errors in words."""

import errno
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from sidecar.protocol.errors import ToolError
from sidecar.protocol.values import JsonObject, ResourceLinkBlock, ToolKind, ToolResult
from sidecar.tools.base import BaseTool, ToolContext, ToolOutput
from sidecar.tools.threads import in_thread
from sidecar.tools.workspace import Place, Workspace, became_another

PATH: JsonObject = {
    "type": "string",
    "description": "The path, relative to the first workspace folder or absolute",
}
VERSION: JsonObject = {
    "type": "string",
    "description": "The version that read_file gave; the call is refused when the file has changed since",
}

INCLUDE_IGNORED: JsonObject = {"type": "boolean", "description": "Also what .gitignore names. Default false"}


def limit(default: int, most: int, of_what: str) -> JsonObject:
    """A parameter for how much is given at most."""
    said = f"The most {of_what} to give. Default {default}"
    return {"type": "integer", "minimum": 1, "maximum": most, "description": said}


class PlaceTool(BaseTool):
    """A tool that works on one path of the workspace. A remembered approval keeps the path."""

    kind: ToolKind = "file"
    category = "files"
    remembered_arguments: tuple[str, ...] = ("path",)
    follows_links: ClassVar[bool] = True
    default_path: ClassVar[str] = ""

    async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
        place = await in_thread(self._place, args, workspace)
        return {**args, "path": place.shown}

    def permitted_place(self, args: JsonObject, ctx: ToolContext) -> Place:
        """Where the path leads now. Raises ToolError `permissionDenied` where something else was permitted."""
        place = self._place(args, ctx.workspace)
        if ctx.rule_arguments is not None and ctx.rule_arguments["path"] != place.shown:
            raise became_another(place.shown)
        return place

    def _place(self, args: JsonObject, workspace: tuple[Path, ...]) -> Place:
        path = args.get("path")
        if not isinstance(path, str):  # Absent; permissions are also asked about calls that are not complete.
            path = self.default_path
        return Workspace(workspace).place(path, follow=self.follows_links)


class FileTool(PlaceTool):
    """One that does its work in a thread."""

    @abstractmethod
    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        """Does the work at `place`. An OSError becomes a result in words."""

    async def execute(self, args: JsonObject, ctx: ToolContext) -> ToolOutput:
        return await in_thread(self._run, args, ctx)

    def _run(self, args: JsonObject, ctx: ToolContext) -> ToolResult:
        place = self.permitted_place(args, ctx)
        try:
            return self.run(place, args, ctx)
        except OSError as error:
            return told(error, place.shown)


def link_to(place: Place) -> ResourceLinkBlock:
    """A link to a file that a host can open."""
    return ResourceLinkBlock(uri=place.path.as_uri(), name=place.shown)


def told(error: OSError, path: str) -> ToolResult:
    """What a model is told of a file that it cannot have. Raises ToolError `io` where the disk is at fault."""
    match error:
        case FileNotFoundError():
            return ToolResult.error(f"{path} does not exist")
        case IsADirectoryError():
            return ToolResult.error(f"{path} is a folder, not a file")
        case NotADirectoryError():
            return ToolResult.error(f"{path} is not a folder, or lies below a file")
        case PermissionError():
            return ToolResult.error(f"{path} is closed to this user by the system")
        case _ if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG, errno.EINVAL):
            return ToolResult.error(f"{path} is not an ordinary file: {error.strerror}")
        case _:
            raise ToolError("io", f"{path}: {error.strerror or error}", path=path) from error


def parameters(required: str, **properties: Any) -> JsonObject:
    """The schema of a closed object; `required` holds names with spaces between them."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }
