"""Diagnostics that every client shows: which inputs are needed, why a file failed, why code has no kernel.

They are hints and information, never warnings: the file is right, only a kernel is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from attrs import define, field
from lsprotocol import types

from evokernel_core.domain.region import RegionStatus
from evokernel_server.words import _
from evokernel_server.workspace import Document, Tracked

SOURCE = "evokernel"
_LINE = re.compile(r"^Line \d+ ")
_HINT, _INFORMATION = types.DiagnosticSeverity.Hint, types.DiagnosticSeverity.Information


def diagnostics_of(document: Document, *, done: bool) -> list[types.Diagnostic]:
    """What is to be said of a document, each sentence once. Until its analysis is ``done``, a program of
    several kernels may yet cover what no single one computes."""
    if not document.has_torch:
        return []
    return [*_problem(document), *_needing(document), *(_unsupported(document) if done else ())]


def _problem(document: Document) -> Iterator[types.Diagnostic]:
    if document.problem is None or document.tracked:
        return
    line = _line_in(document, document.problem.message)
    start, end = document.text.starts[line], document.text.starts[line] + len(document.text.line(line))
    where = types.Range(document.text.position(start), document.text.position(end))
    yield _diagnostic(where, document.problem.message, document.problem.reason, _INFORMATION)


def _line_in(document: Document, sentence: str) -> int:
    """The line, from 0, that a sentence names, else that of the first definition with tensor code."""
    named = re.search(r"\bline (\d+)\b", sentence, re.IGNORECASE)
    line = int(named[1]) - 1 if named else -1
    return line if 0 <= line < len(document.text.starts) else document.first_line()


def _needing(document: Document) -> Iterator[types.Diagnostic]:
    for tracked in document.regions(RegionStatus.NEEDS_SHAPES):
        where = document.text.range(tracked.extent)
        yield _diagnostic(where, tracked.region.reason, RegionStatus.NEEDS_SHAPES.value, _INFORMATION)


def _unsupported(document: Document) -> Iterator[types.Diagnostic]:
    groups: dict[str, list[Tracked]] = {}
    for tracked in document.regions(RegionStatus.UNSUPPORTED):
        if tracked.region.reason:
            groups.setdefault(_LINE.sub("", tracked.region.reason), []).append(tracked)
    for first, *others in groups.values():
        lines = [document.text.position(item.extent.start).line + 1 for item in others]
        also = _(" Also on line {lines}.", lines=", ".join(map(str, lines))) if lines else ""
        where = document.text.range(first.extent)
        message = _("No kernel: {reason}", reason=first.region.reason) + also
        yield _diagnostic(where, message, "unsupported", _HINT)


def _diagnostic(
    where: types.Range, message: str, code: str, severity: types.DiagnosticSeverity
) -> types.Diagnostic:
    return types.Diagnostic(where, message, severity=severity, code=code, source=SOURCE)


@define(eq=False)
class Diagnostics:
    """Publishes what changed."""

    send: Callable[[types.PublishDiagnosticsParams], None]
    enabled: Callable[[], bool]
    _published: dict[str, Sequence[types.Diagnostic]] = field(factory=dict)

    def publish(self, document: Document, *, done: bool) -> None:
        """Says what is known of an open document."""
        found = diagnostics_of(document, done=done) if self.enabled() else []
        self._publish(document.uri, found, document.version)

    def withdraw(self, uri: str) -> None:
        """Takes back what was said of a document that was closed."""
        self._publish(uri, [], None)

    def _publish(self, uri: str, found: Sequence[types.Diagnostic], version: int | None) -> None:
        if found == self._published.get(uri, []):
            return
        self._published[uri] = found
        self.send(types.PublishDiagnosticsParams(uri, list(found), version))
