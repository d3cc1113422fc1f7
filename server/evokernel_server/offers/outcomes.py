"""What became of accepted kernels: still there after a while, or taken out again by the person.

A generated call carries its kernel's name, so the text itself tells: a call that is gone for longer than
a cut and paste takes was reverted. That works for undo, for typing, for version control and across
restarts. A switch of branches says nothing about a kernel, so it ends the watch without a verdict, and a
call that comes back with its branch is watched again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import UNDO, Outcome, OutcomeKind
from evokernel_core.domain.placement import Placement, Standing, place_key
from evokernel_server.documents.branches import head_of
from evokernel_server.documents.packages import Installed, read_installed
from evokernel_server.documents.workspace import Document, find_calls, text_hash
from evokernel_server.jobs.queue import region_of
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.tasks import spawn
from evokernel_server.jobs.worker import WorkerError

log = logging.getLogger(__name__)

MOST_REVERTED = 100
"""Reverts by command of which a redo is known, the latest."""
HORIZONS = ("30s", "5m", "15m")
_SETTLED = (
    OutcomeKind.READY, OutcomeKind.ACCEPTED, OutcomeKind.PARTIALLY_ACCEPTED, OutcomeKind.REVERTED,
)  # fmt: skip
_CALLABLE = (OutcomeKind.READY, OutcomeKind.ACCEPTED)
_BRANCH, _DELETED = "branch", "deleted"


def _settles(outcome: Outcome) -> bool:
    """Whether an outcome says what became of a place. An offer that expired says nothing of what is there."""
    left = outcome.kind is OutcomeKind.EXPIRED and outcome.detail in (_BRANCH, _DELETED)
    return left or outcome.kind in _SETTLED


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
    _left: list[Placement] = field(factory=list)
    """Calls of another branch or of a deleted file, which may come back with it."""
    _doubts: dict[Path, asyncio.Task[None]] = field(factory=dict)
    _watches: dict[Placement, asyncio.Task[None]] = field(factory=dict)
    _undone: set[Placement] = field(factory=set)
    _leaving: set[str] = field(factory=set)
    """Places whose calls a command is taking out; the memory says until its end that they are there."""
    _reverted: dict[str, str] = field(factory=dict)
    """By place, the hash of the text that the latest revert by command left: a redo of it leads there."""

    async def record(self, kind: OutcomeKind, placement: Placement, detail: str = "") -> None:
        """Saves one outcome of a kernel; it is durable when this returns."""
        outcome = _outcome(kind, placement, self.clock(), detail)
        await self.store(lambda memory: _record(memory, outcome, placement))
        log.info("%s %s %s", kind.value, placement.name, detail)

    async def accept(self, *placements: Placement, job: Job | None = None) -> None:
        """Records acceptances made at once, and the end of a job, in one transaction, then watches the
        calls."""
        outcomes = [_outcome(OutcomeKind.ACCEPTED, placement, placement.at) for placement in placements]
        await self._save(outcomes, placements, job, "accepted")
        for placement in placements:
            self.watch(placement)

    async def ready(self, placement: Placement, job: Job) -> None:
        """Records that a kernel waits for review, and the end of its job, in one transaction."""
        await self._save([_outcome(OutcomeKind.READY, placement, self.clock())], (), job, "ready")

    async def _save(
        self, outcomes: Sequence[Outcome], placements: Sequence[Placement], job: Job | None, reason: str
    ) -> None:
        def save(memory: Any) -> None:
            with memory.transaction():
                for outcome in outcomes:
                    memory.record_outcome(outcome)
                for placement in placements:
                    memory.put_placement(placement)
                if job is not None:
                    memory.update_job(job.id, state=JobState.DONE, reason=reason)

        await self.store(save)

    def watch(self, placement: Placement) -> None:
        """Follows a call; a newer kernel in the same place takes the older one's."""
        for old in [p for p in self.placements if p.key == placement.key]:
            self._drop(old)
        self._left = [p for p in self._left if p.key != placement.key]
        self.placements.append(placement)
        watch = self._watches[placement] = spawn(self._survive(placement), "survival")
        watch.add_done_callback(lambda ended: self._let_go(placement, ended))

    def unwatch(self, file: Path, name: str) -> Placement | None:
        """Stops following the latest placement of a kernel in a file."""
        result = self.find(file, name)
        if result is not None:
            self._drop(result)
        return result

    @contextmanager
    def leaving(self, file: Path, name: str) -> Iterator[Placement | None]:
        """Its own revert takes out the latest placement of a kernel in a file, and what it does meanwhile is
        no other's to see: a text without the call that the memory still has in it means nothing."""
        placement = self.unwatch(file, name)
        key = placement.key if placement is not None else ""
        self._leaving.add(key)
        try:
            yield placement
        finally:
            self._leaving.discard(key)

    def reverted_to(self, placement: Placement, text: str) -> None:
        """A command took a call out and left the text of a hash."""
        self._reverted.pop(placement.key, None)
        self._reverted[placement.key] = text
        if len(self._reverted) > MOST_REVERTED:
            del self._reverted[next(iter(self._reverted))]

    def find(self, file: Path, name: str) -> Placement | None:
        return next(reversed(self._of(file, name)), None)

    def watched(self, file: Path, name: str) -> int:
        """How many calls of a kernel in a file are followed."""
        return len(self._of(file, name))

    def observe(self, document: Document) -> None:
        """Compares an open document with its placements after an edit."""
        if self._left:
            self._welcome(document.path, document.counts())
        self._compare(document.path, document.counts(), lambda: document.text.content, "manual")

    def _welcome(self, file: Path, counts: Counter[str]) -> None:
        """Calls that are back with their branch or file are watched again: nothing was decided meanwhile."""
        for placement in [placement for placement in self._left if placement.file == file]:
            if counts[placement.name] > self.watched(file, placement.name):
                self.watch(placement)
                spawn(self._keep(placement), "watching again")

    async def _keep(self, placement: Placement) -> None:
        head = await asyncio.to_thread(head_of, placement.file)
        await self.store(lambda memory: memory.put_placement(evolve(placement, head=head)))

    def observe_text(self, file: Path, content: str, how: str) -> None:
        """The same for a file that changed outside the editor."""
        counts = Counter(call.name for call in find_calls(content))
        self._welcome(file, counts)
        self._compare(file, counts, lambda: content, how)

    def void(self, files: Callable[[Path], bool]) -> tuple[Path, ...]:
        """Ends the watch over files whose branch was switched: no verdict about their kernels. Gives the
        files of which a call may be back, or still there."""
        for placement in [p for p in self.placements if files(p.file)]:
            self._leave(placement, _BRANCH)
        return tuple({p.file for p in self._left if files(p.file)})

    def _leave(self, placement: Placement, why: str) -> None:
        self._drop(placement)
        self._left.append(placement)
        spawn(self.record(OutcomeKind.EXPIRED, placement, why), "outcome")

    def move(self, old: Path, new: Path) -> tuple[Placement, ...]:
        """The calls of a file are in another file now. Gives their placements there."""
        moved = []
        self._forget_doubt(old)
        for placement in [p for p in self.placements if p.file == old]:
            self._drop(placement)
            moved.append(placement.moved(new))
            self.watch(moved[-1])
        self._left = [p.moved(new) if p.file == old else p for p in self._left]
        return tuple(moved)

    def end(self, file: Path) -> None:
        """A file was deleted: no verdict about its kernels."""
        self._forget_doubt(file)
        for placement in [p for p in self.placements if p.file == file]:
            self._leave(placement, _DELETED)

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
        """A call is gone and the text is the one before it came, or the one after its revert: that is seen at
        once, as a person may type on within the moment that is waited."""
        now = text_hash(content()) if missing and how == "manual" else ""
        if now:
            self._undone |= {
                placement
                for placement in missing
                if now in (placement.before, self._reverted.get(placement.key))
            }

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
            await self._take_out(placement, how, undone=placement in self._undone)

    async def _take_out(self, placement: Placement, how: str, *, undone: bool) -> None:
        self._drop(placement)
        await self.record(OutcomeKind.REVERTED, placement, UNDO if undone else how)
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
        placed = await self.store(lambda memory: memory.placements(document.path))
        for placement in placed:
            if placement.standing is Standing.CALLED and not self._is_watched(placement.key):
                await self._take_up(document, placement)
        jobs = await self.store(lambda memory: memory.jobs(file=str(document.path)))
        latest = {job.region_id: job for job in jobs if job.kind is JobKind.GENERATE}
        kept = {placement.region_id for placement in placed if placement.standing is Standing.CALLED}
        for job in [job for job in reversed(latest.values()) if job.region_id not in kept]:
            await self._adopt(document, job)
        self.observe(document)

    def _is_watched(self, key: str) -> bool:
        return key in self._leaving or any(other.key == key for other in self.placements)

    async def _take_up(self, document: Document, placement: Placement) -> None:
        """Watches the call of an acceptance again, or says what became of it."""
        file, name = placement.file, placement.name
        if document.counts()[name] > self.watched(file, name):
            await self._catch_up(placement, await asyncio.to_thread(read_installed, file, name))
            return
        settled = await self._settled(placement.key)
        if settled is not None and (settled.kind, settled.detail) == (OutcomeKind.EXPIRED, _DELETED):
            self._left.append(placement)
        elif placement.head and await asyncio.to_thread(head_of, file) != placement.head:
            self._leave(placement, _BRANCH)
        else:
            await self._take_out(placement, "manual", undone=document.hash == placement.before)

    async def _settled(self, key: str) -> Outcome | None:
        """The last that is known of a place."""
        outcomes = await self.store(lambda memory: memory.outcomes(key))
        return next((outcome for outcome in reversed(outcomes) if _settles(outcome)), None)

    async def _adopt(self, document: Document, job: Job) -> None:
        """A call in the text that no acceptance accounts for, of a kernel that waited for review, is one that
        was not saved; that of an accepted one is from before calls were kept."""
        key = place_key(document.path, job.region_id)
        settled = await self._settled(key)
        if settled is None or settled.kind not in _CALLABLE or self._is_watched(key):
            return
        installed = await self._called(document, job)
        if installed is None or document.counts()[installed.name] <= self.watched(
            document.path, installed.name
        ):
            return
        head = await asyncio.to_thread(head_of, document.path)
        placement = evolve(_placement(document.path, job, installed, self.clock()), head=head)
        if settled.kind is OutcomeKind.READY:
            await self.accept(placement, job=job)
        else:
            self.watch(evolve(placement, at=settled.at))
            await self._keep(self.placements[-1])

    async def _catch_up(self, placement: Placement, installed: Installed | None) -> None:
        """A refined kernel whose acceptance was not saved is the one that is installed."""
        if installed is None or installed.source_id == placement.source_id:
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


