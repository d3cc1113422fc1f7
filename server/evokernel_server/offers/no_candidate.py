"""What is so of a file, or of lines of one, where nothing was refused, and what would help: for a person who
asks why there is no kernel."""

from __future__ import annotations

from evokernel_server.documents.workspace import Document
from evokernel_server.offers.gain_words import estimate_words
from evokernel_server.offers.overlaps import is_offered
from evokernel_server.texts.plain import plain
from evokernel_server.texts.translations import _, many


def situation(document: Document, *, analysing: bool, lines: tuple[int, int] | None = None) -> str:
    """Of the lines (first and last, from 0), else of the whole document."""
    file = plain(document.path.name)
    if document.refusal:
        return document.refusal
    if not document.has_torch:
        return _("{file} does not import torch: open the file with the model.", file=file)
    here = _on_lines(document, *lines) if lines is not None else ""
    if here:
        return here
    if analysing:
        return _("{file} is being analysed: ask again when the status says that it is done.", file=file)
    said = _nothing_here() if lines is not None else _of_file(document)
    return f"{said} {_never(document)}".rstrip()


def _on_lines(document: Document, first: int, last: int) -> str:
    """The kernel that there is on the lines, the one of the innermost code; empty where there is none."""
    extent = document.text.lines(first, last)
    for call in document.calls:
        if extent.touches(call.extent):
            return _("{name} is accepted here: the code actions of the line review it.", name=call.name)
    touched = [tracked for tracked in document.overlapping([extent]) if is_offered(document, tracked)]
    if not touched:
        return ""
    result = min(touched, key=lambda tracked: tracked.extent.end - tracked.extent.start)
    what, estimate = plain(result.region.op_category), result.captured.estimate
    if result.region.id in document.ready:
        return _("A {what} kernel is ready here: review it from the code actions of the line.", what=what)
    return _(
        "A {what} kernel is offered here ({gain}): generate it from the code actions of the line.",
        what=what,
        gain=estimate_words(estimate) if estimate is not None else "",
    )


def _nothing_here() -> str:
    return _(
        "Nothing was captured here that a kernel could compute: the line handles no tensors, or does "
        "not run with the known inputs (docs/inputs.md)."
    )


def _of_file(document: Document) -> str:
    ready, called = len(document.to_review()), len(document.calls)
    offered = sum(is_offered(document, tracked) for tracked in document.tracked) - ready
    if ready + offered + called:
        return _(
            "All captured code has a kernel: {offered} offered, {ready} ready, {called} accepted. A "
            "⚡ marks each line; its code actions go on from there.",
            offered=offered,
            ready=ready,
            called=called,
        )
    return _(
        "No class or function of {file} was captured that computes with tensors. Kernels replace "
        "code in the forward of modules and in functions that call torch. Where there is one, note "
        "its inputs (docs/inputs.md).",
        file=plain(document.path.name),
    )


def _never(document: Document) -> str:
    if not document.hidden:
        return ""
    return many(
        "At {count} place you said never: *Offer Kernels Again* takes that back.",
        "At {count} places you said never: *Offer Kernels Again* takes that back.",
        len(document.hidden),
    )
