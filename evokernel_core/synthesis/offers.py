"""Which regions of a file a person is offered: single fused kernels, or programs of several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from evokernel_core.domain.region import Region
from evokernel_core.domain.verdict import LatencySource


@frozen
class Estimate:
    """Modelled microseconds of a region: op by op now, fused after, and the bound of any kernel.

    ``after_us`` is the best verified kernel's where there is one, else the schedule's own estimate.
    """

    now_us: float
    after_us: float
    bound_us: float
    chip: str
    source: str = LatencySource.MODELLED.value

    @property
    def saved_us(self) -> float:
        """What the kernel saves; one that gains nothing is not applied."""
        return max(0.0, self.now_us - self.after_us)


@frozen
class Offer:
    """A region with its latencies, None where no kernel can be written for it. ``instead``: what is left
    to offer inside a program that turns out not to be written."""

    region: Region
    estimate: Estimate | None
    instead: tuple[Offer, ...] = ()


def side_by_side(single: Iterable[Offer], programs: Iterable[Offer]) -> tuple[Offer, ...]:
    """All that a person may choose from, in source order and the smaller first: each single kernel, and
    programs around them. What a program covers is not said to be unsupported."""
    found, programs = list(single), list(programs)
    places = {offer.region.span for offer in found if offer.estimate is not None}
    around = [offer for offer in programs if offer.estimate is not None and offer.region.span not in places]
    if around:
        spans = [offer.region.span for offer in around]
        outside = (item for item in found if item.estimate or not any(map(item.region.span.overlaps, spans)))
        found = list(_unexplained(outside, programs))
    return tuple(sorted([*found, *around], key=_place))


def covers(program: Region, other: Region) -> bool:
    """Whether a program stands for the code of another region: its own, or that of functions it calls."""
    called = {place.rpartition(":")[2] for place, _ in program.site.code} if program.site else set()
    return program.span.overlaps(other.span) or other.symbol in called


def _place(offer: Offer) -> tuple[int, int, int]:
    span = offer.region.span
    return span.line, span.column, span.end_line


def choose(single: Iterable[Offer], programs: Iterable[Offer]) -> tuple[Offer, ...]:
    """What is applied where a person does not choose: offers in source order of which no two overlap.

    Those of one fused kernel each stand, unless several kernels in a row are modelled to save more than
    all of these that they overlap. What only a program covers beside them is not said to be unsupported.
    """
    found, programs = list(single), list(programs)
    taken = False
    for offer in programs:
        if offer.estimate is None or any(offer.region.id == other.region.id for other in found):
            continue
        inside = [other for other in found if covers(offer.region, other.region)]
        kept = [other for other in inside if other.estimate is not None]
        saved = math.fsum(other.estimate.saved_us for other in kept if other.estimate)
        apart = [other for other in found if other not in inside]
        better = not kept or offer.estimate.saved_us > saved
        found = [*apart, evolve(offer, instead=tuple(kept))] if better else [*apart, *kept]
        taken = taken or better
    return tuple(sorted(_unexplained(found, programs) if taken else found, key=_place))


def _unexplained(found: Iterable[Offer], programs: Iterable[Offer]) -> Iterator[Offer]:
    """Without the reasons of regions that no program was refused for: what one computes in the functions
    that it calls is not unsupported either."""
    refused = [offer.region.span for offer in programs if offer.estimate is None]
    for offer in found:
        if offer.estimate is not None or any(offer.region.span.overlaps(span) for span in refused):
            yield offer
