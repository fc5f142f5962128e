"""`move`: another name or another folder for a file or folder of the workspace."""

import errno
import os
import stat
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from sidecar.permissions.model import Permission
from sidecar.protocol.values import JsonObject, TextBlock, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.file_tool import PATH, FileTool, link_to, parameters
from sidecar.tools.builtin.text_file import locked
from sidecar.tools.threads import in_thread
from sidecar.tools.workspace import Place, Spot, Workspace, became_another, spot_of


class Move(FileTool):
    """Result: `path`, `to`. A link is moved itself, not what it leads to."""

    name = "move"
    description = (
        "Moves or renames a file or folder of the workspace; makes missing folders. What is there already is "
        "kept, unless overwrite is true, and a folder is never overwritten."
    )
    parameters = parameters(
        "path to",
        path=PATH,
        to={"type": "string", "description": "The new path, its name included"},
        overwrite={"type": "boolean", "description": "Replace a file that is there. Default false"},
    )
    required_permissions = (Permission.WRITE,)
    remembered_arguments = ("path", "to")
    follows_links: ClassVar[bool] = False

    async def rule_arguments(self, args: JsonObject, workspace: tuple[Path, ...]) -> JsonObject:
        shown = await super().rule_arguments(args, workspace)
        if not isinstance(args.get("to"), str):
            return shown
        target = await in_thread(self._target, args, workspace)
        return {**shown, "to": target.shown}

    def run(self, place: Place, args: JsonObject, ctx: ToolContext) -> ToolResult:
        target = self._target(args, ctx.workspace)
        if ctx.rule_arguments is not None and ctx.rule_arguments["to"] != target.shown:
            raise became_another(target.shown)
        if target.path.is_relative_to(place.path):
            return ToolResult.error(f"{place.shown} cannot be moved to {target.shown}, which is itself or in it")
        with ExitStack() as stack:
            for each in sorted((place, target), key=lambda place: place.path):  # Two moves may cross.
                stack.enter_context(locked(each))
            source = stack.enter_context(spot_of(place))
            status = source.stat()
            if status is None:
                raise FileNotFoundError
            spot = stack.enter_context(spot_of(target, create_parents=True))
            if refusal := _in_the_way(spot, target, may_overwrite=args.get("overwrite", False)):
                return refusal
            if refusal := _renamed(source, spot, target):
                return refusal
        said = f"{place.shown} is {target.shown} now"
        data = {"path": place.shown, "to": target.shown}
        return ToolResult.success(data, content=(TextBlock(text=said), link_to(target)))

    def _target(self, args: JsonObject, workspace: tuple[Path, ...]) -> Place:
        return Workspace(workspace).place(args["to"], follow=False)


def _in_the_way(spot: Spot, target: Place, *, may_overwrite: bool) -> ToolResult | None:
    status = spot.stat()
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        return ToolResult.error(f"{target.shown} is a folder; give the new path with the name in it")
    if not may_overwrite:
        return ToolResult.error(f"{target.shown} exists; set overwrite if it is to be replaced")
    return None


def _renamed(source: Spot, spot: Spot, target: Place) -> ToolResult | None:
    try:
        os.replace(source.name, spot.name, src_dir_fd=source.folder, dst_dir_fd=spot.folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return ToolResult.error(f"{target.shown} lies on another disk; write it there and delete the old one")
    return None
