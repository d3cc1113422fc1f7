"""``textDocument/hover``: the reason why a region has no kernel, or the evidence for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server.features.inlay_hint import installed_evidence, tooltip
from evokernel_server.plain import markdown
from evokernel_server.text import Extent
from evokernel_server.why_not import reason_of
from evokernel_server.workspace import Document

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer


def register(server: EvoKernelServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        server.documents.touch(params.text_document.uri)
        return hover_at(document, params.position) if document else None


def hover_at(document: Document, position: types.Position) -> types.Hover | None:
    """The innermost region or generated call at a position."""
    offset = document.text.offset(position)
    for call in document.calls:
        installed = document.installed.get(call.name)
        if installed is not None and _holds(call.extent, offset):
            return _hover(document, call.extent, installed_evidence(installed))
    holding = [item for item in document.tracked if _holds(item.extent, offset)]
    if not holding:
        return None
    inner = min(holding, key=lambda item: item.extent.end - item.extent.start)
    words = tooltip(document, inner)
    reason = reason_of(document, inner)
    if words and reason is not None:
        words = f"{words}\n\n{markdown(reason.help)}"
    return _hover(document, inner.extent, words) if words else None


def _holds(extent: Extent, offset: int) -> bool:
    return extent.start <= offset < extent.end


def _hover(document: Document, extent: Extent, words: str) -> types.Hover:
    content = types.MarkupContent(types.MarkupKind.Markdown, words)
    return types.Hover(content, document.text.range(extent))
