"""``textDocument/diagnostic``, and what is sent to clients that do not ask: code that is worth fusing, calls
that went stale, inputs that are needed, why a file failed and why code has no kernel.

All of them are hints: the file is right, only a kernel is missing. Each has a code, the page about it, and in
``data`` what a code action needs to be found for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from evokernel_core.domain.region import RegionStatus
from evokernel_core.domain.sentence import Sentence
from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.mode import winners
from evokernel_server.documents.named_line import LINE, line_of
from evokernel_server.documents.workspace import NOT_SERVED, Document, Tracked
from evokernel_server.offers.gain_words import estimate_words
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, spoken, told

if TYPE_CHECKING:
    from evokernel_server.host import Host

SOURCE = "evokernel"
WORTH_FUSING, STALE = "worth_fusing", "stale_kernel"


def register(server: Host) -> None:
    options = types.DiagnosticOptions(
        inter_file_dependencies=False, workspace_diagnostics=False, identifier=SOURCE
    )

    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, options)
    def diagnostic(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        document = server.documents.get(params.text_document.uri)
        if document is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        return server.diagnostics.report(document, params.previous_result_id)


def diagnostics_of(document: Document, *, done: bool) -> list[types.Diagnostic]:
    """What is to be said of a document, each sentence once. Until its analysis is ``done``, a program of
    several kernels may yet cover what no single one computes."""
    if document.refusal:
        return [_diagnostic(document, _import_line(document), document.refusal, NOT_SERVED)]
    if not document.has_torch:
        return []
    late = [*_worth(document), *_unsupported(document)] if done else []
    return [*_problem(document), *_needing(document), *_stale(document), *late]


def _import_line(document: Document) -> Extent:
    """The first line with torch in it."""
    at = document.text.content.find("torch")
    return _line_at(document, document.text.line_of(max(at, 0)))


def _line_at(document: Document, line: int) -> Extent:
    start = document.text.starts[line]
    return Extent(start, start + len(document.text.line(line)))


def _problem(document: Document) -> Iterator[types.Diagnostic]:
    if document.problem is None or document.tracked:
        return
    where = _line_at(document, line_of(document, document.problem.message))
    yield _diagnostic(document, where, told(document.problem.message), document.problem.reason)


def _needing(document: Document) -> Iterator[types.Diagnostic]:
    for tracked in document.regions(RegionStatus.NEEDS_SHAPES):
        yield _diagnostic(
            document, tracked.extent, told(tracked.region.reason), RegionStatus.NEEDS_SHAPES.value
        )


def _worth(document: Document) -> Iterator[types.Diagnostic]:
    """On the first line of each region that is offered and lies in no other such region. One with a kernel
    that waits for review has been fused already."""
    for tracked in outermost(winners(document)):
        if tracked.captured.estimate is not None and tracked.region.id not in document.ready:
            first = _line_at(document, document.text.line_of(tracked.extent.start))
            where = Extent(tracked.extent.start, min(tracked.extent.end, first.end))
            gain = estimate_words(tracked.captured.estimate)
            words = _("Worth fusing: {what}, {gain}.", what=tracked.region.op_category, gain=gain)
            yield _diagnostic(document, where, words, WORTH_FUSING, {"regionId": tracked.region.id})


def outermost(regions: Sequence[Tracked]) -> Iterator[Tracked]:
    """Those that lie in no other, in the order of the text; of equal ones the first."""
    reached = -1
    for tracked in sorted(regions, key=lambda region: (region.extent.start, -region.extent.end)):
        if tracked.extent.end > reached:
            reached = tracked.extent.end
            yield tracked


def _stale(document: Document) -> Iterator[types.Diagnostic]:
    """At the first call of each kernel that no longer fits."""
    calls = {call.name: call for call in reversed(document.calls)}
    for name, why in document.stale.items():
        if name in calls:
            yield _diagnostic(document, calls[name].extent, why, STALE, {"name": name})


def _unsupported(document: Document) -> Iterator[types.Diagnostic]:
    groups: dict[object, list[Tracked]] = {}
    for tracked in document.regions(RegionStatus.UNSUPPORTED):
        if tracked.region.reason:
            groups.setdefault(_but_for_its_line(tracked.region.reason), []).append(tracked)
    for first, *others in groups.values():
        lines = [document.text.line_of(other_.extent.start) + 1 for other_ in others]
        also = _(" Also on line {lines}.", lines=", ".join(map(str, lines))) if lines else ""
        words = _("No kernel: {reason}", reason=first.region.reason) + also
        yield _diagnostic(document, first.extent, words, "unsupported", {"regionId": first.region.id})


def _but_for_its_line(reason: Sentence) -> object:
    """Equal for reasons that differ in the line which they name alone."""
    return reason.template, tuple(item for item in reason.values.items() if item[0] != LINE)


def _diagnostic(
    document: Document, where: Extent, message: str, code: str, data: dict[str, str] | None = None
) -> types.Diagnostic:
    return types.Diagnostic(
        document.text.range(where), plain(message, 4_000), severity=types.DiagnosticSeverity.Hint,
        code=code, code_description=page_of(code), source=SOURCE, data=data,
    )  # fmt: skip


def attach(actions: Sequence[types.CodeAction], diagnostics: Sequence[types.Diagnostic]) -> None:
    """Names with each action the diagnostics that it is about: by region or kernel, and a quick fix is about
    what says that something is needed or failed."""
    for action in actions:
        about = _about(action)
        named = [
            diagnostic
            for diagnostic in diagnostics
            if diagnostic.data and diagnostic.data.items() <= about.items()
        ]
        if not named and action.kind == types.CodeActionKind.QuickFix:
            named = [diagnostic for diagnostic in diagnostics if diagnostic.data is None]
        action.diagnostics = named or None


def _about(action: types.CodeAction) -> dict[str, Any]:
    arguments = action.command.arguments if action.command and action.command.arguments else [action.data]
    about: dict[str, Any] = {}
    for argument in arguments:
        if isinstance(argument, dict):
            about |= {"regionId" if key == "region_id" else key: value for key, value in argument.items()}
    return about


FOLDER = Path(__file__).parents[1] / "help"
"""English pages; those of another language are in a folder of its name."""
_OTHER = "failed"


def page_of(code: str) -> types.CodeDescription | None:
    """The page of a code, that of failures for one without its own; None where pages are no files, as in an
    archive."""
    return _page(code, spoken())


@cache
def _page(code: str, language: str) -> types.CodeDescription | None:
    for name in (code, _OTHER):
        path = FOLDER / language / f"{name}.md"
        if name.isidentifier() and path.is_file():
            return types.CodeDescription(path.as_uri())
    return None
