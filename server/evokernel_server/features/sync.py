"""``textDocument/didOpen``, ``didChange``, ``didSave`` and ``didClose``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer


def register(server: EvoKernelServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        server.document_opened(server.documents.open(params.text_document))

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            had_torch = document.has_torch
            document.update(params.content_changes, params.text_document.version)
            if document.has_torch or had_torch:
                server.document_changed(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            server.capture.soon(document, now=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.documents.close(params.text_document.uri)
        server.capture.forget(params.text_document.uri)
        server.show_status()
