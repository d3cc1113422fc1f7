"""The schedules of kernels that read by indices."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule
from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.kernels.indexed import MOST_INDICES, more_or_fewer

_PICKS = attrgetter("picks")


def _copies(schedule: GatherSchedule) -> bool:
    return not schedule.picks


def _through_l2(before: GatherSchedule, after: GatherSchedule) -> GatherSchedule:
    return evolve(after, bypass_l2=False)


@frozen
class GatherSchedule(Schedule):
    """Tiles of at most ``runs`` runs, each with its index, and ``bytes`` bytes. ``picks``: the vector unit
    picks ``runs`` elements at a time from ``bytes`` of rows in the unified buffer; otherwise every run is a
    copy. ``bypass_l2``: runs do not push results out of L2."""

    runs: Annotated[
        int,
        Range(16, MOST_INDICES, unit=16, when=_copies),
        Range(4 * LANES, 4096, unit=LANES, when=_PICKS),
        more_or_fewer(Sentence("runs")),
    ]
    bytes: Annotated[
        int,
        Range(4096, unit=BLOCK_BYTES),
        Range(4096, unit=512, when=_PICKS),
        Scaled("larger tile", "smaller tile"),
    ]
    picks: Annotated[bool, Named({True: "vector unit", False: "copies"}, also=_through_l2)] = False
    bypass_l2: Annotated[
        bool, Named(dict.fromkeys((True, False), Sentence("toggle L2 bypass")), when=_copies)
    ] = False
