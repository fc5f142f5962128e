"""Documents that are open in an editor: what tools see of them, and how they are changed there."""

from pathlib import Path
from typing import NamedTuple, Protocol


class OpenDocument(NamedTuple):
    """A document as the editor holds it, saved or not. `version` is LSP's, which grows with each change."""

    uri: str
    text: str
    version: int | None


class Documents(Protocol):
    """The open documents of the host."""

    def at(self, path: Path) -> OpenDocument | None:
        """The open document of a file. May be called from any thread."""

    async def edit(self, document: OpenDocument, text: str) -> str | None:
        """Makes the document hold `text`, as one step that can be undone; or says why the editor did not."""


class NoDocuments:
    """For a host that is no editor, and for programs that have none."""

    def at(self, path: Path) -> OpenDocument | None:
        """See Documents."""
        return None

    async def edit(self, document: OpenDocument, text: str) -> str | None:
        """See Documents."""
        return "no editor is there"


NO_DOCUMENTS: Documents = NoDocuments()
