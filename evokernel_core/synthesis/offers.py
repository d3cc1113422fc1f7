"""Which regions of a file a person is offered: single fused kernels, or programs of several.

``side_by_side`` makes the one list that command line, editor and coding agents show; ``choose`` takes from
it what is applied where a person does not choose. Only winners are offered and applied unasked: kernels
whose gain is greater than the error of the figures that it is computed from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from evokernel_core.domain.region import Region
from evokernel_core.domain.verdict import Baseline, Latency, LatencySource
from evokernel_core.hardware.accuracy import ANY_SPREAD, error_of_quotient
from evokernel_core.vendor.rival import Rival


@frozen
class Estimate:
    """Modelled microseconds of a region: op by op now, fused after, and the bound of any kernel.

    ``after_us`` is the best verified kernel's where there is one, whose schedule was estimated to take
    ``planned_us`` then, else the schedule's own estimate, and ``planned_us`` 0.
    ``rival``: the function of torch_npu that computes the region as one operator. ``baseline`` is all that is
    known of ``now_us``.
    """

    now_us: float
    after_us: float
    bound_us: float
    chip: str
    source: str = LatencySource.MODELLED.value
    rival: Rival | None = None
    planned_us: float = 0.0
    baseline: Baseline | None = None

    @property
    def is_sound(self) -> bool:
        """Whether every figure is one that a time can have: they are divided by, and shown."""
        rivals = (us for us, _ in self.rival.figures) if self.rival else ()
        return all(0 < us < math.inf for us in (self.now_us, self.after_us, self.bound_us, *rivals))

    @property
    def is_verified(self) -> bool:
        return self.planned_us > 0

    @property
    def planned(self) -> Estimate:
        """The same as it was before anything was verified."""
        return evolve(self, after_us=self.planned_us, planned_us=0.0) if self.is_verified else self

    @property
    def gain(self) -> float:
        """The share that the kernel saves of the better of the ops one by one and the vendor's operator;
        negative where it is slower."""
        return gain_of(better_us(self.now_us, self.rival, self.source), self.after_us)

    @property
    def rival_leads(self) -> bool:
        """Whether the vendor's operator saves time, and is not slower than the kernel."""
        given = self.rival.against(self.source) if self.rival else None
        if given is None:
            return False
        error = error_of_gain(self.now_us, self.baseline, None, self.source)
        return given <= self.after_us and gain_of(self.now_us, given) > error

    @property
    def error(self) -> float:
        """How much of the gain may be none."""
        return error_of_gain(self.now_us, self.baseline, self.rival, self.source)

    @property
    def wins(self) -> bool:
        """Whether the kernel is offered and applied without being asked for by name."""
        return self.gain > self.error

    @property
    def saved_us(self) -> float:
        """What the kernel saves; one that does not win is not applied. Where the vendor's operator leads,
        what that saves: kernels for parts of its code have to save more."""
        if self.rival is not None and self.rival_leads:
            return self.now_us - (self.rival.against(self.source) or self.now_us)
        return self.now_us - self.after_us if self.wins else 0.0


def gain_of(now_us: float, after_us: float) -> float:
    """The share of a latency that another one saves."""
    return 1.0 - after_us / now_us if now_us > 0 else 0.0


def better_us(now_us: float, rival: Rival | None, source: str) -> float:
    """What a kernel has to beat: the ops one by one, or the vendor's operator where that is faster."""
    given = rival.against(source) if rival else None
    return now_us if given is None else min(now_us, given)


def error_of_gain(now_us: float, baseline: Baseline | None, rival: Rival | None, source: str) -> float:
    """The share of a gain of a kernel of that source that may be none, by the errors of both figures; none of
    measured ones. A vendor's operator is modelled as well as the ops one by one are."""
    if source == LatencySource.MEASURED.value:
        return 0.0
    better = better_us(now_us, rival, source)
    if rival is not None and rival.measured_us == better:
        return error_of_quotient(1.0)
    return error_of_quotient(baseline.low_us / baseline.us if baseline and baseline.us > 0 else ANY_SPREAD[0])


def why_left_alone(latency: Latency, rival: Rival | None = None) -> str:
    """Why a verified kernel is not applied unasked, empty where it is."""
    source = latency.source.value
    before = better_us(latency.baseline_us, rival, source)
    gain, error = (
        gain_of(before, latency.us),
        error_of_gain(latency.baseline_us, latency.baseline, rival, source),
    )
    if gain > error:
        return ""
    result = f"{latency.us:.1f} us {latency.source.word} instead of {before:.1f} us"
    if rival is not None and before < latency.baseline_us:
        word = next(word for us, word in rival.figures if us == before)
        result += f", {word} for {rival.name},"
    if gain <= 0 or latency.source is not LatencySource.MODELLED:
        return f"{result} is no gain"
    return f"estimated gain {gain:.0%} is within the model error, {error:.0%} ({result})"


