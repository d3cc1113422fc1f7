"""Verified kernels that wait for review: nothing is edited and no package is written until one is accepted.

That a kernel is ready is an outcome of its place, saved with the end of its job, so it outlives the server.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define

from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import Outcome
from evokernel_core.domain.placement import place_key
from evokernel_core.domain.region import Region
from evokernel_server.documents.workspace import Document
from evokernel_server.jobs.queue import Best, JobQueue, region_of
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.worker import WorkerError
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.pending import Offer, Offers
from evokernel_server.offers.placement_state import snoozed_until, waiting
from evokernel_server.offers.suppressed import Nevers
from evokernel_server.texts.translations import marked

if TYPE_CHECKING:
    from evokernel_core.memory.candidates import Stored


@define(eq=False)
class Ready:
    """Puts kernels that became ready among the offers, and finds those of earlier sessions again."""

    store: Store
    jobs: JobQueue
    outcomes: OutcomeLog
    offers: Offers
    nevers: Nevers
    verified_by: Callable[[str], None]

    async def become(
        self, uri: str, file: Path, region: Region, best: Best, job: Job, *, told: bool = False
    ) -> Offer | None:
        """A synthesis ended with a kernel. None where the person wants none there, or not this one. ``told``:
        the person waits for it, so that no message is needed."""
        offer = _offer(uri, file, region, best)
        if await self.offers.is_rejected(offer):
            await self.jobs.finish(job, JobState.DONE, marked("You rejected this kernel before."))
            return None
        if told:
            self.offers.was_told(offer)
        self.verified_by(best.verifier)
        await self.outcomes.ready(offer.placement(0.0), job)
        self.jobs.ended(job)
        return await self.offers.put(offer)

    async def restore(self, document: Document, only: Container[str] | None = None) -> None:
        """Finds the kernels that wait in a reopened file; its hints say so, no message does. ``only``: for
        these regions, where another window may have decided meanwhile."""
        for region in await self.store(lambda memory: _regions(memory, document.path)):
            wanted = only is None or region.id in only
            if wanted and not await self.nevers.holds(document.path, region.id):
                await self._restore(document, region)

    async def _restore(self, document: Document, region: Region) -> None:
        key = place_key(document.path, region.id)
        outcomes = await self.store(lambda memory: memory.outcomes(key))
        outcome = waiting(outcomes)
        known = self.offers.pending.get((document.path, region.id))
        if outcome is None and known is not None and known.old is None:
            self.offers.take(known)
        if outcome is None or known is not None:
            return
        best = await self.store(lambda memory: best_since(memory, outcome))
        if best is None:  # its kernel was forgotten
            return
        offer = _offer(document.uri, document.path, region, best)
        asleep_s = snoozed_until(outcomes, best.source_id, self.offers.options().snooze_s) - time.time()
        if asleep_s > 0:
            self.offers.sleep(offer, asleep_s)
            await self.offers.put(offer)
            return
        self.offers.was_told(offer)
        await self.offers.put(offer)


def _offer(uri: str, file: Path, region: Region, best: Best) -> Offer:
    name = region.task.name if region.task else region.op_category
    return Offer(uri, file, region, name, best.source_id, None, best.latency, best.verifier)


def _regions(memory: Any, file: Path) -> list[Region]:
    """The code of a file that kernels were asked for or accepted for, as it was then; the latest of each."""
    result: dict[str, Region] = {}
    for job in memory.jobs(file=str(file)):
        if job.kind is JobKind.GENERATE:
            with contextlib.suppress(WorkerError):  # what is damaged cannot wait
                result[job.region_id] = region_of(job)
    for placement in memory.placements(file):
        if placement.region is not None:
            result.setdefault(placement.region_id, placement.region)
    return list(result.values())


def verified(memory: Any, task_id: str, source_id: str) -> Best | None:
    """A kernel of a task with its latest verdict; None where no verifier accepts it."""
    for candidate in reversed(memory.candidates(task_id)):
        if candidate.source.source_id == source_id and candidate.verdict.feasible:
            return _best(candidate)
    return None


def best_since(memory: Any, outcome: Outcome) -> Best | None:
    """The kernel that became ready, or a faster one of the same source of figures found since."""
    result = verified(memory, outcome.task_id, outcome.source_id)
    if result is None:
        return None
    better = memory.best(outcome.task_id, result.latency.chip, result.latency.source)
    return _best(better) if better is not None and _best(better).latency.us < result.latency.us else result


def _best(stored: Stored) -> Best:
    assert stored.verdict.latency is not None
    return Best(stored.source.source_id, stored.verdict.latency, stored.verdict.verifier)
