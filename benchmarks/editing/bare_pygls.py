"""The least that a server on pygls can do: the requests that are timed, with a constant answer each."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("bare", "1")
_START = types.Position(0, 0)


@server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
def inlay_hint(params: types.InlayHintParams) -> list[types.InlayHint]:
    return [types.InlayHint(_START, "hint")]


@server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
    return [types.CodeAction("action")]


@server.feature(types.TEXT_DOCUMENT_HOVER)
def hover(params: types.HoverParams) -> types.Hover:
    return types.Hover("hover")


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
def highlight(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
    return [types.DocumentHighlight(types.Range(_START, _START))]


if __name__ == "__main__":
    server.start_io()
