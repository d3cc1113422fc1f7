"""What became of accepted kernels: still there after a while, or taken out again by the person.

A generated call carries its kernel's name, so the text itself tells: a call that is gone for longer than
a cut and paste takes was reverted. That works for undo, for typing, for version control and across
restarts. A switch of branches says nothing about a kernel, so it ends the watch without a verdict.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_server.packages import Installed, read_installed
from evokernel_server.store import Store
from evokernel_server.tasks import spawn
from evokernel_server.workspace import Document, find_calls, text_hash

log = logging.getLogger(__name__)

HORIZONS = ("30s", "5m", "15m")
_SETTLED = (
    OutcomeKind.READY, OutcomeKind.ACCEPTED, OutcomeKind.PARTIALLY_ACCEPTED, OutcomeKind.REVERTED,
)  # fmt: skip
_BRANCH = "branch"


def _settles(outcome: Outcome) -> bool:
    """Whether an outcome says what became of a place. An offer that expired says nothing of what is there."""
    return outcome.kind in _SETTLED or (outcome.kind is OutcomeKind.EXPIRED and outcome.detail == _BRANCH)


def place_key(file: Path, region_id: str) -> str:
    """How outcomes name a region: ids of regions are unique within a file only."""
    return f"{region_id}{key_end(file)}"


def key_end(file: Path) -> str:
    """How the names of all regions of a file end."""
    return f"@{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"


@frozen
class Placement:
    """A generated call that a person accepted. ``before`` is the hash of the text without it."""

    file: Path
    name: str
    region_id: str
    task_id: str
    source_id: str
    at: float
    before: str = ""

    @property
    def key(self) -> str:
        """The region's id together with its file: equal code in two files is two decisions."""
        return place_key(self.file, self.region_id)


async def _nobody(placement: Placement, undone: bool) -> None:
    """Hears of calls that were taken out, and does nothing."""


