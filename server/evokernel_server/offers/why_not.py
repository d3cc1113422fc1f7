"""Why code has no kernel on offer, and what would help: a table by reason, for every refused line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from evokernel_core.domain.region import RegionStatus
from evokernel_core.synthesis.offers import better_us
from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.named_line import line_of
from evokernel_server.documents.workspace import Document, Tracked
from evokernel_server.offers.overlaps import REPLACEABLE
from evokernel_server.offers.pending import microseconds, percent
from evokernel_server.texts.hazards import help_with
from evokernel_server.texts.translations import _, marked, sourced, told
from evokernel_server.trust import REASON

PROGRAMS = "programs"
"""The id of a region that says why programs of several kernels are left out."""
_OBSERVE = marked(
    "Run a program that uses this code as `evokernel observe -- COMMAND`. Or add get_inputs() to the "
    "file, or a comment such as `# evokernel: x=f16[32,1024]` above the class or function "
    "(docs/inputs.md)."
)
_LOG = marked("The log names the cause (EVOKERNEL_LOG=INFO); please report it with these lines.")

HELP: Mapping[str, str] = {
    "unsupported": marked(
        "Express the operation with supported ones (docs/author.md lists them by family). Or move it "
        "out of the surrounding code, so that this can be one kernel."
    ),
    "no_gain": marked(
        "Kernels gain where several operations pass large tensors to each other: put more of them "
        "into one function. Or note larger inputs if these are not the real sizes (docs/inputs.md). "
        "A verifier with a device measures instead of estimating (setting verifierUrl, "
        "docs/service.md). The code actions of kind refactor.rewrite write the kernel all the same."
    ),
    "vendor_leads": marked(
        "Accept the operator with the first code action on the line; it is guarded as a kernel would "
        "be (docs/vendor_operators.md)."
    ),
    "infeasible": marked(
        "Generate again with a larger budget (setting budget), or let a language model propose too (settings "
        "proposer and modelUrl, docs/model.md)."
    ),
    "left_out": marked(
        "Single kernels are offered all the same. Correct what the sentence names, or switch off the setting "
        "programs where the trace takes too long (docs/server.md)."
    ),
    "needs_shapes": _OBSERVE,
    "import_failed": marked(
        "Import the file once with the Python that the status names, and correct what fails. It may "
        "be the wrong Python (setting interpreter, docs/server.md), or lack a package."
    ),
    "agent_failed": marked(
        "Run the model once in the Python that the status names: torch stopped there. Where that works, save "
        "the file to have it analysed again."
    ),
    "capture_failed": marked(
        "torch.export must be able to follow the code. Let no `if` and no `.item()` depend on the "
        "values of tensors, and avoid side effects in forward."
    ),
    "no_interpreter": marked(
        "Name the Python that runs your models in the setting interpreter, or activate its environment "
        "before the editor starts (docs/server.md)."
    ),
    REASON: marked(
        "Trust the folder if the code in it is yours: by the code action, the editor's own workspace trust "
        "or the initialization option trusted (docs/server.md)."
    ),
    "internal": _LOG,
    "worker_died": marked(
        "Save the file to have it analysed again; memory may have run out. "
        "The log names the cause (EVOKERNEL_LOG=INFO); please report it with these lines."
    ),
    "store_error": marked("Free some room on the disk that holds EVOKERNEL_HOME, then save the file."),
}
"""What would help, by reason code; said with ``_``."""
OTHERWISE = _LOG


@frozen
class Reason:
    """Why the code on a line (from 0) has no kernel on offer; ``code`` is stable."""

    line: int
    code: str
    why: str
    help: str


def reasons(document: Document) -> tuple[Reason, ...]:
    """Every refused line of a document, in order."""
    result = [
        *_of_file(document),
        *filter(None, (reason_of(document, tracked) for tracked in document.tracked)),
    ]
    return tuple(sorted(dict.fromkeys(result), key=lambda element: element.line))


def reasons_on(document: Document, first: int, last: int) -> tuple[Reason, ...]:
    """Those of code that stands on lines, also of a region that goes over them."""
    touched = (tracked for tracked in document.tracked if _touches(document, tracked.extent, first, last))
    of_file = (reason for reason in _of_file(document) if first <= reason.line <= last)
    return tuple(
        dict.fromkeys([*of_file, *filter(None, (reason_of(document, tracked) for tracked in touched))])
    )


def _touches(document: Document, extent: Extent, first: int, last: int) -> bool:
    end = max(extent.end - 1, extent.start)
    return document.text.line_of(extent.start) <= last and first <= document.text.line_of(end)


def reason_of(document: Document, tracked: Tracked) -> Reason | None:
    """Why a region has no kernel on offer; None where it has one, or is part of code that has."""
    why = _refused(tracked)
    if why is None or tracked.region.id in document.ready or _is_covered(document.tracked, tracked.extent):
        return None
    code, sentence = why
    helped = " ".join(filter(None, (help_with(tracked.region.reason), _(HELP[code]))))
    return Reason(document.text.line_of(tracked.extent.start), code, sentence, helped)


def _of_file(document: Document) -> Iterator[Reason]:
    problem = document.problem
    if problem is not None and not document.tracked:
        line = line_of(document, problem.message)
        yield Reason(line, problem.reason, told(problem.message), _(HELP.get(problem.reason, OTHERWISE)))


def _refused(tracked: Tracked) -> tuple[str, str] | None:
    region = tracked.region
    if region.status is RegionStatus.NEEDS_SHAPES:
        return "needs_shapes", told(region.reason)
    if region.status is RegionStatus.UNSUPPORTED:
        return ("left_out" if region.id == PROGRAMS else "unsupported"), told(region.reason)
    if region.status is RegionStatus.INFEASIBLE:
        return "infeasible", told(region.reason) or _("No kernel of it was verified.")
    if region.status not in REPLACEABLE or tracked.captured.wins:
        return None
    return _no_gain(tracked)


def _no_gain(tracked: Tracked) -> tuple[str, str] | None:
    """Of a region whose kernel is not offered unasked."""
    estimate = tracked.captured.estimate
    if estimate is None:
        return None
    figure = sourced(microseconds(estimate.after_us), estimate.source)
    after = _("{figure} on {chip}", figure=figure, chip=estimate.chip)
    if estimate.rival is not None and estimate.rival_leads:
        us, word = estimate.rival.figures[0]
        return "vendor_leads", _(
            "{name} computes the same as one operator in {figure}; a kernel is at {after}.",
            name=estimate.rival.name,
            figure=sourced(microseconds(us), word),
            after=after,
        )
    before = better_us(estimate.now_us, estimate.rival, estimate.source)
    told = {"after": after, "now": sourced(microseconds(before), estimate.source)}
    if estimate.gain <= 0:
        return "no_gain", _("A kernel is at {after}, the code now at {now}: it gains nothing.", **told)
    return "no_gain", _(
        "A kernel is at {after}, the code now at {now}: a gain of {share}, within the error of the "
        "two numbers, {error}.",
        share=percent(estimate.gain),
        error=percent(estimate.error),
        **told,
    )


def _is_covered(tracked: Sequence[Tracked], extent: Extent) -> bool:
    """Whether a larger region that holds the code has a kernel on offer."""
    return any(one.captured.wins and one.extent.holds(extent) for one in tracked)
