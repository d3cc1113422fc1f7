"""The state of one file in a word and a sentence, as the status says it of the document in front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.job import Job, JobKind
from evokernel_core.domain.region import RegionStatus
from evokernel_server.documents.status_line import Mode
from evokernel_server.documents.workspace import Document, FileProblem, Tracked
from evokernel_server.offers.overlaps import REPLACEABLE
from evokernel_server.texts.translations import _, many, told
from evokernel_server.trust import REASON

_OF_THE_FILE = {"import_failed", "agent_failed", "unsupported", "capture_failed"}
"""Reasons that lie in the person's file; all others are failures of ours or of the environment."""


_QUIET = (Mode.READY, Mode.READY_TO_REVIEW, Mode.NOTHING_TO_GAIN)
"""States of a document beside which work in the background is worth a word."""


@frozen
class Progress:
    """How many regions of a document are planned, and of how many."""

    done: int
    total: int

    @property
    def words(self) -> str:
        return _("regions {done} of {total}", done=self.done, total=self.total)


def status_of(
    document: Document | None,
    running: Job | None,
    waiting: Sequence[Job],
    *,
    analysing: bool = False,
    progress: Progress | None = None,
    to_review: int = 0,
    trouble: str = "",
) -> tuple[Mode, str, str]:
    """Mode, sentence and URI: what a person waits for comes first, then the document in front, of which
    ``to_review`` kernels wait for a decision, then work in the background. ``trouble`` is why nothing can be
    kept or written, as where the disk is full or a model's endpoint is dead."""
    if running is not None and running.kind is JobKind.GENERATE:
        return Mode.BUSY, _("Generating a kernel in {name}.", name=Path(running.file).name), ""
    mode, text = Mode.READY, _("EvoKernel is ready.")
    if document is not None:
        mode, text = state_of(document, analysing=analysing, progress=progress)
    if trouble and mode in _QUIET:
        return Mode.ERROR, told(trouble), ""
    if document is not None and to_review and mode in _QUIET:
        words = many(
            "{count} kernel is pending review in {name}.",
            "{count} kernels are pending review in {name}.",
            to_review,
            name=document.path.name,
        )
        return Mode.READY_TO_REVIEW, words, document.uri
    if mode in _QUIET and running is not None:
        return Mode.BUSY, _("Refining a kernel in {name}.", name=Path(running.file).name), ""
    if mode in _QUIET and waiting:
        words = _("{count} waiting: {reason}", count=len(waiting), reason=waiting[0].reason)
        return Mode.QUEUED, words, ""
    return mode, text, document.uri if document else ""


def state_of(document: Document, *, analysing: bool, progress: Progress | None = None) -> tuple[Mode, str]:
    """What is known of a text that imports torch."""
    if document.refusal:
        return Mode.OFFLINE, document.refusal
    name = document.path.name
    if analysing or not (document.captured or document.problem):
        if document.tracked:
            words = _("Analysing {name}. Single kernels are shown; programs of several follow.", name=name)
            return Mode.ANALYSING, words
        if progress is not None:
            return Mode.ANALYSING, _("Analysing {name}: {progress}.", name=name, progress=progress.words)
        return Mode.ANALYSING, _("Analysing {name}.", name=name)
    if document.problem is not None:
        return mode_of(document.problem), told(document.problem.message)
    return _found(document)


def step_of(document: Document, progress: Progress | None) -> str:
    """What an analysis is doing, and how far it is where that is known."""
    if progress is not None:
        return progress.words
    return _("tracing programs") if document.tracked else _("running the file")


def mode_of(problem: FileProblem) -> Mode:
    """Needs inputs, failed by the file, or an error of ours or of the environment."""
    if problem.reason == "needs_shapes":
        return Mode.NEEDS_INPUTS
    if problem.reason == REASON:
        return Mode.OFFLINE
    return Mode.FAILED if problem.reason in _OF_THE_FILE else Mode.ERROR


def _found(document: Document) -> tuple[Mode, str]:
    name = document.path.name
    gains = [winner.captured.estimate.gain for winner in winners(document) if winner.captured.estimate]
    if gains:
        return Mode.READY, many(
            "{count} kernel can be generated in {name}; the largest gain is {gain}.",
            "{count} kernels can be generated in {name}; the largest gain is {gain}.",
            len(gains),
            name=name,
            gain=f"{max(gains):.0%}",
        )
    operators = sorted(set(_leading(document)))
    if operators:
        listed = ", ".join(operators)
        words = _("Code of {name} is what {operators} computes as one operator.", name=name, operators=listed)
        return Mode.READY, words
    if document.stale:
        return Mode.READY, many(
            "{count} kernel of {name} does not fit its code any more: the line of its call says why.",
            "{count} kernels of {name} do not fit their code any more: the lines of their calls say why.",
            len(document.stale),
            name=name,
        )
    if document.calls:
        return Mode.READY, _("The kernels of {name} are accepted; no further gain is estimated.", name=name)
    needing = document.regions(RegionStatus.NEEDS_SHAPES)
    if needing:
        return Mode.NEEDS_INPUTS, told(needing[0].region.reason)
    words = _("Nothing to gain in {name}: {why}", name=name, why=_why_nothing(document))
    return Mode.NOTHING_TO_GAIN, words


def winners(document: Document) -> tuple[Tracked, ...]:
    """The regions that are offered unasked."""
    return tuple(region for region in document.regions(*REPLACEABLE) if region.captured.wins)


def _leading(document: Document) -> Iterator[str]:
    """The vendor's operators that no kernel is modelled to beat."""
    for region in document.regions(*REPLACEABLE):
        estimate = region.captured.estimate
        if estimate is not None and estimate.rival is not None and estimate.rival_leads:
            yield estimate.rival.name


def _why_nothing(document: Document) -> str:
    if document.regions(*REPLACEABLE):
        return _("no estimated gain exceeds the model error.")
    unsupported = document.regions(RegionStatus.UNSUPPORTED)
    return unsupported[0].region.reason if unsupported else _("no candidate was found.")