@define(eq=False)
class OutcomeLog:
    """Records outcomes durably and watches placements. ``clock`` gives seconds since the epoch; ``gone``
    hears of each call that was taken out, and whether by undoing its acceptance."""

    store: Store
    grace_s: Callable[[], float]
    survival_s: Callable[[], tuple[float, float, float]]
    gone: Callable[[Placement, bool], Awaitable[None]] = field(default=_nobody)
    clock: Callable[[], float] = time.time
    placements: list[Placement] = field(factory=list)
    _doubts: dict[Path, asyncio.Task[None]] = field(factory=dict)
    _watches: dict[Placement, asyncio.Task[None]] = field(factory=dict)
    _undone: set[Placement] = field(factory=set)

    async def record(self, kind: OutcomeKind, placement: Placement, detail: str = "") -> None:
        """Saves one outcome of a kernel; it is durable when this returns."""
        outcome = _outcome(kind, placement, self.clock(), detail)
        await self.store(lambda memory: _record(memory, outcome, placement.at))
        log.info("%s %s %s", kind.value, placement.name, detail)

    async def accept(self, *placements: Placement, job: Job | None = None) -> None:
        """Records acceptances made at once, and the end of a job, in one transaction, then watches the
        calls."""
        outcomes = [_outcome(OutcomeKind.ACCEPTED, placement, placement.at) for placement in placements]
        await self._save(outcomes, job, "accepted")
        for placement in placements:
            self.watch(placement)

    async def ready(self, placement: Placement, job: Job) -> None:
        """Records that a kernel waits for review, and the end of its job, in one transaction."""
        await self._save([_outcome(OutcomeKind.READY, placement, self.clock())], job, "ready")

    async def _save(self, outcomes: Sequence[Outcome], job: Job | None, reason: str) -> None:
        def save(memory: Any) -> None:
            with memory.transaction():
                for outcome in outcomes:
                    memory.record_outcome(outcome)
                if job is not None:
                    memory.update_job(job.id, state=JobState.DONE, reason=reason)

        await self.store(save)

    def watch(self, placement: Placement) -> None:
        """Follows a call; a newer kernel in the same place takes the older one's."""
        same = [p for p in self.placements if (p.file, p.region_id) == (placement.file, placement.region_id)]
        for old in same:
            self._drop(old)
        self.placements.append(placement)
        watch = self._watches[placement] = spawn(self._survive(placement), "survival")
        watch.add_done_callback(lambda ended: self._let_go(placement, ended))

    def unwatch(self, file: Path, name: str) -> Placement | None:
        """Stops following the latest placement of a kernel in a file, as before its own revert."""
        found = self._of(file, name)
        if not found:
            return None
        self._drop(found[-1])
        return found[-1]

    def find(self, file: Path, name: str) -> Placement | None:
        return next(reversed(self._of(file, name)), None)

    def watched(self, file: Path, name: str) -> int:
        """How many calls of a kernel in a file are followed."""
        return len(self._of(file, name))

    def observe(self, document: Document) -> None:
        """Compares an open document with its placements after an edit."""
        self._compare(document.path, document.counts(), lambda: document.text.content, "manual")

    def observe_text(self, file: Path, content: str, how: str) -> None:
        """The same for a file that changed outside the editor."""
        counts = Counter(call.name for call in find_calls(content))
        self._compare(file, counts, lambda: content, how)

    def void(self, files: Callable[[Path], bool]) -> None:
        """Ends the watch over files whose branch was switched: no verdict about their kernels."""
        for placement in [p for p in self.placements if files(p.file)]:
            self._drop(placement)
            spawn(self.record(OutcomeKind.EXPIRED, placement, _BRANCH), "outcome")

    def move(self, old: Path, new: Path) -> tuple[Placement, ...]:
        """The calls of a file are in another file now. Gives their placements there."""
        moved = []
        self._forget_doubt(old)
        for placement in [p for p in self.placements if p.file == old]:
            self._drop(placement)
            moved.append(evolve(placement, file=new))
            self.watch(moved[-1])
        return tuple(moved)

    def end(self, file: Path) -> None:
        """A file was deleted: no verdict about its kernels."""
        self._forget_doubt(file)
        for placement in [p for p in self.placements if p.file == file]:
            self._drop(placement)
            spawn(self.record(OutcomeKind.EXPIRED, placement, "deleted"), "outcome")

    def _forget_doubt(self, file: Path) -> None:
        doubt = self._doubts.pop(file, None)
        if doubt is not None:
            doubt.cancel()

    def _of(self, file: Path, name: str) -> list[Placement]:
        return [p for p in self.placements if (p.file, p.name) == (file, name)]

    def _drop(self, placement: Placement) -> None:
        self._undone.discard(placement)
        if placement in self.placements:
            self.placements.remove(placement)
        if task := self._watches.pop(placement, None):
            task.cancel()

    def _compare(self, file: Path, counts: Counter[str], content: Callable[[], str], how: str) -> None:
        missing = self._missing(file, counts)
        self._note_undone(missing, content, how)
        doubt = self._doubts.get(file)
        if not missing:
            self._forget_doubt(file)
            self._undone -= {placement for placement in self._undone if placement.file == file}
            return
        if doubt is None or doubt.done():
            self._doubts[file] = spawn(self._settle(file, content, how), "revert")

    def _note_undone(self, missing: Sequence[Placement], content: Callable[[], str], how: str) -> None:
        """A call is gone and the text is the one before it came: that is seen at once, as a person may type
        on within the moment that is waited."""
        now = text_hash(content()) if missing and how == "manual" else ""
        self._undone |= {placement for placement in missing if now and placement.before == now}

    def _missing(self, file: Path, counts: Counter[str]) -> list[Placement]:
        """Placements beyond the number of calls that are left, the latest first."""
        gone = []
        for name in {p.name for p in self.placements if p.file == file}:
            placed = self._of(file, name)
            gone += placed[counts[name] :][::-1]
        return gone

    async def _settle(self, file: Path, content: Callable[[], str], how: str) -> None:
        """After a moment for a cut and paste or an undo and redo: what is still gone was reverted."""
        await asyncio.sleep(self.grace_s())
        self._doubts.pop(file, None)
        text = content()
        counts = Counter(call.name for call in find_calls(text))
        for placement in self._missing(file, counts):
            undone = placement in self._undone
            self._drop(placement)
            await self.record(OutcomeKind.REVERTED, placement, "undo" if undone else how)
            await self.gone(placement, undone)

    def _let_go(self, placement: Placement, ended: asyncio.Task[None]) -> None:
        if self._watches.get(placement) is ended:
            del self._watches[placement]

    async def _survive(self, placement: Placement) -> None:
        for horizon, seconds in zip(HORIZONS, self.survival_s(), strict=True):
            # never longer than the horizon itself, however far the system's clock was set back
            await asyncio.sleep(min(max(0.0, placement.at + seconds - self.clock()), seconds))
            await self.record(OutcomeKind.SURVIVED, placement, horizon)

    async def restore(self, document: Document) -> None:
        """Takes up the watch over a reopened file, and settles what happened while nobody looked.

        A call whose acceptance was not saved (the server was killed in between) is saved now; an
        accepted call that is no longer there was reverted.
        """
        jobs = await self.store(lambda memory: memory.jobs(file=str(document.path)))
        latest = {job.region_id: job for job in jobs if job.kind is JobKind.GENERATE}
        unsaved = [job for job in reversed(latest.values()) if not await self._is_restored(document, job)]
        for job in unsaved:
            await self._save_acceptance(document, job)
        self.observe(document)

    async def _is_restored(self, document: Document, job: Job) -> bool:
        """Watches the call of an acceptance again, or records that it was reverted. False where the last
        that is known of the place is a kernel that waits for review."""
        if any(p.file == document.path and p.region_id == job.region_id for p in self.placements):
            return True
        key = place_key(document.path, job.region_id)
        outcomes = await self.store(lambda memory: memory.outcomes(key))
        decided = [outcome for outcome in outcomes if _settles(outcome)]
        last = decided[-1] if decided else None
        if last is not None and last.kind is OutcomeKind.READY:
            return False
        if last is not None and last.kind is OutcomeKind.ACCEPTED:
            installed = await self._called(document, job)
            name = installed.name if installed else ""
            placement = Placement(document.path, name, job.region_id, last.task_id, last.source_id, last.at)
            if installed is None:
                await self.record(OutcomeKind.REVERTED, placement, "manual")
            else:
                await self._catch_up(placement, installed)
        return True

    async def _save_acceptance(self, document: Document, job: Job) -> None:
        """A call in the text that no acceptance accounts for is one that was not saved."""
        installed = await self._called(document, job)
        if installed is None:
            return
        if document.counts()[installed.name] > self.watched(document.path, installed.name):
            await self.accept(_placement(document.path, job, installed, self.clock()), job=job)

    async def _catch_up(self, placement: Placement, installed: Installed) -> None:
        """A refined kernel whose acceptance was not saved is the one that is installed."""
        if installed.source_id == placement.source_id:
            self.watch(placement)
        else:
            await self.accept(evolve(placement, source_id=installed.source_id, at=self.clock()))

    async def _called(self, document: Document, job: Job) -> Installed | None:
        """The installed kernel of the job's task, where the document calls it."""
        for name in document.counts():
            installed = await asyncio.to_thread(read_installed, document.path, name)
            if installed is not None and installed.task_id == job.task_id:
                return installed
        return None


def _record(memory: Any, outcome: Outcome, since: float) -> None:
    """What two windows see of one placement counts once."""
    with memory.transaction():
        known = {
            (o.kind, o.source_id, o.detail) for o in memory.outcomes(outcome.region_id) if o.at >= since > 0
        }
        if (outcome.kind, outcome.source_id, outcome.detail) not in known:
            memory.record_outcome(outcome)


def _outcome(kind: OutcomeKind, placement: Placement, at: float, detail: str = "") -> Outcome:
    return Outcome(kind, placement.key, placement.task_id, placement.source_id, at, detail)


def _placement(file: Path, job: Job, installed: Installed, at: float) -> Placement:
    return Placement(file, installed.name, job.region_id, job.task_id, installed.source_id, at)
