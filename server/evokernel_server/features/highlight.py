"""``textDocument/documentHighlight``: the lines that a hint stands for, while the cursor is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server.documents.workspace import Document
from evokernel_server.offers.overlaps import innermost, is_offered

if TYPE_CHECKING:
    from evokernel_server.host import Host


def register(server: Host) -> None:
    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight] | None:
        document = server.documents.get(params.text_document.uri)
        if document is None or not server.server_options.inlay_hints:
            return None
        return highlights(document, params.position)


def highlights(document: Document, position: types.Position) -> list[types.DocumentHighlight] | None:
    """The code of the smallest offer around a position, or on its line. None elsewhere, not an empty list: an
    editor then asks the next server for the occurrences of the word."""
    if not document.has_torch or not document.tracked:
        return None
    text = document.text
    offered = [tracked for tracked in document.tracked if is_offered(document, tracked)]
    result = innermost(offered, text.lines(position.line, position.line), text.offset(position))
    if result is None:
        return None
    return [types.DocumentHighlight(text.range(result.extent), types.DocumentHighlightKind.Text)]
