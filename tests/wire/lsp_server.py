"""The wire with features of LSP registered in every way that pygls knows. Run it as a script."""

import asyncio
import threading
from typing import Any

from lsprotocol import types

from sidecar.server.guard import take_standard_streams
from sidecar.server.initialize import Initialization, Opened
from sidecar.server.rpc import SidecarServer
from sidecar.server.stdio import serve_stdio


async def open_services(init: Initialization, host: Any) -> Opened:
    return Opened(services=None)


async def close_services(services: Any) -> None:
    """Nothing was opened."""


server = SidecarServer({}, open_services, close_services)
saved: list[str] = []


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(ls: SidecarServer, params: types.HoverParams) -> types.Hover:
    text = ls.workspace.get_text_document(params.text_document.uri).source
    return types.Hover(contents=types.MarkupContent(kind=types.MarkupKind.Markdown, value=text))


@server.feature(types.TEXT_DOCUMENT_COMPLETION)
async def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
    if params.position.line == 1:
        await asyncio.Event().wait()
    if params.position.line == 2:
        raise ValueError("sk-secret")
    await asyncio.sleep(0)
    return [types.CompletionItem(label=label) for label in saved]


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
@server.thread()
def define(params: types.DefinitionParams) -> types.Location:
    here = types.Position(line=0, character=0)
    return types.Location(uri=threading.current_thread().name, range=types.Range(start=here, end=here))


@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
async def save(params: types.DidSaveTextDocumentParams) -> None:
    saved.append(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
async def opened(ls: SidecarServer, params: types.DidOpenTextDocumentParams) -> None:
    assert params.text_document.uri in ls.workspace.text_documents, "the built-in feature comes first"
    saved.append(f"opened {params.text_document.uri}")
    if params.text_document.uri == "file:///bad":
        raise ValueError("bad")


@server.feature("custom/echo")
def echo(params: Any) -> Any:
    return params


@server.command("add")
def add(left: int, right: int) -> int:
    return left + right


if __name__ == "__main__":
    serve_stdio(server, take_standard_streams())
