"""``notebookDocument``: cells are documents that are told why they are not analysed.

A capture imports a file as Python does, and a cell is none. Clients that send notebooks get a hint on the
cell that imports torch and a status with the reason, instead of silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server.documents.workspace import Document

if TYPE_CHECKING:
    from evokernel_server.host import Host

SYNC = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook("*", [types.NotebookCellLanguage("python")])], save=False
)


def register(server: Host) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        for item in params.cell_text_documents:
            _open(server, item)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            for item in cells.structure.did_open or ():
                _open(server, item)
            for closed in cells.structure.did_close or ():
                server.document_closed(closed.uri)
        for content in cells.text_content or ():
            document = server.documents.get(content.document.uri)
            if document is not None and not document.is_local:
                document.update(content.changes, content.document.version)
                _shown(server, document)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        for cell in params.cell_text_documents:
            server.document_closed(cell.uri)


def _open(server: Host, item: types.TextDocumentItem) -> None:
    _shown(server, server.documents.open(item, is_cell=True))


def _shown(server: Host, document: Document) -> None:
    server.documents.touch(document.uri)
    server.document_opened(document)
