"""``textDocument/didOpen``, ``didChange``, ``didSave`` and ``didClose``; which document is in front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

ACTIVE_DOCUMENT = "evokernel/activeDocument"
"""``{uri}``: the protocol does not say which document is in front of a person, so our own client does."""

if TYPE_CHECKING:
    from evokernel_server.host import Host


def register(server: Host) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = server.documents.open(params.text_document)
        server.documents.touch(document.uri)
        server.document_opened(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            server.documents.touch(document.uri)
            had_torch = document.is_about_torch
            document.update(params.content_changes, params.text_document.version)
            if document.is_about_torch or had_torch:
                server.document_changed(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        document = server.documents.get(params.text_document.uri)
        if document is not None:
            server.documents.touch(document.uri)
            server.document_saved(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        server.document_closed(params.text_document.uri)

    @server.feature(ACTIVE_DOCUMENT)
    def active_document(params: Any) -> None:
        uri = params.get("uri") if isinstance(params, Mapping) else getattr(params, "uri", "")
        server.document_activated(str(uri or ""))
