"""``textDocument/codeLens``: kernels that wait for review, and where it is configured what kernels would
gain: lenses move the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server.documents.mode import winners
from evokernel_server.documents.workspace import Document, Tracked
from evokernel_server.offers.gain_words import estimate_words, ready_words
from evokernel_server.texts import command_names as names
from evokernel_server.texts.translations import _

if TYPE_CHECKING:
    from evokernel_server.host import Host


def register(server: Host) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return []
        options = server.server_options
        title = _("Generate {kind} kernel", kind=server.options.kind)
        ready = options.ready_lens or options.code_lens
        return lenses(document, title, ready=ready, gains=options.code_lens)


def lenses(document: Document, title: str, *, ready: bool = True, gains: bool = True) -> list[types.CodeLens]:
    """Lenses above each region whose kernel waits for review, and one where a kernel is offered, with a
    ``title`` before its gain."""
    waiting = document.to_review() if ready else ()
    made = [lens for tracked in waiting for lens in _ready(document, tracked)]
    for tracked in winners(document) if gains else ():
        if tracked.region.id in document.ready:
            continue
        gain = f": {estimate_words(tracked.captured.estimate)}" if tracked.captured.estimate else ""
        argument = {"uri": document.uri, "regionId": tracked.region.id, "version": document.version}
        command = types.Command(title + gain, names.GENERATE, arguments=[argument])
        made.append(types.CodeLens(document.text.range(tracked.extent), command))
    return made


def _ready(document: Document, tracked: Tracked) -> Iterator[types.CodeLens]:
    argument = {"uri": document.uri, "regionId": tracked.region.id}
    where = document.text.range(tracked.extent)
    words = ready_words(document.ready[tracked.region.id])
    review = _("⚡ {words}, review", words=words)
    for title, name in ((review, names.REVIEW), (_("accept"), names.APPLY)):
        yield types.CodeLens(where, types.Command(title, name, arguments=[argument]))
