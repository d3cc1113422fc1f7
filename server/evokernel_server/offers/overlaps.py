"""Kernels that stand for overlapping code, as for an op, a block around it and a whole forward: a person
chooses one of them."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.domain.region import RegionStatus
from evokernel_server.documents.line_index import Extent
from evokernel_server.documents.workspace import Document, Tracked

REPLACEABLE = (RegionStatus.CANDIDATE, RegionStatus.VERIFIED, RegionStatus.INFEASIBLE)


def is_offered(document: Document, tracked: Tracked) -> bool:
    """Whether a hint stands for a region: a kernel that waits for review or gains, or the vendor's operator
    where that leads."""
    if tracked.region.id in document.ready:
        return True
    estimate = tracked.captured.estimate
    if estimate is None or tracked.region.status not in REPLACEABLE:
        return False
    return estimate.wins or (estimate.rival is not None and estimate.rival_leads)


def choice(document: Document, chosen: Tracked) -> tuple[Tracked, ...]:
    """What is offered for the code of a region or for a part of it, the smaller first; empty where that is
    the region alone."""
    here = chosen.extent
    offered = [
        tracked for tracked in document.tracked
        if (here.holds(tracked.extent) or tracked.extent.holds(here)) and is_offered(document, tracked)
    ]  # fmt: skip
    return tuple(sorted(offered, key=_size)) if len(offered) > 1 else ()


def innermost(items: Sequence[Tracked], lines: Extent, offset: int) -> Tracked | None:
    """The smallest of the regions that hold an offset, else of those that touch its line."""
    holding = [item for item in items if item.extent.start <= offset < item.extent.end]
    touching = holding or [item for item in items if lines.touches(item.extent)]
    return min(touching, key=_size, default=None)


def _size(tracked: Tracked) -> int:
    return tracked.extent.end - tracked.extent.start
