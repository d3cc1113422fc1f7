"""``textDocument/codeLens``: off by default, because lenses move the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from evokernel_server import command_names as names
from evokernel_server.features.inlay_hint import estimate_words
from evokernel_server.states import winners
from evokernel_server.words import _
from evokernel_server.workspace import Document

if TYPE_CHECKING:
    from evokernel_server.app import EvoKernelServer


def register(server: EvoKernelServer) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_LENS, types.CodeLensOptions(resolve_provider=False))
    def code_lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        document = server.documents.get(params.text_document.uri)
        if document is None or not server.server_options.code_lens:
            return []
        return lenses(document)


def lenses(document: Document) -> list[types.CodeLens]:
    """One lens above each region whose kernel is offered."""
    made = []
    for tracked in winners(document):
        gain = f": {estimate_words(tracked.found.estimate)}" if tracked.found.estimate else ""
        argument = {"uri": document.uri, "regionId": tracked.region.id, "version": document.version}
        command = types.Command(_("Generate NPU kernel") + gain, names.GENERATE, arguments=[argument])
        made.append(types.CodeLens(document.text.range(tracked.extent), command))
    return made
