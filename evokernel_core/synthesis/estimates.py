"""Modelled latencies of regions: eager, of the best kernel that is known or planned, and the bound."""

from __future__ import annotations

import logging
from collections.abc import Callable

from attrs import frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.defects import contained
from evokernel_core.domain.errors import InternalError, PlanError, StoreError
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.offers import Estimate, Offer
from evokernel_core.synthesis.regions import unsupported
from evokernel_core.vendor.rival import Rival, rival_of

log = logging.getLogger(__name__)


@frozen
class Estimator:
    """Prices regions for a device; ``memory`` gives the one in which verified kernels are, or raises
    StoreError."""

    author: KernelAuthor
    memory: Callable[[], Memory]

    def offer(self, region: Region) -> Offer:
        """An offer with its estimate; a region that cannot be priced is unsupported, with the reason."""
        try:
            with contained(Sentence("pricing its kernels"), region.span.line):
                return _priced(region, self.estimate(region))
        except (PlanError, InternalError) as error:
            return Offer(unsupported(region, error.sentence), None)

    def estimate(self, region: Region) -> Estimate | None:
        """Modelled latencies of a candidate region, None for any other."""
        task = region.task
        if task is None:
            return None
        best = self._best_known(task)
        known = best.verdict.latency if best is not None else None
        try:
            planned = self.author.plan(task).estimate_us()
        except PlanError:  # of a kernel that a model wrote there is nothing but the verdict
            if known is None:
                raise
            planned = known.us
        baseline = self.author.baseline(task)
        return Estimate(
            now_us=baseline.us,
            after_us=known.us if known else planned,
            bound_us=self.author.least_us(task),
            chip=self.author.device.name,
            rival=self.rival(region),
            planned_us=planned if known else 0.0,
            baseline=baseline,
        )

    def _best_known(self, task: KernelTask) -> Stored | None:
        """The memory's best kernel; None too where the memory cannot be read, as on a full disk."""
        try:
            return self.memory().best(task.task_id, self.author.device.name, LatencySource.MODELLED)
        except StoreError as error:
            log.info("A gain is shown as planned: %s", error)
            return None

    def rival(self, region: Region) -> Rival | None:
        """The vendor's operator that the region is, None where it is none."""
        return rival_of(region.task, self.author.device) if region.task is not None else None


def _priced(region: Region, estimate: Estimate | None) -> Offer:
    """An offer, unless its figures are none that a time can have: every client divides by them."""
    if estimate is None or estimate.is_sound:
        return Offer(region, estimate)
    reason = Sentence(
        "Line {line} takes {now} us as PyTorch runs it and {after} us as a kernel, as estimated: these are "
        "no times to compare.",
        line=region.span.line,
        now=f"{estimate.now_us:.1f}",
        after=f"{estimate.after_us:.1f}",
    )
    return Offer(unsupported(region, reason), None)