@frozen
class Offer:
    """A region with its latencies, None where no kernel can be written for it. ``is_program``: it comes of a
    trace of whole functions and may stand around others. ``instead``: what is left to offer inside a program
    that turns out not to be written."""

    region: Region
    estimate: Estimate | None
    is_program: bool = False
    instead: tuple[Offer, ...] = ()


def side_by_side(single: Iterable[Offer], programs: Iterable[Offer]) -> tuple[Offer, ...]:
    """All that a person may choose from, in source order and the smaller first: each single kernel, and
    programs around them, unless they are the same kernel. What a program covers is not said to be
    unsupported; why a single kernel cannot be had gives way to why a program of the very code cannot."""
    singles, programs = list(single), [evolve(offer, is_program=True) for offer in programs]
    written = [offer.region for offer in singles if offer.estimate is not None]
    around = [
        offer
        for offer in programs
        if offer.estimate is not None and not any(_is_same(offer.region, other) for other in written)
    ]
    singles = [_as_program(offer, programs) for offer in singles]
    if around:
        spans = [offer.region.span for offer in around]
        outside = (
            single
            for single in singles
            if single.estimate or not any(map(single.region.span.overlaps, spans))
        )
        singles = list(_unexplained(outside, programs))
    return tuple(sorted([*singles, *around, *_unsaid([*singles, *around], programs)], key=_place))


def _unsaid(offers: Sequence[Offer], programs: Iterable[Offer]) -> Iterator[Offer]:
    """The programs that were refused for code of which nothing else is said."""
    spans = [offer.region.span for offer in offers]
    for offer in programs:
        if offer.estimate is None and not any(map(offer.region.span.overlaps, spans)):
            yield offer


def _as_program(offer: Offer, programs: Sequence[Offer]) -> Offer:
    """An offer that has no kernel, with the reason of the program that was refused for the same code."""
    if offer.estimate is not None:
        return offer
    refused = (
        program
        for program in programs
        if program.estimate is None and program.region.span == offer.region.span
    )
    return evolve(next(refused, offer), is_program=False)


def _is_same(program: Region, single: Region) -> bool:
    """Whether a program stands where a single kernel does, or is that kernel around its very code."""
    if program.span == single.span:
        return True
    tasks = program.task and program.task.task_id, single.task and single.task.task_id
    return tasks[0] == tasks[1] is not None and program.span.overlaps(single.span)


def covers(program: Region, other: Region) -> bool:
    """Whether a program stands for the code of another region: its own, or that of functions it calls."""
    called = {place.rpartition(":")[2] for place, _ in program.site.code} if program.site else set()
    return program.span.overlaps(other.span) or other.symbol in called


def _place(offer: Offer) -> tuple[int, int, int]:
    span = offer.region.span
    return span.line, span.column, span.end_line


def choose(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """What is applied where a person does not choose, from the list of ``side_by_side``: offers in source
    order of which no two overlap, and all reasons why there are no others.

    Those of one fused kernel each stand, unless several kernels in a row are modelled to save more than
    all of these that they overlap.
    """
    offers = tuple(offers)
    result = {n: offer for n, offer in enumerate(offers) if not offer.is_program}
    for n, offer in enumerate(offers):
        if not offer.is_program or offer.estimate is None:
            continue
        inside = {
            m: value for m, value in result.items() if value.estimate and covers(offer.region, value.region)
        }
        estimates = [inner.estimate for inner in inside.values() if inner.estimate]
        mine, *others = _alike([offer.estimate, *estimates])
        if not inside or mine.saved_us > math.fsum(other.saved_us for other in others):
            result = {m: value for m, value in result.items() if m not in inside}
            result[n] = evolve(offer, instead=tuple(inside.values()))
    return tuple(result[n] for n in sorted(result))


def _alike(estimates: Sequence[Estimate]) -> Sequence[Estimate]:
    """Verified kernels where all are, else what was planned of each: schedules promise more than kernels
    keep, so that whichever is verified first would lose to what is not yet."""
    return (
        estimates
        if all(estimate.is_verified for estimate in estimates)
        else [estimate.planned for estimate in estimates]
    )


def _unexplained(offers: Iterable[Offer], programs: Iterable[Offer]) -> Iterator[Offer]:
    """Without the reasons of regions that no program was refused for: what one computes in the functions
    that it calls is not unsupported either."""
    refused = [offer.region.span for offer in programs if offer.estimate is None]
    for offer in offers:
        if offer.estimate is not None or any(offer.region.span.overlaps(span) for span in refused):
            yield offer
