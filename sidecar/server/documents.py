"""The documents that an editor has open, as tools see them, and edits by `workspace/applyEdit` (LSP 3.17)."""

import asyncio
import os
from pathlib import Path

from sidecar.protocol.values import JsonObject
from sidecar.server.host import Host
from sidecar.server.unanswered import HostError
from sidecar.tools.documents import OpenDocument

EDIT_DEADLINE_SECS = 10.0
"""How long an editor may take to apply an edit. Own choice: some ask the person first."""

SYNC_LIMIT_SECS = 2.0
"""How soon after that the editor must have told what its document holds now. Own choice: above any debounce."""

_LOOK_SECS = 0.02


class EditorDocuments:
    """The documents of one host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def at(self, path: Path) -> OpenDocument | None:
        """The open document of a file; links on the way to it make no difference."""
        for document in tuple(self._host.open_documents().values()):
            if document.path and Path(os.path.realpath(document.path)) == path:
                return OpenDocument(uri=document.uri, text=document.source, version=document.version)
        return None

    async def edit(self, document: OpenDocument, text: str) -> str | None:
        """Asks the editor to put `text` in; None once it has, else why it has not."""
        if not self._host.capabilities.apply_edit:
            return "this editor takes no edits"
        edits = [edit_between(document.text, text)]
        params = {"label": "Agent Sidecar", "edit": self._workspace_edit(document, edits)}
        try:
            answer = await self._host.request("workspace/applyEdit", params, EDIT_DEADLINE_SECS)
        except HostError as error:
            return str(error)
        if not isinstance(answer, dict) or answer.get("applied") is not True:
            reason = answer.get("failureReason") if isinstance(answer, dict) else None
            return reason if isinstance(reason, str) and reason else "the editor did not apply the edit"
        return await self._seen(document)

    def _workspace_edit(self, document: OpenDocument, edits: list[JsonObject]) -> JsonObject:
        if not self._host.capabilities.document_changes:
            return {"changes": {document.uri: edits}}
        identifier = {"uri": document.uri, "version": document.version}
        return {"documentChanges": [{"textDocument": identifier, "edits": edits}]}

    async def _seen(self, before: OpenDocument) -> str | None:
        """Waits for the change to come back: some editors say that they applied what they passed over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SYNC_LIMIT_SECS
        while loop.time() < deadline:
            documents = self._host.open_documents().values()
            if not any(document.uri == before.uri and document.source == before.text for document in documents):
                return None
            await asyncio.sleep(_LOOK_SECS)
        return "the editor's document did not change"


def edit_between(old: str, new: str) -> JsonObject:
    """The one edit (LSP 3.17, `TextEdit`) that replaces the lines between the first and the last difference."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    most = min(len(old_lines), len(new_lines)) - 1
    start = _same(old_lines, new_lines, most)
    ending = _same(old_lines[::-1], new_lines[::-1], most - start)
    replaced = new_lines[start : len(new_lines) - ending]
    if ending:
        end, text = {"line": len(old_lines) - ending, "character": 0}, "".join(f"{line}\n" for line in replaced)
    else:
        end = {"line": len(old_lines) - 1, "character": _utf16_length(old_lines[-1])}
        text = "\n".join(replaced)
    return {"range": {"start": {"line": start, "character": 0}, "end": end}, "newText": text}


def _same(old: list[str], new: list[str], most: int) -> int:
    count = 0
    while count < most and old[count] == new[count]:
        count += 1
    return count


def _utf16_length(text: str) -> int:
    """LSP counts code units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