def _record(memory: Any, outcome: Outcome, placement: Placement) -> None:
    """What two windows see of one placement counts once, and it ends once, in whatever way each saw it."""
    since = placement.at
    with memory.transaction():
        if outcome.kind is OutcomeKind.REVERTED:
            standing = Standing.UNDONE if outcome.detail == UNDO else Standing.REVERTED
            memory.end_placement(placement, standing)
        if _mark(outcome) not in [_mark(o) for o in memory.outcomes(outcome.region_id) if o.at >= since > 0]:
            memory.record_outcome(outcome)


def _mark(outcome: Outcome) -> tuple[OutcomeKind, str, str]:
    return outcome.kind, outcome.source_id, "" if outcome.kind is OutcomeKind.REVERTED else outcome.detail


def _outcome(kind: OutcomeKind, placement: Placement, at: float, detail: str = "") -> Outcome:
    return Outcome(kind, placement.key, placement.task_id, placement.source_id, at, detail)


def _placement(file: Path, job: Job, installed: Installed, at: float) -> Placement:
    try:
        region = region_of(job)
    except WorkerError:  # it is damaged: its call can be watched all the same
        region = None
    return Placement(
        file, installed.name, job.region_id, job.task_id, installed.source_id, at, region=region
    )  # fmt: skip
