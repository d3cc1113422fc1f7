"""Diagnostics on their way to a client: given to one that asks, which is asked to ask again, else sent.
What they say is made in ``features.diagnostic``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from attrs import define, field
from lsprotocol import types

from evokernel_server.documents.workspace import Document

Report = types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport


def can_pull(client: types.ClientCapabilities) -> bool:
    """Whether a client asks for diagnostics and can be asked to ask again: one that cannot would not hear of
    what an analysis found after it asked."""
    text, workspace = client.text_document, client.workspace
    asks = text is not None and text.diagnostic is not None
    return bool(asks and workspace and workspace.diagnostics and workspace.diagnostics.refresh_support)


def result_id(diagnostics: Sequence[types.Diagnostic]) -> str:
    """Equal for equal diagnostics."""
    return hashlib.sha256(repr(diagnostics).encode("utf-8", "surrogatepass")).hexdigest()[:16]


@define(eq=False)
class Diagnostics:
    """``of`` says what is known of an open document now, ``pulls`` whether the client asks; ``refresh`` asks
    it to ask again."""

    of: Callable[[Document], Sequence[types.Diagnostic]]
    send: Callable[[types.PublishDiagnosticsParams], None]
    refresh: Callable[[], None]
    pulls: Callable[[], bool]
    _told: dict[str, str] = field(factory=dict)
    """What was told of each document, as its result id."""

    def changed(self, document: Document) -> None:
        """Something about a document may have changed."""
        self._tell(document.uri, self.of(document), document.version)

    def withdraw(self, uri: str) -> None:
        """Takes back what was said of a document that was closed."""
        if not self.pulls():
            self._tell(uri, [], None)
        self._told.pop(uri, None)

    def report(self, document: Document, previous: str | None) -> Report:
        """The answer to a client that asks and has what it got as ``previous``."""
        result = self.of(document)
        known = self._told[document.uri] = result_id(result)
        if previous == known:
            return types.RelatedUnchangedDocumentDiagnosticReport(known)
        return types.RelatedFullDocumentDiagnosticReport(list(result), result_id=known)

    def _tell(self, uri: str, diagnostics: Sequence[types.Diagnostic], version: int | None) -> None:
        known = result_id(diagnostics)
        if known == self._told.get(uri, result_id([])):
            return
        self._told[uri] = known
        if self.pulls():
            self.refresh()
        else:
            self.send(types.PublishDiagnosticsParams(uri, list(diagnostics), version))
