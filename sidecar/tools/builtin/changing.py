"""A change of a text file, wherever its text is: in the editor that has it open, else on disk."""

from collections.abc import Callable
from typing import NamedTuple

from sidecar.protocol.values import JsonObject, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.builtin.text_file import (
    TextFile,
    UnfitFileError,
    buffered,
    locked,
    read_if_there,
    version_of,
    write,
)
from sidecar.tools.documents import OpenDocument
from sidecar.tools.workspace import Place, spot_of

NewText = Callable[[TextFile | None], str]
"""From what a file holds (None: there is none) to what it is to hold."""


class RefusedChangeError(Exception):
    """The change was not made; `data` is for whoever tries again."""

    def __init__(self, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.data = data

    def result(self) -> ToolResult:
        """What the model is told."""
        return ToolResult.error_with_data(str(self), self.data) if self.data else ToolResult.error(str(self))


class Changed(NamedTuple):
    """What was and what is. `in_editor`: the editor holds it, and has not saved it yet."""

    before: TextFile | None
    after: str
    version: str
    size_bytes: int
    in_editor: bool = False

    def described(self, place: Place) -> JsonObject:
        """What results of changes have in common."""
        return {"path": place.shown, "version": self.version, **({"inEditor": True} if self.in_editor else {})}


def change_file(
    place: Place, ctx: ToolContext, new_text: NewText, *, wanted: str | None, create: bool = False
) -> Changed:
    """Changes the file at `place`, if it is the version that is `wanted`. Blocks.

    Raises RefusedChangeError for a stale version, for what is no text and where the editor says no, and OSError.
    Whatever `new_text` raises ends the change as well.
    """
    try:
        with locked(place):
            if (document := ctx.documents.at(place.path)) is not None:
                return _in_editor(document, place, ctx, new_text, wanted)
            return _on_disk(place, new_text, wanted, create=create)
    except UnfitFileError as error:
        raise RefusedChangeError(f"{place.shown} {error}, so it was not changed") from None


def file_at(place: Place, ctx: ToolContext) -> TextFile | None:
    """What the file at `place` holds, in the editor or on disk. Raises UnfitFileError and OSError."""
    document = ctx.documents.at(place.path)
    if document is not None:
        return buffered(document.text)
    with spot_of(place) as spot:
        return read_if_there(spot)


def _on_disk(place: Place, new_text: NewText, wanted: str | None, *, create: bool) -> Changed:
    with spot_of(place, create_parents=create and wanted is None) as spot:
        before = read_if_there(spot)
        if before is None and not create:
            raise FileNotFoundError
        _refuse_stale(place, before, wanted)
        after = new_text(before)
        raw = before.encoded(after) if before else after.encode()
        version = write(spot, raw, mode=before.mode if before else None)
    return Changed(before, after, version, len(raw))


def _in_editor(
    document: OpenDocument, place: Place, ctx: ToolContext, new_text: NewText, wanted: str | None
) -> Changed:
    before = buffered(document.text)
    _refuse_stale(place, before, wanted)
    after = new_text(before)
    raw = before.encoded(after)
    if raw.decode() != document.text:
        refusal = ctx.from_thread(ctx.documents.edit(document, raw.decode()))
        if refusal is not None:
            raise RefusedChangeError(f"{place.shown} is open in the editor and was not changed there: {refusal}")
    return Changed(before, after, version_of(raw), len(raw), in_editor=True)


def _refuse_stale(place: Place, before: TextFile | None, wanted: str | None) -> None:
    """Raises RefusedChangeError where the file is not the one that the caller has read."""
    if wanted is None or (before is not None and before.version == wanted):
        return
    if before is None:
        raise RefusedChangeError(f"{place.shown} does not exist any more, so it is not version {wanted}")
    raise RefusedChangeError(
        f"{place.shown} has changed since version {wanted} was read; read it again",
        {"path": place.shown, "version": before.version},
    )
