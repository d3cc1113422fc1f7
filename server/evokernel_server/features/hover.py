"""``textDocument/hover``: the reason why a region has no kernel, or the evidence for one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.packages import Installed
from evokernel_server.documents.workspace import Document
from evokernel_server.features.inlay_hint import Showing, showing
from evokernel_server.offers.evidence import call_words, region_words
from evokernel_server.offers.why_not import reason_of
from evokernel_server.texts import command_names as names
from evokernel_server.texts.hyperlinks import command_link, file_link
from evokernel_server.texts.plain import markdown
from evokernel_server.texts.translations import _, marked

if TYPE_CHECKING:
    from evokernel_server.host import Host

_OF_REGION = (
    (marked("Review"), names.REVIEW),
    (marked("Timeline"), names.TIMELINE),
)


def register(server: Host) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.documents.get(params.text_document.uri)
        server.documents.touch(params.text_document.uri)
        return hover_at(server, document, params.position) if document else None


def hover_at(server: Host, document: Document, position: types.Position) -> types.Hover | None:
    """The innermost region or generated call at a position."""
    offset = document.text.offset(position)
    client = showing(server.client_capabilities)
    for call in document.calls:
        installed = document.installed.get(call.name)
        if installed is not None and _holds(call.extent, offset):
            words = [call_words(installed), "", *_files(document, installed, client)]
            return _hover(document, call.extent, words)
    holding = [tracked for tracked in document.tracked if _holds(tracked.extent, offset)]
    if not holding:
        return None
    inner = min(holding, key=lambda tracked: tracked.extent.end - tracked.extent.start)
    words = [region_words(document, inner, client.links)]
    reason = reason_of(document, inner)
    if words[0] and reason is not None:
        words += ["", markdown(reason.help)]
    if inner.region.id in document.ready and client.links:
        place = {"uri": document.uri, "regionId": inner.region.id}
        links = [command_link(_(title), name, place) for title, name in _OF_REGION]
        words += ["", " · ".join(links)]
    return _hover(document, inner.extent, words)


def _files(document: Document, installed: Installed, client: Showing) -> Iterator[str]:
    """A line of links to what a call runs: none of the vendor's operator, which has no files."""
    if installed.function:
        return
    links = [file_link(name, installed.folder / name) for name in installed.sources]
    if client.links:
        place = {"uri": document.uri, "name": installed.name}
        links.append(command_link(_("timeline"), names.TIMELINE, place))
    yield " · ".join(links)


def _holds(extent: Extent, offset: int) -> bool:
    return extent.start <= offset < extent.end


def _hover(document: Document, extent: Extent, words: list[str]) -> types.Hover | None:
    shown = "\n".join(words).strip()
    content = types.MarkupContent(types.MarkupKind.Markdown, shown)
    return types.Hover(content, document.text.range(extent)) if shown else None
