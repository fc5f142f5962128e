"""Tools on documents that an LSP editor has open (protocol.md, Built-in tools, "Through the editor")."""

from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from tests.harness.host import Host, RequestFailed, sidecar

OPEN = {"permissions": {"allowed": ["read", "write"], "ask": []}}
EDITS = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        apply_edit=True, workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
    )
)


class Editor:
    """One open document, kept in step with the sidecar as an editor does it."""

    def __init__(self, host: Host, path: Path, text: str) -> None:
        self.host, self.uri, self.text, self.version = host, path.as_uri(), text, 1
        item = types.TextDocumentItem(uri=self.uri, language_id="text", version=1, text=text)
        host.client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        self.edits: list[types.TextEdit] = []
        self.refusal: types.ApplyWorkspaceEditResult | None = None

        @host.client.feature("workspace/applyEdit")
        def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
            return self._apply(params)

    def type(self, text: str) -> None:
        """The person changes the text."""
        self.text, self.version = text, self.version + 1
        self.host.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                text_document=types.VersionedTextDocumentIdentifier(uri=self.uri, version=self.version),
                content_changes=[types.TextDocumentContentChangeWholeDocument(text=text)],
            )
        )

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        if self.refusal is not None:
            return self.refusal
        assert params.edit.document_changes is not None
        (change,) = params.edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert (change.text_document.uri, change.text_document.version) == (self.uri, self.version)
        (edit,) = change.edits
        assert isinstance(edit, types.TextEdit)
        self.edits.append(edit)
        start, end, lines = edit.range.start, edit.range.end, self.text.split("\n")
        before = "\n".join([*lines[: start.line], lines[start.line][: start.character]])
        after = "\n".join([lines[end.line][end.character :], *lines[end.line + 1 :]])
        self.type(before + edit.new_text + after)
        return types.ApplyWorkspaceEditResult(applied=True)


def on_disk(path: Path) -> str:
    return path.read_text()


async def call(host: Host, name: str, **arguments: Any) -> Any:
    return await host.request("tools/call", {"name": name, "arguments": arguments})


@pytest.fixture
def note(tmp_path: Path) -> Path:
    (tmp_path / "note.txt").write_text("one\ntwo\n")
    return tmp_path / "note.txt"


async def test_an_edit_of_an_open_document_goes_through_the_editor(note: Path) -> None:
    async with sidecar(OPEN, folders=[note.parent], lsp=EDITS) as host:
        editor = Editor(host, note, "one\ntwo, unsaved\n")
        read = await call(host, "read_file", path="note.txt")
        assert read["result"]["data"]["content"] == "one\ntwo, unsaved\n"
        edited = await call(
            host,
            "edit_file",
            path="note.txt",
            oldText="unsaved",
            newText="edited",
            version=read["result"]["data"]["version"],
        )
        assert edited["result"]["data"]["inEditor"] is True
        assert editor.text == "one\ntwo, edited\n"
        await call(host, "write_file", path="note.txt", content="all new\n")
        assert editor.text == "all new\n"
        again = await call(host, "read_file", path="note.txt")
        assert again["result"]["data"]["content"] == "all new\n"
    assert on_disk(note) == "one\ntwo\n"
    line = types.Range(start=types.Position(line=1, character=0), end=types.Position(line=2, character=0))
    assert editor.edits[0] == types.TextEdit(range=line, new_text="two, edited\n")


async def test_a_question_about_an_edit_shows_what_it_would_change(note: Path) -> None:
    async with sidecar(folders=[note.parent], lsp=EDITS) as host:
        Editor(host, note, "one\ntwo, unsaved\n")
        host.answers["agent/requestApproval"] = lambda asked: {"decision": "deny"}
        for name, arguments in (
            ("edit_file", {"oldText": "two", "newText": "2"}),
            ("write_file", {"content": "one\n"}),
            ("edit_file", {"oldText": "no such text", "newText": "2"}),
        ):
            with pytest.raises(RequestFailed):
                await call(host, name, path="note.txt", **arguments)
    head = "--- a/note.txt\n+++ b/note.txt\n@@ -1,2 "
    assert [asked.get("diff") for _, asked in host.asked] == [
        f"{head}+1,2 @@\n one\n-two, unsaved\n+2, unsaved\n",
        f"{head}+1 @@\n one\n-two, unsaved\n",
        None,
    ]


async def test_an_edit_of_what_has_changed_on_the_screen_is_refused(note: Path) -> None:
    async with sidecar(OPEN, folders=[note.parent], lsp=EDITS) as host:
        editor = Editor(host, note, "one\ntwo\n")
        seen = (await call(host, "read_file", path="note.txt"))["result"]["data"]["version"]
        editor.type("one\ntwo and more\n")
        done = await call(host, "edit_file", path="note.txt", oldText="two", newText="2", version=seen)
        assert done["result"]["ok"] is False
        assert "has changed since" in done["result"]["error"]
    assert editor.edits == []


async def test_an_editor_that_refuses_an_edit_is_believed(note: Path) -> None:
    async with sidecar(OPEN, folders=[note.parent], lsp=EDITS) as host:
        editor = Editor(host, note, "one\ntwo\n")
        editor.refusal = types.ApplyWorkspaceEditResult(applied=False, failure_reason="read-only")
        done = await call(host, "edit_file", path="note.txt", oldText="two", newText="2")
    assert done["result"]["error"] == "note.txt is open in the editor and was not changed there: read-only"
    assert on_disk(note) == "one\ntwo\n"


async def test_an_editor_that_only_says_that_it_applied_an_edit_is_not_believed(note: Path) -> None:
    async with sidecar(OPEN, folders=[note.parent], lsp=EDITS) as host:
        Editor(host, note, "one\ntwo\n").refusal = types.ApplyWorkspaceEditResult(applied=True)
        done = await call(host, "edit_file", path="note.txt", oldText="two", newText="2")
    assert "did not change" in done["result"]["error"]


async def test_without_edits_of_the_editor_an_open_document_stays_as_it_is(note: Path) -> None:
    async with sidecar(OPEN, folders=[note.parent]) as host:
        Editor(host, note, "one\ntwo, unsaved\n")
        done = await call(host, "write_file", path="note.txt", content="x")
        assert "this editor takes no edits" in done["result"]["error"]
        host.client.text_document_did_close(
            types.DidCloseTextDocumentParams(text_document=types.TextDocumentIdentifier(uri=note.as_uri()))
        )
        await call(host, "write_file", path="note.txt", content="x")
    assert on_disk(note) == "x"
